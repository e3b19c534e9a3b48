//! Content digests: the one identity of bytes in locks, stores and images.
//!
//! Only SHA-256 is an identity here. Weaker sums that an origin publishes (SHA-1 of Maven) are checked at the download
//! and never stored.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The identity of content: its SHA-256, written as `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// A text that is not a `sha256:` digest.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no digest of the form sha256:<64 lower-case hexadecimal digits>")]
pub struct InvalidDigest(String);

impl Digest {
    /// Returns the digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns its first bytes as a number, which may seed random ones.
    pub fn first_bytes(&self) -> u64 {
        // A u64 has sixteen hexadecimal digits.
        u64::from_str_radix(&self.hex()[..16], 16).unwrap_or_default()
    }

    /// Returns the 64 hexadecimal digits without the algorithm's name.
    pub fn hex(&self) -> String {
        encode_hex(&self.0)
    }

    /// Parses a digest of 64 hexadecimal digits without the algorithm's name, as in Debian's indexes.
    ///
    /// # Errors
    /// [`InvalidDigest`] for anything but 64 lower-case digits.
    pub fn from_hex(hex: &str) -> Result<Self, InvalidDigest> {
        let invalid = || InvalidDigest(hex.chars().take(80).collect());
        let bytes = hex.as_bytes();
        if bytes.len() != 64 {
            return Err(invalid());
        }
        let mut out = [0u8; 32];
        for (slot, pair) in out.iter_mut().zip(bytes.chunks_exact(2)) {
            let high = hex_value(pair[0]).ok_or_else(invalid)?;
            let low = hex_value(pair[1]).ok_or_else(invalid)?;
            *slot = high << 4 | low;
        }
        Ok(Self(out))
    }
}

/// Returns `bytes` as lower-case hexadecimal digits.
pub fn encode_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)] as char);
        text.push(DIGITS[usize::from(byte & 15)] as char);
    }
    text
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.strip_prefix("sha256:")
            .and_then(|hex| Self::from_hex(hex).ok())
            .ok_or_else(|| InvalidDigest(text.chars().take(80).collect()))
    }
}

#[cfg(test)]
impl schemars::JsonSchema for Digest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "description": "A SHA-256 digest.", "type": "string", "pattern": "^sha256:[0-9a-f]{64}$" })
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A writer that hashes and counts the bytes that it passes on.
pub struct HashingWriter<W> {
    inner: W,
    hasher: Sha256,
    bytes: u64,
}

impl<W: Write> HashingWriter<W> {
    /// Returns a writer in front of `inner`.
    pub fn new(inner: W) -> Self {
        Self { inner, hasher: Sha256::new(), bytes: 0 }
    }

    /// Returns the inner writer, the digest of all bytes written, and their count.
    pub fn finish(self) -> (W, Digest, u64) {
        (self.inner, Digest(self.hasher.finalize().into()), self.bytes)
    }
}

impl<W: Write> Write for HashingWriter<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(buffer)?;
        self.hasher.update(&buffer[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Returns content after a line with its digest, for a file that a disk may damage.
pub fn seal(content: &[u8]) -> Vec<u8> {
    [format!("{}\n", Digest::of(content)).as_bytes(), content].concat()
}

/// Returns the content of what [`seal`] returned; `None` where a byte of it is another one or missing.
pub fn unseal(sealed: &[u8]) -> Option<&[u8]> {
    let end = sealed.iter().position(|byte| *byte == b'\n')?;
    let content = &sealed[end + 1..];
    (sealed[..end] == *Digest::of(content).to_string().as_bytes()).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_shows_every_damage() {
        for content in [&b""[..], b"content\nof lines\n"] {
            let sealed = seal(content);
            assert_eq!(unseal(&sealed), Some(content));
            for at in 0..sealed.len() {
                let mut other = sealed.clone();
                other[at] ^= 1;
                assert_eq!(unseal(&other), None, "byte {at}");
                assert_eq!(unseal(&sealed[..at]), None, "cut off at {at}");
            }
        }
    }

    #[test]
    fn digests_round_trip_and_reject_everything_else() {
        let digest = Digest::of(b"abc");
        assert_eq!(digest.to_string(), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
        for bad in ["", "sha256:", "sha256:AB", "md5:00", &digest.hex(), &digest.to_string().to_uppercase()] {
            assert!(bad.parse::<Digest>().is_err(), "{bad} was accepted");
        }
    }

    #[test]
    fn a_hashing_writer_agrees_with_hashing_at_once() {
        let mut writer = HashingWriter::new(Vec::new());
        writer.write_all(b"ab").unwrap();
        writer.write_all(b"c").unwrap();
        let (bytes, digest, count) = writer.finish();
        assert_eq!((bytes.as_slice(), digest, count), (&b"abc"[..], Digest::of(b"abc"), 3));
    }
}
