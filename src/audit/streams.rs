//! Reading within limits, and the formats that streams are told by.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;
use std::time::Instant;

/// What an audit may still read.
#[derive(Debug)]
pub(super) struct Meter {
    left: Cell<u64>,
    deadline: Option<Instant>,
}

impl Meter {
    pub(super) fn new(bytes: u64, deadline: Option<Instant>) -> Self {
        Self { left: Cell::new(bytes), deadline }
    }

    /// Returns the limit that is reached, in words; `None` if none is.
    pub(super) fn exhausted(&self) -> Option<&'static str> {
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Some("the time is over"),
            _ if self.left.get() == 0 => Some("the limit of bytes is reached"),
            _ => None,
        }
    }
}

/// A reader that fails once the limits are reached.
pub(super) struct Metered<R> {
    pub(super) inner: R,
    pub(super) meter: Rc<Meter>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(reason) = self.meter.exhausted() {
            return Err(io::Error::other(reason));
        }
        let read = self.inner.read(buffer)?;
        self.meter.left.set(self.meter.left.get().saturating_sub(read as u64));
        Ok(read)
    }
}

/// A format of archives and compression, by a content's first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Gzip,
    Zstd,
    Xz,
    Tar,
    Ar,
    /// A format that this program can't unpack.
    Unknown(&'static str),
    Plain,
}

/// The format of `compress`, whose files end with `.Z`.
const COMPRESS: &str = "compress (.Z)";

/// Bytes that [`Format::of`] needs.
pub(super) const HEAD_BYTES: usize = 512;

impl Format {
    pub(super) fn of(head: &[u8]) -> Self {
        const UNKNOWN: [(&[u8], &str); 9] = [
            (b"BZh", "bzip2"),
            (b"7z\xbc\xaf\x27\x1c", "7z"),
            (b"Rar!\x1a\x07", "RAR"),
            (b"\x04\x22\x4d\x18", "LZ4"),
            (b"\x02\x21\x4c\x18", "LZ4"),
            (b"LZIP\x01", "lzip"),
            (b"\x89LZO\x00\x0d\x0a\x1a\x0a", "lzop"),
            (b"hsqs", "SquashFS"),
            (b"\xed\xab\xee\xdb", "RPM"),
        ];
        match head {
            [0x1f, 0x8b, 8, ..] => Self::Gzip,
            // Frames of zstd, and frames that its readers pass over.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [0x22..=0x27, 0xb5, 0x2f, 0xfd, ..] => Self::Unknown("an early zstd"),
            // The third byte tells the longest code, of 9 to 16 bits.
            [0x1f, 0x9d, flags, ..] if flags & 0x60 == 0 && matches!(flags & 0x1f, 9..=16) => Self::Unknown(COMPRESS),
            [0x5d, 0, 0, a, b, size @ ..] if is_lzma(u16::from_le_bytes([*a, *b]), size) => Self::Unknown("LZMA"),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Self::Xz,
            _ if head.get(257..262) == Some(b"ustar") || is_old_tar(head) => Self::Tar,
            _ if head.starts_with(b"!<arch>\n") => Self::Ar,
            _ => match UNKNOWN.iter().find(|(magic, _)| head.starts_with(magic)) {
                // Text may begin with these letters.
                Some((b"BZh", _)) if head.get(4..10) != Some(b"1AY&SY") => Self::Plain,
                Some((_, name)) => Self::Unknown(name),
                None => Self::Plain,
            },
        }
    }

    /// Tells whether hardly any other content begins like this format.
    pub(super) fn is_certain(self) -> bool {
        self != Self::Unknown(COMPRESS)
    }
}

/// Tells whether a header is one of LZMA, whose format has no magic bytes. `dictionary` is the dictionary's size in units of 64 KiB.
/// `size` begins with the content's size in eight bytes: unknown, or less than 1 TiB.
fn is_lzma(dictionary: u16, size: &[u8]) -> bool {
    dictionary.is_power_of_two() && size.len() >= 8 && (size[..8] == [0xff; 8] || size[5..8] == [0; 3])
}

/// Tells whether a content begins with a header of tar before `ustar`, which only its checksum tells from other contents.
fn is_old_tar(head: &[u8]) -> bool {
    let Some(header) = head.get(..HEAD_BYTES).filter(|header| header[0] != 0) else { return false };
    let (before, field, after) = (&header[..148], &header[148..156], &header[156..]);
    let digits = field.split(|byte| *byte == 0).next().and_then(|digits| std::str::from_utf8(digits).ok());
    let told = digits.and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok());
    // The sum is made while the field has blanks.
    let blanks = u32::from(b' ') * 8;
    told.is_some_and(|told| told == before.iter().chain(after).fold(blanks, |sum, byte| sum + u32::from(*byte)))
}
