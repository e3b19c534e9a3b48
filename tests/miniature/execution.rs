//! Every miniature through the whole job: lock, image, proof, cells; a real engine, real Maven. What comes of each cell
//! and method must be what the miniature says.
//!
//! The data directory lies below the build's own, so that a second run of the tests resolves and downloads nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use testevo_sandbox::execution::record::{CellRecord, ExecutionPath};
use testevo_sandbox::outcome::Outcome;
use testevo_sandbox::outcome::label::cells_of;
use testevo_sandbox::sample::SampleRepository;

use crate::support::miniature;

/// Settings of a repository's manifest beyond the defaults, so that tests which never end do so early.
fn overrides(name: &str) -> &'static str {
    match name {
        "hostile-17" => {
            "\n[overrides.limits]\nrun_wall_seconds = 25\nrun_cpu_seconds = 20\nrun_processes = 128\n\
             run_memory_mib = 768\nrun_scratch_mib = 256\nrun_heap_mib = 256\n"
        }
        _ => "",
    }
}

#[test]
fn jupiter_17() {
    check("jupiter-17");
}

#[test]
fn junit4_8() {
    check("junit4-8");
}

#[test]
fn modules_8() {
    check("modules-8");
}

#[test]
fn builds_17() {
    check("builds-17");
}

#[test]
fn bundle_8() {
    check("bundle-8");
}

#[test]
fn hostile_17() {
    check("hostile-17");
}

/// Runs everything on both paths, which must agree wherever each says what the miniature says.
fn check(name: &str) {
    let repository = miniature::load(name);
    let workshop = Workshop::new(&repository);
    let (this, run) = (workshop.repository.as_str(), repository.name.file_stem());
    let locked = workshop.prepare(&repository, overrides(name));
    let validated = workshop.try_run(&["validate", "--paths", "both", "--run-id", &run, "--format", "json", this]);
    let Some(records) = workshop.records(&run) else {
        panic!("{name}: nothing was executed\n{locked}\n{}", validated.1);
    };
    let mut wrong = Vec::new();
    for miniature in &repository.miniatures {
        for method in &miniature.methods {
            for cell in cells_of(miniature.track) {
                let task = format!("{}__{}", repository.name.file_stem(), miniature.name);
                let expected = &method.expected[cell];
                for path in [ExecutionPath::Maven, ExecutionPath::Direct] {
                    let found = records.get(&(task.clone(), *cell, method.id.to_string(), path));
                    if found.is_none_or(|record| !expected.contains(&record.outcome)) {
                        let got = found.map_or_else(
                            || "no record".to_owned(),
                            |record| format!("{}: {}", record.outcome, record.detail),
                        );
                        let expected: Vec<String> = expected.iter().map(Outcome::to_string).collect();
                        wrong.push(format!(
                            "{} {} {} ({path}): expected {}, got {got}",
                            miniature.name,
                            cell.name(),
                            method.id,
                            expected.join(" or ")
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
    super::scoring::gold_is_scored_as_expected(&workshop, &repository);
}

/// The data directory that all sample repositories share, as seen by one of them.
pub(super) struct Workshop {
    pub(super) data_dir: PathBuf,
    pub(super) sources: PathBuf,
    repository: String,
    /// Held while a test works with the repository: another test would write its sources anew.
    _busy: fs_err::File,
}

type Records = BTreeMap<(String, testevo_sandbox::task::Cell, String, ExecutionPath), CellRecord>;

impl Workshop {
    pub(super) fn new(repository: &SampleRepository) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("miniatures");
        let sources = root.join("sources");
        fs_err::create_dir_all(&sources).unwrap();
        let busy = fs_err::File::create(sources.join(format!("{}.busy", repository.name.file_stem()))).unwrap();
        busy.file().lock().unwrap();
        Self { data_dir: root.join("data"), sources, repository: repository.name.to_string(), _busy: busy }
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
        let run = self.data_dir.join("runs").join(&stem);
        for directory in [&git, &run] {
            if directory.exists() {
                fs_err::remove_dir_all(directory).unwrap();
            }
        }
        let pairs = repository.write_git(&git).unwrap();
        let data = self.sources.join(format!("{stem}.json"));
        fs_err::write(&data, repository.published(&pairs)).unwrap();
        let manifest = self.data_dir.join(format!("manifests/{stem}.toml"));
        if manifest.exists() {
            fs_err::remove_file(&manifest).unwrap();
        }
        self.run(&["import", data.to_str().unwrap()]);
        let text = fs_err::read_to_string(&manifest).unwrap();
        fs_err::write(&manifest, text + overrides).unwrap();
    }

    pub(super) fn run(&self, arguments: &[&str]) {
        let (code, said) = self.try_run(arguments);
        assert_eq!(code, Some(0), "{arguments:?}\n{said}");
    }

    /// Returns the program with these arguments, in this data directory.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_testevo-sandbox"));
        command.args(arguments).arg("--data-dir").arg(&self.data_dir);
        command.arg("--git-mirror").arg(self.sources.join("{name}")).args(["--jobs", "1"]);
        command
    }

    pub(super) fn try_run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.command(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.code(), said)
    }

    fn records(&self, run: &str) -> Option<Records> {
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
