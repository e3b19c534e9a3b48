//! Decodes names as git quotes them if they have unusual bytes: in double quotes, with C's escapes.

/// Returns the decoded bytes of a quoted name and the text after its closing quote; `None` if it is malformed. `text`
/// begins with the opening quote.
pub(super) fn unquote(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut name = Vec::new();
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            b'"' => return Some((name, rest)),
            b'\\' => {
                let (&escape, after) = rest.split_first()?;
                rest = after;
                name.push(match escape {
                    b'a' => 7,
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => b'\r',
                    b'"' | b'\\' => escape,
                    b'0'..=b'3' => {
                        let (digits, after) = rest.split_at_checked(2)?;
                        rest = after;
                        let mut value = escape - b'0';
                        for digit in digits {
                            if !(b'0'..=b'7').contains(digit) {
                                return None;
                            }
                            value = value * 8 + (digit - b'0');
                        }
                        value
                    }
                    _ => return None,
                });
            }
            b'\n' | b'\r' => return None,
            _ => name.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_git_writes_them() {
        for (quoted, name) in [
            (r#""a/\303\244.java""#, "a/ä.java".as_bytes()),
            (r#""a/\056mvn/jvm.config""#, b"a/.mvn/jvm.config"),
            (r#""a\tb\\c\"d""#, b"a\tb\\c\"d"),
        ] {
            assert_eq!(unquote(quoted.as_bytes()), Some((name.to_vec(), &b""[..])), "{quoted}");
        }
        assert_eq!(unquote(b"\"a\" \"b\""), Some((b"a".to_vec(), &b" \"b\""[..])));
        for bad in [r#""a"#, r#""\400""#, r#""\0""#, r#""\08""#, r#""\x41""#, "a", "\"a\nb\""] {
            assert_eq!(unquote(bad.as_bytes()), None, "{bad}");
        }
    }
}
