//! Members of `ar` archives. Debian packages are such archives, and so are libraries of C.
//!
//! A header has 60 bytes: the name in 16, the size in decimal digits at 48, and two bytes that end the header.

use std::io::{self, Read};

/// The first bytes of an archive.
pub(super) const MAGIC: &[u8; 8] = b"!<arch>\n";
/// The name of the member with GNU's long names.
pub(super) const NAMES: &str = "//";
/// The most bytes of long names that are remembered.
pub(super) const MOST_NAMES_BYTES: u64 = 1 << 20;
/// The longest name that is shown, in bytes.
pub(super) const MOST_NAME_BYTES: usize = 4096;

/// A member, whose content follows in the stream, and after it a filler if the size is odd.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) size: u64,
}

/// Reads the next header; `None` at the archive's end. `names` are the long names that were read so far.
pub(super) fn next(reader: &mut dyn Read, names: &[u8]) -> io::Result<Option<Member>> {
    let mut header = Vec::new();
    reader.take(60).read_to_end(&mut header)?;
    if header.is_empty() {
        return Ok(None);
    }
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "a member's header is malformed");
    let size = header.get(48..58).and_then(|digits| std::str::from_utf8(digits).ok()?.trim_end().parse().ok());
    let (Some(size), Some(b"`\n"), Some(name)) = (size, header.get(58..60), header.get(..16)) else {
        return Err(malformed());
    };
    Ok(Some(Member { name: shown(name.trim_ascii_end(), names), size }))
}

/// Returns a name as it is shown. GNU's `/123` stands for the name at byte 123 of the long names.
fn shown(name: &[u8], names: &[u8]) -> String {
    let number = name.strip_prefix(b"/").and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<usize>().ok());
    let long = number.and_then(|start| names.get(start..)).map(|rest| {
        let end = rest.iter().take(MOST_NAME_BYTES).position(|byte| *byte == b'\n');
        &rest[..end.unwrap_or(rest.len().min(MOST_NAME_BYTES))]
    });
    let name = long.unwrap_or(name);
    let short = if name.starts_with(b"/") { name } else { name.strip_suffix(b"/").unwrap_or(name) };
    String::from_utf8_lossy(short).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, size: &str, names: &[u8]) -> Option<(String, u64)> {
        let header = format!("{name:<48}{size:<10}`\n");
        next(&mut header.as_bytes(), names).ok()?.map(|member| (member.name, member.size))
    }

    #[test]
    fn names_are_of_either_kind() {
        let names = b"long name.o/\nother.o/\n";
        for (name, names, expected) in [
            ("data.tar.gz", &b""[..], "data.tar.gz"),
            ("a.o/", b"", "a.o"),
            ("/13", names, "other.o"),
            ("/0", names, "long name.o"),
            // Without long names, and outside of them.
            ("/99", b"", "/99"),
            ("/99", names, "/99"),
            ("/18446744073709551615", names, "/184467440737095"),
            ("//", b"", "//"),
            ("/", b"", "/"),
            ("#1/4000000000", b"", "#1/4000000000"),
        ] {
            assert_eq!(read(name, "7", names), Some((expected.to_owned(), 7)), "{name}");
        }
        assert_eq!(read("a", "-7", b""), None);
        assert_eq!(read("a", "99999999999999999999", b""), None);
        assert!(matches!(next(&mut &b""[..], b""), Ok(None)));
        assert!(next(&mut &b"short"[..], b"").is_err());
    }
}
