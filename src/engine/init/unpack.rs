//! Unpacking a tar archive into a tree that may hold hostile names.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Timespec, Timestamps};
use tar::EntryType;

use super::tree::{self, Destination, StepError};

/// Unpacks `archive` into `into`.
pub(super) fn unpack(archive: &str, into: &str) -> Result<(), StepError> {
    let (parent, name) = tree::open_parent(archive, false)?;
    let (file, _) = tree::open_file(&parent, name, Path::new(archive)).map_err(|error| match error {
        StepError::Absent => StepError::at(archive, rustix::io::Errno::NOENT),
        other => other,
    })?;
    entries(BufReader::with_capacity(256 << 10, File::from(file)), archive, into)
}

/// Unpacks an archive of `bytes` bytes from the input into `into`, and leaves what follows it. The archive is read to its
/// end even if it can't be unpacked: Podman loses the reports of a container that ends with unread input.
pub(super) fn unpack_input(input: &mut impl Read, bytes: u64, into: &str) -> Result<(), StepError> {
    let mut archive = input.take(bytes);
    let unpacked = entries(&mut archive, "standard input", into);
    // The end of an archive is padded.
    let drained = io::copy(&mut archive, &mut io::sink());
    unpacked?;
    drained.map_err(|error| StepError::failed(format!("the input: {error}"), error.raw_os_error()))?;
    match archive.limit() {
        0 => Ok(()),
        missing => Err(StepError::failed(format!("the input ended {missing} bytes early"), None)),
    }
}

fn entries(archive: impl Read, name: &str, into: &str) -> Result<(), StepError> {
    let unreadable =
        |error: io::Error| StepError::failed(format!("the archive `{name}`: {error}"), error.raw_os_error());
    let mut destination = Destination::open(into)?;
    let mut reader = tar::Archive::new(archive);
    for entry in reader.entries().map_err(unreadable)? {
        let mut entry = entry.map_err(unreadable)?;
        let path = entry.path().map_err(unreadable)?.into_owned();
        let mode = entry.header().mode().map_err(unreadable)?;
        let times = at_seconds(entry.header().mtime().map_err(unreadable)?);
        match entry.header().entry_type() {
            EntryType::Directory => destination.directory(&path, mode, times)?,
            EntryType::Regular | EntryType::Continuous => {
                destination.file(&path, mode, &times, |file| io::copy(&mut entry, file).map(|_| ()))?;
            }
            EntryType::Symlink => {
                let target = entry.link_name_bytes().unwrap_or_default();
                destination.link(&path, OsStr::from_bytes(&target), &times)?;
            }
            EntryType::XGlobalHeader => {}
            other => {
                let text = format!("the archive `{name}`: `{}` is of kind {other:?}", path.display());
                return Err(StepError::failed(text, None));
            }
        }
    }
    destination.finish()
}

/// Returns a file's two times, both the given seconds since 1970.
pub(super) fn at_seconds(seconds: u64) -> Timestamps {
    let time = Timespec { tv_sec: i64::try_from(seconds).unwrap_or(i64::MAX), tv_nsec: 0 };
    Timestamps { last_access: time, last_modification: time }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_that_is_refused_is_read_to_its_end_and_no_further() {
        let directory = tempfile::tempdir().unwrap();
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(EntryType::Char);
        header.set_size(0);
        header.set_mode(0o644);
        archive.append_data(&mut header, "device", io::empty()).unwrap();
        let archive = archive.into_inner().unwrap();
        let input = [&archive[..], b"what follows"].concat();
        let mut input = &input[..];
        let error = unpack_input(&mut input, archive.len() as u64, directory.path().to_str().unwrap()).unwrap_err();
        assert!(matches!(&error, StepError::Failed { error, .. } if error.contains("`device`")), "{error:?}");
        assert_eq!(input, b"what follows");
    }
}
