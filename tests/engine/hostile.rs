//! Programs that attack what they can reach.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use testevo_sandbox::engine::session::RunEnd;
use testevo_sandbox::engine::spec::{ProgramEnd, Step, StepResult};

use super::support::*;

on_every_engine!(
    a_late_writer_is_dead_before_anything_is_looked_at,
    init_is_out_of_reach,
    there_is_no_network_but_loopback,
    nothing_outside_scratch_can_be_changed,
    what_a_hostile_command_left_leads_nobody_astray,
    paths_of_steps_do_not_pass_through_links
);

/// Which number a refusal has depends on whose the files are.
const REFUSALS: [(&str, &str); 2] = [
    (r": (PermissionDenied|ReadOnlyFilesystem|Unsupported|InvalidInput|IsADirectory) \d+", ": refused"),
    // The kernel looks for who runs a program before it looks at its mount: so it is where the init is the user's own file.
    (r"(write /testevo/init): ExecutableFileBusy \d+", "$1: refused"),
];

async fn a_late_writer_is_dead_before_anything_is_looked_at() {
    let run = steps(vec![
        step(&["late-writer", "/work/late"]),
        Step::SendFile { path: "/work/late".into(), max_bytes: MIB },
        step(&["sleep", "1"]),
        Step::SendFile { path: "/work/late".into(), max_bytes: MIB },
    ])
    .await;
    let end = run.end(0);
    assert_eq!((end.exit_code, end.leftover_processes), (Some(0), 1), "{end:?}");
    assert!(!run.step(1).content.is_empty());
    assert_eq!(run.step(1).content.bytes().unwrap(), run.step(3).content.bytes().unwrap());
    assert!(run.step(2).stdout.is_empty(), "what it wrote later went to nobody");
}

async fn init_is_out_of_reach() {
    let run = steps(vec![step(&["attack-init"]), step(&["say", "still here"])]).await;
    run.assert_completed();
    let end = run.end(0);
    assert_eq!((end.exit_code, end.signal, end.limit), (Some(0), None, None), "its own end, and no forged one");
    assert_eq!(run.stdout(1), "still here\n");
    insta::with_settings!({filters => vec![(r"(?s)testevo\u{1}.*", "[a forged frame]")]}, {
        insta::assert_snapshot!("init_is_out_of_reach", run.stdout(0));
    });
    assert_eq!(run.run.steps.len(), 2);
}

async fn there_is_no_network_but_loopback() {
    // Such a name belongs to a network namespace and lies in no directory: no mount could keep it out.
    let name = format!("testevo-{:032x}", rand::random::<u128>());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    listener.set_nonblocking(true).unwrap();
    let run = steps(vec![step(&["reach-out"]), step(&["connect", &name])]).await;
    insta::assert_snapshot!("there_is_no_network_but_loopback", run.stdout(0) + &run.stdout(1));
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "nobody came");
    // It did listen, all the time.
    UnixStream::connect_addr(&address).unwrap();
    listener.accept().unwrap();
}

async fn nothing_outside_scratch_can_be_changed() {
    let engine = engine().await;
    let image = loaded_image(&*engine).await;
    let input = directory();
    let file = input.path().join("file");
    fs_err::write(&file, "input").unwrap();
    // Only the mount keeps it from being written.
    fs_err::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
    // Root's where root runs the tests. Nobody can make such a file, and is the task's user inside.
    let set_uid = input.path().join("set-uid");
    fs_err::copy(misbehave(), &set_uid).unwrap();
    fs_err::set_permissions(&set_uid, Permissions::from_mode(0o6755)).unwrap();
    let made = fs_err::metadata(&set_uid).unwrap();
    assert_eq!((made.mode() & 0o7777, made.uid()), (0o6755, rustix::process::geteuid().as_raw()));
    let mut spec = spec(image, vec![step(&["escape"])]);
    spec.mounts.push(mount(input.path(), "/input"));
    let run = finish(&spec).await;
    insta::with_settings!({filters => REFUSALS.to_vec()}, {
        insta::assert_snapshot!("nothing_outside_scratch_can_be_changed", as_named_by_images(run.stdout(0)));
    });
    assert_eq!(fs_err::read_to_string(&file).unwrap(), "input");
}

async fn what_a_hostile_command_left_leads_nobody_astray() {
    let file = |path: &str| Step::SendFile { path: format!("/work/tree/{path}"), max_bytes: 8 };
    let all = vec![
        step(&["hostile-tree", "/work/tree"]),
        file("below/plain"),
        file("below/none"),
        file("link"),
        file("loop"),
        file("outside/etc/passwd"),
        file("pipe"),
        file("socket"),
        file("below"),
        file("empty"),
        file("sparse"),
        Step::SendListing { root: "/work/tree".into(), max_files: 100 },
        Step::SendListing { root: "/work/tree".into(), max_files: 2 },
        Step::SendListing { root: "/work/tree/link".into(), max_files: 100 },
        Step::SendListing { root: "/work/tree/none".into(), max_files: 100 },
        Step::SendArchive { root: "/work/tree".into(), max_bytes: MIB },
        Step::Remove { path: "/work/tree/sparse".into() },
        Step::SendArchive { root: "/work/tree".into(), max_bytes: MIB },
        Step::Remove { path: "/work/tree/empty".into() },
        Step::SendArchive { root: "/work/tree".into(), max_bytes: MIB },
        Step::SendArchive { root: "/work/tree/closed".into(), max_bytes: MIB },
        Step::Write { path: "/work/tree/link".into(), content: "ours".into() },
        file("link"),
        Step::Remove { path: "/work/tree".into() },
        Step::SendListing { root: "/work".into(), max_files: 100 },
        Step::Write { path: "/work/again/outside".into(), content: "x".into() },
    ];
    let run = steps(all).await;
    run.assert_completed();
    let said: Vec<String> = run
        .run
        .steps
        .iter()
        .skip(1)
        .map(|step| {
            let content = step.content.bytes().unwrap();
            let content = match content.len() {
                0 => String::new(),
                length if length > 512 => format!(" archive of {:?}", archived(&content)),
                _ => format!(" {:?}", String::from_utf8_lossy(&content)),
            };
            format!("{}: {:?}{content}", step.index, step.result().unwrap())
        })
        .collect();
    insta::assert_snapshot!("what_a_hostile_command_left_leads_nobody_astray", said.join("\n"));
}

fn archived(bytes: &[u8]) -> BTreeMap<String, String> {
    let mut archive = tar::Archive::new(bytes);
    archive
        .entries()
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let header = entry.header();
            let text = format!("{:?} {:o} {}", header.entry_type(), header.mode().unwrap(), header.size().unwrap());
            (String::from_utf8_lossy(&entry.path_bytes()).into_owned(), text)
        })
        .collect()
}

async fn paths_of_steps_do_not_pass_through_links() {
    let run = steps(vec![
        step(&["hostile-tree", "/work/tree"]),
        Step::Write { path: "/work/tree/up/astray".into(), content: "x".into() },
    ])
    .await;
    assert!(matches!(run.result(1), StepResult::Failed { errno: Some(libc::ENOTDIR), .. }), "{:?}", run.result(1));
    assert_eq!(run.run.end, RunEnd::Program(ProgramEnd::Stopped { step: 1 }));
}
