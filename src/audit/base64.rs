//! Finds base64 in contents: long runs of its characters, also broken into lines, in the plain and in the URL alphabet.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// The shortest run that is decoded, in characters.
const LEAST: usize = 64;

const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Returns each run's place with what it decodes to. A run may begin within a longer word, so each run is decoded from each of
/// its first four characters.
pub(super) fn decoded(content: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < content.len() {
        if !is_letter(content[at]) {
            at += 1;
            continue;
        }
        let (start, mut run) = (at, Vec::new());
        while let Some(&byte) = content.get(at) {
            match byte {
                b'-' => run.push(b'+'),
                b'_' => run.push(b'/'),
                byte if is_letter(byte) => run.push(byte),
                b'\n' | b'\r' => {}
                _ => break,
            }
            at += 1;
        }
        if run.len() >= LEAST {
            for skipped in 0..4 {
                let run = &run[skipped..];
                // Whole groups decode whatever follows them; a last group of one character holds no byte.
                let whole = if run.len() % 4 == 1 { run.len() - 1 } else { run.len() };
                if let Ok(bytes) = ENGINE.decode(&run[..whole]) {
                    found.push((start + skipped, bytes));
                }
            }
        }
    }
    found
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}
