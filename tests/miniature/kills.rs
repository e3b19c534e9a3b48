//! A parallel validation that is killed at random moments: the same command again and again comes to the same verdicts and
//! leaves nothing behind.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fs_err as fs;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

use super::interruption::{Running, containers, verdicts};
use super::workshop::Workshop;
use crate::support::miniature;

/// Takes minutes: `cargo test -- --ignored full`. A single kill is tried with the other interruptions.
#[test]
#[ignore = "takes minutes"]
fn full_twenty_random_kills_change_nothing() {
    let tasks = ["*__assertion", "*__exception", "*__nested", "*__compile-target"];
    kill_at_random(20, Duration::from_secs(8), &tasks);
}

/// Kills so often, each time `most` after the start at the latest, and compares with a run that nobody disturbs.
fn kill_at_random(kills: usize, most: Duration, tasks: &[&str]) {
    const SEED: u64 = 1;
    let sample = miniature::load("jupiter-17");
    let workshop = Workshop::new(&sample);
    workshop.prepare(&sample, "");
    let place = Place::new(&workshop);
    let mut random = StdRng::seed_from_u64(SEED);
    let (mut killed, mut round, mut processes) = (0, 0, Vec::new());
    while killed < kills {
        round += 1;
        place.forget_prepared();
        loop {
            let after = Duration::from_millis(random.gen_range(20..u64::try_from(most.as_millis()).unwrap()));
            let mut process = Running(place.validate(&format!("killed-{round}"), tasks).spawn().unwrap());
            processes.push(process.0.id());
            let ended = if killed < kills { end_within(&mut process, after) } else { Some(process.0.wait().unwrap()) };
            match ended {
                Some(status) => {
                    assert!(status.success(), "{status} after {killed} kills");
                    break;
                }
                None => killed += 1,
            }
        }
    }
    let mut undisturbed = Running(place.validate("undisturbed", tasks).spawn().unwrap());
    processes.push(undisturbed.0.id());
    assert!(undisturbed.0.wait().unwrap().success());
    let expected = verdicts(&place.data_dir, "undisturbed");
    assert_eq!(expected["summary"]["tasks"], tasks.len());
    for round in 1..=round {
        assert_eq!(verdicts(&place.data_dir, &format!("killed-{round}")), expected, "round {round}");
    }
    let left: Vec<String> = processes.into_iter().flat_map(containers).collect();
    assert_eq!(left, Vec::<String>::new());
    place.check_is_tidy();
}

/// Waits for the process; kills it after this time.
fn end_within(process: &mut Running, time: Duration) -> Option<std::process::ExitStatus> {
    let started = Instant::now();
    while started.elapsed() < time {
        if let Some(status) = process.0.try_wait().unwrap() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    process.0.kill().unwrap();
    let status = process.0.wait().unwrap();
    // It may have ended before the signal came.
    status.code().map(|_| status)
}

/// A data directory of its own that has all of another one's but runs, results and prepared revisions.
struct Place {
    _directory: tempfile::TempDir,
    data_dir: PathBuf,
    mirror: PathBuf,
}

impl Place {
    fn new(workshop: &Workshop) -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let data_dir = directory.path().join("data");
        copy(&workshop.data_dir, &data_dir, Path::new(""));
        Self { _directory: directory, data_dir, mirror: workshop.sources.join("{name}") }
    }

    fn validate(&self, run_id: &str, tasks: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_testevo-sandbox"));
        command.args(["validate", "--no-confirm", "--jobs", "2", "--run-id", run_id]).args(tasks);
        command.arg("--data-dir").arg(&self.data_dir).arg("--git-mirror").arg(&self.mirror);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn prepared(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.data_dir.join("store/prepared")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    /// Removes prepared revisions; our own jars, which are described beside them, stay.
    fn forget_prepared(&self) {
        for path in self.prepared().into_iter().filter(|path| is_digest(path)) {
            fs::remove_file(path).unwrap();
        }
    }

    /// Checks that nothing is there that a process was about to finish.
    fn check_is_tidy(&self) {
        let names = |directory: &str| -> Vec<PathBuf> {
            fs::read_dir(self.data_dir.join(directory)).unwrap().map(|entry| entry.unwrap().path()).collect()
        };
        assert_eq!(names("tmp"), Vec::<PathBuf>::new());
        let odd: Vec<PathBuf> = names("store/blobs/sha256").into_iter().filter(|path| !is_digest(path)).collect();
        assert_eq!(odd, Vec::<PathBuf>::new());
        let prepared = self.prepared();
        let described = prepared.iter().filter(|path| path.extension().is_some_and(|extension| extension == "json"));
        assert_eq!(described.count(), prepared.len(), "{prepared:?}");
        assert!(prepared.iter().any(|path| is_digest(path)), "{prepared:?}");
    }
}

fn is_digest(path: &Path) -> bool {
    let stem = path.file_stem().unwrap().to_str().unwrap();
    stem.len() == 64 && stem.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Copies a data directory, of which `below` is the part; blobs, which nobody writes to, become links. Other tests work in it
/// meanwhile, so what is just written is left out, and what goes is passed over.
fn copy(from: &Path, to: &Path, below: &Path) {
    fs::create_dir_all(to.join(below)).unwrap();
    for entry in fs::read_dir(from.join(below)).unwrap() {
        let entry = entry.unwrap();
        let path = below.join(entry.file_name());
        // The demonstration has a data directory below, whose store is this one.
        let left_out = ["runs", "results", "tmp", "store/unpacked", "demo"].iter().any(|name| path == Path::new(name));
        let unfinished = entry.file_name().to_string_lossy().starts_with('.') && entry.file_type().unwrap().is_file();
        if left_out || unfinished {
            continue;
        }
        let copied = if entry.file_type().unwrap().is_dir() {
            copy(from, to, &path);
            Ok(())
        } else if path.starts_with("store/blobs") {
            if is_digest(&path) { fs::hard_link(entry.path(), to.join(&path)) } else { Ok(()) }
        } else if path.starts_with("store/prepared") && is_digest(&path) {
            Ok(())
        } else {
            fs::copy(entry.path(), to.join(&path)).map(|_| ())
        };
        match copied {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
            _ => {}
        }
    }
}
