//! Trees inside the container: unpacked, moved, copied, sent.

use std::path::Path;

use testevo_sandbox::engine::session::RunEnd;
use testevo_sandbox::engine::spec::{Command, ContainerSpec, ProgramEnd, Step, StepResult};
use testevo_sandbox::execution::container::places::PROJECT;

use super::support::*;

on_every_engine!(
    a_tree_keeps_modes_and_links_and_is_sent_with_one_time,
    an_archive_replaces_files_but_writes_nothing_through_links,
    archives_follow_the_program,
    archives_that_end_early_or_do_not_fit_have_their_cause,
    unfit_archives_and_a_full_scratch_are_failures_with_their_cause,
    long_streams_go_to_files_unchanged
);

const TIME: u64 = 981_173_106;

/// An archive as a revision's tree makes it, with what archives of strangers may hold.
fn archive(add: impl FnOnce(&mut tar::Builder<Vec<u8>>)) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    add(&mut builder);
    builder.into_inner().unwrap()
}

fn entry(builder: &mut tar::Builder<Vec<u8>>, path: &str, kind: tar::EntryType, mode: u32, content: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(TIME);
    header.set_size(content.len() as u64);
    builder.append_data(&mut header, path, content).unwrap();
}

fn link(builder: &mut tar::Builder<Vec<u8>>, path: &str, kind: tar::EntryType, target: &str) {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o777);
    header.set_mtime(TIME);
    header.set_size(0);
    builder.append_link(&mut header, path, target).unwrap();
}

/// A container with the archive at `/testevo/input/tree.tar`; the directory must outlive it.
async fn with_archive(bytes: &[u8], steps: Vec<Step>) -> (ContainerSpec, tempfile::TempDir) {
    let input = directory();
    fs_err::write(input.path().join("tree.tar"), bytes).unwrap();
    let image = loaded_image(&*engine().await).await;
    let mut spec = spec(image, steps);
    spec.mounts.push(mount(input.path(), "/testevo/input"));
    (spec, input)
}

fn unpack() -> Step {
    Step::Unpack { archive: "/testevo/input/tree.tar".into(), into: "/work/project".into() }
}

fn send(root: &str) -> Step {
    Step::SendArchive { root: root.into(), max_bytes: 64 * MIB }
}

/// What an archive holds: path, kind, mode, time, size or target.
fn listed(bytes: &[u8]) -> Vec<String> {
    let mut archive = tar::Archive::new(bytes);
    let text = |entry: tar::Entry<'_, &[u8]>| {
        let header = entry.header();
        let target = entry.link_name().unwrap().map(|target| format!(" -> {}", target.display())).unwrap_or_default();
        let path = entry.path().unwrap();
        let shown =
            if path.as_os_str().len() > 80 { Path::new("…").join(path.file_name().unwrap()) } else { path.into() };
        format!(
            "{} {:?} {:o} {} {}{target}",
            shown.display(),
            header.entry_type(),
            header.mode().unwrap(),
            header.mtime().unwrap(),
            header.size().unwrap(),
        )
    };
    archive.entries().unwrap().map(|entry| text(entry.unwrap())).collect()
}

async fn a_tree_keeps_modes_and_links_and_is_sent_with_one_time() {
    let long = format!("{}/File.java", ["a-rather-long-directory-name"; 8].join("/"));
    let bytes = archive(|tar| {
        entry(tar, "src", tar::EntryType::Directory, 0o755, b"");
        entry(tar, "src/run.sh", tar::EntryType::Regular, 0o4755, b"#!/bin/sh\n");
        entry(tar, "closed", tar::EntryType::Directory, 0o500, b"");
        entry(tar, "closed/read-only", tar::EntryType::Regular, 0o444, b"text\r\n");
        entry(tar, "implied/parent/file", tar::EntryType::Regular, 0o644, &[7; 70_000]);
        entry(tar, &long, tar::EntryType::Regular, 0o644, b"class File {}");
        link(tar, "src/link", tar::EntryType::Symlink, "../closed/read-only");
        link(tar, "src/absolute", tar::EntryType::Symlink, "/etc/passwd");
        link(tar, "src/dangling", tar::EntryType::Symlink, &"x".repeat(300));
    });
    let steps = vec![unpack(), send("/work/project"), step(&["cat", "/work/project/src/link"])];
    let (spec, _input) = with_archive(&bytes, steps).await;
    let run = finish(&spec).await;
    let mut lines = listed(&run.step(1).content.bytes().unwrap());
    // Directories that no entry names are made with modes of their own.
    lines.retain(|line| {
        !line.starts_with("implied Dir") && !line.starts_with("implied/parent Dir") && !line.contains("a-rather")
    });
    insta::assert_snapshot!(
        "a_tree_keeps_modes_and_links_and_is_sent_with_one_time",
        lines.join("\n").replace(&"x".repeat(300), "[300 times x]")
    );
    assert_eq!(run.stdout(2), "text\r\n");
}

async fn an_archive_replaces_files_but_writes_nothing_through_links() {
    let bytes = archive(|tar| {
        entry(tar, "link", tar::EntryType::Regular, 0o644, b"replaced");
        entry(tar, "empty", tar::EntryType::Regular, 0o644, b"replaced");
        entry(tar, "below/plain", tar::EntryType::Regular, 0o644, b"replaced");
    });
    let sent = |name: &str| Step::SendFile { path: format!("/work/project/{name}"), max_bytes: MIB };
    let steps =
        vec![step(&["hostile-tree", "/work/project"]), unpack(), sent("link"), sent("empty"), sent("below/plain")];
    let (spec, _input) = with_archive(&bytes, steps).await;
    let run = finish(&spec).await;
    run.assert_completed();
    for index in 2..5 {
        assert_eq!(*run.step(index).content.bytes().unwrap(), *b"replaced");
    }
    let through = archive(|tar| entry(tar, "up/astray", tar::EntryType::Regular, 0o644, b"x"));
    let (spec, _input) = with_archive(&through, vec![step(&["hostile-tree", "/work/project"]), unpack()]).await;
    let run = finish(&spec).await;
    assert!(matches!(run.result(1), StepResult::Failed { errno: Some(libc::ENOTDIR), .. }), "{:?}", run.result(1));
}

async fn unfit_archives_and_a_full_scratch_are_failures_with_their_cause() {
    let parent = archive(|tar| {
        let mut header = tar::Header::new_old();
        // The builder would refuse to write such a name itself.
        header.as_old_mut().name[..9].copy_from_slice(b"../astray");
        header.set_mode(0o644);
        header.set_mtime(TIME);
        header.set_size(0);
        header.set_cksum();
        tar.append(&header, std::io::empty()).unwrap();
    });
    let cases: [(&str, Vec<u8>, Option<i32>); 5] = [
        ("parent", parent, Some(libc::EINVAL)),
        ("hard link", archive(|tar| link(tar, "a", tar::EntryType::Link, "/etc/passwd")), None),
        ("device", archive(|tar| entry(tar, "a", tar::EntryType::Block, 0o644, b"")), None),
        ("cut", archive(|tar| entry(tar, "a", tar::EntryType::Regular, 0o644, &[1; 5000]))[..2000].to_vec(), None),
        (
            "large",
            archive(|tar| entry(tar, "a", tar::EntryType::Regular, 0o644, &vec![1; 20 << 20])),
            Some(libc::ENOSPC),
        ),
    ];
    for (name, bytes, expected) in cases {
        let (spec, _input) = with_archive(&bytes, vec![unpack(), step(&["say", "never"])]).await;
        let run = finish(&spec).await;
        match run.result(0) {
            StepResult::Failed { errno, error } => assert_eq!(*errno, expected, "{name}: {error}"),
            other => panic!("{name}: {other:?}"),
        }
        assert_eq!(run.run.end, RunEnd::Program(ProgramEnd::Stopped { step: 0 }), "{name}");
    }
}

async fn long_streams_go_to_files_unchanged() {
    let content: Vec<u8> = (0..3_000_000u32).flat_map(|number| number.to_le_bytes()).collect();
    let bytes = archive(|tar| entry(tar, "large", tar::EntryType::Regular, 0o644, &content));
    let (spec, _input) = with_archive(
        &bytes,
        vec![
            unpack(),
            Step::SendFile { path: "/work/project/large".into(), max_bytes: 64 * MIB },
            send("/work/project"),
        ],
    )
    .await;
    let run = finish(&spec).await;
    assert!(*run.step(1).content.bytes().unwrap() == *content);
    assert_eq!(listed(&run.step(2).content.bytes().unwrap()).len(), 1);
}

fn unpack_input(bytes: u64) -> Step {
    Step::UnpackInput { bytes, into: PROJECT.into() }
}

/// Both are larger than a pipe, and both are padded. A command between them gets nothing of the second.
async fn archives_follow_the_program() {
    let directory = directory();
    let paths = ["0.tar", "1.tar"].map(|name| directory.path().join(name));
    let mut lengths = Vec::new();
    for (path, byte) in paths.iter().zip([b'0', b'1']) {
        let mut bytes = archive(|tar| {
            entry(tar, "same", tar::EntryType::Regular, 0o644, &[byte]);
            entry(tar, &format!("large-{}", char::from(byte)), tar::EntryType::Regular, 0o644, &[byte; 300_000]);
        });
        bytes.resize(bytes.len() + 200_000, 0);
        fs_err::write(path, &bytes).unwrap();
        lengths.push(bytes.len() as u64);
    }
    let image = loaded_image(&*engine().await).await;
    let same = format!("{PROJECT}/same");
    let steps = vec![
        unpack_input(lengths[0]),
        step(&["cat", &same]),
        step(&["cat", "/proc/self/fd/0"]),
        unpack_input(lengths[1]),
        step(&["cat", &same]),
        Step::SendFile { path: format!("{PROJECT}/large-1"), max_bytes: MIB },
    ];
    let run = attempt_with(&spec(image, steps), &paths.each_ref().map(|path| path.as_path())).await.unwrap();
    run.assert_completed();
    assert_eq!([1, 2, 4].map(|index| run.stdout(index)), ["0", "", "1"]);
    assert_eq!(*run.step(5).content.bytes().unwrap(), [b'1'; 300_000]);
}

async fn archives_that_end_early_or_do_not_fit_have_their_cause() {
    let directory = directory();
    let path = directory.path().join("0.tar");
    let device = archive(|tar| {
        entry(tar, "device", tar::EntryType::Char, 0o644, b"");
        entry(tar, "unwanted", tar::EntryType::Regular, 0o644, &vec![7; 8 << 20]);
    });
    fs_err::write(&path, &device).unwrap();
    let image = loaded_image(&*engine().await).await;
    let run = attempt_with(&spec(image, vec![unpack_input(device.len() as u64)]), &[&path]).await.unwrap();
    assert!(matches!(run.run.end, RunEnd::Program(ProgramEnd::Stopped { step: 0 })), "{:?}", run.run.end);
    let StepResult::Failed { error, .. } = run.result(0) else { panic!("{:?}", run.result(0)) };
    assert!(error.contains("`device` is of kind Char"), "{error}");
    let required = Command { required: true, ..command(&["exit", "3"]) };
    let steps = vec![Step::Run(required), unpack_input(device.len() as u64)];
    let run = attempt_with(&spec(image, steps), &[&path]).await.unwrap();
    assert!(matches!(run.run.end, RunEnd::Program(ProgramEnd::Stopped { step: 0 })), "{:?}", run.run.end);
    let plain = archive(|tar| entry(tar, "plain", tar::EntryType::Regular, 0o644, b"x"));
    for there in [&plain[..], &plain[..100]] {
        fs_err::write(&path, there).unwrap();
        let steps = vec![step(&["say", "x"]), unpack_input(there.len() as u64 + 1)];
        let error = attempt_with(&spec(image, steps), &[&path]).await.err().unwrap().to_string();
        assert!(error.contains("0.tar`, an archive for a container, could not be read"), "{error}");
    }
}
