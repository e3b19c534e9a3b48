//! The way to stdout, which is for results and nothing else.

use std::io::{self, Write};

use serde::Serialize;

use crate::error::CommandError;
use crate::output::{Table, escape, escape_lines, json_line};

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

fn write(text: &str) -> Result<(), CommandError> {
    write_bytes(text.as_bytes())
}

fn write_bytes(bytes: &[u8]) -> Result<(), CommandError> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(CommandError::Output)
}
