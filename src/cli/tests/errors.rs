//! Exit codes are a contract with scripts: each error's code, text, causes and hint are written down.

mod bundles;
mod clusters;
mod engines;
mod locks;
mod submissions;

use std::io;
use std::num::NonZeroU32;
use std::path::PathBuf;

use self::bundles::of_bundles;
use self::clusters::of_clusters;
use self::engines::engines;
use self::locks::{of_locks, of_resolution};
use self::submissions::of_submissions_and_reports;
use crate::agent::AgentError;
use crate::agent::harbor::trials::TrialError;
use crate::application::disk::DiskError;
use crate::application::io_failure::IoFailure;
use crate::application::scratch::ScratchError;
use crate::application::shell::ShellError;
use crate::artifact::fetch::{FetchError, FetchManyError};
use crate::artifact::origin::{OriginError, OriginName};
use crate::artifact::store::StoreError;
use crate::audit::AuditError;
use crate::data_dir::DataDirError;
use crate::digest::Digest;
use crate::doctor::MissingOrigin;
use crate::error::{CommandError, ExitStatus};
use crate::execution::container::images::LoadError;
use crate::execution::container::jars::JarError;
use crate::execution::proof::ProofError;
use crate::execution::run::directory::RunDirectoryError;
use crate::execution::run::merge::MergeError;
use crate::execution::run::stage::RunError;
use crate::garbage::GarbageError;
use crate::image::{ImageError, TreePath};
use crate::lock::{LayerKind, LockFileError, MismatchError};
use crate::manifest::ManifestError;
use crate::report::markdown::{plain, table};
use crate::sample::SampleError;
use crate::settings::SettingsError;
use crate::task::file::TaskFileError;
use crate::task::published::{Problem, PublishedError};
use crate::task::selector::{NameKind, SelectorError};
use crate::task::{CloneUrl, RepositoryName, Revision, TaskId};
use crate::workspace::WorkspaceError;

fn path() -> PathBuf {
    "file".into()
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn disk() -> io::Error {
    io::Error::other("disk full")
}

/// Returns the error of a program that is not there.
fn absent() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOENT)
}

/// Returns the error of a file that is not there.
fn unopened() -> io::Error {
    fs_err::File::open("no/such/file").unwrap_err()
}

fn digest() -> Digest {
    Digest::of(b"")
}

fn repository() -> RepositoryName {
    "owner/name".parse().unwrap()
}

fn revision() -> Revision {
    "0123456789012345678901234567890123456789".parse().unwrap()
}

fn task() -> TaskId {
    "task-1".parse().unwrap()
}

fn origin() -> OriginName {
    "central".parse().unwrap()
}

fn json() -> serde_json::Error {
    serde_json::from_str::<u8>("x").unwrap_err()
}

/// Returns the errors as a command ends with them.
fn all<E: Into<CommandError>>(errors: impl IntoIterator<Item = E>) -> Vec<CommandError> {
    errors.into_iter().map(E::into).collect()
}

/// Returns the errors as another error wraps them.
fn within<E, W: From<E> + Into<CommandError>>(errors: Vec<E>, wrap: fn(E) -> W) -> Vec<CommandError> {
    all(errors.into_iter().map(wrap))
}

fn stores() -> Vec<StoreError> {
    vec![
        StoreError::Io { path: path(), source: disk() },
        StoreError::Missing { digest: digest(), path: path() },
        StoreError::Corrupted { expected: digest(), found: digest(), path: path() },
        StoreError::WrongDigest { name: text("blob"), expected: digest(), found: digest() },
    ]
}

fn data_dirs() -> Vec<DataDirError> {
    vec![
        DataDirError::Io { path: path(), source: disk() },
        DataDirError::NoLocks { path: path() },
        DataDirError::UnknownVersion { path: path(), found: text("9") },
    ]
}

fn origins() -> Vec<OriginError> {
    let unknown = ["central", "debian", "pypi", "project-tree", "jboss"];
    let mut errors: Vec<OriginError> =
        unknown.iter().map(|name| OriginError::Unknown { name: name.parse().unwrap() }).collect();
    errors.extend([
        OriginError::InvalidName { text: text("?") },
        OriginError::InvalidAddress { name: text("central") },
        OriginError::Private { name: origin() },
        OriginError::Malformed { path: path(), reason: text("no table") },
        OriginError::Io(disk()),
    ]);
    errors
}

fn fetches() -> Vec<FetchError> {
    let (origin, path) = (origin(), text("a.jar"));
    let refused = |status| FetchError::Refused { origin: origin.clone(), path: path.clone(), status };
    let mut errors = vec![
        FetchError::InvalidPath { path: path.clone() },
        FetchError::Offline { origin: origin.clone(), path: path.clone() },
        FetchError::OriginUnreachable {
            origin: origin.clone(),
            path: path.clone(),
            cause: text("no route"),
            silent: true,
        },
        FetchError::Gone { origin: origin.clone(), path: path.clone() },
        refused(401),
        refused(500),
        FetchError::Garbage {
            origin: origin.clone(),
            path: path.clone(),
            expected: text("one"),
            found: text("another"),
        },
        FetchError::TooLarge { origin: origin.clone(), path: path.clone(), limit: 9 },
        FetchError::Setup(text("no certificates")),
    ];
    errors.extend(origins().into_iter().map(FetchError::from));
    errors.extend(stores().into_iter().map(FetchError::from));
    errors
}

fn fetches_of_many() -> Vec<FetchManyError> {
    fetches().into_iter().map(|first| FetchManyError { total: 3, first: Box::new(first), others: vec![] }).collect()
}

fn workspaces() -> Vec<WorkspaceError> {
    let (repository, revision, file) = (repository(), revision(), text("pom.xml"));
    let mut errors = vec![
        WorkspaceError::MirrorTemplate { template: text("/mirrors") },
        WorkspaceError::MirrorMissing { repository: repository.clone(), path: path() },
        WorkspaceError::RevisionMissing { repository: repository.clone(), revision: revision.clone(), path: path() },
        WorkspaceError::Offline { repository: repository.clone(), revision: revision.clone() },
        WorkspaceError::Fetch { repository: repository.clone(), message: text("no route") },
        WorkspaceError::GitCommand(absent()),
        WorkspaceError::Git { repository: repository.clone(), path: path(), source: git2::Error::from_str("broken") },
        WorkspaceError::MissingBlob { repository: repository.clone(), revision: revision.clone(), path: file.clone() },
        WorkspaceError::LfsPointer { repository: repository.clone(), revision: revision.clone(), path: file.clone() },
        WorkspaceError::HostileTree {
            repository: repository.clone(),
            revision: revision.clone(),
            reason: "a name is too long",
            path: file.clone(),
        },
        WorkspaceError::SwapBlocked { repository: repository.clone(), revision: revision.clone(), path: file },
        WorkspaceError::Archive { repository, revision, source: disk() },
        WorkspaceError::Io(disk()),
    ];
    errors.extend(data_dirs().into_iter().map(WorkspaceError::from));
    errors
}

fn lock_files() -> Vec<LockFileError> {
    vec![
        LockFileError::Missing { path: path(), repository: None },
        LockFileError::Missing { path: path(), repository: Some("owner/name".parse().unwrap()) },
        LockFileError::Io(disk()),
        LockFileError::Malformed { path: path(), reason: text("no table") },
        LockFileError::UnknownSchema { path: path(), found: 99 },
    ]
}

fn images() -> Vec<ImageError> {
    let mut errors = vec![
        ImageError::Io { doing: text("writing"), source: disk() },
        ImageError::NotEmpty { directory: path() },
        ImageError::Archive { name: text("a.deb"), reason: text("it is none") },
        ImageError::PathConflict {
            path: TreePath::parse("usr").unwrap().unwrap(),
            first: text("a.deb"),
            second: text("b.deb"),
        },
        ImageError::UnknownJdk { jdk: 9, known: vec![8, 11] },
        ImageError::Lock { reason: text("no base") },
        ImageError::Catalog { path: path(), reason: text("no JSON") },
        ImageError::LayerUnknown { kind: LayerKind::MavenCache, digest: digest() },
        ImageError::Json(json()),
    ];
    errors.extend(stores().into_iter().map(ImageError::from));
    errors.extend(data_dirs().into_iter().map(ImageError::from));
    errors
}

fn run_directories() -> Vec<RunDirectoryError> {
    vec![
        RunDirectoryError::Io(disk()),
        RunDirectoryError::Full(disk()),
        RunDirectoryError::Gone(std::io::Error::from_raw_os_error(libc::ESTALE)),
        RunDirectoryError::InvalidId(text("?")),
        RunDirectoryError::Unknown(text("run")),
        RunDirectoryError::InUse(text("run")),
        RunDirectoryError::OtherInputs { run_id: text("run") },
        RunDirectoryError::Finished { run_id: text("run") },
        RunDirectoryError::Malformed { path: path(), reason: text("no JSON") },
        RunDirectoryError::UnknownSchema { path: path(), found: 99, known: 1 },
    ]
}

fn of_commands() -> Vec<CommandError> {
    let worst = |worst| {
        let rows = vec![crate::error::FailedRepository::of("owner/name", &worst)];
        CommandError::Repositories { failed: 2, total: 3, done: "locked", worst: Box::new(worst), rows }
    };
    vec![
        CommandError::CheckFailed { summary: text("1 check failed") },
        CommandError::InfrastructureLeft { summary: text("1 task could not be judged") },
        worst(StoreError::Io { path: path(), source: disk() }.into()),
        worst(CommandError::Runtime(disk())),
        CommandError::Usage {
            message: text("there is no place for data: neither XDG_DATA_HOME nor HOME is set"),
            hint: text("name a directory with `--data-dir`"),
        },
        CommandError::StoreCorrupted { blobs: 2, layers: 0 },
        CommandError::StoreCorrupted { blobs: 0, layers: 1 },
        MismatchError::OtherLock { path: path() }.into(),
        MismatchError::OtherManifest { repository: repository(), difference: text("for Java 8") }.into(),
        MismatchError::OtherRepository { path: path(), found: repository(), wanted: text("owner/other") }.into(),
        CommandError::Output(disk()),
        CommandError::Runtime(disk()),
        CommandError::defect(json()),
        CommandError::Interrupted,
    ]
}

fn of_published_data() -> Vec<CommandError> {
    let invalid = || "?".parse::<TaskId>().unwrap_err();
    let problems = [
        Problem::Io(disk()),
        Problem::TooLarge,
        Problem::NoFiles,
        Problem::NoJson(json()),
        Problem::Missing(text("id")),
        Problem::WrongType { field: text("id"), expected: "a text" },
        Problem::Invalid { field: text("id"), source: invalid() },
        Problem::CloneUrl("?".parse::<CloneUrl>().unwrap_err()),
        Problem::Contradiction(text("two")),
        Problem::DuplicateTask { first: path() },
    ];
    let mut errors = all(problems.map(|problem| PublishedError { path: path(), task: Some(text("task-1")), problem }));
    errors.extend(all([
        ManifestError::Io(disk()),
        ManifestError::Missing { path: path() },
        ManifestError::Malformed { path: path(), reason: text("no table") },
        ManifestError::UnknownSchema { path: path(), found: 99 },
        ManifestError::Unsupported { path: path(), key: "key" },
        ManifestError::Limit { path: path(), limit: "run_cpus", value: 0, least: 1, most: 9 },
        ManifestError::UnsupportedJava { repository: repository(), java_version: 99 },
    ]));
    errors.extend(all([
        TaskFileError::Io(disk()),
        TaskFileError::Malformed { path: path(), reason: text("no JSON") },
        TaskFileError::UnknownSchema { path: path(), found: 99 },
        TaskFileError::Twice { task: task(), first: path(), second: path() },
        TaskFileError::Taken { task: task(), repository: repository(), other: path() },
    ]));
    let unknown = |nearest| SelectorError::Unknown { kind: NameKind::Task, name: text("tusk-1"), nearest };
    errors.extend(all([
        SelectorError::NothingImported,
        unknown(Some(text("task-1"))),
        unknown(None),
        SelectorError::NothingLeft,
    ]));
    errors
}

fn of_executions() -> Vec<CommandError> {
    let mut errors = within(engines(), LoadError::Engine);
    errors.extend(within(images(), LoadError::Image));
    errors.extend(all([JarError::Io(disk()), JarError::Compiler(text("no class"))]));
    errors.extend(within(engines(), JarError::Engine));
    errors.extend(within(stores(), JarError::Store));
    errors.extend(all([ProofError::Io(disk()), ProofError::Malformed { path: path(), reason: text("no JSON") }]));
    errors.extend(all(run_directories()));
    errors.extend(all([RunError::Io(disk()), RunError::Interrupted]));
    errors.extend(within(run_directories(), RunError::RunDirectory));
    errors.extend(all(merges()));
    errors
}

fn merges() -> Vec<MergeError> {
    let run = || text("part-2");
    vec![
        MergeError::NoShard { run: run() },
        MergeError::Unfinished { shard: text("2/4"), run: run() },
        MergeError::Late { run: run(), what: text("records.jsonl") },
        MergeError::Foreign { run: run(), first: text("part-1"), what: text("limits") },
        MergeError::Double { shard: text("2/4"), first: text("part-1"), second: run() },
        MergeError::Missing { of: NonZeroU32::new(4).unwrap(), missing: text("3, 4") },
        MergeError::ForeignRecord { run: run(), of: text("task-1") },
        MergeError::OtherTasks,
    ]
}

fn others() -> Vec<CommandError> {
    let mut errors =
        all([SettingsError::Io(disk()), SettingsError::Malformed { path: path(), reason: text("no table") }]);
    errors.extend(all(data_dirs()));
    errors.extend(all(stores()));
    errors.extend(all(origins()));
    errors.extend(all(fetches()));
    errors.extend(all(fetches_of_many()));
    errors.extend(all(engines()));
    errors.extend(all(workspaces()));
    errors.extend(all(images()));
    errors.extend(all([
        SampleError::Malformed { name: text("one"), reason: text("no header") },
        SampleError::Git { path: path(), source: git2::Error::from_str("broken") },
        SampleError::Io(disk()),
    ]));
    errors.extend(all([
        AgentError::Occupied { task: task(), path: path() },
        AgentError::NoWorkspace { task: task(), path: path() },
        AgentError::Refused { task: task(), path: "src/ATest.java".parse().unwrap(), reason: text("it is a link") },
        AgentError::Archive { task: task(), reason: text("it is damaged") },
        AgentError::Git(git2::Error::from_str("broken")),
        AgentError::Sources(WorkspaceError::GitCommand(absent())),
        AgentError::Io(disk()),
    ]));
    errors.extend(all([
        TrialError::NoJob(path()),
        TrialError::Malformed { path: path(), reason: text("no JSON") },
        TrialError::UnknownTask { trial: path(), task: text("testevo-bench/task-1") },
        TrialError::Io(disk()),
    ]));
    errors.extend(all([
        ShellError::Garbled,
        ShellError::Terminal(io::Error::other("stdout is something else")),
        ShellError::Save { path: path(), source: disk() },
        ShellError::ScriptTooLarge,
    ]));
    errors.extend(all([
        GarbageError::Io(unopened()),
        GarbageError::Io(disk()),
        GarbageError::Record { path: path(), reason: text("no JSON") },
    ]));
    errors.extend(within(stores(), GarbageError::Store));
    let malformed = io::Error::new(io::ErrorKind::InvalidData, "no JSON");
    let (full, gone) = (io::ErrorKind::StorageFull.into(), io::Error::from_raw_os_error(libc::ESTALE));
    let failed = |source| IoFailure { doing: text("recording time classes"), source };
    errors.extend(all([disk(), unopened(), malformed, full, gone].map(failed)));
    errors.extend(all([ScratchError::Inside { path: path(), data_dir: path() }]));
    errors.extend(all([
        DiskError::Full { data_dir: path(), needed: 3 << 30, free: 1 << 30 },
        DiskError::Limit { data_dir: path(), needed: 3 << 30, used: 1 << 30, limit: 2 << 30 },
    ]));
    errors.extend(all([
        AuditError::Nothing(text("task-1")),
        AuditError::Search(text("too many patterns")),
        AuditError::Io(unopened()),
        AuditError::Io(disk()),
    ]));
    let [cause, advice] = ["no route", "try again"].map(text);
    errors.extend(all([MissingOrigin { name: origin(), cause, advice }]));
    errors
}

fn of_everything() -> Vec<CommandError> {
    let groups = [
        of_commands(),
        of_published_data(),
        of_locks(),
        of_resolution(),
        of_executions(),
        of_submissions_and_reports(),
        others(),
        of_bundles(),
        of_clusters(),
    ];
    groups.into_iter().flatten().collect()
}

#[test]
fn every_error_keeps_its_exit_code_and_hint() {
    let row = |error: &CommandError| format!("{} {}", error.exit_status() as u8, error.render(false));
    insta::assert_snapshot!(of_everything().iter().map(row).collect::<String>());
}

/// What each exit code means, in the words of the README.
const CODES: [(ExitStatus, &str); 8] = [
    (ExitStatus::CheckFailed, "a check failed"),
    (ExitStatus::Usage, "usage"),
    (ExitStatus::Infrastructure, "infrastructure faults left"),
    (ExitStatus::BadInput, "bad input data"),
    (ExitStatus::Origin, "origin or network"),
    (ExitStatus::Mismatch, "digest, lock or store mismatch"),
    (ExitStatus::Engine, "engine or isolation missing"),
    (ExitStatus::Interrupted, "interrupted"),
];

/// Returns what to do about an error without a hint: what it ends has said that before.
fn without_hint(error: &CommandError) -> &'static str {
    match error {
        CommandError::CheckFailed { .. } => "the lines before the error say which",
        CommandError::Repositories { .. } => "the rows below the error say what to do for each repository",
        CommandError::Interrupted => "rerun the same command to resume",
        error => panic!("nothing says what to do: {error}"),
    }
}

/// Renders `docs/troubleshooting.md`.
fn troubleshooting() -> String {
    let errors = of_everything();
    let mut page = String::from(
        "# Troubleshooting\n\n\
         Every error that `testevo-sandbox` ends with, by exit code, and what to do about it. Names, numbers and causes are examples.\n\
         `testevo-sandbox doctor` says what a machine offers and lacks, and `explain RUN TASK` what became of a task.\n\n\
         A test renders this page from the errors themselves: `RENDER_TROUBLESHOOTING=1 cargo test --lib troubleshooting`.\n",
    );
    for (status, meaning) in CODES {
        let mut rows: Vec<[String; 2]> = Vec::new();
        for error in errors.iter().filter(|error| error.exit_status() == status) {
            let mut message = error.to_string();
            error.causes().iter().for_each(|cause| message.push_str(&format!(": {cause}")));
            let message = plain(&message.replace(env!("CARGO_MANIFEST_DIR"), ""));
            let row = [message, plain(&error.hint().unwrap_or_else(|| without_hint(error).to_owned()))];
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        rows.sort();
        page.push_str(&format!("\n## Exit code {}: {meaning}\n\n", status as u8));
        page.push_str(&table(&["error", "what to do"], 2, &rows));
    }
    page
}

#[test]
fn troubleshooting_lists_every_error() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/troubleshooting.md");
    let rendered = troubleshooting();
    if std::env::var_os("RENDER_TROUBLESHOOTING").is_some() {
        fs_err::write(&path, &rendered).unwrap();
    }
    let errors = of_everything();
    let listed = |error: &&CommandError| CODES.iter().any(|(status, _)| error.exit_status() == *status);
    assert_eq!(errors.iter().filter(listed).count(), errors.len(), "a code has no heading");
    assert_eq!(fs_err::read_to_string(&path).unwrap(), rendered, "RENDER_TROUBLESHOOTING=1 writes it anew");
}
