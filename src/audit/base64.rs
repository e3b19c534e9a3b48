//! Finds base64 in contents: long runs of its characters, also broken into lines, quoted or in comments, in the plain and in the URL
//! alphabet.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// The shortest run that is decoded, in characters.
const LEAST: usize = 64;
/// The most bytes between two lines of a run.
const MOST_BETWEEN: usize = 200;

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
        let mut run = Vec::new();
        while let Some(&byte) = content.get(at) {
            if is_letter(byte) {
                run.push(match byte {
                    b'-' => b'+',
                    b'_' => b'/',
                    byte => byte,
                });
                at += 1;
            } else if let Some(next) = next_line(content, at) {
                at = next;
            } else {
                break;
            }
        }
        if run.len() < LEAST {
            continue;
        }
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

/// Returns the position in the next line at which a run of base64 continues; `None` if no line ends at `at`. Skips quotes,
/// commas and concatenations at the line's end, and blanks, quotes and the marks of comments, quotations and lists at the
/// beginning of the next one.
fn next_line(content: &[u8], at: usize) -> Option<usize> {
    let most = content.len().min(at + MOST_BETWEEN);
    let (mut next, mut line_ended) = (at, false);
    while next < most {
        next += match &content[next..most] {
            [b'\n' | b'\r', ..] => {
                line_ended = true;
                1
            }
            [b' ' | b'\t' | b'"' | b'\'', ..] => 1,
            [b',' | b'+' | b'\\', ..] if !line_ended => 1,
            [b'#' | b'>' | b'*' | b'|', ..] if line_ended => 1,
            [b'/', b'/', b' ' | b'\t', ..] if line_ended => 3,
            _ => break,
        };
    }
    line_ended.then_some(next)
}

/// Tells whether base64 may go on behind an escaped line break.
pub(super) fn has_escaped_lines(content: &[u8]) -> bool {
    content.windows(4).any(|four| is_letter(four[0]) && four[1..3] == *b"\\n" && is_letter(four[3]))
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}
