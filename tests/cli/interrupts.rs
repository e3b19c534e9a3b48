//! Interrupts while something else is waited for: the command ends at once, and what it started ends with it.

use std::io::Read as _;
use std::net::TcpListener;
use std::process::Child;

use testevo_sandbox::data_dir::DataDir;

use super::failures::{BUILD, locked, stored};
use super::lock::{MIRROR, imported};
use crate::support::command::CommandLine;
use crate::support::waiting::{PATIENCE, wait_until};

/// Interrupts the program and returns its exit code.
fn interrupted(mut child: Child) -> Option<i32> {
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    wait_until("its end", || child.try_wait().unwrap()).code()
}

#[test]
fn who_waits_for_another_process_can_be_interrupted() {
    // Who locks looks for sources first.
    let (line, sample, lock) = (locked(), imported(), ["lock", MIRROR[0], MIRROR[1]]);
    stored(&line);
    for (line, name, waiting, arguments) in [
        (&sample, "lock-toolchain", "which holds lock-toolchain", &lock[..]),
        (&line, "images", "which builds images", &BUILD[..]),
        (&line, "prove-first__one", "which holds prove-first__one", &BUILD[..]),
    ] {
        let data_dir = DataDir::open(&line.path().join("data")).unwrap();
        let held = data_dir.lock(name, |_| panic!("nobody has it")).unwrap();
        let (child, mut said) = line.start_telling(arguments);
        let told = said.find(|line| line.contains("waiting for"));
        let own = format!("waiting for process {}, {waiting}", std::process::id());
        assert_eq!(told, Some(own), "{name}");
        assert_eq!(interrupted(child), Some(130), "{name}");
        drop(held);
    }
    // Nobody holds anything any more.
    assert!(line.run(&BUILD).starts_with("exit 0\n"));
}

#[test]
fn git_ends_with_the_command_that_fetches() {
    let line = CommandLine::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("git://{}/first/one.git", listener.local_addr().unwrap());
    super::import::write_published(&line);
    let path = line.path().join("published/first.json");
    let text = fs_err::read_to_string(&path).unwrap();
    line.write("published/first.json", &text.replace("https://github.com/first/one.git", &url));
    assert!(line.run(&["import", "published"]).starts_with("exit 0\n"));
    let child = line.start(&["lock", "first/one", "--check"]);
    // It is asked and says nothing, for as long as git likes to wait.
    let (mut asked, _) = listener.accept().unwrap();
    asked.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut request = Vec::new();
    while !String::from_utf8_lossy(&request).contains("first/one.git") {
        let mut more = [0; 512];
        let count = asked.read(&mut more).unwrap();
        assert_ne!(count, 0, "it went before it had asked: {request:?}");
        request.extend(&more[..count]);
    }
    assert_eq!(interrupted(child), Some(130));
    // The end of what git asks: it is gone.
    asked.read_to_end(&mut request).unwrap();
    let text = line.run(&["lock", "first/one", "--check", "--offline"]);
    assert!(text.starts_with("exit 5\n") && text.contains("nothing may be fetched offline"), "{text}");
    let is_left = |file: &String| file.contains("/tmp_") || file.ends_with(".lock");
    assert_eq!(line.files().into_iter().filter(is_left).collect::<Vec<_>>(), Vec::<String>::new());
}
