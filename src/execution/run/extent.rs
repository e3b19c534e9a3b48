//! What a finished run consists of, so that a reader on another machine can tell whether it sees all of it.
//!
//! A shared file system may show files of other machines late: a new directory entry is missing for a while, or a file has its
//! earlier length.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::execution::run::reading::{self, RunDirectoryError};

/// The description's file in a run's directory.
pub(in crate::execution) const RUN_FILE: &str = "run.json";

/// The inputs' file in a run's directory.
pub(in crate::execution) const INPUTS_FILE: &str = "inputs.json";

/// The records' file in a run's directory.
pub(in crate::execution) const RECORDS_FILE: &str = "records.jsonl";

/// The file in a run's directory with the keys of the results that it used or made, one a line.
pub(in crate::execution) const RESULT_KEYS: &str = "result-keys";

/// The results' file in a finished run's directory.
pub(in crate::execution) const VERDICTS_FILE: &str = "verdicts.json";

/// Directories of a run that have files beside its records.
pub(in crate::execution) const DIRECTORIES: [&str; 4] = ["disputes", "logs", "sources", "submissions"];

/// The deepest directory below them.
pub(in crate::execution) const DEEPEST: usize = 32;

/// What a finished run consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Extent {
    /// Bytes of its records.
    pub record_bytes: u64,
    /// Number of its logs, disputes, sources and submissions.
    pub files: u64,
}

impl Extent {
    /// Returns the extent of the run in a directory.
    ///
    /// # Errors
    /// I/O errors of listing the files.
    pub(in crate::execution) fn of(run: &Path, record_bytes: u64) -> io::Result<Self> {
        Ok(Self { record_bytes, files: files(run)?.len() as u64 })
    }

    /// Returns what can't be seen of the run in a directory; `None` if all of it can.
    ///
    /// # Errors
    /// [`RunDirectoryError::Gone`], [`RunDirectoryError::Io`].
    pub fn missing(&self, run: &Path, inputs: Digest) -> Result<Option<String>, RunDirectoryError> {
        let seen = reading::read(&run.join(INPUTS_FILE))?;
        if seen.is_none_or(|bytes| Digest::of(&bytes) != inputs) {
            return Ok(Some(INPUTS_FILE.to_owned()));
        }
        if reading::open(&run.join(VERDICTS_FILE))?.is_none() {
            return Ok(Some(VERDICTS_FILE.to_owned()));
        }
        let records = reading::open(&run.join(RECORDS_FILE))?;
        let seen = records.map_or(Ok(0), |records| records.metadata().map(|found| found.len()))?;
        if seen < self.record_bytes {
            return Ok(Some(format!("{} of {} bytes of {RECORDS_FILE}", self.record_bytes - seen, self.record_bytes)));
        }
        let seen = files(run)?.len() as u64;
        Ok((seen < self.files).then(|| format!("{} of {} logs and other files", self.files - seen, self.files)))
    }
}

/// Files of a finished run beside those in [`DIRECTORIES`]. A run of `validate` has no [`RESULT_KEYS`].
const FILES: [&str; 5] = [RUN_FILE, INPUTS_FILE, RECORDS_FILE, VERDICTS_FILE, RESULT_KEYS];

/// Returns the paths of all files that a finished run consists of, relative to its directory and sorted.
///
/// # Errors
/// I/O errors of listing the files.
pub fn all_files(run: &Path) -> io::Result<Vec<PathBuf>> {
    let of_directories = files(run)?.into_iter().filter_map(|file| Some(file.strip_prefix(run).ok()?.to_owned()));
    let mut all: Vec<PathBuf> = FILES.iter().map(PathBuf::from).chain(of_directories).collect();
    all.sort();
    Ok(all)
}

/// Opens a file of a run, which may be a stranger's, and returns it with its size in bytes; `None` if there is none.
///
/// # Errors
/// [`RunDirectoryError::Malformed`] for a path that is not a regular file, [`RunDirectoryError::Io`].
pub fn open_file(run: &Path, file: &Path) -> Result<Option<(fs::File, u64)>, RunDirectoryError> {
    let Some(file) = reading::open(&run.join(file))? else { return Ok(None) };
    let size = file.metadata()?.len();
    Ok(Some((file, size)))
}

/// Tells whether a finished run may have a file of this path, which is relative to its directory and goes nowhere else.
pub fn is_file(path: &Path) -> bool {
    let parts = path.components().count();
    match parts {
        0 | 1 => FILES.iter().any(|name| path == Path::new(name)),
        _ => parts <= DEEPEST + 1 && DIRECTORIES.iter().any(|name| path.starts_with(name)),
    }
}

/// Returns the paths of the files beside a run's records. No link is followed.
fn files(run: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    DIRECTORIES.iter().try_for_each(|name| files_below(&run.join(name), DEEPEST, &mut files))?;
    Ok(files)
}

fn files_below(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let is_absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match fs::symlink_metadata(directory) {
        Ok(found) if found.is_dir() && depth > 0 => {}
        Err(error) if !is_absent(&error) => return Err(error),
        _ => return Ok(()),
    }
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            files_below(&entry.path(), depth - 1, files)?;
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(())
}
