//! What decides executions is listed whole, so that no key forgets it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::support::imports::{crates, sources, used};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What `execution-sources.txt` lists.
struct Listed {
    files: Vec<String>,
    excluded: Vec<String>,
    crates: BTreeSet<String>,
}

impl Listed {
    fn read() -> Self {
        let mut listed = Self { files: Vec::new(), excluded: Vec::new(), crates: BTreeSet::new() };
        let text = fs::read_to_string(root().join("execution-sources.txt")).unwrap();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match (line.strip_prefix('!'), line.strip_prefix("crate ")) {
                (Some(path), _) => listed.excluded.push(path.to_owned()),
                (_, Some(name)) => drop(listed.crates.insert(name.to_owned())),
                (None, None) => listed.files.push(line.to_owned()),
            }
        }
        listed
    }

    fn has(&self, file: &Path) -> bool {
        let is_in = |paths: &[String]| paths.iter().any(|path| file.starts_with(path));
        is_in(&self.files) && !is_in(&self.excluded)
    }
}

fn is_test(file: &Path) -> bool {
    file.iter().any(|part| part == "tests" || part == "tests.rs") || is_of_tests_alone(file)
}

/// Tells whether a file is a module that is compiled for tests alone.
fn is_of_tests_alone(file: &Path) -> bool {
    let (Some(directory), Some(name)) = (file.parent(), file.file_stem().and_then(|name| name.to_str())) else {
        return false;
    };
    let parents = [directory.join("mod.rs"), directory.join("lib.rs"), directory.with_extension("rs")];
    let texts = parents.iter().filter_map(|parent| fs::read_to_string(root().join(parent)).ok());
    let declared = ["mod", "pub mod", "pub(crate) mod"].map(|kind| format!("#[cfg(test)]\n{kind} {name};"));
    texts.into_iter().any(|text| declared.iter().any(|declared| text.contains(declared)))
}

/// Returns what listed files use that is not listed.
fn unlisted(listed: &Listed) -> BTreeSet<(PathBuf, PathBuf)> {
    let all = sources(root());
    let files = all.iter().filter(|file| listed.has(file) && !is_test(file));
    let of = |file: &PathBuf| -> Vec<(PathBuf, PathBuf)> {
        let used = used(root(), &all, file).into_iter();
        used.filter(|used| !listed.has(used) && !is_test(used)).map(|used| (file.clone(), used)).collect()
    };
    files.flat_map(of).collect()
}

#[test]
fn a_listed_file_uses_listed_ones_alone() {
    let mut listed = Listed::read();
    assert_eq!(unlisted(&listed), BTreeSet::new());
    // And it is seen where one does not: builds are made by Maven.
    listed.excluded.push("src/execution/build/maven.rs".to_owned());
    let found = unlisted(&listed);
    assert!(found.iter().any(|(file, used)| file.ends_with("build.rs") && used.ends_with("maven.rs")), "{found:?}");
}

#[test]
fn every_crate_of_a_listed_file_is_listed() {
    let listed = Listed::read();
    let manifest: toml::Table = fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let known: BTreeSet<String> = manifest["dependencies"].as_table().unwrap().keys().cloned().collect();
    let mut used = BTreeSet::new();
    for file in sources(root()).iter().filter(|file| listed.has(file) && !is_test(file)) {
        let text = fs::read_to_string(root().join(file)).unwrap();
        used.extend(crates(&text, &known).into_iter().map(str::to_owned));
    }
    assert_eq!(used, listed.crates);
}

#[test]
fn what_is_compiled_for_tests_alone_decides_no_execution() {
    let listed = Listed::read();
    let of_tests = sources(root()).into_iter().filter(|file| is_of_tests_alone(file));
    let of_tests: Vec<PathBuf> = of_tests.filter(|file| !file.ends_with("tests.rs")).collect();
    assert!(of_tests.iter().any(|file| file.ends_with("engine/scripted.rs")), "{of_tests:?}");
    let counted: Vec<&PathBuf> = of_tests.iter().filter(|file| listed.has(file)).collect();
    assert!(counted.is_empty(), "{counted:?}");
}

#[test]
fn what_people_read_decides_no_execution() {
    let listed = Listed::read();
    for file in ["src/cli/mod.rs", "src/report/mod.rs", "src/error/command.rs", "src/doctor/mod.rs", "src/lock/mod.rs"]
    {
        assert!(root().join(file).is_file() && !listed.has(Path::new(file)), "{file}");
    }
    for file in [
        "src/engine/init/mod.rs",
        "src/execution/build/maven.rs",
        "src/execution/launch/program.rs",
        "src/outcome/launch.rs",
    ] {
        assert!(root().join(file).is_file() && listed.has(Path::new(file)), "{file}");
    }
    assert!(listed.files.iter().any(|path| path == "images"));
}
