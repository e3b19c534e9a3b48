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
    /// Takes an inflated loose object apart. Gives back what is none.
    pub(super) fn loose(mut plain: Vec<u8>) -> Result<Self, Vec<u8>> {
        let head = plain.iter().take(40).position(|byte| *byte == 0);
        let text = head.and_then(|end| std::str::from_utf8(&plain[..end]).ok());
        let kind = text.and_then(|text| ObjectType::from_str(text.split_once(' ')?.0));
        let (Some(head), Some(kind)) = (head, kind) else { return Err(plain) };
        let content = plain.split_off(head + 1);
        match Oid::hash_object(kind, &content) {
            Ok(id) => Ok(Self { kind, id: id.to_string(), content }),
            Err(_) => {
                plain.extend(content);
                Err(plain)
            }
        }
    }

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

/// Inflates a zlib stream and returns at most `most` + 1 bytes. If these are not all bytes, also returns the reason.
pub(super) fn inflated(content: &[u8], most: u64) -> (Vec<u8>, Option<String>) {
    let mut plain = Vec::new();
    let read = ZlibDecoder::new(content).take(most + 1).read_to_end(&mut plain);
    let failed = match read {
        Err(error) => Some(error.to_string()),
        Ok(_) if plain.len() as u64 > most => Some(format!("it has more than {most} bytes")),
        Ok(_) => None,
    };
    (plain, failed)
}

/// Returns the position of a pack in a content: 0, or the end of a git bundle's header.
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
