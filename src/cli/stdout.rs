//! The way to stdout, which is for results and nothing else. All functions fail with [`CommandError::Output`].

use std::io::{self, Write};

use serde::Serialize;

use crate::error::CommandError;
use crate::output::{Table, escape, escape_lines, json_line};

/// Writes one line of text; it is escaped.
///
/// # Errors
/// [`CommandError::Output`].
pub fn line(text: &str) -> Result<(), CommandError> {
    bytes(format!("{}\n", escape(text)).as_bytes())
}

/// Writes lines of text; all but their breaks and tabs is escaped.
///
/// # Errors
/// [`CommandError::Output`].
pub fn lines(text: &str) -> Result<(), CommandError> {
    bytes(escape_lines(text).as_bytes())
}

/// Writes a table.
///
/// # Errors
/// [`CommandError::Output`].
pub fn table(table: &Table) -> Result<(), CommandError> {
    bytes(table.render().as_bytes())
}

/// Writes one JSON value as one line.
///
/// # Errors
/// [`CommandError::Output`].
pub fn json(value: &impl Serialize) -> Result<(), CommandError> {
    let line = json_line(value).map_err(|error| CommandError::Output(error.into()))?;
    bytes(line.as_bytes())
}

/// Writes bytes as they are, for archives and files that the user asked for.
///
/// # Errors
/// [`CommandError::Output`].
pub fn bytes(bytes: &[u8]) -> Result<(), CommandError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(CommandError::Output)
}

/// Lets a function write bytes as they come, for files that the user asked for.
///
/// # Errors
/// [`CommandError::Output`].
pub fn written(
    write: impl FnOnce(&mut io::BufWriter<io::StdoutLock<'static>>) -> io::Result<()>,
) -> Result<(), CommandError> {
    let mut stdout = io::BufWriter::with_capacity(64 << 10, io::stdout().lock());
    write(&mut stdout).and_then(|()| stdout.flush()).map_err(CommandError::Output)
}
