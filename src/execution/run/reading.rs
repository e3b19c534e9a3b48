//! Reads files of run directories, which may be untrusted. Reads are bounded by the sizes that this program writes.
//! Links in place of a file are not followed, and no read waits for a pipe.

use std::io::{self, BufRead, Read as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::data_dir::shared::{GONE_HINT, is_full, is_gone};
use crate::error::{ExitStatus, Failure};

/// Errors of a run directory.
#[derive(Debug, thiserror::Error)]
pub enum RunDirectoryError {
    /// A file could not be read or written.
    #[error(transparent)]
    Io(io::Error),
    /// The disk has no space. Earlier records are complete.
    #[error("the disk is full: {0}")]
    Full(#[source] io::Error),
    /// The file system of a shared directory is not there any more.
    #[error("the file system of the runs does not answer: {0}")]
    Gone(#[source] io::Error),
    /// The run id can't be a directory's name.
    #[error("`{0}` is no run id: use letters, digits, `.`, `_`, `-`, at most 100")]
    InvalidId(String),
    /// There is no such run.
    #[error("there is no run `{0}`")]
    Unknown(String),
    /// Another process uses the run.
    #[error("run `{0}` is in use by another process")]
    InUse(String),
    /// A run of that name has other inputs.
    #[error("run `{run_id}` exists and was made with other inputs, or by another build of this program")]
    OtherInputs {
        /// The run.
        run_id: String,
    },
    /// A run of that name has ended.
    #[error("run `{run_id}` has finished already")]
    Finished {
        /// The run.
        run_id: String,
    },
    /// A file is malformed.
    #[error("`{path}` can't be read: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The parser's message.
        reason: String,
    },
    /// A newer program wrote it.
    #[error("`{path}` has schema {found}, this program knows schema {known}")]
    UnknownSchema {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: u32,
        /// The newest schema that this program knows.
        known: u32,
    },
}

impl From<io::Error> for RunDirectoryError {
    fn from(error: io::Error) -> Self {
        match error {
            error if is_full(&error) => Self::Full(error),
            error if is_gone(&error) => Self::Gone(error),
            error => Self::Io(error),
        }
    }
}

impl Failure for RunDirectoryError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            // A job that a scheduler has lost may still hold its run for a while.
            Self::Io(_) | Self::Full(_) | Self::Gone(_) | Self::InUse(_) => ExitStatus::Infrastructure,
            Self::InvalidId(_) | Self::Unknown(_) | Self::OtherInputs { .. } | Self::Finished { .. } => {
                ExitStatus::Usage
            }
            Self::Malformed { .. } | Self::UnknownSchema { .. } => ExitStatus::Mismatch,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Io(_) => "check the data directory's permissions and free space",
            Self::Gone(_) => GONE_HINT,
            Self::Full(_) => "make space on that disk; rerun the same command to resume",
            Self::InvalidId(_) => "`testevo-sandbox runs list` shows what there is; `--run-id` names a new one",
            Self::Unknown(_) => "`testevo-sandbox runs list` shows what there is",
            Self::InUse(_) => "wait for it, or name another run",
            Self::OtherInputs { .. } | Self::Finished { .. } => "name another run with `--run-id`, or none",
            Self::Malformed { .. } => "remove the run's directory, or name another run",
            Self::UnknownSchema { .. } => "use the program that wrote it",
        };
        Some(hint.to_owned())
    }
}

/// The largest file that is read as a whole, in bytes: the inputs of a run that scores hundreds of models.
const MOST_FILE_BYTES: u64 = 256 << 20;
/// The longest line, in bytes.
const MOST_LINE_BYTES: u64 = 16 << 20;

/// Opens a file; `None` if there is none.
///
/// # Errors
/// [`RunDirectoryError::Malformed`] for a path that is not a regular file, [`RunDirectoryError::Io`].
pub(in crate::execution) fn open(path: &Path) -> Result<Option<fs::File>, RunDirectoryError> {
    let no_file = || malformed(path, "it is no regular file");
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => {
            let file = fs::File::from_parts(std::fs::File::from(file), path);
            if file.metadata()?.is_file() { Ok(Some(file)) } else { Err(no_file()) }
        }
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP | Errno::NXIO) => Err(no_file()),
        Err(errno) => {
            let cause = io::Error::from(errno);
            Err(io::Error::new(cause.kind(), format!("`{}`: {cause}", path.display())).into())
        }
    }
}

/// Reads a file; `None` if there is none.
///
/// # Errors
/// [`RunDirectoryError::Malformed`] for a path that is not a regular file or too large, [`RunDirectoryError::Io`].
pub(in crate::execution) fn read(path: &Path) -> Result<Option<Vec<u8>>, RunDirectoryError> {
    let Some(file) = open(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(MOST_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 {
        0..=MOST_FILE_BYTES => Ok(Some(bytes)),
        _ => Err(malformed(path, "it is too large")),
    }
}

/// Reads a line into `line`, with its line end; false if none is left. The file's last line may lack the line end.
///
/// # Errors
/// [`RunDirectoryError::Malformed`] for a line that is too long, [`RunDirectoryError::Io`].
pub(in crate::execution) fn read_line(
    reader: &mut impl BufRead,
    line: &mut Vec<u8>,
    path: &Path,
) -> Result<bool, RunDirectoryError> {
    line.clear();
    let length = reader.take(MOST_LINE_BYTES + 1).read_until(b'\n', line)?;
    match length as u64 {
        0..=MOST_LINE_BYTES => Ok(length > 0),
        _ => Err(malformed(path, "a line is too long")),
    }
}

fn malformed(path: &Path, reason: &str) -> RunDirectoryError {
    RunDirectoryError::Malformed { path: path.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn is_malformed<T>(result: Result<T, RunDirectoryError>) -> bool {
        matches!(result, Err(RunDirectoryError::Malformed { .. }))
    }

    #[test]
    fn what_is_no_file_or_too_large_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        assert_eq!(read(&at("missing")).unwrap(), None);
        fs::write(at("file"), "text").unwrap();
        assert_eq!(read(&at("file")).unwrap().unwrap(), b"text");
        symlink(at("file"), at("link")).unwrap();
        assert!(is_malformed(read(&at("link"))));
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        assert!(is_malformed(read(&at("pipe"))));
        assert!(is_malformed(read(directory.path())));
        let large = fs::File::create(at("large")).unwrap();
        large.set_len(MOST_FILE_BYTES + 1).unwrap();
        assert!(is_malformed(read(&at("large"))));
    }

    #[test]
    fn lines_have_a_longest() {
        let path = Path::new("records.jsonl");
        let mut line = Vec::new();
        let mut reader = io::Cursor::new(b"a\n\nb".to_vec());
        for expected in ["a\n", "\n", "b", ""] {
            assert_eq!(read_line(&mut reader, &mut line, path).unwrap(), !expected.is_empty());
            assert_eq!(line, expected.as_bytes());
        }
        let endless = io::repeat(b'x');
        assert!(is_malformed(read_line(&mut io::BufReader::new(endless), &mut line, path)));
        assert!(line.len() as u64 <= MOST_LINE_BYTES + 1);
    }
}
