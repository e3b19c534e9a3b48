//! Texts for people and machines: tables, JSON lines, numbers with their nouns. Nothing is printed here.
//!
//! Untrusted names, logs and messages pass through [`escape`], so that no text can steer the terminal.

mod table;

use std::borrow::Cow;

use serde::Serialize;

pub use table::Table;

/// Columns of an output that is no terminal.
pub const DEFAULT_WIDTH: usize = 100;

/// A word is not shortened to less.
const SHORTEST_WORD: usize = 12;

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// Tables and sentences for people.
    #[default]
    Text,
    /// One JSON value a line, the summary last.
    Json,
}

/// Tells whether a terminal, browser or spreadsheet may act on the character instead of displaying it. This function is
/// the one place that decides it. Terminals get such characters escaped, reports get them replaced.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        // Characters that reorder, hide or break the surrounding text.
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Returns the character, or the replacement character for an unsafe one ([`is_unsafe`]).
pub fn visible(c: char) -> char {
    if is_unsafe(c) { '\u{fffd}' } else { c }
}

/// Returns the text with [`visible`] characters only, but preserves line breaks and tabs.
pub fn visible_lines(text: &str) -> String {
    text.chars().map(|c| if matches!(c, '\n' | '\t') { c } else { visible(c) }).collect()
}

/// Returns the text in one line with every character that could steer a terminal written as `\u{…}`.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_if(text, is_unsafe)
}

/// Escapes the text as [`escape`] does, but preserves line breaks and tabs.
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    escape_if(text, |c| is_unsafe(c) && !matches!(c, '\n' | '\t'))
}

fn escape_if(text: &str, unsafe_character: fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(unsafe_character) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' if unsafe_character(c) => escaped.push_str("\\n"),
            '\t' if unsafe_character(c) => escaped.push_str("\\t"),
            _ if unsafe_character(c) => escaped.extend(c.escape_unicode()),
            _ => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

/// Returns the value as one line of JSON, line break included, in which every character that could steer a terminal
/// is escaped.
///
/// # Errors
/// The value can't be serialised.
pub fn json_line(value: &impl Serialize) -> Result<String, serde_json::Error> {
    use std::fmt::Write as _;
    let text = serde_json::to_string(value)?;
    let mut line = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        // JSON itself escapes characters below U+0020. All others are inside a text.
        if is_unsafe(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(line, "\\u{unit:04x}");
            }
        } else {
            line.push(c);
        }
    }
    line.push('\n');
    Ok(line)
}

/// Returns a JSON parser's error as a message for people. The message says if the text is truncated, and names no type of
/// this program.
pub fn json_problem(error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "it is truncated: it ends within a value".to_owned();
    }
    without_types(&error.to_string())
}

/// Returns a parser's message with words for what a type of this program stands for.
pub fn without_types(message: &str) -> String {
    let kinds = [
        ("struct variant ", "an object"),
        ("struct ", "an object"),
        ("internally tagged enum ", "an object"),
        ("adjacently tagged enum ", "an object"),
        ("tuple struct ", "a list"),
        ("tuple variant ", "a list"),
        ("enum ", "a name"),
        ("variant identifier", "a name"),
        ("field identifier", "a name"),
        ("a nonzero ", "a whole number from 1 on"),
    ];
    let Some((found, rest)) = message.split_once(", expected ") else { return message.to_owned() };
    let kind = kinds.iter().find_map(|(kind, meant)| Some((rest.strip_prefix(kind)?, *meant)));
    let Some((rest, meant)) = kind else { return message.to_owned() };
    let after = rest.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '<' | '>'));
    format!("{found}, expected {meant}{after}")
}

/// Returns the columns of the terminal that a stream writes to, or [`DEFAULT_WIDTH`] where it is none.
pub fn terminal_width(stream: impl std::os::fd::AsFd) -> usize {
    match rustix::termios::tcgetwinsize(stream) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => DEFAULT_WIDTH,
    }
}

/// Returns the text in at most so many characters. The longest words lose their middles, so that the ends of ids and
/// every short word stay.
pub fn elided(text: &str, width: usize) -> Cow<'_, str> {
    let mut surplus = text.chars().count().saturating_sub(width);
    if surplus == 0 {
        return Cow::Borrowed(text);
    }
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    while surplus > 0 {
        let Some(word) = words.iter_mut().max_by_key(|word| word.chars().count()) else { break };
        let length = word.chars().count();
        if length <= SHORTEST_WORD {
            break;
        }
        let kept = length.saturating_sub(surplus).max(SHORTEST_WORD);
        *word = without_middle(word, kept);
        surplus -= length - kept;
    }
    let text = words.join(" ");
    Cow::Owned(if surplus > 0 { without_middle(&text, width) } else { text })
}

/// Returns the first and last characters with an ellipsis between them, `width` in all.
fn without_middle(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let front = kept.div_ceil(2);
    let (begin, end) = (text.chars().take(front), text.chars().skip(length - (kept - front)));
    if width == 0 { String::new() } else { begin.chain(['\u{2026}']).chain(end).collect() }
}

/// Returns a number with its noun: `1 task`, `2 tasks`.
pub fn counted(number: usize, singular: &str, plural: &str) -> String {
    format!("{number} {}", if number == 1 { singular } else { plural })
}

/// Returns a number of bytes in mebibytes (2²⁰ bytes), with one decimal.
pub fn mebibytes(bytes: u64) -> String {
    tenths(bytes, 1 << 20)
}

/// Returns a number of bytes with its unit: `3.4 MiB`, `1.2 GiB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        ..0x4000_0000 => format!("{} MiB", mebibytes(bytes)),
        _ => format!("{} GiB", tenths(bytes, 1 << 30)),
    }
}

fn tenths(bytes: u64, unit: u64) -> String {
    let tenths = (u128::from(bytes) * 10 + u128::from(unit) / 2) / u128::from(unit);
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_as_a_command() {
        assert_eq!(escape("plain ünïcode"), "plain ünïcode");
        assert_eq!(escape("a\u{1b}[2J\nb\u{9b}c\u{202e}d\r"), "a\\u{1b}[2J\\nb\\u{9b}c\\u{202e}d\\u{d}");
        assert_eq!(escape_lines("a\n\tb\u{7}"), "a\n\tb\\u{7}");
        // Every control of Unicode's bidirectional algorithm, and what is not seen at all.
        let bidirectional = ['\u{61c}', '\u{200e}', '\u{200f}'].into_iter().chain('\u{202a}'..='\u{202e}');
        for c in bidirectional.chain('\u{2066}'..='\u{2069}').chain(['\u{ad}', '\u{feff}', '\u{e0041}']) {
            assert_eq!(escape(&format!("a{c}b")), format!("a{}b", c.escape_unicode()));
            assert_eq!(visible_lines(&format!("a\n{c}b\r")), "a\n\u{fffd}b\u{fffd}");
        }
    }

    #[test]
    fn json_lines_are_one_line_and_read_back_equal() {
        let hostile = "a\u{1b}\n\u{9b}\u{202e}\u{7f}\u{e0041}";
        let line = json_line(&hostile).unwrap();
        assert_eq!(line, "\"a\\u001b\\n\\u009b\\u202e\\u007f\\udb40\\udc41\"\n");
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), hostile);
    }

    #[test]
    fn long_ids_lose_their_middles_and_what_follows_them_stays() {
        let [old, new] =
            ["old", "new"].map(|side| format!("model-of-somebody org__project-{}-1234 {side}", "x".repeat(80)));
        let [shown_old, shown_new] = [&old, &new].map(|item| elided(item, 68).into_owned());
        assert_eq!(shown_old.chars().count(), 68);
        assert_ne!(shown_old, shown_new);
        assert!(shown_old.starts_with("model-of-somebody org__project-xx"), "{shown_old}");
        assert!(shown_old.contains('\u{2026}') && shown_old.ends_with("x-1234 old"), "{shown_old}");
        assert_eq!(elided(&old, 200), old);
        // Where words are as short as they may be, the text loses its middle.
        assert_eq!(elided("ab cd ef", 5), "ab\u{2026}ef");
        for width in 0..8 {
            assert_eq!(elided("ab cd ef", width).chars().count(), width);
        }
    }

    #[test]
    fn errors_in_json_name_no_type_of_ours_and_tell_truncation() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        enum Kind {
            One,
        }
        #[derive(Debug, serde::Deserialize)]
        #[expect(dead_code, reason = "only its errors are of interest")]
        struct Raw {
            inner: Option<Box<Raw>>,
            kind: Kind,
        }
        let problem = |text: &str| json_problem(&serde_json::from_str::<Raw>(text).unwrap_err());
        assert_eq!(problem("3"), "invalid type: integer `3`, expected an object at line 1 column 1");
        assert_eq!(problem("{\"kind\": \"two\"}"), "unknown variant `two`, expected `one` at line 1 column 14");
        assert_eq!(problem("{}"), "missing field `kind` at line 1 column 2");
        assert_eq!(problem("{\n\"kind\": \"o"), "it is truncated: it ends within a value");
    }

    #[test]
    fn sizes_have_one_family_of_units() {
        let sizes = [0, 51_000, 1 << 20, (1 << 30) - 1, 1 << 30, 5 << 40].map(size);
        assert_eq!(sizes, ["0.0 MiB", "0.0 MiB", "1.0 MiB", "1024.0 MiB", "1.0 GiB", "5120.0 GiB"]);
        assert_eq!(mebibytes(u64::MAX), "17592186044416.0");
    }
}
