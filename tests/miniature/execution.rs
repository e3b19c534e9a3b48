//! Every miniature through the whole job: lock, image, proof, cells; a real engine, real Maven. What comes of each cell
//! and method must be what the miniature says.
//!
//! The data directory lies below the build's own, so that a second run of the tests resolves and downloads nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use testevo_sandbox::execution::record::CellRecord;
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

fn check(name: &str) {
    let repository = miniature::load(name);
    let workshop = Workshop::new(name);
    workshop.import(&repository, overrides(name));
    workshop.run(&["lock"]);
    // Not every miniature can build: those that can't are what the cells are about.
    workshop.try_run(&["build-images", "--proof", "none"]);
    workshop.try_run(&["validate", "--fresh", "--run-id", name, "--format", "json"]);
    let records = workshop.records(name);
    let mut wrong = Vec::new();
    for miniature in &repository.miniatures {
        for method in &miniature.methods {
            for cell in cells_of(miniature.track) {
                let task = format!("{}__{}", repository.name.file_stem(), miniature.name);
                let found = records.get(&(task, *cell, method.id.to_string()));
                let expected = &method.expected[cell];
                if found.is_none_or(|record| !expected.contains(&record.outcome)) {
                    let got = found.map_or_else(
                        || "no record".to_owned(),
                        |record| format!("{}: {}", record.outcome, record.detail),
                    );
                    let expected: Vec<String> = expected.iter().map(Outcome::to_string).collect();
                    wrong.push(format!(
                        "{} {} {}: expected {}, got {got}",
                        miniature.name,
                        cell.name(),
                        method.id,
                        expected.join(" or ")
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{name}:\n{}", wrong.join("\n"));
}

/// A data directory with one sample repository in it; all of them share one store.
struct Workshop {
    data_dir: PathBuf,
    sources: PathBuf,
}

type Records = BTreeMap<(String, testevo_sandbox::task::Cell, String), CellRecord>;

impl Workshop {
    fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("miniatures");
        let data_dir = root.join("data").join(name);
        fs_err::create_dir_all(&data_dir).unwrap();
        fs_err::create_dir_all(root.join("store")).unwrap();
        match std::os::unix::fs::symlink(root.join("store"), data_dir.join("store")) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => panic!("{error}"),
            _ => {}
        }
        Self { data_dir, sources: root.join("sources").join(name) }
    }

    /// Writes the repository and its published data, and imports them.
    fn import(&self, repository: &SampleRepository, overrides: &str) {
        if self.sources.exists() {
            fs_err::remove_dir_all(&self.sources).unwrap();
        }
        let pairs = repository.write_git(&self.sources.join(repository.name.name())).unwrap();
        let data = self.sources.join("published.json");
        fs_err::write(&data, repository.published(&pairs)).unwrap();
        let stem = repository.name.file_stem();
        for file in [format!("manifests/{stem}.toml"), format!("tasks/{stem}.json")] {
            let path = self.data_dir.join(file);
            if path.exists() {
                fs_err::remove_file(path).unwrap();
            }
        }
        self.run(&["import", data.to_str().unwrap()]);
        let manifest = self.data_dir.join(format!("manifests/{stem}.toml"));
        let text = fs_err::read_to_string(&manifest).unwrap();
        fs_err::write(&manifest, text + overrides).unwrap();
        let runs = self.data_dir.join("runs");
        if runs.exists() {
            fs_err::remove_dir_all(runs).unwrap();
        }
    }

    fn run(&self, arguments: &[&str]) {
        let (code, said) = self.try_run(arguments);
        assert_eq!(code, Some(0), "{arguments:?}\n{said}");
    }

    fn try_run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_testevo-sandbox"))
            .args(arguments)
            .arg("--data-dir")
            .arg(&self.data_dir)
            .arg("--git-mirror")
            .arg(self.sources.join("{name}"))
            .args(["--jobs", "1"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.code(), said)
    }

    fn records(&self, run: &str) -> Records {
        let text = fs_err::read_to_string(self.data_dir.join("runs").join(run).join("records.jsonl")).unwrap();
        text.lines()
            .map(|line| serde_json::from_str::<CellRecord>(line).unwrap())
            .map(|record| ((record.task_id.to_string(), record.cell, record.method.to_string()), record))
            .collect()
    }
}
