//! The signatures of a launch's events. The host gives each launch a key, which the runner reads before it loads
//! anything of the project. Lines without its signature come from other code.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

/// Number of bytes of a signature and of the space before it, at the end of each line.
const SIGNATURE: usize = 17;

/// The key of a launch's first event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seal {
    first: u64,
    second: u64,
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    /// Returns a random key.
    ///
    /// # Errors
    /// I/O errors of the system's source of random numbers.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = [0; 16];
        let mut filled = 0;
        while filled < bytes.len() {
            filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
        }
        let [first, second] =
            [0, 8].map(|at| bytes[at..at + 8].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
        Ok(Self { first, second })
    }

    /// Returns the key as the runner reads it: 32 hexadecimal digits.
    pub fn text(&self) -> String {
        format!("{:016x}{:016x}", self.first, self.second)
    }

    /// Returns a line's signature, and derives the next key.
    fn sign(&mut self, line: &[u8]) -> String {
        let of = |bytes: &[u8]| {
            let mut hasher = SipHasher24::new_with_keys(self.first, self.second);
            hasher.write(bytes);
            hasher.finish()
        };
        let (signature, next) = (of(line), Self { first: of(&[1]), second: of(&[2]) });
        *self = next;
        format!("{signature:016x}")
    }

    /// Returns the lines of the runner, and the number of other lines. An incomplete last line counts as neither.
    pub fn own_lines(mut self, events: &[u8]) -> (Vec<&[u8]>, u64) {
        let (mut own, mut others) = (Vec::new(), 0);
        for line in events.split_inclusive(|byte| *byte == b'\n') {
            let Some(line) = line.strip_suffix(b"\n") else { break };
            let (text, signature) = line.split_at(line.len().saturating_sub(SIGNATURE));
            // Only the runner's next line can have the next signature, so other lines do not change the key.
            let mut next = self;
            if signature.first() == Some(&b' ') && next.sign(text).as_bytes() == &signature[1..] {
                self = next;
                own.push(text);
            } else {
                others += 1;
            }
        }
        (own, others)
    }
}

/// Returns events with the runner's signatures for a key, for tests.
#[cfg(test)]
pub(crate) fn signed(key: &str, lines: &[&str]) -> String {
    let [first, second] = [&key[..16], &key[16..]].map(|half| u64::from_str_radix(half, 16).unwrap());
    let mut seal = Seal { first, second };
    lines.iter().map(|line| format!("{line} {}\n", seal.sign(line.as_bytes()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEAL: Seal = Seal { first: 0x0706_0504_0302_0100, second: 0x0f0e_0d0c_0b0a_0908 };

    #[test]
    fn signatures_are_those_of_the_hash_function() {
        // The test vectors of SipHash-2-4 (Aumasson and Bernstein, appendix A), for 15 bytes and for none.
        let bytes: Vec<u8> = (0..15).collect();
        assert_eq!(SEAL.clone().sign(&bytes), "a129ca6149be45e5");
        assert_eq!(SEAL.clone().sign(b""), "726fdb47dd0e0e31");
        assert_eq!(SEAL.text(), "07060504030201000f0e0d0c0b0a0908");
    }

    #[test]
    fn lines_of_others_are_counted_and_not_believed() {
        let own = signed(&SEAL.text(), &["{\"event\":\"a\"}", "{\"event\":\"b\"}"]);
        let lines: Vec<&str> = own.lines().collect();
        let read = |text: &str| {
            let (own, others) = SEAL.own_lines(text.as_bytes());
            (own.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect::<Vec<_>>(), others)
        };
        let both = vec!["{\"event\":\"a\"}".to_owned(), "{\"event\":\"b\"}".to_owned()];
        assert_eq!(read(&own), (both.clone(), 0));
        // Plain lines, empty ones, a repeated one and one with a signature that was seen.
        let forged = format!("x\n{}\n{}\n\n{}\n", lines[0], lines[0], lines[1]);
        assert_eq!(read(&forged), (both, 3));
        // Out of order the second is not next.
        assert_eq!(read(&format!("{}\n", lines[1])), (Vec::new(), 1));
        // What a killed JVM leaves.
        assert_eq!(read(&own[..own.len() - 3]), (vec!["{\"event\":\"a\"}".to_owned()], 0));
        let other = signed(&Seal { first: 1, second: 2 }.text(), &["{\"event\":\"a\"}"]);
        assert_eq!(read(&other), (Vec::new(), 1));
    }

    #[test]
    fn keys_are_random() {
        assert_ne!(Seal::random().unwrap(), Seal::random().unwrap());
    }
}
