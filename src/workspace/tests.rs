use std::io::Read as _;
use std::path::Path;
use std::slice;
use std::sync::{Arc, Mutex};

use fs_err as fs;
use git2::{ObjectType, Oid, Signature};

use super::*;
use crate::data_dir::DataDir;
use crate::event::{Event, EventSink};
use crate::task::RepositoryPath;

/// A bare repository that trees of any shape can be put into.
struct Scratch {
    git: git2::Repository,
    directory: tempfile::TempDir,
}

impl Scratch {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let git = git2::Repository::init_bare(directory.path().join("owner/name.git")).unwrap();
        Self { git, directory }
    }

    fn path(&self) -> &Path {
        self.git.path()
    }

    fn blob(&self, content: &[u8]) -> Oid {
        self.git.blob(content).unwrap()
    }

    /// Writes a tree byte by byte, so that it may be one that git itself would never write.
    fn tree(&self, entries: &[(&str, &[u8], Oid)]) -> Oid {
        let mut bytes = Vec::new();
        for (mode, name, id) in entries {
            bytes.extend_from_slice(mode.as_bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(name);
            bytes.push(0);
            bytes.extend_from_slice(id.as_bytes());
        }
        self.git.odb().unwrap().write(ObjectType::Tree, &bytes).unwrap()
    }

    fn commit(&self, tree: Oid) -> Revision {
        let who = Signature::new("a", "a@example.org", &git2::Time::new(0, 0)).unwrap();
        let tree = self.git.find_tree(tree).unwrap();
        let parents: Vec<git2::Commit<'_>> =
            self.git.head().and_then(|head| head.peel_to_commit()).into_iter().collect();
        let parents: Vec<&git2::Commit<'_>> = parents.iter().collect();
        self.git.commit(Some("HEAD"), &who, &who, "x", &tree, &parents).unwrap().to_string().parse().unwrap()
    }

    fn opened(&self) -> Repository {
        Repository::open("owner/name".parse().unwrap(), self.path()).unwrap()
    }

    /// A tree with one of everything.
    fn rich(&self) -> Revision {
        let file = self.blob(b"line\r\n");
        let pointer = self.blob(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
        let link = self.blob(b"..//./file");
        let gone = Oid::from_str(&"1".repeat(40)).unwrap();
        let deep_name = "n".repeat(150);
        let deep = self.tree(&[("100644", deep_name.as_bytes(), file)]);
        let test = self.tree(&[("100755", b"ATest.java", file), ("100644", b"not \xff text", file)]);
        let root = self.tree(&[
            ("100644", b".gitattributes", self.blob(b"* text eol=lf export-ignore\n")),
            ("40000", b"deep", deep),
            ("100644", b"file", file),
            ("100644", b"gone", gone),
            ("100664", b"group-writable", file),
            ("100644", b"large.bin", pointer),
            ("120000", b"link", link),
            ("40000", b"test", test),
            ("160000", b"vendor", gone),
        ]);
        self.commit(root)
    }
}

fn path(text: &str) -> RepositoryPath {
    text.parse().unwrap()
}

fn archive(tree: &RevisionTree, swap: Option<Swap<'_>>) -> (Vec<u8>, ArchiveReport) {
    let mut bytes = Vec::new();
    let report = write_archive(tree, swap, TREE_TIME, &mut bytes).unwrap();
    (bytes, report)
}

/// Returns kind, mode, path, link target and content of every entry.
fn listing(archive: &[u8]) -> Vec<String> {
    let mut archive = tar::Archive::new(archive);
    archive
        .entries()
        .unwrap()
        .map(|entry| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            let header = entry.header();
            assert_eq!(
                (header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()),
                (1000, 1000, TREE_TIME)
            );
            let link = entry.link_name_bytes().unwrap_or_default();
            format!(
                "{:?} {:o} {} {} {:?}",
                header.entry_type(),
                header.mode().unwrap(),
                String::from_utf8_lossy(&entry.path_bytes()),
                String::from_utf8_lossy(&link),
                String::from_utf8_lossy(&content)
            )
        })
        .collect()
}

#[test]
fn a_tree_is_archived_as_git_has_it() {
    let scratch = Scratch::new();
    let tree = scratch.opened().tree(&scratch.rich()).unwrap();
    let (bytes, report) = archive(&tree, None);
    let text = listing(&bytes).join("\n").replace(&"n".repeat(150), "<150 n>");
    insta::assert_snapshot!(text, @r#"
    Regular 644 .gitattributes  "* text eol=lf export-ignore\n"
    Directory 755 deep/  ""
    Regular 644 deep/<150 n>  "line\r\n"
    Regular 644 file  "line\r\n"
    Regular 644 group-writable  "line\r\n"
    Regular 644 large.bin  "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    Symlink 777 link ..//./file ""
    Directory 755 test/  ""
    Regular 755 test/ATest.java  "line\r\n"
    Regular 644 test/not � text  "line\r\n"
    "#);
    let unusual = TreeReport {
        submodules: vec!["vendor".into()],
        lfs_pointers: vec!["large.bin".into()],
        missing_blobs: vec!["gone".into()],
    };
    assert_eq!(report.unusual, unusual);
    assert_eq!(tree.gaps().unwrap(), unusual);
    assert_eq!(unusual.paths(), ["gone", "large.bin", "vendor"]);
    assert_eq!(archive(&tree, None).0, bytes, "equal trees give equal bytes");
    report.require(&tree, |path| !matches!(path, "gone" | "large.bin")).unwrap();
    assert!(matches!(report.require(&tree, |path| path == "gone"), Err(WorkspaceError::MissingBlob { .. })));
    let matters = |path: &str| path == "large.bin";
    assert!(
        matches!(report.require(&tree, matters), Err(WorkspaceError::LfsPointer { path, .. }) if path == "large.bin")
    );
    assert_eq!(tree.read("file").unwrap().unwrap(), b"line\r\n");
    assert_eq!(tree.read("vendor").unwrap(), None);
    assert_eq!(tree.read("test").unwrap(), None);
    assert!(matches!(tree.read("gone"), Err(WorkspaceError::MissingBlob { .. })));
}

#[test]
fn a_tree_that_gets_its_contents_later_is_another_one() {
    let scratch = Scratch::new();
    let content = b"later";
    let later = Oid::hash_object(ObjectType::Blob, content).unwrap();
    let vendor = Oid::from_str(&"1".repeat(40)).unwrap();
    let root = scratch.tree(&[("100644", b"later", later), ("160000", b"vendor", vendor)]);
    let revision = scratch.commit(root);
    let identity = || scratch.opened().tree(&revision).unwrap().identity().unwrap();
    let before = identity();
    assert!(before.starts_with(&format!("{root} without sha256:")), "{before}");
    assert_eq!(scratch.blob(content), later);
    assert_eq!(identity(), root.to_string());
}

#[test]
fn what_a_tree_lacks_is_told_once_a_revision() {
    let scratch = Scratch::new();
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&told);
    let notices = Notices::new(EventSink::new(move |event| {
        if let Event::Warning { text } = event {
            kept.lock().unwrap().push(text);
        }
    }));
    let archive = scratch.directory.path().join("tree.tar");
    let revision = scratch.rich();
    let name = scratch.opened().name().clone();
    for _ in 0..2 {
        let tree = scratch.opened().tree(&revision).unwrap();
        cells::write_to(&tree, None, &archive, &notices).unwrap();
    }
    let plain = scratch.commit(scratch.tree(&[("100644", b"A.java", scratch.blob(b"class A {}"))]));
    cells::write_to(&scratch.opened().tree(&plain).unwrap(), None, &archive, &notices).unwrap();
    let gone = Oid::from_str(&"1".repeat(40)).unwrap();
    let modules = ["a", "b", "c", "d"].map(|name| ("160000", name.as_bytes(), gone));
    let many = scratch.commit(scratch.tree(&modules));
    cells::write_to(&scratch.opened().tree(&many).unwrap(), None, &archive, &notices).unwrap();
    assert_eq!(
        *told.lock().unwrap(),
        [
            format!(
                "{name} at {revision}: its tree lacks 1 submodule (vendor), 1 content that is in git-lfs's store \
                 (large.bin), 1 content that the repository lacks (gone)"
            ),
            format!("{name} at {many}: its tree lacks 4 submodules (a, b, c, …)"),
        ]
    );
}

#[test]
fn a_source_in_the_store_of_git_lfs_is_no_compile_failure() {
    let scratch = Scratch::new();
    let pointer = scratch.blob(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
    let notices = Notices::new(EventSink::none());
    let target = path("ATest.java");
    let out = scratch.directory.path().join("tree.tar");
    for name in ["ATest.java", "pom.xml"] {
        let tree =
            scratch.opened().tree(&scratch.commit(scratch.tree(&[("100644", name.as_bytes(), pointer)]))).unwrap();
        let written = cells::write_to(&tree, None, &out, &notices);
        assert!(matches!(written, Err(WorkspaceError::LfsPointer { path, .. }) if path == name));
        assert!(matches!(tree.read_source(name), Err(WorkspaceError::LfsPointer { .. })));
    }
    // What is handed in may look like a pointer: then it is the compiler's to judge.
    let tree = scratch.opened().tree(&scratch.commit(scratch.tree(&[("100644", b"ATest.java", pointer)]))).unwrap();
    let handed_in = scratch.git.find_blob(pointer).unwrap();
    let swap = Swap { path: &target, content: Some(handed_in.content()) };
    cells::write_to(&tree, Some(swap), &out, &notices).unwrap();
}

#[test]
fn one_file_is_swapped() {
    let scratch = Scratch::new();
    let tree = scratch.opened().tree(&scratch.rich()).unwrap();
    let (plain, _) = archive(&tree, None);
    let plain = listing(&plain);
    let difference = |swap: Swap<'_>| -> Vec<String> {
        let (bytes, _) = archive(&tree, Some(swap));
        let swapped = listing(&bytes);
        let gone = plain.iter().filter(|line| !swapped.contains(line)).map(|line| format!("- {line}"));
        let new = swapped.iter().filter(|line| !plain.contains(line)).map(|line| format!("+ {line}"));
        gone.chain(new).collect()
    };
    let content = Some(&b"new"[..]);
    assert_eq!(
        difference(Swap { path: &path("test/ATest.java"), content }),
        [r#"- Regular 755 test/ATest.java  "line\r\n""#, r#"+ Regular 755 test/ATest.java  "new""#]
    );
    assert_eq!(
        difference(Swap { path: &path("link"), content }),
        [r#"- Symlink 777 link ..//./file """#, r#"+ Regular 644 link  "new""#]
    );
    assert_eq!(
        difference(Swap { path: &path("a/b/C.java"), content }),
        [r#"+ Directory 755 a/  """#, r#"+ Directory 755 a/b/  """#, r#"+ Regular 644 a/b/C.java  "new""#]
    );
    // As in git, a directory goes with its last file.
    let deep = format!("deep/{}", "n".repeat(150));
    assert_eq!(difference(Swap { path: &path(&deep), content: None }).len(), 2);
    assert!(difference(Swap { path: &path("not/there"), content: None }).is_empty());
    for blocked in ["link/A.java", "file/A.java", "test", "vendor/a/b"] {
        let path = path(blocked);
        let swap = Swap { path: &path, content };
        let written = write_archive(&tree, Some(swap), TREE_TIME, &mut std::io::sink());
        assert!(matches!(written, Err(WorkspaceError::SwapBlocked { .. })), "{blocked}");
    }
}

#[test]
fn reports_about_the_swapped_file_are_left_out() {
    let scratch = Scratch::new();
    let report = scratch.blob(b"Tests run: 1");
    let names = ["TEST-p.ATest.xml", "p.ATest.txt", "p.ATestOther.txt", "q.ATest.txt"];
    let reports = scratch.tree(&names.map(|name| ("100644", name.as_bytes(), report)));
    let tree_of = |files: &[(&str, &[u8], Oid)]| {
        let target = scratch.tree(&[("40000", b"surefire-reports", reports)]);
        let target: (&str, &[u8], Oid) = ("40000", b"target", target);
        let entries: Vec<(&str, &[u8], Oid)> = files.iter().copied().chain([target]).collect();
        scratch.opened().tree(&scratch.commit(scratch.tree(&entries))).unwrap()
    };
    let own = scratch.blob(b"package p; class ATest {}");
    let (with, without) = (tree_of(&[("100644", b"ATest.java", own)]), tree_of(&[]));
    let target = path("ATest.java");
    let left = |tree: &RevisionTree, content: Option<&[u8]>| -> Vec<&'static str> {
        let (bytes, _) = archive(tree, Some(Swap { path: &target, content }));
        let listing = listing(&bytes).join("\n");
        names.into_iter().filter(|name| listing.contains(&format!("/{name} "))).collect()
    };
    let in_p: &[u8] = b"package p; class ATest { int x; }";
    let in_q: &[u8] = b"package q; class ATest {}";
    assert_eq!(left(&with, Some(in_p)), names[2..]);
    assert_eq!(left(&with, None), names[2..], "the tree has reports about its own text");
    assert_eq!(left(&with, Some(in_q)), names[2..3]);
    assert_eq!(left(&without, Some(in_p)), names[2..], "the tree has reports about a file that it lacks");
    let (whole, _) = archive(&with, None);
    assert_eq!(listing(&whole).iter().filter(|line| line.contains("surefire-reports/")).count(), 1 + names.len());
    // A class that the repository has would pass for what the swapped text was compiled to.
    let class = scratch.tree(&[("100644", b"ATest.class", report), ("100644", b"BTest.class", report)]);
    let package = scratch.tree(&[("40000", b"p", class)]);
    let tree = scratch.tree(&[("100644", b"ATest.java", own), ("40000", b"bin", package)]);
    let tree = scratch.opened().tree(&scratch.commit(tree)).unwrap();
    let (bytes, _) = archive(&tree, Some(Swap { path: &target, content: Some(in_p) }));
    let classes: Vec<String> = listing(&bytes).into_iter().filter(|line| line.contains(".class")).collect();
    assert!(matches!(&classes[..], [one] if one.contains("bin/p/BTest.class ")), "{classes:?}");
}

#[test]
fn hostile_trees_are_refused() {
    let scratch = Scratch::new();
    let file = scratch.blob(b"x");
    let inner = scratch.tree(&[("100644", b"x", file)]);
    let long = "n".repeat(256);
    let mut deep = inner;
    for _ in 0..120 {
        deep = scratch.tree(&[("40000", b"d", deep)]);
    }
    for (entries, expected) in [
        (vec![("100644", &b".."[..], file)], "leave the tree"),
        (vec![("40000", b"..", inner)], "leave the tree"),
        (vec![("40000", b".git", inner)], ".git of its own"),
        (vec![("40000", b".GIT", inner)], ".git of its own"),
        (vec![("100644", b"/etc/passwd", file)], "slash"),
        (vec![("100644", b"a/../../b", file)], "slash"),
        (vec![("100644", long.as_bytes(), file)], "too long"),
        (vec![("120000", b"a", file), ("40000", b"a", inner)], "twice"),
        (vec![("100644", b"a", file), ("100644", b"a", file)], "twice"),
        (vec![("20000", b"device", file)], "unknown mode"),
        (vec![("40000", b"d", deep)], "too deep"),
    ] {
        let revision = scratch.commit(scratch.tree(&entries));
        match scratch.opened().tree(&revision) {
            Err(WorkspaceError::HostileTree { reason, .. }) => assert!(reason.contains(expected), "{reason}"),
            Err(error) => panic!("{expected}: {error}"),
            Ok(_) => panic!("accepted: {expected}"),
        }
    }
    let revision = scratch.commit(scratch.tree(&[("120000", b"l", scratch.blob(&[b'a'; 5000]))]));
    let tree = scratch.opened().tree(&revision).unwrap();
    let written = write_archive(&tree, None, TREE_TIME, &mut std::io::sink());
    assert!(matches!(written, Err(WorkspaceError::HostileTree { .. })));
}

#[test]
fn build_files_say_where_a_test_lies() {
    let scratch = Scratch::new();
    let pom = |text: &str| scratch.blob(format!("<project>{text}</project>").as_bytes());
    let module = |text: &str| scratch.tree(&[("100644", b"pom.xml", pom(text))]);
    let nested = scratch.tree(&[
        ("40000", b"inner", module("")),
        ("100644", b"pom.xml", pom("<modules><module>../c</module></modules>")),
    ]);
    let resources = scratch.tree(&[("40000", b"resources", module("<broken>"))]);
    let source = scratch.tree(&[("40000", b"test", resources)]);
    let root = scratch.tree(&[
        ("40000", b".mvn", scratch.tree(&[("100644", b"maven.config", scratch.blob(b"-T1"))])),
        ("40000", b"a", module("<artifactId>the-a</artifactId>")),
        ("40000", b"b", nested),
        ("40000", b"c", module("")),
        ("40000", b"d", module("<packaging>pom</packaging>")),
        (
            "100644",
            b"pom.xml",
            pom("<packaging>pom</packaging><modules><module>a/</module><module>./b/pom.xml</module>\
                 <module>../../x</module><module>.</module></modules>"),
        ),
        ("40000", b"src", source),
    ]);
    let tree = scratch.opened().tree(&scratch.commit(root)).unwrap();
    let files = BuildFiles::read(&tree).unwrap();
    let names: Vec<&str> = files.files().keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [".mvn/maven.config", "a/pom.xml", "b/inner/pom.xml", "b/pom.xml", "c/pom.xml", "d/pom.xml", "pom.xml"]
    );
    let place = |file: &str| {
        let module = files.module_of(&path(file))?;
        Some((module.directory, module.start.is_empty()))
    };
    assert_eq!(place("a/src/test/java/T.java"), Some(("a".into(), true)));
    assert_eq!(place("b/src/test/java/x/T.java"), Some(("b".into(), true)));
    assert_eq!(place("b/inner/src/test/java/T.java"), Some(("b/inner".into(), false)));
    assert_eq!(place("c/T.java"), Some(("c".into(), true)), "modules are followed through modules");
    assert_eq!(place("d/src/test/java/T.java"), None, "a POM of packaging pom compiles nothing");
    assert_eq!(place("gone/src/test/java/T.java"), None);
    assert_eq!(files.module_of(&path("a/T.java")).unwrap().artifact_id.as_deref(), Some("the-a"));

    let other = scratch.opened().tree(&scratch.rich()).unwrap();
    assert_ne!(BuildFiles::read(&other).unwrap().identity(), files.identity());
    assert_eq!(BuildFiles::read(&tree).unwrap().identity(), files.identity());
}

fn sources(scratch: &Scratch, mirror: Option<&str>, offline: bool) -> Sources {
    let root = scratch.directory.path().to_str().unwrap();
    Sources {
        mirror: mirror.map(|mirror| MirrorTemplate::new(&mirror.replace("ROOT", root)).unwrap()),
        data_dir: DataDir::open(&scratch.directory.path().join("data")).unwrap(),
        offline,
        events: EventSink::none(),
    }
}

#[tokio::test]
async fn a_mirror_is_read_as_it_is() {
    let scratch = Scratch::new();
    let revision = scratch.rich();
    let name: RepositoryName = "owner/name".parse().unwrap();
    let url = "https://example.invalid/owner/name".parse().unwrap();
    let missing: Revision = "2".repeat(40).parse().unwrap();
    let mirror = sources(&scratch, Some("ROOT/{owner}/{name}.git"), true);
    mirror.open(&name, &url, slice::from_ref(&revision)).await.unwrap().tree(&revision).unwrap();
    let opened = mirror.open(&name, &url, &[revision.clone(), missing.clone()]).await;
    assert!(matches!(opened, Err(WorkspaceError::RevisionMissing { revision, .. }) if revision == missing));
    let other = "owner/other".parse().unwrap();
    assert!(matches!(mirror.open(&other, &url, &[]).await, Err(WorkspaceError::MirrorMissing { .. })));
    fs::create_dir(scratch.directory.path().join("owner/other.git")).unwrap();
    assert!(matches!(mirror.open(&other, &url, &[]).await, Err(WorkspaceError::Git { .. })));
    assert!(MirrorTemplate::new("/srv/{owner}").is_err());
    // A directory with `.git` inside is a repository too.
    fs::create_dir(scratch.directory.path().join("work")).unwrap();
    fs::rename(scratch.path(), scratch.directory.path().join("work/.git")).unwrap();
    Repository::open(name, &scratch.directory.path().join("work")).unwrap().tree(&revision).unwrap();
}

#[tokio::test]
async fn a_clone_is_made_and_completed() {
    let scratch = Scratch::new();
    let file = scratch.blob(b"x");
    let first = scratch.commit(scratch.tree(&[("100644", b"a", file)]));
    let second = scratch.commit(scratch.tree(&[("100644", b"b", file)]));
    let name: RepositoryName = "owner/name".parse().unwrap();
    let url = format!("file://{}", scratch.path().to_str().unwrap().trim_end_matches('/')).parse().unwrap();

    let offline = sources(&scratch, None, true);
    assert!(matches!(offline.open(&name, &url, slice::from_ref(&second)).await, Err(WorkspaceError::Offline { .. })));
    let online = sources(&scratch, None, false);
    for revision in [&second, &first] {
        online.open(&name, &url, slice::from_ref(revision)).await.unwrap().tree(revision).unwrap();
        offline.open(&name, &url, slice::from_ref(revision)).await.unwrap();
    }
    // Whatever of a fetch is there came as a whole, and what an earlier one left is in nobody's way.
    let clone = scratch.directory.path().join("data/repositories/owner__name.git");
    let names = |path: &str| {
        let entries = fs::read_dir(clone.join(path)).unwrap().map(|entry| entry.unwrap().file_name());
        entries.map(|name| name.into_string().unwrap()).collect::<Vec<_>>()
    };
    assert!(names("objects").iter().all(|name| ["info", "pack"].contains(&name.as_str())), "{:?}", names("objects"));
    fs::write(clone.join("objects/pack/tmp_pack_x"), "x").unwrap();
    fs::write(clone.join("shallow.lock"), "").unwrap();
    let third = scratch.commit(scratch.tree(&[("100644", b"c", file)]));
    online.open(&name, &url, slice::from_ref(&third)).await.unwrap().tree(&third).unwrap();
    assert!(!names("objects/pack").contains(&"tmp_pack_x".to_owned()));
    let missing: Revision = "2".repeat(40).parse().unwrap();
    assert!(matches!(
        online.open(&name, &url, slice::from_ref(&missing)).await,
        Err(WorkspaceError::RevisionMissing { .. })
    ));
    let gone = "file:///dev/null/nothing".parse().unwrap();
    let Err(WorkspaceError::Fetch { message, .. }) = online.open(&name, &gone, slice::from_ref(&missing)).await else {
        panic!()
    };
    assert!(message.contains("nothing"), "{message}");
}
