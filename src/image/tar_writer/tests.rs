use super::*;
use std::io::Read as _;

#[test]
fn another_reader_understands_every_name() {
    let attributes = Attributes { mode: 0o644, uid: 1000, gid: 7, mtime: 1_735_689_600 };
    let long_part = "p".repeat(120);
    let names = [
        "a".to_owned(),
        format!("{}/{}", "d".repeat(90), "f".repeat(60)),
        format!("{long_part}/{long_part}/{long_part}"),
        "Főtanúsítvány.crt".to_owned(),
        "x".repeat(100),
        "x".repeat(101),
    ];
    let mut writer = TarWriter::new(Vec::new());
    for name in &names {
        writer.file(name, attributes, b"content").unwrap();
        writer.header(&format!("{name}.d"), attributes, Kind::Directory).unwrap();
        writer.header(&format!("{name}.l"), attributes, Kind::Symlink(name)).unwrap();
    }
    let bytes = writer.finish().unwrap();
    let mut archive = tar::Archive::new(bytes.as_slice());
    let mut members = archive.entries().unwrap();
    for name in &names {
        let mut file = members.next().unwrap().unwrap();
        assert_eq!(file.path_bytes(), name.as_bytes());
        assert_eq!((file.header().uid().unwrap(), file.header().mtime().unwrap()), (1000, 1_735_689_600));
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "content");
        let directory = members.next().unwrap().unwrap();
        assert_eq!(directory.path_bytes(), format!("{name}.d/").as_bytes());
        let link = members.next().unwrap().unwrap();
        assert_eq!(link.link_name_bytes().unwrap(), name.as_bytes());
    }
    assert!(members.next().is_none());
}

#[test]
fn pax_records_count_themselves() {
    assert_eq!(pax_record("path", "a"), b"9 path=a\n");
    for length in [1, 88, 89, 90, 91, 92, 985, 986, 990] {
        let record = pax_record("path", &"x".repeat(length));
        let said: usize = std::str::from_utf8(&record).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert_eq!(said, record.len());
    }
}
