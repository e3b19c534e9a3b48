//! Damages inputs at random, by the same numbers for the same seed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// Numbers at which lengths, counts and shifts go wrong.
const NUMBERS: [u64; 12] =
    [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0xffff_ffff, i64::MAX as u64, u64::MAX];

/// Texts at which every format of text goes wrong.
const WORDS: [&[u8]; 20] = [
    b"\n",
    b"\r\n",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"/",
    b"../",
    b"null",
    b"-1",
    b"18446744073709551616",
    b"1e999",
    "\u{202e}\u{e9}\u{1f600}".as_bytes(),
];

/// Makes inputs of one target.
pub(crate) struct Mutator {
    random: ChaCha8Rng,
    seeds: Vec<Vec<u8>>,
    words: &'static [&'static [u8]],
    most: usize,
}

impl Mutator {
    /// Returns a mutator of `seeds` that knows further `words`. No input that it makes is longer than `most` bytes, or than the
    /// seed that it began with.
    pub(crate) fn new(seeds: Vec<Vec<u8>>, words: &'static [&'static [u8]], most: usize, seed: u64) -> Self {
        Self { random: ChaCha8Rng::seed_from_u64(seed), seeds, words, most }
    }

    /// Returns the next input.
    pub(crate) fn input(&mut self) -> Vec<u8> {
        let mut input = self.seed().to_vec();
        let most = self.most.max(input.len());
        for _ in 0..=self.below(5) {
            self.damage(&mut input);
            input.truncate(most);
        }
        input
    }

    fn seed(&mut self) -> &[u8] {
        match self.seeds.len() {
            0 => &[],
            number => {
                let index = self.below(number);
                &self.seeds[index]
            }
        }
    }

    /// Returns a number below `bound`, 0 where that is 0.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.next_u64() % (bound.max(1) as u64)).unwrap_or_default()
    }

    /// Returns a piece of a text, mostly a short one.
    fn piece(&mut self, length: usize) -> std::ops::Range<usize> {
        let longest = [4, 16, 64, length][self.below(4)].min(length);
        let wanted = self.below(longest + 1);
        let start = self.below(length - wanted + 1);
        start..start + wanted
    }

    fn damage(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len());
        match self.below(11) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << (self.random.next_u32() % 8);
                }
            }
            1 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = self.random.next_u32() as u8;
                }
            }
            2 => input.truncate(at),
            3 => {
                let piece = self.piece(input.len());
                input.drain(piece);
            }
            4 => {
                let piece = self.piece(input.len());
                let copy = input[piece].to_vec();
                input.splice(at..at, copy);
            }
            // What nests, repeats or grows without a limit shows it now.
            5 => {
                let piece = self.piece(input.len());
                let times = 1 << self.below(12);
                let copy = input[piece].to_vec();
                let times = times.min(self.most / copy.len().max(1));
                input.splice(at..at, copy.repeat(times));
            }
            6 => {
                let number = NUMBERS[self.below(NUMBERS.len())].wrapping_add(self.below(3) as u64).wrapping_sub(1);
                let width = [1, 2, 4, 8][self.below(4)];
                let bytes = match self.below(2) {
                    0 => number.to_be_bytes()[8 - width..].to_vec(),
                    _ => number.to_le_bytes()[..width].to_vec(),
                };
                let end = (at + width).min(input.len());
                input.splice(at..end, bytes);
            }
            7 => self.digits(input),
            8 => {
                let index = self.below(WORDS.len());
                input.splice(at..at, WORDS[index].iter().copied());
            }
            9 if !self.words.is_empty() => {
                let index = self.below(self.words.len());
                let end = if self.below(2) == 0 { at } else { (at + self.words[index].len()).min(input.len()) };
                input.splice(at..end, self.words[index].iter().copied());
            }
            _ => {
                let other = self.seed().to_vec();
                let piece = self.piece(other.len());
                let end = at + self.piece(input.len() - at).len();
                input.splice(at..end, other[piece].iter().copied());
            }
        }
    }

    /// Puts another number in the place of one in digits.
    fn digits(&mut self, input: &mut Vec<u8>) {
        let from = self.below(input.len());
        let Some(start) = input[from..].iter().position(u8::is_ascii_digit).map(|at| at + from) else { return };
        let length = input[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = NUMBERS[self.below(NUMBERS.len())];
        let text = match self.below(4) {
            // Of the same width, for formats that have fixed ones.
            0 => format!("{:0width$}", number % 10_u64.saturating_pow(length.min(19) as u32), width = length),
            1 => format!("-{number}"),
            2 => "9".repeat(length),
            _ => number.to_string(),
        };
        input.splice(start..start + length, text.into_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_inputs_and_bounded_ones() {
        let make = |seed| {
            let mut mutator = Mutator::new(vec![b"one 17 two".to_vec(), vec![0; 100]], &[b"word"], 4096, seed);
            (0..2000).map(|_| mutator.input()).collect::<Vec<_>>()
        };
        let inputs = make(1);
        assert_eq!(inputs, make(1));
        assert_ne!(inputs, make(2));
        assert!(inputs.iter().all(|input| input.len() <= 4096));
        // Every kind of damage happens.
        for part in [&b"word"[..], b"18446744073709551616", b"18446744073709551615", b"\xff\xff\xff\xff"] {
            let text = part.escape_ascii().to_string();
            assert!(inputs.iter().any(|input| input.windows(part.len()).any(|window| window == part)), "{text}");
        }
        assert!(inputs.iter().any(|input| input.len() > 1000));
    }

    #[test]
    fn nothing_can_be_damaged() {
        let mut mutator = Mutator::new(Vec::new(), &[], 16, 1);
        for _ in 0..1000 {
            assert!(mutator.input().len() <= 16);
        }
    }
}
