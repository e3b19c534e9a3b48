//! The attachments that a page shows beside records: test files against their starting files, covered sources, logs.
//!
//! Attachments lie in run directories, which may be untrusted. No link is followed, only regular files are read, and
//! each read is bounded. Attachments are numbered first and read one by one when they are written.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Dir, Mode, OFlags, openat};
use rustix::io::Errno;
use serde::Serialize;

use crate::digest::Digest;
use crate::execution::scoring::record::ExecutionRecord;
use crate::execution::scoring::{SOURCES, SUBMISSIONS, file_name, log_directory, source_name};
use crate::focal::FocalLines;
use crate::report::score::KeptLogs;
use crate::task::Task;

/// The most bytes of attachments in a page, because a browser must be able to open it.
const MOST_BYTES: usize = 64 << 20;
/// Larger files are not shown, in bytes.
const MOST_FILE_BYTES: u64 = 256 << 10;
/// Of a larger log only the beginning and the end are shown, in bytes.
const MOST_LOG_BYTES: u64 = 8 << 10;
/// The most logs of one cell.
const MOST_LOGS: usize = 50;
/// Lines that are shown before and after a focal method.
const SURROUNDINGS: usize = 3;
/// The most lines of a focal method.
const MOST_LINES: usize = 2000;

/// Attachments of a page, by number.
#[derive(Debug, Default)]
pub struct Attachments<'a> {
    numbers: BTreeMap<Attachment<'a>, usize>,
}

/// An attachment to a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attachment<'a> {
    /// The lines of a focal method.
    Focal {
        /// The run's directory.
        run: &'a Path,
        /// The file's name below [`SOURCES`].
        name: String,
        /// The first line, counted from 1.
        first: usize,
        /// The last line.
        last: usize,
    },
    /// An executed test file and its starting file.
    Test {
        /// The run's directory.
        run: &'a Path,
        /// The starting file.
        start: Option<Digest>,
        /// The executed file.
        file: Digest,
    },
    /// The output of a cell.
    Logs {
        /// The run's directory.
        run: &'a Path,
        /// The cell's directory below `logs`.
        directory: String,
    },
    /// An executed test file and the developers'. These come last, so that a large page loses them first.
    Gold {
        /// The run's directory.
        run: &'a Path,
        /// The developers' file.
        gold: Digest,
        /// The executed file.
        file: Digest,
    },
}

/// An attachment in the form that a page contains.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Attached {
    /// Lines: unchanged, or each after a blank, a plus or a minus.
    Lines(Vec<String>),
    /// Logs by name.
    Logs(Vec<Log>),
}

/// A log.
#[derive(Debug, PartialEq, Serialize)]
pub struct Log {
    /// Its file's name.
    name: String,
    /// The text, or its beginning and end.
    text: String,
}

impl<'a> Attachments<'a> {
    /// Returns the number of an attachment.
    pub fn number(&mut self, attachment: Attachment<'a>) -> usize {
        let next = self.numbers.len();
        *self.numbers.entry(attachment).or_insert(next)
    }

    /// Reads the attachments one by one. An attachment larger than the rest of the size limit is skipped.
    ///
    /// # Errors
    /// I/O errors of reading files, and errors of `take`. Missing files are skipped.
    pub fn read(self, mut take: impl FnMut(usize, &Attached) -> io::Result<()>) -> io::Result<()> {
        let mut left = MOST_BYTES;
        for (attachment, number) in self.numbers {
            let Some(attached) = attachment.read()? else { continue };
            let bytes = attached.bytes();
            if bytes <= left {
                left -= bytes;
                take(number, &attached)?;
            }
        }
        Ok(())
    }
}

impl<'a> Attachment<'a> {
    /// Returns the lines of a focal method of a task.
    pub fn focal(run: &'a Path, task: &Task, lines: &FocalLines) -> Self {
        let name = source_name(&task.rev2, &lines.path);
        Self::Focal { run, name, first: first_shown(lines), last: last_shown(lines).saturating_add(SURROUNDINGS) }
    }

    /// Returns the logs of an execution, if it has any. The record says only that logs exist; its other fields give
    /// their directory.
    pub fn logs(run: &'a Path, record: &ExecutionRecord) -> Option<Self> {
        let directory = log_directory(&record.model, &record.task_id, record.code);
        (record.measured.logs.as_ref() == Some(&directory)).then_some(Self::Logs { run, directory })
    }

    /// Returns the logs of kept results.
    pub fn kept_logs(logs: &'a KeptLogs) -> Self {
        Self::Logs { run: &logs.run, directory: logs.directory.clone() }
    }

    fn read(&self) -> io::Result<Option<Attached>> {
        match self {
            Self::Focal { run, name, first, last } => {
                let Some(text) = text(run, &[SOURCES, name])? else { return Ok(None) };
                let text = String::from_utf8_lossy(&text);
                let lines =
                    text.lines().skip(first.saturating_sub(1)).take(last.saturating_sub(first.saturating_sub(1)));
                Ok(Some(Attached::Lines(lines.map(str::to_owned).collect())))
            }
            Self::Test { run, start, file } => {
                let read = |digest: Digest| text(run, &[SUBMISSIONS, &file_name(digest)]);
                let start = match start {
                    // Runs of earlier programs have not stored it.
                    Some(start) => read(*start)?,
                    None => Some(Vec::new()),
                };
                let Some(file) = read(*file)? else { return Ok(None) };
                difference(&start.unwrap_or_default(), &file).map(Attached::Lines).map(Some)
            }
            Self::Gold { run, gold, file } => {
                let read = |digest: &Digest| text(run, &[SUBMISSIONS, &file_name(*digest)]);
                let (Some(gold), Some(file)) = (read(gold)?, read(file)?) else { return Ok(None) };
                difference(&gold, &file).map(Attached::Lines).map(Some)
            }
            Self::Logs { run, directory } => logs(run, directory),
        }
    }
}

impl Attached {
    fn bytes(&self) -> usize {
        match self {
            Self::Lines(lines) => lines.iter().map(|line| written(line) + 3).sum(),
            Self::Logs(logs) => logs.iter().map(|log| written(&log.name) + written(&log.text) + 24).sum(),
        }
    }
}

/// Returns the first line that is shown with a focal method.
pub fn first_shown(lines: &FocalLines) -> usize {
    lines.first_line.saturating_sub(SURROUNDINGS).max(1)
}

/// Returns the last line of a focal method that is shown.
pub fn last_shown(lines: &FocalLines) -> usize {
    lines.last_line.min(lines.first_line.saturating_add(MOST_LINES))
}

/// Returns how many bytes a text takes in a page's script, or slightly more. Characters that could end the script are
/// escaped there.
fn written(text: &str) -> usize {
    let escaped = |byte: &u8| byte.is_ascii_control() || matches!(byte, b'<' | b'>' | b'&' | b'"' | b'\\');
    text.len() + 5 * text.bytes().filter(|byte| escaped(byte)).count()
}

/// Returns all lines of both files, each after its sign in a diff.
fn difference(start: &[u8], file: &[u8]) -> io::Result<Vec<String>> {
    let mut options = git2::DiffOptions::new();
    options.context_lines(u32::try_from(MOST_FILE_BYTES).unwrap_or(u32::MAX)).force_text(true);
    let patch = git2::Patch::from_buffers(start, None, file, None, Some(&mut options)).map_err(io::Error::other)?;
    let mut lines = Vec::new();
    for hunk in 0..patch.num_hunks() {
        for line in 0..patch.num_lines_in_hunk(hunk).map_err(io::Error::other)? {
            let line = patch.line_in_hunk(hunk, line).map_err(io::Error::other)?;
            let text = String::from_utf8_lossy(line.content());
            let text = text.strip_suffix('\n').unwrap_or(&text);
            // The missing end of a last line is not a line.
            if let sign @ (' ' | '+' | '-') = line.origin() {
                lines.push(format!("{sign}{text}"));
            }
        }
    }
    if patch.num_hunks() == 0 {
        lines.extend(String::from_utf8_lossy(file).lines().map(|line| format!(" {line}")));
    }
    Ok(lines)
}

fn logs(run: &Path, directory: &str) -> io::Result<Option<Attached>> {
    let parts: Vec<&str> = ["logs"].into_iter().chain(directory.split('/')).collect();
    let Some(directory) = open_directory(run, &parts)? else { return Ok(None) };
    let mut names = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if [".stdout", ".stderr", ".command.json"].iter().any(|suffix| name.ends_with(suffix)) {
            names.push(name);
        }
    }
    names.sort();
    names.truncate(MOST_LOGS);
    let mut logs = Vec::new();
    for name in names {
        let Some(mut file) = open_file(&directory, &name)? else { continue };
        let bytes = file.metadata()?.len();
        let mut text = Vec::new();
        if bytes <= MOST_LOG_BYTES {
            file.take(MOST_LOG_BYTES).read_to_end(&mut text)?;
        } else {
            let (beginning, end) = (MOST_LOG_BYTES / 4, MOST_LOG_BYTES * 3 / 4);
            file.by_ref().take(beginning).read_to_end(&mut text)?;
            text.extend(format!("\n… {} bytes …\n", bytes - MOST_LOG_BYTES).bytes());
            file.seek(io::SeekFrom::Start(bytes - end))?;
            file.take(end).read_to_end(&mut text)?;
        }
        logs.push(Log { name, text: String::from_utf8_lossy(&text).into_owned() });
    }
    Ok(Some(Attached::Logs(logs)))
}

/// Returns a file below a run's directory; `None` if it is missing, not a regular file, or too large.
fn text(run: &Path, parts: &[&str]) -> io::Result<Option<Vec<u8>>> {
    let Some((name, directories)) = parts.split_last() else { return Ok(None) };
    let Some(directory) = open_directory(run, directories)? else { return Ok(None) };
    let Some(file) = open_file(&directory, name)? else { return Ok(None) };
    let mut text = Vec::new();
    file.take(MOST_FILE_BYTES + 1).read_to_end(&mut text)?;
    Ok((text.len() as u64 <= MOST_FILE_BYTES).then_some(text))
}

/// Opens a directory below a run's directory. Refuses every link on the way.
fn open_directory(run: &Path, parts: &[&str]) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Some(mut directory) = there(openat(CWD, run, flags, Mode::empty()))? else { return Ok(None) };
    for part in parts {
        match there(openat(&directory, *part, flags | OFlags::NOFOLLOW, Mode::empty()))? {
            Some(next) => directory = next,
            None => return Ok(None),
        }
    }
    Ok(Some(directory))
}

fn open_file(directory: &OwnedFd, name: &str) -> io::Result<Option<std::fs::File>> {
    // Reading must not wait for a pipe.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Some(file) = there(openat(directory, name, flags, Mode::empty()))? else { return Ok(None) };
    let file = std::fs::File::from(file);
    Ok(file.metadata()?.is_file().then_some(file))
}

/// Returns `None` for a missing, foreign or unfit entry: a run may have been copied without it, or belong to another
/// user.
fn there(opened: Result<OwnedFd, Errno>) -> io::Result<Option<OwnedFd>> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO | Errno::ACCESS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests;
