//! The talk with a scripted relay.

use std::path::Path;

use super::*;
use crate::digest::Digest;
use crate::engine::Engine;
use crate::engine::frame::Frame;
use crate::engine::scripted::{Said, Scripted, exited, output, step_end};
use crate::engine::spec::Stream;
use crate::image::Image;
use crate::manifest::Limits;

fn frame(kind: u8, bytes: &[u8]) -> Vec<u8> {
    [&[kind][..], &u32::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

fn said(frames: &[(u8, &[u8])]) -> Vec<Frame> {
    let bytes: Vec<u8> = frames.iter().flat_map(|(kind, bytes)| frame(*kind, bytes)).collect();
    output(1, Stream::Events, &bytes)
}

/// Takes frames apart.
fn frames_in(mut bytes: &[u8]) -> Vec<(u8, &[u8])> {
    let mut frames = Vec::new();
    while let [kind, a, b, c, d, rest @ ..] = bytes {
        let (data, rest) = rest.split_at(u32::from_be_bytes([*a, *b, *c, *d]) as usize);
        frames.push((*kind, data));
        bytes = rest;
    }
    frames
}

/// Runs the relay on this machine. The file `input` has what the host says. Returns what the relay says.
fn relay(mode: [&str; 2], target: &Path, input: &Path) -> Vec<u8> {
    let mut relay = std::process::Command::new("sh");
    relay.args(["-c", "exec python3 -c \"$0\" \"$@\" 3>&1 >&2", RELAY]).args(mode).arg(target).arg("100");
    relay.stdin(fs_err::File::open(input).unwrap().into_parts().0).env("HOME", target.parent().unwrap());
    let output = relay.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

#[test]
fn a_process_in_the_background_holds_no_script() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs_err::write(path("target"), "class A {}").unwrap();
    // The process has the script's output open, and is still there when the relay has ended.
    fs_err::write(path("script"), "sleep 300 &\necho $!\nexit 3\n").unwrap();
    let said = relay(["script", path("script").to_str().unwrap()], &path("target"), Path::new("/dev/null"));
    let frames = frames_in(&said);
    let [(b'r', b""), (b'o', process), left @ ..] = &frames[..] else { panic!("{frames:?}") };
    let process = std::str::from_utf8(process).unwrap().trim();
    assert!(std::process::Command::new("kill").arg(process).status().unwrap().success());
    assert_eq!(*left, [(b't', &b"class A {}"[..]), (b'x', b"3")]);

    // One that goes on writing holds the script no longer, and what the script itself wrote arrives whole.
    fs_err::write(path("script"), "head -c 300000 /dev/zero\nyes >&2 &\nexit 4\n").unwrap();
    let said = relay(["script", path("script").to_str().unwrap()], &path("none"), Path::new("/dev/null"));
    let frames = frames_in(&said);
    let output: usize = frames.iter().filter(|(kind, _)| *kind == b'o').map(|(_, data)| data.len()).sum();
    assert_eq!(output, 300_000);
    assert_eq!(frames[frames.len() - 2..], [(b'n', &b""[..]), (b'x', b"4")]);
}

#[test]
fn a_terminal_ends_with_its_shell() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs_err::write(path("input"), frame(b'i', b"sleep 1 & exit 4\n")).unwrap();
    let said = relay(["terminal", "24x80"], &path("none"), &path("input"));
    let frames = frames_in(&said);
    assert!(frames.iter().any(|(kind, _)| *kind == b'o'), "{frames:?}");
    assert_eq!(frames[frames.len() - 2..], [(b'n', &b""[..]), (b'x', b"4")]);
}

async fn talk(frames: Vec<Frame>, session: Session) -> (Result<Left, CommandError>, Vec<(Output, Vec<u8>)>, Vec<u8>) {
    let engine = Scripted::new(move |_, _| Said { frames: frames.clone(), ends: true });
    let target = Target { task: "task-1".parse().unwrap(), file: "src/test/java/p/ATest.java".parse().unwrap() };
    let image =
        Image { config_digest: Digest::of(b"image"), manifest_digest: Digest::of(b"manifest"), layers: Vec::new() };
    let (repository, archive) = ("a/b".parse().unwrap(), PathBuf::from("/x.tar"));
    let opening = Opening { target, repository, image, jdk: 8, limits: Limits::default(), archive };
    let spec = container(&opening, &session);
    let mut written = Vec::new();
    let conversation = Conversation::open(&engine as &dyn Engine, &spec).await.unwrap();
    let write = |output, bytes: &[u8]| {
        written.push((output, bytes.to_vec()));
        Ok(())
    };
    let left = Talk { conversation, write }.hold(session).await;
    (left, written, engine.heard())
}

#[tokio::test]
async fn a_script_writes_and_leaves_the_target_file() {
    let frames = said(&[(b'r', b""), (b'o', b"out\n"), (b'e', b"err\n"), (b't', b"class A {}"), (b'x', b"3")]);
    let (left, written, heard) = talk(frames, Session::Script("exit 3".to_owned())).await;
    let left = left.unwrap();
    assert!(matches!(left, Left { status: 3, file: LeftFile::Bytes(bytes) } if bytes == b"class A {}"));
    assert_eq!(written, [(Output::Standard, b"out\n".to_vec()), (Output::Error, b"err\n".to_vec())]);
    let program = String::from_utf8(heard).unwrap();
    assert!(program.contains("exit 3") && program.contains("/work/project/src/test/java/p/ATest.java"));
}

#[tokio::test]
async fn a_terminal_is_taken_over_once_the_shell_is_there() {
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    sender.send(Typed::Bytes(b"ls\r".to_vec())).unwrap();
    sender.send(Typed::Size(24, 300)).unwrap();
    drop(sender);
    let begin: Begin = Box::new(|| Ok(receiver));
    let session = Session::Terminal { size: (24, 80), kind: "strange".to_owned(), begin };
    let (left, _, heard) = talk(said(&[(b'r', b"")]), session).await;
    assert!(left.is_err(), "a container that ends without a word is lost");
    let heard = String::from_utf8_lossy(&heard).into_owned();
    let (program, typed) = heard.split_once('\n').unwrap();
    assert!(program.contains("24x80") && program.contains("xterm-256color") && !program.contains("strange"));
    assert_eq!(typed.as_bytes(), [frame(b'i', b"ls\r"), frame(b'w', &[0, 24, 1, 44])].concat());

    let begin: Begin = Box::new(|| panic!("there is no shell yet"));
    let session = Session::Terminal { size: (24, 80), kind: String::new(), begin };
    let frames = vec![step_end(0, exited(1))];
    assert!(talk(frames, session).await.0.is_err());
}

#[tokio::test]
async fn what_the_relay_would_not_say_is_refused() {
    let long = u32::MAX.to_be_bytes();
    let frames =
        [said(&[(b'q', b"")]), said(&[(b'x', b"one")]), output(1, Stream::Events, &[&b"o"[..], &long].concat())];
    for frames in frames {
        let error = talk(frames, Session::Script(String::new())).await.0.err().unwrap();
        assert!(matches!(error.failure::<ShellError>(), Some(ShellError::Garbled)), "{error}");
    }
    for (reason, expected) in [(&b""[..], None), (b"it is no \x1b[31mfile", Some("\\u{1b}"))] {
        let frames = said(&[(b'n', reason), (b'x', b"0")]);
        let left = talk(frames, Session::Script(String::new())).await.0.unwrap();
        match (left.file, expected) {
            (LeftFile::Absent, None) => {}
            (LeftFile::Unusable(reason), Some(escaped)) => assert!(reason.contains(escaped), "{reason}"),
            _ => panic!("{expected:?}"),
        }
    }
}
