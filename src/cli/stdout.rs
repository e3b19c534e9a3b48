//! Writes results to stdout. All functions fail with [`CommandError::Output`].

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
/// [`CommandError::Output`].
pub fn json(value: &impl Serialize) -> Result<(), CommandError> {
    let line = json_line(value).map_err(|error| CommandError::Output(error.into()))?;
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
