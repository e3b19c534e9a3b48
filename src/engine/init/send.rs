//! Sends the files that a command left, as content of a step: single files, listings and archives.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::FileType;

use super::super::spec::{StepResult, TASK_USER, TREE_TIME};
use super::report::{ContentWriter, Reporter};
use super::tree::{self, StepError};

/// Sends a regular file, at most `max_bytes` of it.
pub(super) fn file(reporter: &mut Reporter, step: usize, path: &str, max_bytes: u64) -> Result<StepResult, StepError> {
    let (parent, name) = found(tree::open_parent(path, false))?;
    let (file, stat) = tree::open_file(&parent, name, Path::new(path))?;
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    sending(reporter, step, path, |writer| {
        io::copy(&mut File::from(file).take(max_bytes), writer)?;
        Ok(Ok(()))
    })?;
    Ok(if size > max_bytes { StepResult::Cut { size } } else { StepResult::Done })
}

/// Refuses a link, and a file in a directory's place. A missing directory is absent.
fn found(parent: Result<(OwnedFd, &OsStr), StepError>) -> Result<(OwnedFd, &OsStr), StepError> {
    parent.map_err(|error| match error {
        StepError::Failed { errno: Some(libc::ENOENT), .. } => StepError::Absent,
        StepError::Failed { errno: Some(libc::ENOTDIR | libc::ELOOP | libc::EACCES), error } => {
            StepError::Refused(error)
        }
        other => other,
    })
}

/// Sends the paths of regular files below `root`.
pub(super) fn listing(
    reporter: &mut Reporter,
    step: usize,
    root: &str,
    max_files: u64,
) -> Result<StepResult, StepError> {
    let (mut paths, mut size) = (Vec::new(), 0);
    tree::walk(root, &mut |entry| {
        if entry.kind == FileType::RegularFile {
            size += 1;
            if size <= max_files {
                paths.push(entry.path.to_owned());
            }
        }
        Ok(())
    })
    .map_err(refused_if_unfit)?;
    paths.sort_unstable_by(|a, b| a.as_os_str().as_bytes().cmp(b.as_os_str().as_bytes()));
    sending(reporter, step, root, |writer| {
        for path in &paths {
            writer.write_all(path.as_os_str().as_bytes())?;
            writer.write_all(&[0])?;
        }
        Ok(Ok(()))
    })?;
    Ok(if size > max_files { StepResult::Cut { size } } else { StepResult::Done })
}

/// Sends everything below `root` as a tar archive, unless that would be longer than `max_bytes`.
pub(super) fn archive(
    reporter: &mut Reporter,
    step: usize,
    root: &str,
    max_bytes: u64,
) -> Result<StepResult, StepError> {
    const BLOCK: u64 = 512;
    let mut size = 2 * BLOCK;
    tree::walk(root, &mut |entry| {
        let content = match entry.kind {
            FileType::RegularFile => {
                // An unreadable file is found before anything is sent.
                tree::open_file(entry.parent, entry.name, &Path::new(root).join(entry.path))?;
                u64::try_from(entry.stat.st_size).unwrap_or(0)
            }
            FileType::Symlink => 2 * BLOCK + u64::try_from(entry.stat.st_size).unwrap_or(0),
            FileType::Directory => 0,
            _ => return Ok(()),
        };
        // A long name needs a header and blocks of its own.
        let name = entry.path.as_os_str().len() as u64 + 2;
        let name = if name < 100 { 0 } else { BLOCK + name.next_multiple_of(BLOCK) };
        size = size.saturating_add(BLOCK + name).saturating_add(content.div_ceil(BLOCK).saturating_mul(BLOCK));
        if size > max_bytes {
            return Err(StepError::refused(root, &format!("makes an archive of more than {max_bytes} bytes")));
        }
        Ok(())
    })
    .map_err(refused_if_unfit)?;
    sending(reporter, step, root, |writer| {
        let mut builder = tar::Builder::new(writer);
        let walked = tree::walk(root, &mut |entry| append(&mut builder, root, &entry));
        match walked {
            Ok(()) => builder.finish().map(Ok),
            Err(error) => Ok(Err(error)),
        }
    })?;
    Ok(StepResult::Done)
}

fn append<W: Write>(builder: &mut tar::Builder<W>, root: &str, entry: &tree::Entry<'_>) -> Result<(), StepError> {
    let shown = || Path::new(root).join(entry.path);
    let unsent =
        |error: io::Error| StepError::failed(format!("`{}`: {error}", shown().display()), error.raw_os_error());
    let mut header = tar::Header::new_gnu();
    header.set_mode(entry.stat.st_mode & 0o777);
    header.set_uid(TASK_USER.into());
    header.set_gid(TASK_USER.into());
    // Equal times for all files: otherwise files that replace others later could be recognised.
    header.set_mtime(TREE_TIME);
    header.set_size(0);
    match entry.kind {
        FileType::Directory => {
            header.set_entry_type(tar::EntryType::Directory);
            builder.append_data(&mut header, entry.path, io::empty()).map_err(unsent)
        }
        FileType::RegularFile => {
            let (file, stat) = tree::open_file(entry.parent, entry.name, &shown())?;
            let size = u64::try_from(stat.st_size).unwrap_or(0);
            header.set_entry_type(tar::EntryType::Regular);
            header.set_size(size);
            let mut content = File::from(file).take(size);
            builder.append_data(&mut header, entry.path, &mut content).map_err(unsent)?;
            if content.limit() != 0 {
                return Err(StepError::failed(format!("`{}` became shorter", shown().display()), None));
            }
            Ok(())
        }
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(entry.parent, entry.name, Vec::new())
                .map_err(|errno| StepError::at(shown(), errno))?;
            header.set_entry_type(tar::EntryType::Symlink);
            builder.append_link(&mut header, entry.path, OsStr::from_bytes(target.to_bytes())).map_err(unsent)
        }
        _ => Ok(()),
    }
}

/// A file that its owner made unreadable is not a failure of ours.
fn refused_if_unfit(error: StepError) -> StepError {
    match error {
        StepError::Failed { errno: Some(libc::ENOTDIR | libc::ELOOP | libc::EACCES | libc::EMFILE), error } => {
            StepError::Refused(error)
        }
        other => other,
    }
}

/// Sends the output of `send`. Distinguishes errors of reporting from errors of reading.
fn sending(
    reporter: &mut Reporter,
    step: usize,
    path: &str,
    send: impl FnOnce(&mut ContentWriter<'_>) -> io::Result<Result<(), StepError>>,
) -> Result<(), StepError> {
    let mut writer = ContentWriter::new(reporter, step);
    let sent = send(&mut writer).and_then(|inner| writer.flush().map(|()| inner));
    if let Some(failure) = writer.failure() {
        return Err(StepError::Report(failure));
    }
    sent.map_err(|error| StepError::failed(format!("`{path}`: {error}"), error.raw_os_error()))?
}
