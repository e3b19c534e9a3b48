//! How long the pure hot parts take: `cargo bench`, or `cargo bench -- parsing` for some of it.
//!
//! Inputs are made here, as large as real ones are or may become; their names say how large.

#![expect(clippy::unwrap_used, reason = "a bench that can't be set up should say so and end")]

mod image;
mod metrics;
mod outcome;
mod parsing;

use criterion::Criterion;
use testevo_sandbox::engine::spec::CommandEnd;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for part in [image::benches, outcome::benches, metrics::benches, parsing::benches] {
        part(&mut criterion);
    }
    criterion.final_summary();
}

/// Numbers that look random and are the same every time (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A number in [0, 1).
    fn share(&mut self) -> f64 {
        self.below(1 << 20) as f64 / f64::from(1 << 20)
    }

    /// Bytes that no compressor makes smaller, as jars are.
    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).collect();
        bytes.truncate(length);
        bytes
    }

    /// Text that compresses as programs and their data do, to a third or so.
    fn text(&mut self, length: usize) -> Vec<u8> {
        const WORDS: [&str; 16] = [
            "public ", "static ", "final ", "return ", "(value)", " = ", "new ", "String", ";\n", "{\n", "}\n", "if (",
            "null", "this.", "int ", "throws ",
        ];
        let mut text = Vec::with_capacity(length + 32);
        while text.len() < length {
            let number = self.next();
            text.extend_from_slice(WORDS[(number % 16) as usize].as_bytes());
            if number.is_multiple_of(3) {
                text.extend_from_slice(format!("{:x}", number >> 48).as_bytes());
            }
        }
        text.truncate(length);
        text
    }
}

/// A command that exited with this status and nothing else to tell.
fn ended(exit_code: i32) -> CommandEnd {
    CommandEnd {
        exit_code: Some(exit_code),
        signal: None,
        limit: None,
        cpu_ms: 900,
        peak_resident_bytes: 200 << 20,
        dropped_bytes: 0,
        leftover_processes: 0,
        process_limit_hits: Some(0),
        memory_limit_kills: Some(0),
    }
}
