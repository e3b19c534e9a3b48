//! JSON for use inside a page's script elements.

use std::io::{self, Write};

use serde::Serialize;

use crate::output::visible_lines;

/// Writes JSON for use inside a script. No text in it can end the script, begin a comment, or reorder or hide what the
/// page shows.
///
/// # Errors
/// I/O errors of writing to `out`.
pub(super) fn script_json(out: &mut (impl Write + ?Sized), value: &impl Serialize) -> io::Result<()> {
    let mut formatter = serde_json::Serializer::with_formatter(Script(out), Visible);
    value.serialize(&mut formatter).map_err(io::Error::from)
}

/// Writes texts with unsafe characters replaced.
struct Visible;

impl serde_json::ser::Formatter for Visible {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        // JSON escapes line breaks and tabs, so no fragment contains any.
        writer.write_all(visible_lines(fragment).as_bytes())
    }
}

/// Escapes characters with a meaning in HTML. They occur only within JSON's texts.
struct Script<W>(W);

impl<W: Write> Write for Script<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'<' | b'>' | b'&')) {
            self.0.write_all(&rest[..at])?;
            write!(self.0, "\\u{:04x}", rest[at])?;
            rest = &rest[at + 1..];
        }
        self.0.write_all(rest)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
