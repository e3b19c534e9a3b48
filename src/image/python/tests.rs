use super::*;
use crate::artifact::store::Store;
use std::io::{Cursor, Write as _};

fn read(bytes: Vec<u8>, name: &str) -> Result<Vec<String>, ImageError> {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
    let mut spool = SpoolWriter::new(&store).unwrap();
    let into = "opt/python".parse().unwrap();
    let entries = read_distribution(Cursor::new(bytes), name, &into, &mut spool)?;
    Ok(entries.into_iter().map(|placed| placed.path.to_string()).collect())
}

fn wheel(names: &[&str]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for name in names {
        writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(b"x").unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn source_archive(names: &[&str]) -> Vec<u8> {
    let mut builder = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for name in names {
        let mut header = tar::Header::new_gnu();
        header.set_size(1);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, &b"x"[..]).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

#[test]
fn wheels_are_unpacked_with_their_data_directories() {
    let bytes = wheel(&["m/__init__.py", "m-1.dist-info/METADATA", "m-1.data/purelib/p.py", "m-1.data/scripts/m"]);
    let expected = ["opt/python/m/__init__.py", "opt/python/m-1.dist-info/METADATA", "opt/python/p.py"];
    assert_eq!(read(bytes, "m.whl").unwrap(), expected);
    assert!(read(wheel(&["../m.py"]), "m.whl").is_err());
    assert!(read(b"no zip".to_vec(), "m.whl").is_err());
    assert!(read(Vec::new(), "m.egg").is_err());
}

#[test]
fn source_archives_give_packages_and_modules() {
    let bytes = source_archive(&["t-1/setup.py", "t-1/src/typing.py", "t-1/python2/typing.py", "t-1/README"]);
    assert_eq!(read(bytes, "t.tar.gz").unwrap(), ["opt/python/typing.py"]);
    let bytes = source_archive(&["c-1/setup.py", "c-1/comby/__init__.py", "c-1/comby/a/b.py", "c-1/docs/x.py"]);
    assert_eq!(read(bytes, "c.tar.gz").unwrap(), ["opt/python/comby/__init__.py", "opt/python/comby/a/b.py"]);
    assert!(read(source_archive(&["c-1/setup.py"]), "c.tar.gz").is_err());
}
