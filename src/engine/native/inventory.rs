//! The content of an unpacked layer: written when the layer is unpacked, and compared with its tree before use.
//!
//! ```text
//! store/unpacked/manifests/<diff id>.json     every entry's kind, mode, size and digest
//! store/unpacked/manifests/<diff id>.checked  what the files were like when their bytes were read, and in which boot
//! ```
//!
//! A layer has two files: the inventory, and the times of reading. The first line of either is the digest of the rest.
//! A file with the size and times of its last reading is not read again in the same boot; a changed file is. This
//! module does not decide what happens to a damaged layer.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use fs_err as fs;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::unpack::OPAQUE_ATTRIBUTE;
use crate::data_dir::{boot, write_atomically};
use crate::digest::{Digest, HashingWriter, seal, unseal};
use crate::host::processors;

/// Version of both files' schema.
const SCHEMA: u32 = 1;

/// Subdirectory for these files in the directory of unpacked layers.
pub(super) const MANIFESTS: &str = "manifests";

/// Which files of a layer are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Files that changed since their last reading in this boot.
    Changed,
    /// Every file.
    Everything,
}

/// The result of a comparison.
#[derive(Debug)]
pub(super) enum Checked {
    /// The tree equals the unpacked layer. `bytes` is the size of the files that were read.
    Sound { bytes: u64 },
    /// The tree differs: paths, and what is wrong with each.
    Damaged(Vec<(PathBuf, &'static str)>),
    /// There is no inventory to compare with.
    Unknown,
}

/// Every entry of a layer's tree, by its path with all but printable ASCII escaped.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Inventory {
    schema: u32,
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    mode: u32,
    #[serde(flatten)]
    kind: Kind,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Kind {
    Directory {
        /// Whether it hides the content of lower layers.
        opaque: bool,
    },
    File {
        size: u64,
        /// `None` if its mode keeps this user from reading it.
        sha256: Option<Digest>,
    },
    Link {
        target: String,
    },
    Whiteout,
    Other,
}

/// The state of files when their bytes were read.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamps {
    schema: u32,
    boot: String,
    /// Digest of the inventory that the files were compared with.
    inventory: Digest,
    files: BTreeMap<String, Stamp>,
}

/// Inode, and seconds and nanoseconds of its last change.
type Stamp = (u64, i64, i64);

/// An entry in the file system. A file's digest is not known yet.
struct Found {
    path: PathBuf,
    entry: Entry,
    stamp: Stamp,
}

impl Inventory {
    /// Reads the whole tree. Returns its inventory with the stamps of its files.
    fn read(tree: &Path) -> io::Result<(Self, BTreeMap<String, Stamp>)> {
        let mut found = walk(tree)?;
        let names: Vec<String> = found.keys().cloned().collect();
        let digests = digests(&names.iter().map(|name| found[name].path.as_path()).collect::<Vec<_>>(), &|number| {
            matches!(found[&names[number]].entry.kind, Kind::File { .. })
        })?;
        for (name, digest) in names.iter().zip(digests) {
            if let Some(Found { entry: Entry { kind: Kind::File { sha256, .. }, .. }, .. }) = found.get_mut(name) {
                *sha256 = digest;
            }
        }
        let stamps = files(&found).map(|(name, one)| (name.clone(), one.stamp)).collect();
        let entries = found.into_iter().map(|(name, one)| (name, one.entry)).collect();
        Ok((Self { schema: SCHEMA, entries }, stamps))
    }
}

/// Writes the inventory of a tree that was just unpacked.
pub(super) fn write(unpacked: &Path, layer: &Digest, tree: &Path) -> io::Result<()> {
    let (inventory, files) = Inventory::read(tree)?;
    fs::create_dir_all(unpacked.join(MANIFESTS))?;
    let inventory = write_sealed(&manifest(unpacked, layer), &inventory)?;
    write_sealed(&stamps(unpacked, layer), &Stamps { schema: SCHEMA, boot: boot()?, inventory, files })?;
    Ok(())
}

/// Compares a layer's tree with its inventory.
pub(super) fn check(unpacked: &Path, layer: &Digest, tree: &Path, reading: Reading) -> io::Result<Checked> {
    let Some((inventory, digest)) = read_sealed::<Inventory>(&manifest(unpacked, layer))? else {
        return Ok(Checked::Unknown);
    };
    if inventory.schema != SCHEMA {
        return Ok(Checked::Unknown);
    }
    let found = walk(tree)?;
    let mut damaged = differences(&inventory, &found, tree);
    let boot = boot()?;
    let known = read_sealed::<Stamps>(&stamps(unpacked, layer))?.map(|(stamps, _)| stamps);
    let known = known.filter(|known| {
        reading == Reading::Changed && known.schema == SCHEMA && known.boot == boot && known.inventory == digest
    });
    let is_known =
        |name: &str, one: &Found| known.as_ref().is_some_and(|known| known.files.get(name) == Some(&one.stamp));
    let unread: Vec<(&String, &Found)> = files(&found).filter(|(name, one)| !is_known(name, one)).collect();
    let read = digests(&unread.iter().map(|(_, one)| one.path.as_path()).collect::<Vec<_>>(), &|_| true)?;
    let mut bytes = 0;
    for ((name, one), digest) in unread.iter().zip(read) {
        if let Kind::File { size, .. } = one.entry.kind {
            bytes += size;
        }
        if let Some(Entry { kind: Kind::File { sha256, .. }, .. }) = inventory.entries.get(*name)
            // A file that one user can't read may be readable for another.
            && sha256.zip(digest).is_some_and(|(expected, found)| expected != found)
        {
            damaged.push((one.path.clone(), "it holds other bytes"));
        }
    }
    if !damaged.is_empty() {
        damaged.sort();
        damaged.dedup_by(|one, other| one.0 == other.0);
        return Ok(Checked::Damaged(damaged));
    }
    if !unread.is_empty() {
        let files = files(&found).map(|(name, one)| (name.clone(), one.stamp)).collect();
        write_sealed(&stamps(unpacked, layer), &Stamps { schema: SCHEMA, boot, inventory: digest, files })?;
    }
    Ok(Checked::Sound { bytes })
}

/// Tells whether two trees are equal, byte for byte.
pub(super) fn are_equal(one: &Path, other: &Path) -> io::Result<bool> {
    Ok(Inventory::read(one)?.0 == Inventory::read(other)?.0)
}

/// Removes a layer's inventory.
pub(super) fn forget(unpacked: &Path, layer: &Digest) -> io::Result<()> {
    for path in [manifest(unpacked, layer), stamps(unpacked, layer)] {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn manifest(unpacked: &Path, layer: &Digest) -> PathBuf {
    unpacked.join(MANIFESTS).join(format!("{}.json", layer.hex()))
}

fn stamps(unpacked: &Path, layer: &Digest) -> PathBuf {
    unpacked.join(MANIFESTS).join(format!("{}.checked", layer.hex()))
}

/// Returns the differences between the tree and the inventory, except bytes of files.
fn differences(inventory: &Inventory, found: &BTreeMap<String, Found>, tree: &Path) -> Vec<(PathBuf, &'static str)> {
    let mut differences = Vec::new();
    for (name, expected) in &inventory.entries {
        match found.get(name) {
            // Nearly all names are plain; others are shown in their escaped form.
            None => differences.push((tree.join(name), "it is missing")),
            Some(one) if !is_alike(expected, &one.entry) => {
                differences.push((one.path.clone(), "its kind, mode, size or target is another one"));
            }
            Some(_) => {}
        }
    }
    let added = found.iter().filter(|(name, _)| !inventory.entries.contains_key(*name));
    differences.extend(added.map(|(_, one)| (one.path.clone(), "no layer has it")));
    differences
}

/// Compares all fields except files' digests.
fn is_alike(expected: &Entry, found: &Entry) -> bool {
    let kinds = match (&expected.kind, &found.kind) {
        (Kind::File { size, .. }, Kind::File { size: other, .. }) => size == other,
        (expected, found) => expected == found,
    };
    kinds && expected.mode == found.mode
}

fn files(found: &BTreeMap<String, Found>) -> impl Iterator<Item = (&String, &Found)> {
    found.iter().filter(|(_, one)| matches!(one.entry.kind, Kind::File { .. }))
}

/// Returns all entries of a tree without reading files.
fn walk(tree: &Path) -> io::Result<BTreeMap<String, Found>> {
    let mut found = BTreeMap::new();
    let mut open = vec![tree.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let (path, metadata) = (entry.path(), entry.metadata()?);
            let kind = kind(&path, &metadata)?;
            if metadata.is_dir() {
                open.push(path.clone());
            }
            let within = path.strip_prefix(tree).unwrap_or(&path);
            let name = within.as_os_str().as_bytes().escape_ascii().to_string();
            let stamp = (metadata.ino(), metadata.ctime(), metadata.ctime_nsec());
            let mode = if metadata.is_symlink() { 0 } else { metadata.mode() & 0o7777 };
            found.insert(name, Found { path, entry: Entry { mode, kind }, stamp });
        }
    }
    Ok(found)
}

fn kind(path: &Path, metadata: &Metadata) -> io::Result<Kind> {
    let kind = metadata.file_type();
    Ok(if kind.is_dir() {
        let mut value = [0; 8];
        let opaque = rustix::fs::lgetxattr(path, OPAQUE_ATTRIBUTE, &mut value).is_ok_and(|length| length > 0);
        Kind::Directory { opaque }
    } else if kind.is_file() {
        Kind::File { size: metadata.size(), sha256: None }
    } else if kind.is_symlink() {
        Kind::Link { target: fs::read_link(path)?.as_os_str().as_bytes().escape_ascii().to_string() }
    } else if kind.is_char_device() && metadata.rdev() == 0 {
        Kind::Whiteout
    } else {
        Kind::Other
    })
}

/// Digests of files by their index.
type Numbered = Vec<(usize, Option<Digest>)>;

/// Reads the selected files on all processors, and returns their digests in order; `None` for a file that its mode
/// keeps closed.
fn digests(files: &[&Path], is_meant: &(dyn Fn(usize) -> bool + Sync)) -> io::Result<Vec<Option<Digest>>> {
    let next = AtomicUsize::new(0);
    let work = || -> io::Result<Numbered> {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = files.get(number) else { return Ok(done) };
            if is_meant(number) {
                done.push((number, digest(path)?));
            }
        }
    };
    let mut digests = vec![None; files.len()];
    let threads = processors().get().min(files.len());
    let done: Vec<io::Result<Numbered>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let panicked = |_| Err(io::Error::other("a thread that read a layer panicked"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    for done in done {
        for (number, digest) in done? {
            digests[number] = digest;
        }
    }
    Ok(digests)
}

fn digest(path: &Path) -> io::Result<Option<Digest>> {
    let mut file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
        file => file?,
    };
    let mut hasher = HashingWriter::new(io::sink());
    io::copy(&mut file, &mut hasher)?;
    Ok(Some(hasher.finish().1))
}

/// Writes a value with its digest in the first line, and returns the digest.
fn write_sealed(path: &Path, value: &impl Serialize) -> io::Result<Digest> {
    let value = serde_json::to_vec(value)?;
    write_atomically(path, &seal(&value))?;
    Ok(Digest::of(&value))
}

/// Reads a file of [`write_sealed`], with its digest; `None` if it is missing, damaged, or of another schema.
fn read_sealed<T: DeserializeOwned>(path: &Path) -> io::Result<Option<(T, Digest)>> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes?,
    };
    let value = unseal(&bytes).and_then(|value| Some((serde_json::from_slice(value).ok()?, Digest::of(value))));
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        directory: tempfile::TempDir,
        layer: Digest,
    }

    impl Place {
        fn new() -> Self {
            let place = Self { directory: tempfile::tempdir().unwrap(), layer: Digest::of(b"layer") };
            fs::create_dir_all(place.tree().join("bin")).unwrap();
            fs::write(place.file(), "a tool").unwrap();
            fs::write(place.tree().join("bin/ü"), "").unwrap();
            rustix::fs::symlink("tool", place.tree().join("link")).unwrap();
            write(place.directory.path(), &place.layer, &place.tree()).unwrap();
            place
        }

        fn tree(&self) -> PathBuf {
            self.directory.path().join(self.layer.hex())
        }

        fn file(&self) -> PathBuf {
            self.tree().join("bin/tool")
        }

        fn check(&self, reading: Reading) -> Checked {
            check(self.directory.path(), &self.layer, &self.tree(), reading).unwrap()
        }

        /// Returns the only damaged path.
        fn damaged(&self, reading: Reading) -> PathBuf {
            match self.check(reading) {
                Checked::Damaged(files) if files.len() == 1 => files[0].0.clone(),
                other => panic!("{other:?}"),
            }
        }

        /// Has the files' stamps be those of now, as if they had changed without the file system's knowledge.
        fn stamp(&self, change: impl FnOnce(&mut Stamps)) {
            let path = stamps(self.directory.path(), &self.layer);
            let (mut known, _) = read_sealed::<Stamps>(&path).unwrap().unwrap();
            let found = walk(&self.tree()).unwrap();
            known.files = files(&found).map(|(name, one)| (name.clone(), one.stamp)).collect();
            change(&mut known);
            write_sealed(&path, &known).unwrap();
        }
    }

    fn flip(path: &Path) {
        let mut bytes = fs::read(path).unwrap();
        bytes[0] ^= 1;
        fs::write(path, bytes).unwrap();
    }

    #[test]
    #[ignore = "a measurement: it writes 500 MB"]
    #[expect(clippy::print_stderr, reason = "a measurement is for people")]
    fn a_layer_of_500_mb_is_compared_quickly() {
        let place = Place { directory: tempfile::tempdir().unwrap(), layer: Digest::of(b"layer") };
        let content: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).take(50_000).collect();
        for number in 0..10_000u32 {
            let directory = place.tree().join(format!("{}", number % 100));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join(number.to_string()), [&number.to_le_bytes(), &content[..]].concat()).unwrap();
        }
        let started = std::time::Instant::now();
        write(place.directory.path(), &place.layer, &place.tree()).unwrap();
        let written = started.elapsed();
        for reading in [Reading::Everything, Reading::Changed] {
            let started = std::time::Instant::now();
            assert!(matches!(place.check(reading), Checked::Sound { .. }));
            eprintln!("{reading:?}: {:?} (the inventory: {written:?})", started.elapsed());
        }
    }

    #[test]
    fn what_changed_is_read_and_everything_once_in_a_boot() {
        let place = Place::new();
        assert!(matches!(place.check(Reading::Changed), Checked::Sound { bytes: 0 }));
        assert!(matches!(place.check(Reading::Everything), Checked::Sound { bytes: 6 }));
        flip(&place.file());
        assert_eq!(place.damaged(Reading::Changed), place.file());
        // Without a trace in the file system only a reading of everything finds it.
        place.stamp(|_| {});
        assert!(matches!(place.check(Reading::Changed), Checked::Sound { bytes: 0 }));
        assert_eq!(place.damaged(Reading::Everything), place.file());
        place.stamp(|known| known.boot = "another".to_owned());
        assert_eq!(place.damaged(Reading::Changed), place.file());
        flip(&place.file());
        assert!(matches!(place.check(Reading::Changed), Checked::Sound { bytes: 6 }), "read for the first time");
        assert!(matches!(place.check(Reading::Changed), Checked::Sound { bytes: 0 }));
    }

    #[test]
    fn every_kind_of_damage_is_named() {
        type Damage = fn(&Path);
        let kinds: [(&str, Damage); 5] = [
            ("bin/tool", |tree| fs::remove_file(tree.join("bin/tool")).unwrap()),
            ("bin/tool", |tree| fs::write(tree.join("bin/tool"), "cut").unwrap()),
            ("bin/more", |tree| fs::write(tree.join("bin/more"), "").unwrap()),
            ("link", |tree| {
                fs::remove_file(tree.join("link")).unwrap();
                rustix::fs::symlink("other", tree.join("link")).unwrap();
            }),
            ("bin/tool", |tree| {
                use std::os::unix::fs::PermissionsExt as _;
                fs::set_permissions(tree.join("bin/tool"), std::fs::Permissions::from_mode(0o600)).unwrap();
            }),
        ];
        for (path, damage) in kinds {
            let place = Place::new();
            damage(&place.tree());
            assert_eq!(place.damaged(Reading::Changed), place.tree().join(path));
        }
    }

    #[test]
    fn what_tells_of_a_layer_is_not_believed_when_it_is_damaged() {
        let place = Place::new();
        flip(&stamps(place.directory.path(), &place.layer));
        assert!(matches!(place.check(Reading::Changed), Checked::Sound { bytes: 6 }), "everything is read");
        flip(&manifest(place.directory.path(), &place.layer));
        assert!(matches!(place.check(Reading::Changed), Checked::Unknown));
        forget(place.directory.path(), &place.layer).unwrap();
        assert!(matches!(place.check(Reading::Changed), Checked::Unknown));
    }
}
