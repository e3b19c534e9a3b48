//! Objects of git: loose ones, and packs, for which libgit2 makes an index in a temporary directory.

use std::io::{Read as _, Write as _};
use std::path::Path;

use flate2::read::ZlibDecoder;
use fs_err as fs;
use git2::{Indexer, ObjectType, Odb, Oid};

/// An object of git.
pub(super) struct Object {
    pub(super) kind: ObjectType,
    pub(super) id: String,
    pub(super) content: Vec<u8>,
}

impl Object {
    /// Returns the ids of a commit's parents.
    pub(super) fn parents(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.content).into_owned();
        let head = text.split("\n\n").next().unwrap_or_default().to_owned();
        head.lines().filter_map(|line| line.strip_prefix("parent ")).map(str::to_owned).collect()
    }
}

/// Tells whether a content begins like compressed data of zlib.
pub(super) fn is_zlib(content: &[u8]) -> bool {
    matches!(content, [0x78, flags, ..] if (0x7800 + u16::from(*flags)) % 31 == 0)
}

/// Reads a loose object of at most `most` bytes.
///
/// # Errors
/// The reason why it is none.
pub(super) fn loose(content: &[u8], most: u64) -> Result<Object, String> {
    let mut plain = Vec::new();
    ZlibDecoder::new(content).take(most + 1).read_to_end(&mut plain).map_err(|error| error.to_string())?;
    if plain.len() as u64 > most {
        return Err("it is too large".to_owned());
    }
    let head = plain.iter().take(40).position(|byte| *byte == 0).ok_or("it is no object of git")?;
    let text = String::from_utf8_lossy(&plain[..head]).into_owned();
    let kind = text.split_once(' ').and_then(|(kind, _)| ObjectType::from_str(kind)).ok_or("it is no object of git")?;
    let content = plain.split_off(head + 1);
    let id = Oid::hash_object(kind, &content).map_err(|error| error.message().to_owned())?.to_string();
    Ok(Object { kind, id, content })
}

/// Returns where a pack begins in a content: at its start, or after the head of a bundle.
pub(super) fn pack_start(content: &[u8]) -> Option<usize> {
    if content.starts_with(b"PACK\0\0\0") {
        return Some(0);
    }
    if !content.starts_with(b"# v2 git bundle\n") && !content.starts_with(b"# v3 git bundle\n") {
        return None;
    }
    content.windows(10).position(|window| window.starts_with(b"\n\nPACK\0\0\0")).map(|at| at + 2)
}

/// Calls `each` with every object of a pack; `None` stands for one of more than `most` bytes. `directory` must not exist; it is
/// removed.
///
/// # Errors
/// The reason why the pack can't be read.
pub(super) fn objects(
    pack: &[u8],
    directory: &Path,
    most: u64,
    each: &mut dyn FnMut(Option<Object>),
) -> Result<(), String> {
    let read = read(pack, directory, most, each);
    let removed = match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.to_string()),
        _ => Ok(()),
    };
    read.and(removed)
}

fn read(pack: &[u8], directory: &Path, most: u64, each: &mut dyn FnMut(Option<Object>)) -> Result<(), String> {
    let message = |error: git2::Error| error.message().to_owned();
    let packs = directory.join("pack");
    fs::create_dir_all(&packs).map_err(|error| error.to_string())?;
    let mut indexer = Indexer::new(None, &packs, 0o600, false).map_err(message)?;
    indexer.write_all(pack).map_err(|error| error.to_string())?;
    indexer.commit().map_err(message)?;
    let odb = Odb::new().map_err(message)?;
    let path = directory.to_str().ok_or("the temporary directory's name is not UTF-8")?;
    odb.add_disk_alternate(path).map_err(message)?;
    let mut ids = Vec::new();
    odb.foreach(|id| {
        ids.push(*id);
        true
    })
    .map_err(message)?;
    for id in ids {
        let (size, kind) = odb.read_header(id).map_err(message)?;
        if size as u64 > most {
            each(None);
            continue;
        }
        let object = odb.read(id).map_err(message)?;
        each(Some(Object { kind, id: id.to_string(), content: object.data().to_vec() }));
    }
    Ok(())
}
