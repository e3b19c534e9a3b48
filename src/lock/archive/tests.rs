use super::*;
use crate::lock::{LOCK_SCHEMA, MavenFile};

fn sample(store: &Store) -> LockArchive {
    let content = b"a jar";
    let file = MavenFile {
        path: "g/a/1/a-1.jar".to_owned(),
        origin: "central".to_owned(),
        sha256: store.put(content).unwrap(),
        size: content.len() as u64,
        own: false,
        released: false,
    };
    let repository: RepositoryName = "o/n".parse().unwrap();
    let lock = RepositoryLock {
        schema: LOCK_SCHEMA,
        repository: repository.clone(),
        jdk: 8,
        maven_arguments: None,
        files: vec![file],
        metadata: Vec::new(),
        build_sets: vec!["s".to_owned()],
        whole_sets: Vec::new(),
        unresolved: Vec::new(),
        extension_jars: Vec::new(),
    };
    let toolchain = ToolchainLock::empty();
    LockArchive { toolchain, repositories: [(repository, (lock, "schema = 1\n".to_owned()))].into() }
}

fn stores() -> (tempfile::TempDir, Store, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = |name: &str| Store::open(&directory.path().join(name), &directory.path().join("tmp")).unwrap();
    let (from, to) = (store("from"), store("to"));
    (directory, from, to)
}

fn written(archive: &LockArchive, store: &Store) -> Vec<u8> {
    let mut bytes = Vec::new();
    archive.write(store, "x.tar", &mut bytes).unwrap();
    bytes
}

#[test]
fn what_is_written_is_read_with_its_blobs() {
    let (_directory, from, to) = stores();
    let archive = sample(&from);
    let bytes = written(&archive, &from);
    assert_eq!(LockArchive::read(&mut bytes.as_slice(), "x.tar", &to).unwrap(), archive);
    for digest in archive.blobs().keys() {
        to.verify(digest).unwrap();
    }
    assert_eq!(bytes, written(&archive, &to), "equal locks give equal bytes");
}

/// Returns the error of reading `archive` after `change` was made to its members (path, kind, bytes).
fn error_after(change: impl FnOnce(&mut Vec<(String, tar::EntryType, Vec<u8>)>)) -> String {
    let (_directory, from, to) = stores();
    let bytes = written(&sample(&from), &from);
    let mut members = Vec::new();
    for member in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
        let mut member = member.unwrap();
        let mut content = Vec::new();
        member.read_to_end(&mut content).unwrap();
        let path = member.path().unwrap().to_str().unwrap().to_owned();
        members.push((path, member.header().entry_type(), content));
    }
    change(&mut members);
    let mut changed = tar::Builder::new(Vec::new());
    for (path, kind, content) in members {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_size(content.len() as u64);
        // The library refuses to write hostile paths, so the name is set by hand.
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_cksum();
        changed.append(&header, content.as_slice()).unwrap();
    }
    let changed = changed.into_inner().unwrap();
    LockArchive::read(&mut changed.as_slice(), "x.tar", &to).unwrap_err().to_string()
}

#[test]
fn nothing_hostile_is_taken() {
    let blob = |members: &[(String, tar::EntryType, Vec<u8>)]| {
        members.iter().position(|(path, ..)| path.starts_with("blobs/")).unwrap()
    };
    assert!(error_after(|members| members[0].0 = "../archive.json".to_owned()).contains("does not belong"));
    assert!(error_after(|members| drop(members.remove(0))).contains("is missing"));
    let error = error_after(|members| {
        let more = (lock_path(&"o/other".parse().unwrap()), members[2].1, members[2].2.clone());
        members.push(more);
    });
    assert!(error.contains("does not belong"), "{error}");
    let error = error_after(|members| members.push(("../evil".into(), tar::EntryType::Regular, b"x".to_vec())));
    assert!(error.contains("does not belong"), "{error}");
    let error = error_after(|members| members[1].1 = tar::EntryType::Symlink);
    assert!(error.contains("no regular file"), "{error}");
    let error = error_after(|members| {
        let at = blob(members);
        members[at].2 = b"other".to_vec();
    });
    assert!(error.contains("was expected"), "{error}");
    let error = error_after(|members| {
        let at = blob(members);
        members.remove(at);
    });
    assert!(error.contains("which its locks name, is missing"), "{error}");
    let error = error_after(|members| {
        let twice = members[1].clone();
        members.push(twice);
    });
    assert!(error.contains("twice"), "{error}");
    let error = error_after(|members| members[0].2 = br#"{"schema":9,"repositories":[]}"#.to_vec());
    assert!(error.contains("schema 9"), "{error}");
}

#[test]
fn a_cut_archive_is_an_error() {
    let (_directory, from, to) = stores();
    let bytes = written(&sample(&from), &from);
    for length in (0..bytes.len() - 1024).step_by(97) {
        assert!(LockArchive::read(&mut &bytes[..length], "x.tar", &to).is_err(), "cut at {length}");
    }
}

/// Counts what is read of it.
struct Counted<R>(R, u64);

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.0.read(buffer)?;
        self.1 += count as u64;
        Ok(count)
    }
}

#[test]
fn a_strangers_archive_takes_no_memory_that_its_content_does_not() {
    let (_directory, _, to) = stores();
    let read_of = |path: &str, kind: tar::EntryType| {
        let size = 32 << 20;
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_cksum();
        let mut reader = Counted(header.as_bytes().chain(io::repeat(b'x').take(size)), 0);
        let error = LockArchive::read(&mut reader, "x.tar", &to).unwrap_err().to_string();
        (error, reader.1)
    };
    for path in ["evil", "locks/evil", "locks/evil.lock", "locks/o__n.toml", "manifests/../x.toml", "locks/a/o__n.lock"]
    {
        let (error, read) = read_of(path, tar::EntryType::Regular);
        assert!(error.contains("does not belong") && read < 1 << 20, "{path}: {error}, after {read} bytes");
    }
    for kind in [tar::EntryType::GNULongName, tar::EntryType::XHeader] {
        let (error, read) = read_of("x", kind);
        assert!(error.contains("too long") && read < 1 << 20, "{kind:?}: {error}, after {read} bytes");
    }
}

#[test]
fn texts_are_bounded_together() {
    let (_directory, from, to) = stores();
    let archive = sample(&from);
    let bytes = written(&archive, &from);
    let read = |limits: &Limits| LockArchive::read_within(&mut bytes.as_slice(), "x.tar", &to, limits);
    let (lock, manifest) = archive.repositories.values().next().unwrap();
    let description = r#"{"schema":1,"repositories":["o/n"]}"#;
    let all = (description.len() + archive.toolchain.render().len() + lock.render().len() + manifest.len()) as u64;
    let limits = |texts, text_bytes| Limits { texts, text_bytes };
    assert_eq!(read(&limits(4, all)).unwrap(), archive);
    let error = read(&limits(4, all - 1)).unwrap_err().to_string();
    assert!(error.contains("texts"), "{error}");
    let error = read(&limits(3, all)).unwrap_err().to_string();
    assert!(error.contains("more than 3 texts"), "{error}");
}

#[test]
fn names_may_be_longer_than_a_header_holds() {
    let (_directory, from, to) = stores();
    let mut archive = sample(&from);
    let repository: RepositoryName = format!("o/{}", "n".repeat(100)).parse().unwrap();
    let (mut lock, manifest) = archive.repositories.pop_first().unwrap().1;
    lock.repository = repository.clone();
    archive.repositories.insert(repository.clone(), (lock, manifest));
    let bytes = written(&archive, &from);
    assert_eq!(LockArchive::read(&mut bytes.as_slice(), "x.tar", &to).unwrap(), archive);

    // Other programs write such names in another way.
    let mut packed = tar::Builder::new(Vec::new());
    for member in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
        let mut member = member.unwrap();
        let path = member.path().unwrap().to_str().unwrap().to_owned();
        packed.append_pax_extensions([("path", path.as_bytes())]).unwrap();
        let mut header = member.header().clone();
        header.set_path("short").unwrap();
        header.set_cksum();
        packed.append(&header, &mut member).unwrap();
    }
    let packed = packed.into_inner().unwrap();
    assert_eq!(LockArchive::read(&mut packed.as_slice(), "x.tar", &to).unwrap(), archive);
}
