//! Workspaces hold the starting tree and nothing later; what an agent leaves in them is collected without following anything.

mod harbor;
mod rights;

use std::os::unix::fs::symlink;

use serde_json::json;

use super::collection::{Collected, collect};
use super::*;
use crate::audit::{AuditLimits, Hunt, Scanner, Secret};
use crate::execution::module::WholeBuilds;
use crate::manifest::{Build, Limits, MANIFEST_SCHEMA};
use crate::submission::Content;
use crate::submission::extraction::{StartingTree, extract};

const TEST: &str = "src/test/java/p/ATest.java";
const POM: &str = "<project><groupId>g</groupId><artifactId>a</artifactId><version>1</version></project>\n";
const OLD_TEST: &str =
    "package p;\n\nclass ATest {\n    @Test void one() {\n        assertEquals(1, new A().get());\n    }\n}\n";
const NEW_TEST: &str = "package p;\n\nclass ATest {\n    @Test void one() {\n        assertEquals(\"two and a half\", new A().get(2, 3));\n    }\n}\n";

struct Setup {
    directory: tempfile::TempDir,
    repository: Repository,
    task: Task,
    manifest: RepositoryManifest,
}

impl Setup {
    fn new(start: Option<&str>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let git = git2::Repository::init_bare(directory.path().join("bare")).unwrap();
        let revision = |files: &[(&str, &str)], parent: Option<git2::Oid>| {
            let mut index = git2::Index::new().unwrap();
            git.set_index(&mut index).unwrap();
            for (path, text) in files {
                let id = git.blob(text.as_bytes()).unwrap();
                let mode = if *path == "run.sh" { 0o100_755 } else { 0o100_644 };
                index.add(&tree::index_entry(path.as_bytes().to_vec(), mode, id)).unwrap();
            }
            let tree = git.find_tree(index.write_tree_to(&git).unwrap()).unwrap();
            let author = git2::Signature::new("a", "a@b", &git2::Time::new(1, 0)).unwrap();
            let parents: Vec<git2::Commit<'_>> = parent.iter().map(|id| git.find_commit(*id).unwrap()).collect();
            git.commit(None, &author, &author, "secret words", &tree, &parents.iter().collect::<Vec<_>>()).unwrap()
        };
        let (old_code, new_code) =
            ("package p; class A { int get() { return 1; } }\n", "package p; class A { /* ``` */ }\n");
        let mut old = vec![("pom.xml", POM), ("src/main/java/p/A.java", old_code), ("run.sh", "#!/bin/sh\n")];
        old.extend(start.map(|start| (TEST, start)));
        let rev1 = revision(&old, None);
        let new = [
            ("pom.xml", POM),
            ("src/main/java/p/A.java", new_code),
            ("run.sh", "#!/bin/sh\n"),
            (TEST, NEW_TEST),
            ("src/test/java/p/Other.java", "class Other {}\n"),
        ];
        let rev2 = revision(&new, Some(rev1));
        let name: RepositoryName = "owner/name".parse().unwrap();
        let task = Task {
            id: "task-1".parse().unwrap(),
            repository: name.clone(),
            track: Track::TestUpdate,
            rev1: rev1.to_string().parse().unwrap(),
            rev2: rev2.to_string().parse().unwrap(),
            rev1_date: "2020-01-01".to_owned(),
            rev2_date: "2020-01-01".to_owned(),
            test_file: TEST.parse().unwrap(),
            test_methods: vec!["ATest#one".parse().unwrap()],
            focal_methods: Vec::new(),
        };
        let manifest = RepositoryManifest {
            schema: MANIFEST_SCHEMA,
            repository: name.clone(),
            clone_url: "https://example.org/owner/name.git".parse().unwrap(),
            java_version: 17,
            jdk: 17,
            build: Build::default(),
            limits: Limits::default(),
            extension_jars: Vec::new(),
        };
        let repository = Repository::open(name, git.path()).unwrap();
        Self { directory, repository, task, manifest }
    }

    fn output(&self) -> PathBuf {
        self.directory.path().join("out/task-1")
    }

    fn write(&self) -> Result<Written, AgentError> {
        let archive = self.directory.path().join("tree.tar");
        let Self { repository, task, manifest, .. } = self;
        NewWorkspace { repository, task, manifest, image: None, whole: &WholeBuilds::default(), archive: &archive }
            .write(&self.output())
    }

    fn collect(&self) -> Result<Collected, AgentError> {
        collect(&(&self.task).into(), &self.output(), &self.repository.tree(&self.task.rev2).unwrap())
    }

    /// Writes the workspace, and returns a path in its project.
    fn written(&self) -> impl Fn(&str) -> PathBuf {
        self.write().unwrap();
        let project = self.output().join(PROJECT);
        move |path| project.join(path)
    }
}

#[test]
fn a_workspace_is_one_commit_of_the_starting_tree() {
    let setup = Setup::new(Some(OLD_TEST));
    let written = setup.write().unwrap();
    let project = setup.output().join(PROJECT);
    assert_eq!(fs::read_to_string(project.join(TEST)).unwrap(), OLD_TEST);
    let git = git2::Repository::open(&project).unwrap();
    let head = git.head().unwrap().peel_to_commit().unwrap();
    assert_eq!((head.id().to_string(), head.parent_count()), (written.commit.clone(), 0));
    assert!(git.statuses(None).unwrap().is_empty(), "the working files are the commit's");
    let mut commits = 0;
    let odb = git.odb().unwrap();
    odb.foreach(|id| {
        commits += usize::from(odb.read_header(*id).unwrap().1 == git2::ObjectType::Commit);
        true
    })
    .unwrap();
    assert_eq!(commits, 1);
    // The same commit whenever and wherever it is made.
    let again = Setup::new(Some(OLD_TEST));
    assert_eq!(again.write().unwrap().commit, written.commit);
    let facts: TaskFile = serde_json::from_slice(&fs::read(setup.output().join(TASK_FILE)).unwrap()).unwrap();
    assert_eq!(facts.start_sha256, Some(Digest::of(OLD_TEST.as_bytes())));
    let text = fs::read_to_string(setup.output().join("TASK.md")).unwrap();
    assert!(text.contains("-package p; class A { int get()") && text.contains("````diff\n"), "{text}");
    assert!(text.contains("--select-method 'p.ATest#one'") && text.contains("mvn -B -o "), "{text}");
    for secret in ["secret words", "Other", "half", setup.task.rev1.as_str(), setup.task.rev2.as_str()] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}

#[test]
fn a_new_workspace_passes_the_audit() {
    for start in [Some(OLD_TEST), None] {
        let setup = Setup::new(start);
        let project = setup.written();
        assert_eq!(project(TEST).exists(), start.is_some());
        let hunt = Hunt::new(vec![Secret::read(&setup.repository, &setup.task).unwrap()]).unwrap();
        let own = [setup.task.id.clone()].into();
        let audited = || {
            let mut scanner = Scanner::new(&hunt, &own, AuditLimits::default(), setup.directory.path());
            scanner.path(&setup.output(), &setup.output()).unwrap();
            scanner.finish()
        };
        let report = audited();
        assert!(report.is_clean() && report.entries > 10, "{report:?}");
        fs::write(project("notes"), NEW_TEST).unwrap();
        assert!(!audited().is_clean());
    }
}

/// The patch for scorers makes the developers' file of the starting one, and agents' lines have nothing of it.
#[test]
fn a_line_of_a_data_set_has_the_answer_for_scorers_only() {
    let without_end = OLD_TEST.trim_end();
    for start in [None, Some(OLD_TEST), Some(without_end), Some("")] {
        let setup = Setup::new(start);
        let whole = WholeBuilds::default();
        let archive = setup.directory.path().join("tree.tar");
        let Setup { repository, task, manifest, .. } = &setup;
        let workspace = NewWorkspace { repository, task, manifest, image: None, whole: &whole, archive: &archive };
        let row = workspace.dataset_row(true).unwrap();
        let answer = row.answer.unwrap();
        let patch = Content::Patch(answer.patch.clone().unwrap().into_bytes());
        let target = &setup.task.test_file;
        let tree = StartingTree { target, start: start.map(str::as_bytes), other: &|_| None };
        assert_eq!(extract(&patch, &tree).content.unwrap(), NEW_TEST.as_bytes(), "{start:?}: {patch:?}");
        assert_eq!((answer.created_at.as_str(), answer.fail_to_pass), ("2020-01-01", Vec::new()));

        let line = serde_json::to_value(workspace.dataset_row(false).unwrap()).unwrap();
        setup.write().unwrap();
        let read = |name: &str| fs::read_to_string(setup.output().join(name)).unwrap();
        assert_eq!(line["problem_statement"], json!(read("TASK.md")));
        assert_eq!(line["task"], serde_json::from_str::<serde_json::Value>(&read("task.json")).unwrap());
        let keys: Vec<&String> = line.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["instance_id", "problem_statement", "repo", "task"]);
        let text = line.to_string();
        for secret in ["two and a half", setup.task.rev1.as_str(), setup.task.rev2.as_str(), "2020-01-01"] {
            assert!(!text.contains(secret), "{secret}");
        }
    }
}

#[test]
fn a_place_with_content_is_refused() {
    let setup = Setup::new(Some(OLD_TEST));
    fs::create_dir_all(setup.output()).unwrap();
    setup.write().unwrap();
    assert!(matches!(setup.write(), Err(AgentError::Occupied { .. })));
    let file = Setup::new(None);
    fs::create_dir_all(file.output().parent().unwrap()).unwrap();
    fs::write(file.output(), "x").unwrap();
    assert!(matches!(file.write(), Err(AgentError::Occupied { .. })));
    assert_eq!(fs::read_to_string(file.output()).unwrap(), "x");
    let left = fs::read_dir(file.output().parent().unwrap()).unwrap().count();
    assert_eq!(left, 1, "nothing unfinished is left");
}

#[test]
fn the_target_file_is_collected_and_other_changes_are_listed() {
    let setup = Setup::new(Some(OLD_TEST));
    let project = setup.written();
    assert_eq!(setup.collect().unwrap(), Collected { text: Some(OLD_TEST.to_owned()), ..Collected::default() });
    fs::write(project(TEST), "mine").unwrap();
    fs::write(project("pom.xml"), "<project/>").unwrap();
    fs::remove_file(project("run.sh")).unwrap();
    fs::create_dir_all(project("target/classes")).unwrap();
    fs::create_dir_all(project("nested/.git/objects")).unwrap();
    fs::remove_dir_all(project("src/main/java/p")).unwrap();
    symlink("/", project("src/main/java/p")).unwrap();
    symlink("/dev/zero", project("src/test/java/p/zero")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(project("socket")).unwrap();
    let collected = setup.collect().unwrap();
    assert_eq!(collected.text.as_deref(), Some("mine"));
    assert_eq!(
        collected.ignored,
        [
            "added: nested/",
            "added: socket",
            "added: src/test/java/p/zero",
            "added: target/",
            "changed: pom.xml",
            "deleted: run.sh",
            "deleted: src/main/java/p/A.java",
            "no directory any more: src/main/java/p",
        ]
    );
    fs::remove_file(project(TEST)).unwrap();
    assert_eq!(setup.collect().unwrap().text, None);
}

#[test]
fn many_files_end_the_listing_only() {
    let setup = Setup::new(Some(OLD_TEST));
    let project = setup.written();
    (0..1500).for_each(|number| fs::write(project(&format!("src/{number}")), "").unwrap());
    let collected = setup.collect().unwrap();
    assert_eq!(collected.text.as_deref(), Some(OLD_TEST));
    assert!(collected.incomplete.is_some() && collected.ignored.len() <= 1000);
}

#[test]
fn hostile_target_files_are_refused() {
    let refused = |prepare: &dyn Fn(&Path)| {
        let setup = Setup::new(Some(OLD_TEST));
        let target = setup.written()(TEST);
        fs::remove_file(&target).unwrap();
        prepare(&target);
        match setup.collect() {
            Err(AgentError::Refused { reason, .. }) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&|target| symlink("/etc/passwd", target).unwrap()), "it is a link");
    assert_eq!(refused(&|target| fs::create_dir(target).unwrap()), "it is a directory");
    let pipe = |target: &Path| {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, target, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    };
    assert_eq!(refused(&pipe), "it is a pipe, socket or device");
    assert!(refused(&|target| fs::write(target, b"\xff").unwrap()).contains("UTF-8"));
    assert!(refused(&|target| fs::File::create(target).unwrap().set_len(1 << 40).unwrap()).contains("more than"));
    let through_a_link = |target: &Path| {
        let parent = target.parent().unwrap();
        fs::rename(parent, parent.with_file_name("q")).unwrap();
        symlink("q", parent).unwrap();
    };
    assert_eq!(refused(&through_a_link), "a part of its path is a link");
    let setup = Setup::new(None);
    assert!(matches!(setup.collect(), Err(AgentError::NoWorkspace { .. })));
}
