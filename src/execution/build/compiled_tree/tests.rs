use super::*;

fn tree(entries: &[(&str, &[u8])]) -> (tempfile::TempDir, CompiledTree) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tree.tar");
    let mut builder = tar::Builder::new(fs::File::create(&path).unwrap());
    for (path, content) in entries {
        let mut header = tar::Header::new_gnu();
        let is_directory = path.ends_with('/');
        header.set_entry_type(if is_directory { tar::EntryType::Directory } else { tar::EntryType::Regular });
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, *content).unwrap();
    }
    builder.into_inner().unwrap();
    let tree = CompiledTree::open(&path).unwrap();
    (directory, tree)
}

#[test]
fn an_archive_loses_what_is_masked_and_nothing_else() {
    let long = format!("{}/File.java", "directory".repeat(20));
    let entries: Vec<(&str, &[u8])> =
        vec![("a/", b""), ("a/A.java", b"one"), (&long, b"two"), ("a/B.java", &[7; 1500]), ("c", b"")];
    let (directory, tree) = tree(&entries);
    assert_eq!(tree.read(tree.file(&long).unwrap()).unwrap(), b"two");
    assert_eq!(tree.files_below("a").map(|(path, _)| path).collect::<Vec<_>>(), ["A.java", "B.java"]);
    for masked in entries.iter().map(|(path, _)| path.trim_end_matches('/')) {
        let path = directory.path().join("masked.tar");
        tree.write_without(|path| path == masked, &mut fs::File::create(&path).unwrap()).unwrap();
        let left = CompiledTree::open(&path).unwrap();
        let expected: Vec<&str> =
            entries.iter().map(|(path, _)| path.trim_end_matches('/')).filter(|path| *path != masked).collect();
        let mut found: Vec<&str> = left.entries.keys().map(String::as_str).collect();
        found.sort_by_key(|path| left.entries[*path].start);
        assert_eq!(found, expected, "without {masked}");
        for (path, content) in &entries {
            if let Some(place) = left.file(path) {
                assert_eq!(left.read(place).unwrap(), *content);
            }
        }
    }
}

#[test]
fn what_is_too_large_is_told_from_what_is_broken() {
    let (directory, tree) = tree(&[("t/A.class", b"abc"), ("t/B.class", b"def"), ("u/C.class", b"g")]);
    let path = directory.path().join("tree.tar");
    assert!(CompiledTree::open_of(&path, 3).is_ok());
    assert!(
        matches!(CompiledTree::open_of(&path, 2), Err(TreeError::TooLarge(reason)) if reason.contains("2 entries"))
    );
    let jar = |most| tree.write_jar_of("t", |_| false, io::Cursor::new(Vec::new()), most);
    assert!(jar(6).is_ok());
    assert!(matches!(jar(5), Err(TreeError::TooLarge(reason)) if reason.contains("`t`")));
    let huge = Place { length: MOST_READ_BYTES + 1, ..tree.file("t/A.class").unwrap() };
    assert!(matches!(tree.read(huge), Err(TreeError::TooLarge(_))));
    let place = tree.file("t/B.class").unwrap();
    let held = |content: &[u8]| tree.holds(place, content).unwrap();
    assert_eq!([&b"def"[..], b"dex", b"de", b"defg"].map(held), [true, false, false, false]);
    assert_eq!(tree.copy(huge, &mut io::sink()).unwrap_err().kind(), io::ErrorKind::InvalidData, "it ends early");
    fs::write(&path, [7; 700]).unwrap();
    assert!(matches!(CompiledTree::open(&path), Err(TreeError::Io(_))));
}

#[test]
fn a_part_becomes_a_jar() {
    let (_directory, tree) = tree(&[("t/p/A.class", b"a"), ("t/p/B.class", b"b"), ("tt/x", b"x")]);
    let jar = tree.write_jar("t", |path| path == "t/p/A.class", io::Cursor::new(Vec::new())).unwrap();
    let mut archive = zip::ZipArchive::new(jar).unwrap();
    assert_eq!(archive.len(), 1);
    let mut content = String::new();
    archive.by_name("p/B.class").unwrap().read_to_string(&mut content).unwrap();
    assert_eq!(content, "b");
    let empty = tree.write_jar("absent", |_| false, io::Cursor::new(Vec::new())).unwrap();
    assert_eq!(zip::ZipArchive::new(empty).unwrap().len(), 0);
}
