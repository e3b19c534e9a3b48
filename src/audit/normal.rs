//! Texts in the form in which they are compared: without blanks, NULs, and the marks that patches, comments and quotations put
//! at the beginnings of lines. A pasted, indented, commented out or quoted method has the same form as the method.

/// Tells whether a byte at the beginning of a line is a mark of patches, comments or quotations.
fn is_mark(byte: u8) -> bool {
    matches!(byte, b'+' | b'-' | b'*' | b'/' | b'#' | b'>' | b'|')
}

/// Returns the bytes that count.
fn counting(content: &[u8]) -> impl Iterator<Item = (usize, u8)> {
    let mut begins = true;
    content.iter().enumerate().filter_map(move |(at, &byte)| match byte {
        b'\n' | b'\r' => {
            begins = true;
            None
        }
        b' ' | b'\t' | b'\x0b' | b'\x0c' | 0 => None,
        byte if begins && is_mark(byte) => None,
        byte => {
            begins = false;
            Some((at, byte))
        }
    })
}

/// Returns the normal form of a content.
pub(super) fn normal(content: &[u8]) -> Vec<u8> {
    counting(content).map(|(_, byte)| byte).collect()
}

/// Returns the position in the content of the byte at `index` of the normal form.
pub(super) fn place(content: &[u8], index: usize) -> usize {
    counting(content).nth(index).map_or(content.len(), |(at, _)| at)
}

/// Returns the content without the escapes of JSON and of Java's string literals; `None` if there are none.
pub(super) fn unescaped(content: &[u8]) -> Option<Vec<u8>> {
    if !content.windows(2).any(|pair| pair == b"\\n" || pair == b"\\\"") {
        return None;
    }
    let mut plain = Vec::with_capacity(content.len());
    let mut rest = content;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            plain.push(byte);
            continue;
        }
        let Some((&escaped, after)) = rest.split_first() else { break };
        rest = after;
        match escaped {
            b'n' | b'r' => plain.push(b'\n'),
            b't' => plain.push(b'\t'),
            b'u' => {
                let digits = rest.get(..4).and_then(|digits| std::str::from_utf8(digits).ok());
                if let Some(c) = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32)
                {
                    rest = rest.get(4..).unwrap_or_default();
                    plain.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
            }
            other => plain.push(other),
        }
    }
    Some(plain)
}

/// Calls `each` with a content's forms without escapes and entities. A form's name tells what was resolved, such as
/// `!entities!unescaped`.
pub(super) fn resolved(content: &[u8], each: &mut dyn FnMut(&str, &[u8])) {
    each_unescaped("", content, each);
    if let Some(plain) = without_entities(content) {
        each("!entities", &plain);
        each_unescaped("!entities", &plain, each);
    }
}

/// Resolves escapes again and again, because a string of JSON may hold JSON.
fn each_unescaped(name: &str, content: &[u8], each: &mut dyn FnMut(&str, &[u8])) {
    const MOST_TIMES: usize = 3;
    let mut name = name.to_owned();
    let mut last: Option<Vec<u8>> = None;
    for _ in 0..MOST_TIMES {
        let Some(plain) = unescaped(last.as_deref().unwrap_or(content)) else { return };
        name.push_str("!unescaped");
        each(&name, &plain);
        last = Some(plain);
    }
}

/// Returns the content with the entities of HTML and XML replaced; `None` if there are none.
fn without_entities(content: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    let mut rest = content;
    let mut any = false;
    while let Some(at) = rest.iter().position(|byte| *byte == b'&') {
        plain.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        match entity(rest) {
            Some((character, length)) => {
                any = true;
                plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &rest[length..];
            }
            None => {
                plain.push(b'&');
                rest = &rest[1..];
            }
        }
    }
    plain.extend_from_slice(rest);
    any.then_some(plain)
}

/// Returns the character of the entity that a text begins with, and the entity's length in bytes.
fn entity(text: &[u8]) -> Option<(char, usize)> {
    const NAMED: [(&str, char); 6] =
        [("lt", '<'), ("gt", '>'), ("quot", '"'), ("apos", '\''), ("amp", '&'), ("nbsp", ' ')];
    // Zeros may stand before the number.
    const MOST_BYTES: usize = 16;
    let end = text.iter().take(MOST_BYTES).position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(text.get(1..end)?).ok()?;
    let character = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
        None => NAMED.iter().find(|(known, _)| *known == name)?.1,
    };
    Some((character, end + 1))
}

/// Where a patch marks its lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MarkPosition {
    /// In the first column.
    First,
    /// After blanks, or after marks of comments and quotations.
    Later,
}

/// Returns the new side of patches in a content: lines that a patch removes are left out, and the others lose their mark. There is a
/// text for patches at the beginnings of lines, and one for indented, quoted or commented out patches. Empty if no patch removes a line.
pub(super) fn patched(content: &[u8]) -> Vec<Vec<u8>> {
    new_sides(content, false)
}

/// Returns the new sides that [`patched()`] returns, and those of patches that only add lines. `patched` skips the latter,
/// because the marks of added lines are letters of base64, too.
pub(super) fn added(content: &[u8]) -> Vec<Vec<u8>> {
    new_sides(content, true)
}

fn new_sides(content: &[u8], adding: bool) -> Vec<Vec<u8>> {
    const LOOKED_AT: usize = 8 << 10;
    if content[..content.len().min(LOOKED_AT)].contains(&0) {
        return Vec::new();
    }
    [MarkPosition::First, MarkPosition::Later]
        .into_iter()
        .filter_map(|marks| new_side(content, marks, adding))
        .collect()
}

/// Returns the new side; `None` if no line is added, or if no line is removed and `adding` is not set.
fn new_side(content: &[u8], marks: MarkPosition, adding: bool) -> Option<Vec<u8>> {
    let lines = || content.split_inclusive(|byte| *byte == b'\n');
    let is = |line, mark| marked(line, marks).is_some_and(|rest| rest[0] == mark);
    let (mut removes, mut adds) = (adding, false);
    for line in lines() {
        removes |= is(line, b'-');
        adds |= is(line, b'+') || is(line, b'@');
        if removes && adds {
            let left = lines().filter(|line| !is(line, b'-') && !is(line, b'\\'));
            return Some(left.flat_map(|line| without_mark(line, marks)).copied().collect());
        }
    }
    None
}

/// Returns a line from its mark on, if it has one.
fn marked(line: &[u8], marks: MarkPosition) -> Option<&[u8]> {
    let place = match marks {
        MarkPosition::First => 0,
        MarkPosition::Later => {
            line.iter().position(|byte| !matches!(byte, b' ' | b'\t' | b'>' | b'|' | b'#' | b'/' | b'*'))?
        }
    };
    let rest = line.get(place..)?;
    let is_mark =
        matches!(rest.first(), Some(b'-' | b'+')) || rest.starts_with(b"@@") || rest.starts_with(b"\\ No newline");
    (is_mark && (marks == MarkPosition::First || place > 0)).then_some(rest)
}

fn without_mark(line: &[u8], marks: MarkPosition) -> &[u8] {
    match marked(line, marks) {
        Some(rest) => &rest[1..],
        None if marks == MarkPosition::First => line.strip_prefix(b" ").unwrap_or(line),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_resolved() {
        let text = b"&#x27;a&#39; &#0039;&#X3C;&lt;&amp;lt; &#xE9;&; &#; &#xzz; &unknown; & b";
        let plain = without_entities(text).unwrap();
        assert_eq!(String::from_utf8(plain).unwrap(), "'a' '<<&lt; \u{e9}&; &#; &#xzz; &unknown; & b");
        assert_eq!(without_entities(b"a && b"), None);
    }

    #[test]
    fn removed_lines_are_left_out() {
        let patch = b"@@ -1,3 +1,3 @@\n a\n-b\n+c\n  d\n\\ No newline at end of file\n";
        assert_eq!(patched(patch), [b"@ -1,3 +1,3 @@\na\nc\n d\n".to_vec()]);
        let quoted = b"> -b\n> +c\n> a\n";
        assert_eq!(patched(quoted), [b"c\n> a\n".to_vec()]);
        let new = b"+a\n+b\n";
        assert_eq!(added(new), [b"a\nb\n".to_vec()]);
        assert_eq!((added(patch), added(quoted)), (patched(patch), patched(quoted)));
        assert!(patched(new).is_empty() && added(b"- one\n- two\n").is_empty());
        // A list is no patch.
        assert!(patched(b"- one\n- two\n  and\n").is_empty());
        assert!(patched(b"-\0\n+\n").is_empty());
    }
}
