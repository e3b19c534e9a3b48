//! Archives that the caller asked for: written to a file, or to a stream such as stdout.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::error::CommandError;
use crate::umask::Umask;

/// Opens a stream for an archive. It is called only when there is an archive to write.
pub type OpenStream = fn() -> Result<Box<dyn Write>, CommandError>;

/// Where an archive is written.
#[derive(Clone, Debug)]
pub enum ArchiveOutput {
    /// A file, which is replaced once the archive is complete.
    File(PathBuf),
    /// A stream.
    Stream(OpenStream),
}

impl ArchiveOutput {
    /// Returns the archive's name in messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Stream(_) => "-".to_owned(),
        }
    }

    /// Writes an archive with `write`. `io` turns errors of files into the archive's kind of error.
    ///
    /// # Errors
    /// The errors of `write`; [`CommandError::Usage`] for a path without a file name; the stream's error.
    pub(super) fn write<E>(
        &self,
        umask: Umask,
        io: impl Fn(io::Error) -> E,
        write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), CommandError>
    where
        CommandError: From<E>,
    {
        match self {
            Self::File(path) => write_file(path, umask, io, write),
            Self::Stream(open) => {
                let mut out = open()?;
                write(&mut out)?;
                Ok(out.flush().map_err(io)?)
            }
        }
    }
}

/// Writes a temporary file in the same directory first, so that half an archive is never taken for a whole one.
fn write_file<E>(
    path: &Path,
    umask: Umask,
    io: impl Fn(io::Error) -> E,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), CommandError>
where
    CommandError: From<E>,
{
    let Some(name) = path.file_name() else {
        return Err(CommandError::Usage {
            message: format!("`{}` is no file name", path.display()),
            hint: "name a file with `--output`".to_owned(),
        });
    };
    let unfinished = path.with_file_name(format!(".{}.unfinished", name.to_string_lossy()));
    let written = || -> Result<(), E> {
        let mut out = io::BufWriter::with_capacity(1 << 20, umask.create_file(&unfinished).map_err(&io)?);
        write(&mut out)?;
        out.flush().map_err(&io)?;
        fs::rename(&unfinished, path).map_err(&io)
    };
    written().inspect_err(|_| {
        // The error of writing is the one to report.
        let _ = fs::remove_file(&unfinished);
    })?;
    Ok(())
}
