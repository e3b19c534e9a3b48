use super::*;
use crate::artifact::store::Store;

fn read(bytes: &[u8]) -> Result<Vec<String>, ImageError> {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
    let mut spool = SpoolWriter::new(&store).unwrap();
    let entries = read_tar(&mut &bytes[..], "x.tar", &mut spool, &|path| Ok(Some(path.clone())))?;
    Ok(entries.into_iter().map(|placed| placed.path.to_string()).collect())
}

fn header(path: &str, kind: tar::EntryType, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

fn archive(members: &[(tar::Header, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (header, content) in members {
        builder.append(header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn long_names_and_hard_links_are_understood() {
    let long = format!("./{}", "n".repeat(150));
    let mut link = header("./b", tar::EntryType::Link, 0);
    link.set_link_name("./a").unwrap();
    link.set_cksum();
    let bytes = archive(&[
        (header("./", tar::EntryType::Directory, 0), b""),
        (header("././@LongLink", tar::EntryType::GNULongName, long.len() as u64), long.as_bytes()),
        (header("./nnn", tar::EntryType::Regular, 1), b"1"),
        (header("./a", tar::EntryType::Regular, 1), b"2"),
        (link, b""),
    ]);
    assert_eq!(read(&bytes).unwrap(), [&long[2..], "a", "b"]);
}

#[test]
fn hostile_members_are_refused() {
    let huge = vec![b'n'; 70_000];
    for (what, member, content) in [
        ("parent", header("../x", tar::EntryType::Regular, 0), &b""[..]),
        ("absolute", header("/etc/x", tar::EntryType::Regular, 0), b""),
        ("device", header("./dev", tar::EntryType::Char, 0), b""),
        ("pipe", header("./pipe", tar::EntryType::Fifo, 0), b""),
        ("dangling hard link", header("./x", tar::EntryType::Link, 0), b""),
        ("long name", header("././@LongLink", tar::EntryType::GNULongName, 70_000), &huge),
        ("not UTF-8", header("././@LongLink", tar::EntryType::GNULongName, 1), b"\xff"),
    ] {
        let next = (header("./next", tar::EntryType::Regular, 0), &b""[..]);
        assert!(matches!(read(&archive(&[(member, content), next])), Err(ImageError::Archive { .. })), "{what}");
    }
}
