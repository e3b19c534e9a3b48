//! Texts for people and machines: tables, JSON lines, numbers with their nouns. Nothing is printed here.
//!
//! Untrusted names, logs and messages pass through [`escape`], so that no text can steer the terminal.

use std::borrow::Cow;

use serde::Serialize;

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

/// A table for people: columns as wide as their content, the last one not padded.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
    columns: usize,
}

impl Table {
    /// Returns a table with these headings and no rows.
    pub fn new<const COLUMNS: usize>(headings: [&str; COLUMNS]) -> Self {
        Self { rows: vec![headings.map(str::to_owned).to_vec()], columns: COLUMNS }
    }

    /// Returns a table without rows whose headings are known only at run time.
    pub fn with_headings(headings: &[&str]) -> Self {
        let row = headings.iter().map(|heading| (*heading).to_owned()).collect();
        Self { rows: vec![row], columns: headings.len() }
    }

    /// Adds a row; cells are escaped. Missing cells are empty, surplus ones are left out.
    pub fn row<I: IntoIterator<Item = S>, S: AsRef<str>>(&mut self, cells: I) {
        let mut row: Vec<String> =
            cells.into_iter().take(self.columns).map(|cell| escape(cell.as_ref()).into_owned()).collect();
        row.resize(self.columns, String::new());
        self.rows.push(row);
    }

    /// Tells whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.len() <= 1
    }

    /// Returns the table's lines, each with its line break.
    pub fn render(&self) -> String {
        let mut widths = vec![0; self.columns];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', width - cell.chars().count() + 2));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
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

/// Returns a number with its noun: `1 task`, `2 tasks`.
pub fn counted(number: usize, singular: &str, plural: &str) -> String {
    format!("{number} {}", if number == 1 { singular } else { plural })
}

/// Returns a number of bytes in megabytes (10⁶ bytes), with one decimal.
pub fn megabytes(bytes: u64) -> String {
    let tenths = (bytes + 50_000) / 100_000;
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
    fn tables_are_aligned() {
        let mut table = Table::new(["name", "n"]);
        table.row(["longer name", "1"]);
        table.row(["x"]);
        assert_eq!(table.render(), "name         n\nlonger name  1\nx\n");
    }
}
