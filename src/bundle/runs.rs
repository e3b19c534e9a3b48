//! Finished runs in bundles: each an archive of the run's files and of kept results, tar in zstd, sorted, without times or owners.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// The directory with a run's files in its archive.
pub const RUN: &str = "run";
/// The directory with kept results in its archive.
pub const RESULTS: &str = "results";

/// Compression level. Records and logs are text, which repeats itself.
const LEVEL: i32 = 9;
/// Binary logarithm of the largest window that is read, in bytes.
const MOST_WINDOW_LOG: u32 = 27;
/// The most members.
const MOST_MEMBERS: usize = 4_000_000;
/// The largest unpacked archive, in bytes.
const MOST_BYTES: u64 = 32 << 30;
/// The longest name, in bytes.
const MOST_NAME_BYTES: u64 = 4096;
/// The most zeros after the members, in bytes.
const MOST_END_BYTES: u64 = 10 << 10;

/// A finished run in a bundle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PackedRun {
    /// The run's id.
    pub run_id: String,
    /// The archive's blob.
    pub archive: Digest,
    /// Its size in bytes.
    pub size: u64,
}

/// An archive of a run that is written, sorted by path.
pub struct RunArchive<W: Write>(tar::Builder<zstd::Encoder<'static, W>>);

impl<W: Write> RunArchive<W> {
    /// Begins an archive.
    ///
    /// # Errors
    /// I/O errors of writing.
    pub fn new(out: W) -> io::Result<Self> {
        Ok(Self(tar::Builder::new(zstd::Encoder::new(out, LEVEL)?)))
    }

    /// Adds a file with `size` bytes of content. Paths must come in ascending order.
    ///
    /// # Errors
    /// I/O errors of reading and writing, also for content of fewer bytes.
    pub fn add(&mut self, path: &Path, size: u64, content: impl Read) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_size(size);
        let mut content = content.take(size);
        self.0.append_data(&mut header, path, &mut content)?;
        match content.limit() {
            0 => Ok(()),
            _ => Err(io::Error::other(format!("`{}` became shorter while it was read", path.display()))),
        }
    }

    /// Ends the archive.
    ///
    /// # Errors
    /// I/O errors of writing.
    pub fn finish(self) -> io::Result<W> {
        self.0.into_inner()?.finish()
    }
}

/// What may be in an archive of a run.
#[derive(Clone, Copy)]
pub struct Expected {
    /// Tells whether a path below [`RUN`] is one of a run's files.
    pub is_file: fn(&Path) -> bool,
    /// The largest kept result, in bytes.
    pub most_result_bytes: u64,
}

impl Expected {
    fn has(&self, path: &Path, size: u64) -> bool {
        let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        let is_key = |rest: &Path| {
            let name = rest.to_str().and_then(|name| name.strip_suffix(".json"));
            name.is_some_and(|name| Digest::from_hex(name).is_ok())
        };
        plain
            && match (path.strip_prefix(RUN), path.strip_prefix(RESULTS)) {
                (Ok(file), _) => (self.is_file)(file),
                (_, Ok(result)) => size <= self.most_result_bytes && is_key(result),
                _ => false,
            }
    }
}

/// Why an archive of a run was not unpacked.
#[derive(Debug)]
pub enum UnpackError {
    /// It is damaged, or no archive of a run.
    Refused(String),
    /// Its files could not be written.
    Writing(io::Error),
}

/// Reads an archive to its end and checks it. Writes it to the directory `output`, if there is one, which must be empty.
///
/// # Errors
/// [`UnpackError`].
pub fn unpack(archive: impl Read, output: Option<&Path>, expected: &Expected) -> Result<(), UnpackError> {
    let refused = |reason: &str| UnpackError::Refused(reason.to_owned());
    let damaged = |error: io::Error| UnpackError::Refused(format!("it is damaged: {error}"));
    let mut stream = zstd::Decoder::new(archive).map_err(damaged)?;
    stream.window_log_max(MOST_WINDOW_LOG).map_err(damaged)?;
    let mut archive = tar::Archive::new(stream.take(MOST_BYTES));
    let (mut long, mut earlier) = (None, PathBuf::new());
    for (number, member) in archive.entries().map_err(damaged)?.raw(true).enumerate() {
        let mut member = member.map_err(damaged)?;
        if number >= MOST_MEMBERS {
            return Err(refused("it has too many members"));
        }
        // A long name comes before the member that it names.
        if member.header().entry_type() == tar::EntryType::GNULongName {
            if member.size() > MOST_NAME_BYTES {
                return Err(refused("a name is too long"));
            }
            let mut name = Vec::new();
            member.read_to_end(&mut name).map_err(damaged)?;
            name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
            long = Some(name);
            continue;
        }
        let name = long.take().unwrap_or_else(|| member.header().path_bytes().into_owned());
        let path = PathBuf::from(OsString::from_vec(name));
        let wrong = |what: &str| {
            let shown: String = path.display().to_string().chars().take(200).collect();
            UnpackError::Refused(format!("`{}` {what}", crate::output::escape(&shown)))
        };
        let is_file = member.header().entry_type() == tar::EntryType::Regular;
        if !is_file || !expected.has(&path, member.size()) {
            return Err(wrong("is no file of a run"));
        }
        if path <= earlier {
            return Err(wrong("comes twice or too late"));
        }
        match output {
            None => drop(io::copy(&mut member, &mut io::sink()).map_err(damaged)?),
            Some(output) => write(&mut member, &output.join(&path), damaged)?,
        }
        earlier = path;
    }
    // The archive ends with blocks of zeros, of which one was read.
    let mut rest = Vec::new();
    archive.into_inner().take(MOST_END_BYTES + 1).read_to_end(&mut rest).map_err(damaged)?;
    match rest.len() as u64 <= MOST_END_BYTES && rest.iter().all(|byte| *byte == 0) {
        true => Ok(()),
        false => Err(refused("it has bytes after its members")),
    }
}

/// Writes a member to a new file.
fn write(member: &mut impl Read, path: &Path, damaged: impl Fn(io::Error) -> UnpackError) -> Result<(), UnpackError> {
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(UnpackError::Writing)?;
    let mut file = fs::File::create_new(path).map_err(UnpackError::Writing)?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        let length = member.read(&mut buffer).map_err(&damaged)?;
        if length == 0 {
            return Ok(());
        }
        file.write_all(&buffer[..length]).map_err(UnpackError::Writing)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPECTED: Expected = Expected {
        is_file: |path| path.starts_with("logs") || path == Path::new("run.json"),
        most_result_bytes: 1 << 20,
    };

    fn packed(members: &[(&str, &str)]) -> Vec<u8> {
        let mut archive = RunArchive::new(Vec::new()).unwrap();
        for (path, text) in members {
            archive.add(Path::new(path), text.len() as u64, text.as_bytes()).unwrap();
        }
        archive.finish().unwrap()
    }

    fn refused(archive: &[u8], output: Option<&Path>) -> String {
        match unpack(archive, output, &EXPECTED) {
            Err(UnpackError::Refused(reason)) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_archive_is_equal_and_comes_back() {
        let long = format!("run/logs/{}/{}.txt", "a".repeat(120), "b".repeat(120));
        let key = format!("results/{}.json", "0a".repeat(32));
        let members = [(key.as_str(), "result"), (&long, "log"), ("run/run.json", "{}")];
        let archive = packed(&members);
        assert_eq!(archive, packed(&members));
        let directory = tempfile::tempdir().unwrap();
        unpack(archive.as_slice(), None, &EXPECTED).unwrap();
        unpack(archive.as_slice(), Some(directory.path()), &EXPECTED).unwrap();
        for (path, text) in members {
            assert_eq!(fs::read_to_string(directory.path().join(path)).unwrap(), text);
        }
        // There are files already.
        let again = unpack(archive.as_slice(), Some(directory.path()), &EXPECTED);
        assert!(matches!(again, Err(UnpackError::Writing(_))), "{again:?}");
        let mut archive = RunArchive::new(Vec::new()).unwrap();
        assert!(archive.add(Path::new("run/run.json"), 9, &b"short"[..]).is_err());
    }

    #[test]
    fn strange_archives_are_refused() {
        let strange = ["run/other.json", "run.json", "results/short.json", "results/a/b", "logs/x", "run"];
        for path in strange {
            assert_eq!(refused(&packed(&[(path, "x")]), None), format!("`{path}` is no file of a run"));
        }
        let archive = packed(&[("run/run.json", "{}")]);
        assert!(refused(&archive[..archive.len() - 9], None).contains("damaged"));
        assert!(refused(b"no archive", None).contains("damaged"));
        let hostile = |kind: tar::EntryType, path: &str, size: u64| {
            let mut archive = tar::Builder::new(zstd::Encoder::new(Vec::new(), 1).unwrap());
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(size);
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.as_old_mut().linkname[..4].copy_from_slice(b"/etc");
            header.set_cksum();
            archive.append(&header, io::repeat(b'x').take(size)).unwrap();
            archive.into_inner().unwrap().finish().unwrap()
        };
        let directory = tempfile::tempdir().unwrap();
        for (kind, path) in [
            (tar::EntryType::Symlink, "run/logs"),
            (tar::EntryType::Link, "run/logs/x"),
            (tar::EntryType::Fifo, "run/logs/x"),
            (tar::EntryType::Directory, "run/logs"),
            (tar::EntryType::XHeader, "run/logs/x"),
            (tar::EntryType::GNULongLink, "run/logs/x"),
            (tar::EntryType::Regular, "run/logs/../../../escaped"),
            (tar::EntryType::Regular, "/run/logs/x"),
        ] {
            let reason = refused(&hostile(kind, path, 0), Some(directory.path()));
            assert_eq!(reason, format!("`{path}` is no file of a run"));
        }
        let result = format!("results/{}.json", "0a".repeat(32));
        let large = hostile(tar::EntryType::Regular, &result, (1 << 20) + 1);
        assert_eq!(refused(&large, Some(directory.path())), format!("`{result}` is no file of a run"));
        let long = hostile(tar::EntryType::GNULongName, "././@LongLink", 70_000);
        assert_eq!(refused(&long, Some(directory.path())), "a name is too long");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        for members in [[("run/logs/x", "x"); 2], [("run/logs/x", "x"), ("run/logs/a", "a")]] {
            assert!(refused(&packed(&members), None).ends_with("comes twice or too late"));
        }
        let twice = [packed(&[("run/logs/x", "x")]), packed(&[("run/logs/y", "y")])].concat();
        assert_eq!(refused(&twice, None), "it has bytes after its members");
    }
}
