//! Sources of revisions: git's objects of the needed commits, without history.
//!
//! A blob of sources is a zstd stream of objects: a byte for the kind, the size in eight bytes (little endian), the
//! content. Contents of one path stand beside each other, because they compress well. Packs of git are not used, because
//! libgit2 expands a stranger's pack without bounds. Reading makes a pack without deltas of the objects, so that they
//! appear in a repository at once or not at all.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{self, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use git2::{ErrorCode, ObjectType, Odb, Oid};
use sha1::{Digest as _, Sha1};

use crate::digest::Digest;
use crate::task::Revision;

/// The largest object, in bytes; as large as the largest file of a revision.
const MOST_OBJECT_BYTES: u64 = 512 << 20;
/// The most objects.
const MOST_OBJECTS: u32 = 4_000_000;
/// The most bytes of all objects.
const MOST_BYTES: u64 = 32 << 30;
/// The deepest directory.
const MOST_DEPTH: usize = 100;
/// Compression level of the stream. It takes about as long as reading the objects from a pack.
const LEVEL: i32 = 9;
/// Binary logarithm of the window in bytes: a repository's files of one path are far apart in a large repository.
const WINDOW_LOG: u32 = 27;

/// Objects of revisions: where each stands in the order, so that equal sets give equal streams.
#[derive(Debug, Default)]
pub struct ObjectList(BTreeMap<(u8, Vec<u8>, Oid), ()>);

impl ObjectList {
    /// Lists the objects of these revisions in a repository that `known` lacks. Contents that the repository lacks are
    /// left out, as they are in its trees.
    ///
    /// # Errors
    /// The reason for which the repository can't be read.
    pub fn of(path: &Path, revisions: &[Revision], known: &HashSet<Oid>) -> Result<Self, String> {
        let git = git2::Repository::open_bare(path).or_else(|_| git2::Repository::open(path)).map_err(text)?;
        let odb = git.odb().map_err(text)?;
        let mut list = Self::default();
        let mut seen = known.clone();
        for revision in revisions {
            let id = Oid::from_str(revision.as_str()).map_err(text)?;
            let tree = git.find_commit(id).map_err(text)?.tree_id();
            if seen.insert(id) {
                list.0.insert((kind_of(ObjectType::Commit)?, Vec::new(), id), ());
            }
            list.tree((&git, &odb), tree, &mut Vec::new(), 0, &mut seen)?;
        }
        Ok(list)
    }

    fn tree(
        &mut self,
        (git, odb): (&git2::Repository, &Odb<'_>),
        id: Oid,
        path: &mut Vec<u8>,
        depth: usize,
        seen: &mut HashSet<Oid>,
    ) -> Result<(), String> {
        if !seen.insert(id) {
            return Ok(());
        }
        if depth > MOST_DEPTH || self.0.len() >= MOST_OBJECTS as usize {
            return Err("a tree is too deep, or there are too many objects".to_owned());
        }
        self.0.insert((kind_of(ObjectType::Tree)?, path.clone(), id), ());
        for entry in &git.find_tree(id).map_err(text)? {
            let length = path.len();
            path.extend_from_slice(b"/");
            path.extend_from_slice(entry.name_bytes());
            match entry.kind() {
                Some(ObjectType::Tree) => self.tree((git, odb), entry.id(), path, depth + 1, seen)?,
                Some(ObjectType::Blob) if odb.exists(entry.id()) && seen.insert(entry.id()) => {
                    self.0.insert((kind_of(ObjectType::Blob)?, path.clone(), entry.id()), ());
                }
                _ => {}
            }
            path.truncate(length);
        }
        Ok(())
    }

    /// Tells whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Writes the objects.
    ///
    /// # Errors
    /// I/O errors of writing, and git's errors of reading.
    pub fn write(&self, path: &Path, out: impl Write) -> io::Result<()> {
        let git = git2::Repository::open_bare(path).or_else(|_| git2::Repository::open(path));
        let git = git.map_err(io::Error::other)?;
        let odb = git.odb().map_err(io::Error::other)?;
        let mut stream = zstd::Encoder::new(out, LEVEL)?;
        stream.window_log(WINDOW_LOG)?;
        stream.include_checksum(true)?;
        for (kind, _, id) in self.0.keys() {
            let object = odb.read(*id).map_err(io::Error::other)?;
            stream.write_all(&[*kind])?;
            stream.write_all(&(object.len() as u64).to_le_bytes())?;
            stream.write_all(object.data())?;
        }
        stream.finish()?;
        Ok(())
    }
}

/// An object that was read.
struct Object {
    kind: ObjectType,
    content: Vec<u8>,
}

/// Calls `each` with every object of a stream.
///
/// # Errors
/// The reason for which the stream is malformed, or the error of `each`.
fn read(stream: impl Read, mut each: impl FnMut(Object) -> Result<(), String>) -> Result<(), String> {
    let damaged = |error: io::Error| format!("its sources are damaged: {error}");
    let mut stream = zstd::Decoder::new(stream).map_err(damaged)?;
    stream.window_log_max(WINDOW_LOG).map_err(damaged)?;
    let (mut objects, mut bytes) = (0_u32, 0_u64);
    loop {
        let mut kind = [0];
        if stream.read(&mut kind).map_err(damaged)? == 0 {
            return Ok(());
        }
        let mut size = [0; 8];
        stream.read_exact(&mut size).map_err(damaged)?;
        let size = u64::from_le_bytes(size);
        objects += 1;
        bytes = bytes.saturating_add(size);
        if size > MOST_OBJECT_BYTES || objects > MOST_OBJECTS || bytes > MOST_BYTES {
            return Err("its sources are larger than any repository may be".to_owned());
        }
        let kind = match kind[0] {
            1 => ObjectType::Commit,
            2 => ObjectType::Tree,
            3 => ObjectType::Blob,
            _ => return Err("its sources hold an object of no known kind".to_owned()),
        };
        // A size alone must not take memory.
        let mut content = Vec::new();
        (&mut stream).take(size).read_to_end(&mut content).map_err(damaged)?;
        if content.len() as u64 != size {
            return Err("its sources are truncated".to_owned());
        }
        each(Object { kind, content })?;
    }
}

/// Returns the ids of a stream's objects.
///
/// # Errors
/// The reason for which the stream is malformed.
pub fn ids(stream: impl Read) -> Result<HashSet<Oid>, String> {
    let mut ids = HashSet::new();
    read(stream, |object| {
        ids.insert(Oid::hash_object(object.kind, &object.content).map_err(text)?);
        Ok(())
    })?;
    Ok(ids)
}

/// Takes the objects of streams into a bare repository, which is created if missing, and returns those of `revisions`
/// that are not complete then. `file` is for temporary use.
///
/// # Errors
/// The reason for which a stream is malformed or the repository can't be written.
pub fn take(
    repository: &Path,
    streams: Vec<Box<dyn Read + '_>>,
    revisions: &[Revision],
    mut file: std::fs::File,
) -> Result<Vec<Revision>, String> {
    let io = |error: io::Error| error.to_string();
    let git = match git2::Repository::open_bare(repository) {
        Ok(git) => git,
        Err(error) if error.code() == ErrorCode::NotFound => git2::Repository::init_bare(repository).map_err(text)?,
        Err(error) => return Err(text(error)),
    };
    let odb = git.odb().map_err(text)?;
    let (mut count, mut seen, mut commits) = (0_u32, HashSet::new(), BTreeSet::new());
    let mut body = io::BufWriter::with_capacity(1 << 20, &mut file);
    for stream in streams {
        read(stream, |object| {
            let id = Oid::hash_object(object.kind, &object.content).map_err(text)?;
            if odb.exists(id) || !seen.insert(id) {
                return Ok(());
            }
            if object.kind == ObjectType::Commit {
                commits.insert(id);
            }
            count += 1;
            write_object(&mut body, &object).map_err(io)
        })?;
    }
    body.into_inner().map_err(|error| error.to_string())?;
    if count > 0 {
        write_pack(&odb, count, &mut file)?;
        note_shallow(repository, &commits).map_err(io)?;
    }
    odb.refresh().map_err(text)?;
    let incomplete = revisions.iter().filter(|revision| !is_complete(&git, revision));
    Ok(incomplete.cloned().collect())
}

/// Writes an object as a pack has it, without a delta.
fn write_object(out: &mut impl Write, object: &Object) -> io::Result<()> {
    let kind: u8 = match object.kind {
        ObjectType::Commit => 1,
        ObjectType::Tree => 2,
        _ => 3,
    };
    let mut size = object.content.len();
    // The lowest four bits stand beside the kind, seven in each further byte.
    let mut byte = (kind << 4) | (size & 0x0f) as u8;
    size >>= 4;
    while size > 0 {
        out.write_all(&[byte | 0x80])?;
        byte = (size & 0x7f) as u8;
        size >>= 7;
    }
    out.write_all(&[byte])?;
    let mut zlib = ZlibEncoder::new(out, Compression::fast());
    zlib.write_all(&object.content)?;
    zlib.finish()?;
    Ok(())
}

/// Gives a repository the pack of these objects.
fn write_pack(odb: &Odb<'_>, count: u32, body: &mut std::fs::File) -> Result<(), String> {
    use std::io::Seek as _;
    let io = |error: io::Error| error.to_string();
    let mut pack = odb.packwriter().map_err(text)?;
    let mut hasher = Sha1::new();
    let header = [&b"PACK"[..], &2_u32.to_be_bytes(), &count.to_be_bytes()].concat();
    hasher.update(&header);
    pack.write_all(&header).map_err(io)?;
    body.rewind().map_err(io)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        let length = body.read(&mut buffer).map_err(io)?;
        if length == 0 {
            break;
        }
        hasher.update(&buffer[..length]);
        pack.write_all(&buffer[..length]).map_err(io)?;
    }
    pack.write_all(&hasher.finalize()).map_err(io)?;
    pack.commit().map_err(text)?;
    Ok(())
}

/// Notes that commits have no parents here, so that git does not look for them.
fn note_shallow(repository: &Path, commits: &BTreeSet<Oid>) -> io::Result<()> {
    let path = repository.join("shallow");
    let present = match fs_err::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    let mut lines: BTreeSet<String> = present.lines().map(str::to_owned).collect();
    lines.extend(commits.iter().map(Oid::to_string));
    let text: String = lines.into_iter().map(|line| line + "\n").collect();
    crate::data_dir::write_atomically(&path, text.as_bytes())
}

/// Tells whether a repository has a commit and all of its directories.
pub fn is_complete(git: &git2::Repository, revision: &Revision) -> bool {
    has_all(git, revision, |_| true)
}

/// Tells whether a repository has a commit, all of its directories, and the contents of its files.
pub fn has_contents(git: &git2::Repository, revision: &Revision) -> bool {
    git.odb().is_ok_and(|odb| has_all(git, revision, |file| odb.exists(file)))
}

/// Looks at every directory of a commit once: a stranger's directory may hold another one many times, and that one a third.
fn has_all(git: &git2::Repository, revision: &Revision, has_file: impl Fn(Oid) -> bool) -> bool {
    let commit = Oid::from_str(revision.as_str()).and_then(|id| git.find_commit(id));
    let Ok(commit) = commit else { return false };
    let (mut left, mut seen) = (vec![commit.tree_id()], HashSet::new());
    while let Some(id) = left.pop() {
        if !seen.insert(id) {
            continue;
        }
        let Ok(tree) = git.find_tree(id) else { return false };
        for entry in &tree {
            match entry.kind() {
                Some(ObjectType::Tree) => left.push(entry.id()),
                Some(ObjectType::Blob) if !has_file(entry.id()) => return false,
                _ => {}
            }
        }
    }
    true
}

/// The file in a repository that lists the blobs of sources which were taken, a digest in each line.
const TAKEN: &str = "bundled-sources";

/// Returns the blobs of sources that bundles brought into a repository.
///
/// # Errors
/// I/O errors of reading.
pub fn taken(repository: &Path) -> io::Result<BTreeSet<Digest>> {
    match fs_err::read_to_string(repository.join(TAKEN)) {
        Ok(text) => Ok(text.lines().filter_map(|line| line.parse().ok()).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}

/// Notes that all objects of these blobs of sources are in a repository.
///
/// # Errors
/// I/O errors of reading and writing.
pub fn note_taken(repository: &Path, blobs: impl IntoIterator<Item = Digest>) -> io::Result<()> {
    let earlier = taken(repository)?;
    let all: BTreeSet<Digest> = earlier.iter().copied().chain(blobs).collect();
    if all == earlier {
        return Ok(());
    }
    let text: String = all.iter().map(|digest| format!("{digest}\n")).collect();
    crate::data_dir::write_atomically(&repository.join(TAKEN), text.as_bytes())
}

fn kind_of(kind: ObjectType) -> Result<u8, String> {
    match kind {
        ObjectType::Commit => Ok(1),
        ObjectType::Tree => Ok(2),
        ObjectType::Blob => Ok(3),
        _ => Err("an object is of no known kind".to_owned()),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped by value")]
fn text(error: git2::Error) -> String {
    error.message().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bomb_of_directories_takes_no_time() {
        let directory = tempfile::tempdir().unwrap();
        let git = git2::Repository::init_bare(directory.path()).unwrap();
        let mut id = git.treebuilder(None).unwrap().write().unwrap();
        // Walked through, these are 10^60 directories.
        for _ in 0..60 {
            let mut tree = git.treebuilder(None).unwrap();
            for name in 0..10 {
                tree.insert(name.to_string(), id, 0o040_000).unwrap();
            }
            id = tree.write().unwrap();
        }
        let by = git2::Signature::new("a", "a@example.org", &git2::Time::new(0, 0)).unwrap();
        let commit = git.commit(None, &by, &by, "x", &git.find_tree(id).unwrap(), &[]).unwrap();
        let revision: Revision = commit.to_string().parse().unwrap();
        assert!(is_complete(&git, &revision) && has_contents(&git, &revision));
    }

    #[test]
    fn files_that_only_a_base_has_are_missed() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let git = git2::Repository::init_bare(path("from.git")).unwrap();
        // The only directory changes, and one of its two files stays.
        let commit = |text: &str| -> Revision {
            let mut tree = git.treebuilder(None).unwrap();
            for (name, text) in [("stays", "stays"), ("changes", text)] {
                tree.insert(name, git.blob(text.as_bytes()).unwrap(), 0o100_644).unwrap();
            }
            let tree = git.find_tree(tree.write().unwrap()).unwrap();
            let by = git2::Signature::new("a", "a@example.org", &git2::Time::new(0, 0)).unwrap();
            git.commit(None, &by, &by, text, &tree, &[]).unwrap().to_string().parse().unwrap()
        };
        let (one, two) = (commit("one"), commit("two"));
        let written = |revision: &Revision, known: &HashSet<Oid>| {
            let mut bytes = Vec::new();
            let list = ObjectList::of(&path("from.git"), std::slice::from_ref(revision), known).unwrap();
            list.write(&path("from.git"), &mut bytes).unwrap();
            bytes
        };
        let base = written(&one, &HashSet::new());
        let more = written(&two, &ids(&*base).unwrap());
        let there = path("there.git");
        let take = |bytes: &[u8], revision: &Revision| {
            let streams: Vec<Box<dyn Read + '_>> = vec![Box::new(bytes)];
            take(&there, streams, std::slice::from_ref(revision), tempfile::tempfile().unwrap()).unwrap()
        };
        assert_eq!(take(&more, &two), []);
        let git = git2::Repository::open_bare(&there).unwrap();
        assert!(is_complete(&git, &two) && !has_contents(&git, &two) && !has_contents(&git, &one));
        assert_eq!(take(&base, &one), []);
        let git = git2::Repository::open_bare(&there).unwrap();
        assert!(has_contents(&git, &two) && has_contents(&git, &one));

        assert_eq!(taken(&there).unwrap(), BTreeSet::new());
        let [first, second] = [&base, &more].map(|bytes| Digest::of(bytes));
        note_taken(&there, [first]).unwrap();
        note_taken(&there, [second, first]).unwrap();
        assert_eq!(taken(&there).unwrap(), BTreeSet::from([first, second]));
    }
}
