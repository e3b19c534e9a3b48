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

/// Calls `each` with what each run decodes to and its place. A run may begin within a longer word, so each run is decoded from each
/// of its first four characters. One decoding is in memory at a time.
pub(super) fn decoded(content: &[u8], each: &mut dyn FnMut(usize, &[u8])) {
    let mut at = 0;
    while at < content.len() {
        if !is_letter(content[at]) {
            at += 1;
            continue;
        }
        let start = at;
        let mut letters = 0;
        while let Some(byte) = content.get(at).filter(|byte| is_letter(**byte) || is_break(**byte)) {
            letters += usize::from(!is_break(*byte));
            at += 1;
        }
        if letters < LEAST {
            continue;
        }
        let plain = content[start..at].iter().filter(|byte| !is_break(**byte)).map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            byte => *byte,
        });
        let run: Vec<u8> = plain.collect();
        for skipped in 0..4 {
            let run = &run[skipped..];
            // Whole groups decode whatever follows them; a last group of one character holds no byte.
            let whole = if run.len() % 4 == 1 { run.len() - 1 } else { run.len() };
            if let Ok(bytes) = ENGINE.decode(&run[..whole]) {
                each(start + skipped, &bytes);
            }
        }
    }
}

fn is_break(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}
