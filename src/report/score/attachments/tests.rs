use std::os::unix::fs::symlink;

use fs_err as fs;

use super::*;

fn read(attachment: Attachment<'_>) -> Option<Attached> {
    let mut found = None;
    let mut attachments = Attachments::default();
    assert_eq!(attachments.number(attachment.clone()), 0);
    assert_eq!(attachments.number(attachment), 0, "the same attachment has one number");
    let take = |_, attached: &Attached| {
        found = Some(match attached {
            Attached::Lines(lines) => Attached::Lines(lines.clone()),
            Attached::Logs(logs) => {
                Attached::Logs(logs.iter().map(|log| Log { name: log.name.clone(), text: log.text.clone() }).collect())
            }
        });
        Ok(())
    };
    attachments.read(take).unwrap();
    found
}

#[test]
fn files_stand_against_their_beginning() {
    let directory = tempfile::tempdir().unwrap();
    let run = directory.path();
    fs::create_dir(run.join(SUBMISSIONS)).unwrap();
    let keep = |text: &[u8]| {
        let digest = Digest::of(text);
        fs::write(run.join(SUBMISSIONS).join(file_name(digest)), text).unwrap();
        digest
    };
    let (start, file) = (keep(b"a\nb\n"), keep(b"a\nc\xff"));
    let lines = |lines: &[&str]| Some(Attached::Lines(lines.iter().map(|line| (*line).to_owned()).collect()));
    let test = |start, file| read(Attachment::Test { run, start, file });
    assert_eq!(test(Some(start), file), lines(&[" a", "-b", "+c\u{fffd}"]));
    assert_eq!(test(None, start), lines(&["+a", "+b"]));
    assert_eq!(test(Some(start), start), lines(&[" a", " b"]));
    assert_eq!(test(Some(Digest::of(b"gone")), start), lines(&["+a", "+b"]));
    assert_eq!(test(Some(start), Digest::of(b"gone")), None);
    assert_eq!(test(None, keep(&vec![b'x'; 300 << 10])), None, "too large");
}

#[test]
fn what_is_escaped_counts_as_it_is_written() {
    assert_eq!(Attached::Lines(vec!["a<\u{1}".to_owned()]).bytes(), 3 + 10 + 3);
}

#[test]
fn logs_are_shown_in_part_and_links_not_at_all() {
    let directory = tempfile::tempdir().unwrap();
    let run = directory.path();
    let cell = run.join("logs/m/t/nn");
    fs::create_dir_all(&cell).unwrap();
    fs::write(run.join("secret"), "secret").unwrap();
    fs::write(cell.join("m-1-1.stdout"), [&b"begin\xff"[..], &[b'x'; 100_000], b"end"].concat()).unwrap();
    fs::write(cell.join("m-1-1.command.json"), "{}").unwrap();
    symlink(run.join("secret"), cell.join("m-1-2.stdout")).unwrap();
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(CWD, cell.join("m-1-3.stdout"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
    symlink(&cell, run.join("logs/m/t/no")).unwrap();
    let Some(Attached::Logs(logs)) = read(Attachment::Logs { run, directory: "m/t/nn".to_owned() }) else {
        panic!("there are logs")
    };
    let [command, log] = logs.as_slice() else { panic!("{logs:?}") };
    assert_eq!((command.name.as_str(), command.text.as_str()), ("m-1-1.command.json", "{}"));
    assert!(log.name == "m-1-1.stdout" && log.text.len() < 9000, "{}", log.text.len());
    assert!(log.text.starts_with("begin\u{fffd}x") && log.text.ends_with("xend"));
    assert_eq!(read(Attachment::Logs { run, directory: "m/t/no".to_owned() }), None);
    assert_eq!(read(Attachment::Logs { run, directory: "m/u/nn".to_owned() }), None);
}
