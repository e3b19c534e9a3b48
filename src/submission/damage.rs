//! Random damage to well-formed texts, for tests of parsers.

use proptest::prelude::{Strategy, any};

/// Bytes that mean something in patches and in JSON.
const WORDS: [&[u8]; 24] = [
    b"\n",
    b"\r",
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
    b"null",
    b"18446744073709551616",
    b"-1",
    b"1e999",
    b"@@ -1 +1 @@\n",
    b"--- a/x\n+++ b/x\n",
    b"diff --git a/x b/x\n",
    b"\\ No newline at end of file\n",
    b"/dev/null",
    b"../",
    b"\\u0000",
];

/// One change of a text; places count in thousandths of it.
#[derive(Clone, Debug)]
pub(super) enum Damage {
    Set(usize, u8),
    Cut(usize),
    Remove(usize, usize),
    Repeat(usize, usize),
    Insert(usize, usize),
}

/// Returns a few changes that follow each other.
pub(super) fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let place = || 0usize..1000;
    let damage = proptest::prop_oneof![
        (place(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        place().prop_map(Damage::Cut),
        (place(), 1usize..60).prop_map(|(at, length)| Damage::Remove(at, length)),
        (place(), 1usize..60).prop_map(|(at, length)| Damage::Repeat(at, length)),
        (place(), 0..WORDS.len()).prop_map(|(at, word)| Damage::Insert(at, word)),
    ];
    proptest::collection::vec(damage, 1..5)
}

/// Returns the text with the changes made.
pub(super) fn damaged(text: &[u8], damages: &[Damage]) -> Vec<u8> {
    let mut text = text.to_vec();
    for damage in damages {
        let place = |at: usize| at * text.len() / 1000;
        let piece = |at: usize, length: usize| place(at)..text.len().min(place(at) + length);
        match *damage {
            Damage::Set(at, byte) => {
                let at = place(at);
                if let Some(found) = text.get_mut(at) {
                    *found = byte;
                }
            }
            Damage::Cut(at) => text.truncate(place(at)),
            Damage::Remove(at, length) => drop(text.drain(piece(at, length))),
            Damage::Repeat(at, length) => text.extend_from_within(piece(at, length)),
            Damage::Insert(at, word) => drop(text.splice(piece(at, 0), WORDS[word].iter().copied())),
        }
    }
    text
}
