//! Writes results to stdout. If that fails, all functions return [`CommandError::Output`].

use std::io::{self, IsTerminal as _, Write};
use std::path::Path;

use serde::Serialize;

use crate::application::archives::ArchiveOutput;
use crate::error::CommandError;
use crate::output::{Table, escape, escape_lines, json_line, terminal_width};

/// Writes one line of text, escaped.
///
/// # Errors
/// [`CommandError::Output`].
pub fn line(text: &str) -> Result<(), CommandError> {
    bytes(format!("{}\n", escape(text)).as_bytes())
}

/// Writes lines of text, escaped except for line breaks and tabs.
///
/// # Errors
/// [`CommandError::Output`].
pub fn lines(text: &str) -> Result<(), CommandError> {
    bytes(escape_lines(text).as_bytes())
}

/// Returns lines of at most so many characters: longer ones are broken between words, and what follows is indented. A word that
/// is longer than a line stays whole.
pub fn wrapped(text: &str, width: usize) -> String {
    const INDENT: &str = "  ";
    let mut wrapped = String::with_capacity(text.len() + text.len() / 16);
    for line in text.split_inclusive('\n') {
        let mut column = 0;
        for word in line.split_inclusive(' ') {
            if column > INDENT.len() && column + word.trim_end().chars().count() > width {
                wrapped.truncate(wrapped.trim_end_matches(' ').len());
                wrapped.push('\n');
                wrapped.push_str(INDENT);
                column = INDENT.len();
            }
            wrapped.push_str(word);
            column += word.chars().count();
        }
    }
    wrapped
}

/// Writes a table, as wide as the terminal at most.
///
/// # Errors
/// [`CommandError::Output`].
pub fn table(table: &Table) -> Result<(), CommandError> {
    bytes(table.fitted(terminal_width(io::stdout())).as_bytes())
}

/// Writes one JSON value as one line.
///
/// # Errors
/// [`CommandError::Output`]; [`CommandError::Defect`] for a value that can't be written as JSON.
pub fn json(value: &impl Serialize) -> Result<(), CommandError> {
    let line = json_line(value).map_err(CommandError::defect)?;
    bytes(line.as_bytes())
}

/// Writes bytes unchanged, for archives and files that the user requested.
///
/// # Errors
/// [`CommandError::Output`].
pub fn bytes(bytes: &[u8]) -> Result<(), CommandError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(CommandError::Output)
}

/// Lets a function write bytes step by step, for files that the user requested.
///
/// # Errors
/// [`CommandError::Output`].
pub fn written(
    write: impl FnOnce(&mut io::BufWriter<io::StdoutLock<'static>>) -> io::Result<()>,
) -> Result<(), CommandError> {
    let mut stdout = io::BufWriter::with_capacity(64 << 10, io::stdout().lock());
    write(&mut stdout).and_then(|()| stdout.flush()).map_err(CommandError::Output)
}

/// Returns the output of an archive: the file, or stdout for `-`. Opening stdout fails if it is a terminal.
pub(super) fn or_file(path: &Path) -> ArchiveOutput {
    if path != Path::new("-") {
        return ArchiveOutput::File(path.to_owned());
    }
    ArchiveOutput::Stream(|| {
        let stdout = io::stdout();
        if stdout.is_terminal() {
            return Err(CommandError::Usage {
                message: "an archive is nothing for a terminal".to_owned(),
                hint: "redirect stdout or name a file with `--output`".to_owned(),
            });
        }
        Ok(Box::new(stdout.lock()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_between_words() {
        let text =
            "r1 one: nothing for 2 selected tasks: t1, t2\nshort\n\na-word-that-is-longer-than-a-line and more\n";
        let expected = "r1 one: nothing for\n\
                        \u{20} 2 selected tasks:\n\
                        \u{20} t1, t2\n\
                        short\n\
                        \n\
                        a-word-that-is-longer-than-a-line\n\
                        \u{20} and more\n";
        assert_eq!(wrapped(text, 20), expected);
        assert_eq!(wrapped(text, 200), text);
        // What is written has the same words, however narrow the terminal is.
        for width in 0..60 {
            let narrow = wrapped(text, width);
            assert!(narrow.split_whitespace().eq(text.split_whitespace()), "{width}: {narrow}");
        }
    }
}
