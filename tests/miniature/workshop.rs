//! The data directory that the tests of sample repositories share, and commands in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use testevo_sandbox::data_dir::DataDir;
use testevo_sandbox::execution::run::record::{CellRecord, ExecutionPath};
use testevo_sandbox::image::{BuiltImage, Catalog};
use testevo_sandbox::sample::SampleRepository;
use testevo_sandbox::task::{Cell, RepositoryName};

/// Whether other tests may work with a repository's data at the same time.
#[derive(Clone, Copy)]
pub(super) enum Hold {
    /// None may.
    Alone,
    /// Tests may that have runs of their own names, and leave settings and other data as they are.
    Together,
}

/// The data directory that all sample repositories share, as seen by one of them.
pub(super) struct Workshop {
    pub(super) data_dir: PathBuf,
    pub(super) sources: PathBuf,
    /// What the directories of repositories in `sources` are called.
    mirror: &'static str,
    repository: String,
    /// Held while a test works with the repository: another test would write its sources anew.
    _busy: fs_err::File,
}

pub(super) type Records = BTreeMap<(String, Cell, String, ExecutionPath), CellRecord>;

impl Workshop {
    pub(super) fn new(repository: &SampleRepository) -> Self {
        Self::held(repository, "", Hold::Alone)
    }

    fn held(repository: &SampleRepository, part: &str, hold: Hold) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("miniatures");
        let sources = root.join("sources");
        fs_err::create_dir_all(&sources).unwrap();
        let busy = fs_err::File::create(sources.join(format!("{}{part}.busy", repository.name.file_stem()))).unwrap();
        match hold {
            Hold::Alone => busy.file().lock(),
            Hold::Together => busy.file().lock_shared(),
        }
        .unwrap();
        let data_dir = root.join("data");
        Self { data_dir, sources, mirror: "{name}", repository: repository.name.to_string(), _busy: busy }
    }

    /// Returns the data directory that `demo` makes for itself below the others' one.
    pub(super) fn of_demonstration(repository: &SampleRepository, hold: Hold) -> Self {
        let all = Self::held(repository, ".demo", hold);
        let data_dir = all.data_dir.join("demo");
        Self { sources: data_dir.join("sources"), data_dir, mirror: "{owner}__{name}", ..all }
    }

    /// Returns a data directory of its own, empty but for the others' store.
    pub(super) fn apart(repository: &SampleRepository) -> Self {
        let all = Self::new(repository);
        let data_dir = all.data_dir.parent().unwrap().join("apart").join(repository.name.file_stem());
        if data_dir.exists() {
            fs_err::remove_dir_all(&data_dir).unwrap();
        }
        let store = all.data_dir.join("store");
        for directory in [&data_dir, &store] {
            fs_err::create_dir_all(directory).unwrap();
        }
        fs_err::os::unix::fs::symlink(store, data_dir.join("store")).unwrap();
        Self { data_dir, ..all }
    }

    /// Gives the demonstration and returns its standard output.
    pub(super) fn demonstrate(&self) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_testevo-sandbox"));
        let output = command.args(["demo", "--data-dir"]).arg(self.data_dir.parent().unwrap()).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        said
    }

    /// Returns what was built for a repository.
    pub(super) fn built(&self, repository: &RepositoryName) -> BuiltImage {
        let data_dir = DataDir::open(&self.data_dir).unwrap();
        Catalog::open(&data_dir).unwrap().get(repository).unwrap().unwrap()
    }

    /// Imports, locks and builds, and returns what locking said.
    pub(super) fn prepare(&self, repository: &SampleRepository, overrides: &str) -> String {
        self.import(repository, overrides);
        // Not every miniature can be resolved or built: that is what their cells are about.
        let locked = self.try_run(&["lock", &self.repository]);
        self.run(&["build-images", "--proof", "none", &self.repository]);
        locked.1
    }

    /// Writes the repository and its published data, and imports them.
    pub(super) fn import(&self, repository: &SampleRepository, overrides: &str) {
        let stem = repository.name.file_stem();
        let git = self.sources.join(repository.name.name());
        if git.exists() {
            fs_err::remove_dir_all(&git).unwrap();
        }
        self.forget_run(&stem);
        let pairs = repository.write_git(&git).unwrap();
        let data = self.sources.join(format!("{stem}.json"));
        fs_err::write(&data, repository.published(&pairs)).unwrap();
        // Another build may have had other miniatures, whose commits are not there any more.
        let manifest = self.data_dir.join(format!("manifests/{stem}.toml"));
        for earlier in [&manifest, &self.data_dir.join(format!("tasks/{stem}.json"))] {
            if earlier.exists() {
                fs_err::remove_file(earlier).unwrap();
            }
        }
        self.run(&["import", data.to_str().unwrap()]);
        let text = fs_err::read_to_string(&manifest).unwrap();
        fs_err::write(&manifest, text + overrides).unwrap();
    }

    /// Removes a run that an earlier build of the program left under this name.
    pub(super) fn forget_run(&self, run_id: &str) {
        let run = self.data_dir.join("runs").join(run_id);
        if run.exists() {
            fs_err::remove_dir_all(run).unwrap();
        }
    }

    pub(super) fn run(&self, arguments: &[&str]) {
        let (code, said) = self.try_run(arguments);
        assert_eq!(code, Some(0), "{arguments:?}\n{said}");
    }

    /// Returns the program with these arguments, in this data directory.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_testevo-sandbox"));
        command.args(arguments).arg("--data-dir").arg(&self.data_dir);
        command.arg("--git-mirror").arg(self.sources.join(self.mirror));
        if !arguments.contains(&"--jobs") {
            // Few tests of one repository run at once, so that each may use the processors; but what runs into its limits is alone.
            let jobs = if self.repository == "testevo/hostile-17" { "1" } else { "2" };
            command.args(["--jobs", jobs]);
        }
        command
    }

    pub(super) fn try_run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.command(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.code(), said)
    }

    pub(super) fn lock_path(&self, repository: &RepositoryName) -> PathBuf {
        self.data_dir.join("locks").join(format!("{}.lock", repository.file_stem()))
    }

    pub(super) fn records(&self, run: &str) -> Option<Records> {
        let text = fs_err::read_to_string(self.data_dir.join("runs").join(run).join("records.jsonl")).ok()?;
        let records = text.lines().map(|line| serde_json::from_str::<CellRecord>(line).unwrap());
        Some(
            records
                .map(|record| {
                    ((record.task_id.to_string(), record.cell, record.method.to_string(), record.path), record)
                })
                .collect(),
        )
    }
}
