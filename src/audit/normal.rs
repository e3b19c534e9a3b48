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

/// Returns where the byte `index` of the normal form stands in the content.
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

/// Returns the content with the entities of HTML and XML replaced; `None` if there are none.
pub(super) fn without_entities(content: &[u8]) -> Option<Vec<u8>> {
    const ENTITIES: [(&[u8], u8); 7] = [
        (b"&lt;", b'<'),
        (b"&gt;", b'>'),
        (b"&quot;", b'"'),
        (b"&#34;", b'"'),
        (b"&#39;", b'\''),
        (b"&apos;", b'\''),
        (b"&amp;", b'&'),
    ];
    let mut plain = Vec::new();
    let mut rest = content;
    let mut any = false;
    while let Some(at) = rest.iter().position(|byte| *byte == b'&') {
        plain.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        match ENTITIES.iter().find(|(entity, _)| rest.starts_with(entity)) {
            Some((entity, byte)) => {
                any = true;
                plain.push(*byte);
                rest = &rest[entity.len()..];
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
