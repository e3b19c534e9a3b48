//! The miniatures below `tests/miniature`: one directory per repository, one archive per task.

use std::path::Path;

use testevo_sandbox::sample::SampleRepository;

/// Returns the names of all sample repositories of the tests, sorted.
pub(crate) fn names() -> Vec<String> {
    let mut names: Vec<String> = fs_err::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("repository.txtar").is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Returns a sample repository by its directory's name; its miniatures are in the order of their files' names,
/// whose leading numbers are for that alone.
pub(crate) fn load(name: &str) -> SampleRepository {
    let directory = root().join(name);
    let mut miniatures = Vec::new();
    for entry in fs_err::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if stem != "repository" {
            miniatures.push((stem, fs_err::read_to_string(&path).unwrap()));
        }
    }
    miniatures.sort();
    let borrowed: Vec<(&str, &str)> = miniatures.iter().map(|(stem, text)| (stem.as_str(), text.as_str())).collect();
    let repository = fs_err::read_to_string(directory.join("repository.txtar")).unwrap();
    SampleRepository::parse(&repository, &borrowed).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Returns some of a sample repository's miniatures as a repository of another name, so that a test waits for no other one
/// and locks no more than it needs.
pub(crate) fn part(of: &str, name: &str, miniatures: &[&str]) -> SampleRepository {
    let mut repository = load(of);
    repository.name = format!("testevo/{name}").parse().unwrap();
    repository.miniatures.retain(|miniature| miniatures.contains(&&*miniature.name));
    assert_eq!(repository.miniatures.len(), miniatures.len(), "{of}: {miniatures:?}");
    repository
}

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/miniature")
}
