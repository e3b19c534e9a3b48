//! What goes to stdout: data only, as a table for people or JSON lines for machines.
//!
//! Names, logs and messages of strangers pass [`escape`] on their way, so that no text can steer the terminal.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;

use crate::error::CommandError;

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// Tables and sentences for people.
    #[default]
    Text,
    /// One JSON value a line, the summary last.
    Json,
}

/// Tells whether a terminal may act on the character instead of showing it.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        // Characters that reorder, hide or break what stands around them.
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Returns the text in one line with every character that could steer a terminal written as `\u{…}`.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_if(text, is_unsafe)
}

/// Returns the text as [`escape`] does, but with its line breaks and tabs kept.
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

    /// Returns a table with headings that are only known when it is made.
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

    /// Tells whether it has no rows.
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

/// The way to stdout.
#[derive(Clone, Copy, Debug, Default)]
pub struct Output;

impl Output {
    /// Writes one line of text; it is escaped.
    ///
    /// # Errors
    /// [`CommandError::Output`].
    pub fn line(&self, text: &str) -> Result<(), CommandError> {
        write(&format!("{}\n", escape(text)))
    }

    /// Writes lines of text; all but their breaks and tabs is escaped.
    ///
    /// # Errors
    /// [`CommandError::Output`].
    pub fn lines(&self, text: &str) -> Result<(), CommandError> {
        write(&escape_lines(text))
    }

    /// Writes a table.
    ///
    /// # Errors
    /// [`CommandError::Output`].
    pub fn table(&self, table: &Table) -> Result<(), CommandError> {
        write(&table.render())
    }

    /// Writes one JSON value as one line.
    ///
    /// # Errors
    /// [`CommandError::Output`].
    pub fn json(&self, value: &impl Serialize) -> Result<(), CommandError> {
        let line = json_line(value).map_err(|error| CommandError::Output(error.into()))?;
        write(&line)
    }

    /// Writes bytes as they are, for archives and files that the user asked for.
    ///
    /// # Errors
    /// [`CommandError::Output`].
    pub fn bytes(&self, bytes: &[u8]) -> Result<(), CommandError> {
        write_bytes(bytes)
    }

    /// Lets something write bytes as they come, for files that the user asked for.
    ///
    /// # Errors
    /// [`CommandError::Output`].
    pub fn written(
        &self,
        write: impl FnOnce(&mut io::BufWriter<io::StdoutLock<'static>>) -> io::Result<()>,
    ) -> Result<(), CommandError> {
        let mut stdout = io::BufWriter::with_capacity(64 << 10, io::stdout().lock());
        write(&mut stdout).and_then(|()| stdout.flush()).map_err(CommandError::Output)
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
        // JSON itself escapes what lies below U+0020. All the rest is in the basic plane, and inside a text.
        if is_unsafe(c) {
            let _ = write!(line, "\\u{:04x}", u32::from(c));
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

fn write(text: &str) -> Result<(), CommandError> {
    write_bytes(text.as_bytes())
}

fn write_bytes(bytes: &[u8]) -> Result<(), CommandError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(CommandError::Output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_terminal_as_a_command() {
        assert_eq!(escape("plain ünïcode"), "plain ünïcode");
        assert_eq!(escape("a\u{1b}[2J\nb\u{9b}c\u{202e}d\r"), "a\\u{1b}[2J\\nb\\u{9b}c\\u{202e}d\\u{d}");
        assert_eq!(escape_lines("a\n\tb\u{7}"), "a\n\tb\\u{7}");
    }

    #[test]
    fn json_lines_are_one_line_and_read_back_equal() {
        let hostile = "a\u{1b}\n\u{9b}\u{202e}\u{7f}";
        let line = json_line(&hostile).unwrap();
        assert_eq!(line, "\"a\\u001b\\n\\u009b\\u202e\\u007f\"\n");
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
