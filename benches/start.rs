//! How long a container takes from the request to its end, on every engine that answers, in one run; a line of JSON each.
//!
//! `cargo bench --bench start`, as root for all of it: the built-in engine as root and as a user without rights, what
//! `unshare` needs for the namespaces alone, and `docker run` and `podman run` with the same image where they answer. The
//! container's command does nothing but end. Figures of a machine that does something else meanwhile compare at best with
//! one another. With a filter that means other benches, such as `cargo bench -- parsing`, nothing is started.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measurement is for people, and ends where it can't go on"
)]

#[path = "../tests/engine/image.rs"]
mod image;

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use testevo_sandbox::data_dir::Owner;
use testevo_sandbox::engine::Engine as _;
use testevo_sandbox::engine::native::NativeEngine;
use testevo_sandbox::engine::session::{self, RunEnd};
use testevo_sandbox::engine::spec::{
    Command, CommandLimits, ContainerLimits, ContainerSpec, PROGRAM_SCHEMA, Program, ProgramEnd, Scratch, Step,
};
use testevo_sandbox::event::EventSink;

/// What filters name this bench by.
const NAME: &str = "start";

/// How often each is started, one after the other.
const STARTS: usize = 100;

/// The same for what takes its time.
const DAEMON_STARTS: usize = 20;

/// A user without any rights or even a name.
const NOBODY: u32 = 61_234;

/// Names the directory in which the user without rights finds what it needs.
const PLACE: &str = "TESTEVO_BENCH_PLACE";

fn main() {
    if !is_meant(std::env::args().skip(1)) {
        return;
    }
    let place = std::env::var_os(PLACE).map(PathBuf::from);
    let init = place.as_ref().map_or_else(|| env!("CARGO_BIN_EXE_testevo-sandbox").into(), |place| place.join("init"));
    let directory = tempfile::tempdir_in(place.as_deref().unwrap_or(&std::env::temp_dir())).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let native = runtime.block_on(native(directory.path(), &init));
    if place.is_some() {
        return;
    }
    let mut medians = vec![native];
    if rustix::process::geteuid().is_root() {
        medians.extend(as_nobody());
    }
    let floor =
        ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount", "--net", "--ipc", "--uts", "true"];
    command("unshare", STARTS, &floor);
    let archive = directory.path().join("image.tar");
    let (identity, bytes) = true_image();
    fs_err::write(&archive, bytes).unwrap();
    for program in ["docker", "podman"] {
        let loaded = Process::new(program).args(["load", "--quiet", "--input"]).arg(&archive).output();
        if !loaded.is_ok_and(|loaded| loaded.status.success()) {
            println!("{}", json!({"engine": program, "starts": 0}));
            continue;
        }
        let name = identity.names[0].as_str();
        // Podman would set limits of open files and processes that not every root may set.
        let run = [
            program,
            "run",
            "--rm",
            "--network",
            "none",
            "--read-only",
            "--ulimit",
            "nofile=4096",
            "--ulimit",
            "nproc=4096",
            name,
            "/bin/true",
        ];
        let trial = Process::new(run[0]).args(&run[1..]).output().unwrap();
        if !trial.status.success() {
            // Podman's default runtime refuses hybrid cgroups, for one.
            let said = String::from_utf8_lossy(&trial.stderr).trim().to_owned();
            println!("{}", json!({"engine": program, "starts": 0, "failed": said}));
            continue;
        }
        let median = command(program, DAEMON_STARTS, &run);
        let times: Vec<f64> = medians.iter().map(|native| (median / native * 10.0).round() / 10.0).collect();
        println!("{}", json!({"engine": "native", "times_as_fast_as": program, "times": times}));
    }
}

/// Tells whether arguments, which Cargo gives to every bench alike, mean this one: no filter or one that names it, and no
/// trial or list of benches.
fn is_meant(arguments: impl Iterator<Item = String>) -> bool {
    let (options, filters): (Vec<String>, Vec<String>) = arguments.partition(|argument| argument.starts_with('-'));
    let measures = !options.iter().any(|option| matches!(option.as_str(), "--test" | "--list"));
    measures && (filters.is_empty() || filters.iter().any(|filter| NAME.contains(filter.as_str())))
}

/// A program that ends at once and well: `exit(0)` in 64-bit ELF.
fn nothing() -> Vec<u8> {
    const CODE: [u8; 9] = [0xb8, 0x3c, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05];
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0".to_vec();
    for word in [BASE + HEADERS, 64, 0] {
        file.extend(word.to_le_bytes());
    }
    file.extend(b"\0\0\0\0\x40\0\x38\0\x01\0\0\0\0\0\0\0\x01\0\0\0\x05\0\0\0");
    let length = HEADERS + CODE.len() as u64;
    for word in [0, BASE, BASE, length, length, 0x1000] {
        file.extend(word.to_le_bytes());
    }
    file.extend(CODE);
    file
}

fn true_image() -> (testevo_sandbox::engine::ImageIdentity, Vec<u8>) {
    let program = nothing();
    image::image("true", &[("bin/true", 0o755, program.as_slice())])
}

fn spec(image: testevo_sandbox::digest::Digest) -> ContainerSpec {
    let limits = CommandLimits { wall_seconds: 60, cpu_seconds: 60, output_bytes: 1 << 20, flood_bytes: 1 << 20 };
    let command = Command {
        argv: vec!["/bin/true".into()],
        environment: Vec::new(),
        working_directory: "/work".into(),
        limits,
        events: false,
        required: true,
        only_after_success_of: None,
    };
    ContainerSpec {
        purpose: "measurement".into(),
        image,
        mounts: Vec::new(),
        door: None,
        scratch: vec![Scratch { target: "/work".into(), size_bytes: 16 << 20 }],
        limits: ContainerLimits { memory_bytes: 256 << 20, cpus: 2, processes: 64, wall_seconds: 120 },
        program: Program { schema: PROGRAM_SCHEMA, door_port: None, steps: vec![Step::Run(command)] },
    }
}

/// Measures the built-in engine as this user, one container after the other and several at once; returns the median of
/// the former in milliseconds.
async fn native(directory: &Path, init: &Path) -> f64 {
    let engine =
        NativeEngine::open(&directory.join("unpacked"), &Owner::current().unwrap(), init, &EventSink::none()).unwrap();
    let (identity, archive) = true_image();
    let archive = stream::iter([Ok(archive.into())]).boxed();
    engine.load_image(&identity.config_digest, archive).await.unwrap();
    let spec = spec(identity.config_digest);
    let one = async || {
        let run = session::run(&engine, &spec, directory).await.unwrap();
        assert_eq!(run.end, RunEnd::Program(ProgramEnd::Completed), "{run:?}");
        run.wall
    };
    one().await;
    let mut single = 0.0;
    for at_once in [1, 2, 8] {
        let started = Instant::now();
        let times: Vec<Duration> = stream::iter(0..STARTS).map(|_| one()).buffer_unordered(at_once).collect().await;
        let rate = times.len() as f64 / started.elapsed().as_secs_f64();
        let user = rustix::process::geteuid().as_raw();
        let what = json!({"engine": "native", "user": user, "at_once": at_once, "a_second": tenths(rate)});
        let median = told(what, times);
        single = if at_once == 1 { median } else { single };
    }
    engine.wait_for_removals().await;
    single
}

/// Has another process measure the built-in engine as a user without rights.
fn as_nobody() -> Option<f64> {
    let place = tempfile::tempdir().unwrap();
    fs_err::set_permissions(place.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let own = std::env::current_exe().unwrap();
    for (name, program) in [("measure", own.as_path()), ("init", Path::new(env!("CARGO_BIN_EXE_testevo-sandbox")))] {
        let copy = place.path().join(name);
        fs_err::copy(program, &copy).unwrap();
        fs_err::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let output = Process::new(place.path().join("measure"))
        .uid(NOBODY)
        .gid(NOBODY)
        .current_dir("/")
        .env(PLACE, place.path())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "as user {NOBODY}: {}", output.status);
    let said = String::from_utf8(output.stdout).unwrap();
    print!("{said}");
    let first: Value = serde_json::from_str(said.lines().next()?).unwrap();
    first["median_ms"].as_f64()
}

/// Measures a command; returns the median in milliseconds.
fn command(name: &str, starts: usize, arguments: &[&str]) -> f64 {
    let one = |_| {
        let started = Instant::now();
        let status = Process::new(arguments[0]).args(&arguments[1..]).stdout(Stdio::null()).status().unwrap();
        assert!(status.success(), "{arguments:?}: {status}");
        started.elapsed()
    };
    one(0);
    let user = rustix::process::geteuid().as_raw();
    told(json!({"engine": name, "user": user, "at_once": 1}), (0..starts).map(one).collect())
}

/// Says what came of it, and returns the median in milliseconds.
fn told(mut what: Value, mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    let at = |share: f64| {
        let index = ((times.len() - 1) as f64 * share).round() as usize;
        tenths(times[index].as_secs_f64() * 1000.0)
    };
    what["starts"] = times.len().into();
    for (name, share) in [("lower_quartile_ms", 0.25), ("median_ms", 0.5), ("upper_quartile_ms", 0.75), ("p90_ms", 0.9)]
    {
        what[name] = at(share).into();
    }
    println!("{what}");
    at(0.5)
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
