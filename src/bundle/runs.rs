//! Finished runs in bundles: each an archive of the run's files and of kept results, tar in zstd, sorted, without times or owners.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
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

/// The content of a member of an archive.
pub enum Member {
    /// Bytes in memory.
    Bytes(Vec<u8>),
    /// A file.
    File(PathBuf),
}

/// Writes an archive of members by their paths in it.
///
/// # Errors
/// I/O errors of reading and writing.
pub fn pack<W: Write>(members: &BTreeMap<PathBuf, Member>, out: W) -> io::Result<W> {
    let mut archive = tar::Builder::new(zstd::Encoder::new(out, LEVEL)?);
    for (path, member) in members {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_mtime(0);
        match member {
            Member::Bytes(bytes) => {
                header.set_size(bytes.len() as u64);
                archive.append_data(&mut header, path, bytes.as_slice())?;
            }
            Member::File(file) => {
                let file = fs::File::open(file)?;
                let size = file.metadata()?.len();
                header.set_size(size);
                archive.append_data(&mut header, path, file.take(size))?;
            }
        }
    }
    archive.into_inner()?.finish()
}

/// Reads an archive to its end and checks it. Writes it to the directory `output`, if there is one, which must be empty.
/// `is_known` tells whether a path is one of a run's files; kept results are named by a digest.
///
/// # Errors
/// What is wrong with the archive, and I/O errors, as text.
pub fn unpack(archive: impl Read, output: Option<&Path>, is_known: impl Fn(&Path) -> bool) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    let mut stream = zstd::Decoder::new(archive).map_err(text)?;
    stream.window_log_max(MOST_WINDOW_LOG).map_err(text)?;
    let mut archive = tar::Archive::new(stream.take(MOST_BYTES));
    for (number, member) in archive.entries().map_err(text)?.enumerate() {
        let mut member = member.map_err(text)?;
        let path = member.path().map_err(text)?.into_owned();
        let shown = || path.display().to_string().chars().take(200).collect::<String>();
        if number >= MOST_MEMBERS {
            return Err(format!("it has more than {MOST_MEMBERS} members"));
        }
        if member.header().entry_type() != tar::EntryType::Regular || !is_expected(&path, &is_known) {
            return Err(format!("`{}` is no file of a run", shown()));
        }
        match output {
            None => drop(io::copy(&mut member, &mut io::sink()).map_err(text)?),
            Some(output) => {
                let path = output.join(&path);
                path.parent().map_or(Ok(()), fs::create_dir_all).map_err(text)?;
                // A second member of this path would be an error.
                let mut file = fs::File::create_new(&path).map_err(text)?;
                io::copy(&mut member, &mut file).map_err(text)?;
            }
        }
    }
    // Read to the end: the decoder checks what it has read.
    let mut rest = Vec::new();
    archive.into_inner().take(MOST_END_BYTES + 1).read_to_end(&mut rest).map_err(text)?;
    match rest.len() as u64 <= MOST_END_BYTES && rest.iter().all(|byte| *byte == 0) {
        true => Ok(()),
        false => Err("it has bytes after its members".to_owned()),
    }
}

/// Tells whether a path is one of a run's files, or a kept result's.
fn is_expected(path: &Path, is_known: impl Fn(&Path) -> bool) -> bool {
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let key = |rest: &Path| {
        let name = rest.to_str().and_then(|name| name.strip_suffix(".json"));
        name.is_some_and(|name| Digest::from_hex(name).is_ok())
    };
    plain
        && match (path.strip_prefix(RUN), path.strip_prefix(RESULTS)) {
            (Ok(file), _) => is_known(file),
            (_, Ok(result)) => key(result),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_known(path: &Path) -> bool {
        path.starts_with("logs") || path == Path::new("run.json")
    }

    fn packed(members: &[(&str, &str)]) -> Vec<u8> {
        let members = members.iter().map(|(path, text)| (path.into(), Member::Bytes((*text).into())));
        pack(&members.collect(), Vec::new()).unwrap()
    }

    #[test]
    fn an_archive_is_equal_and_comes_back() {
        let long = format!("run/logs/{}/{}.txt", "a".repeat(120), "b".repeat(120));
        let key = format!("results/{}.json", "0a".repeat(32));
        let members = [("run/run.json", "{}"), (&long, "log"), (&key, "result")];
        let archive = packed(&members);
        assert_eq!(archive, packed(&members));
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(unpack(archive.as_slice(), Some(directory.path()), is_known), Ok(()));
        for (path, text) in members {
            assert_eq!(fs::read_to_string(directory.path().join(path)).unwrap(), text);
        }
        // There are files already.
        assert!(unpack(archive.as_slice(), Some(directory.path()), is_known).is_err());
    }

    #[test]
    fn strange_archives_are_refused() {
        let strange = ["run/other.json", "run.json", "results/short.json", "results/a/b", "logs/x", "run"];
        for path in strange {
            let refused = unpack(packed(&[(path, "x")]).as_slice(), None, is_known).unwrap_err();
            assert_eq!(refused, format!("`{path}` is no file of a run"));
        }
        let archive = packed(&[("run/run.json", "{}")]);
        assert!(unpack(&archive[..archive.len() - 9], None, is_known).is_err());
        assert!(unpack(&b"no archive"[..], None, is_known).is_err());
        let hostile = |kind: tar::EntryType, path: &str| {
            let mut archive = tar::Builder::new(zstd::Encoder::new(Vec::new(), 1).unwrap());
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(0);
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.as_old_mut().linkname[..4].copy_from_slice(b"/etc");
            header.set_cksum();
            archive.append(&header, io::empty()).unwrap();
            archive.into_inner().unwrap().finish().unwrap()
        };
        let directory = tempfile::tempdir().unwrap();
        for (kind, path) in [
            (tar::EntryType::Symlink, "run/logs"),
            (tar::EntryType::Link, "run/logs/x"),
            (tar::EntryType::Fifo, "run/logs/x"),
            (tar::EntryType::Directory, "run/logs"),
            (tar::EntryType::Regular, "run/logs/../../../escaped"),
            (tar::EntryType::Regular, "/run/logs/x"),
        ] {
            let refused = unpack(hostile(kind, path).as_slice(), Some(directory.path()), is_known).unwrap_err();
            assert_eq!(refused, format!("`{path}` is no file of a run"));
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        let twice = [packed(&[("run/logs/x", "x")]), packed(&[("run/logs/x", "x")])].concat();
        assert!(unpack(twice.as_slice(), Some(directory.path()), is_known).is_err());
    }
}
