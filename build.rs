//! Makes the identity of executions: a digest of everything in this program that decides what an execution does. It stands in the
//! keys of prepared revisions, class archives and results, so that they outlive a build that changes something else.
//!
//! `execution-sources.txt` lists what decides: files and directories of the source tree, and crates. The digest is of their bytes
//! below their names, and of the locked crates with all that they need; it is equal in any clone. A test sees to it that no
//! listed file uses an unlisted one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fs_err as fs;
use sha2::{Digest as _, Sha256};

const LIST: &str = "execution-sources.txt";
const TESTS: &[u8] = b"#[cfg(test)]\nmod tests";

fn main() {
    let list = read(Path::new(LIST));
    let (mut files, mut excluded, mut crates) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for line in list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if !line.starts_with("crate ") {
            println!("cargo::rerun-if-changed={}", line.trim_start_matches('!'));
        }
        match (line.strip_prefix('!'), line.strip_prefix("crate ")) {
            (Some(path), _) => collect(Path::new(path), &mut excluded),
            (_, Some(name)) => drop(crates.insert(name.to_owned())),
            (None, None) => collect(Path::new(line), &mut files),
        }
    }
    println!("cargo::rerun-if-changed={LIST}");
    println!("cargo::rerun-if-changed=Cargo.lock");
    println!("cargo::rerun-if-changed=Cargo.toml");
    let mut hasher = Sha256::new();
    let mut add = |name: &str, content: &[u8]| {
        for part in [name.as_bytes(), content] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
    };
    for path in files.difference(&excluded) {
        let content = fs::read(path).unwrap_or_else(|error| panic!("{error}"));
        // Tests decide nothing. No code stands behind a file's module of tests, which a lint sees to.
        let end = content.windows(TESTS.len()).position(|window| window == TESTS).unwrap_or(content.len());
        if !is_test(path) {
            add(&path.display().to_string(), &content[..end]);
        }
    }
    // Features of the listed crates.
    for line in read(Path::new("Cargo.toml")).lines() {
        if line.split_once(" = ").is_some_and(|(name, _)| crates.contains(name)) {
            add("Cargo.toml", line.as_bytes());
        }
    }
    for (name, version) in locked(&read(Path::new("Cargo.lock")), crates) {
        add(&name, version.as_bytes());
    }
    let identity: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=TESTEVO_EXECUTION_IDENTITY={identity}");
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{error}"))
}

fn is_test(path: &Path) -> bool {
    path.iter().any(|part| part == "tests" || part == "tests.rs")
}

fn collect(path: &Path, found: &mut BTreeSet<PathBuf>) {
    if !path.is_dir() {
        assert!(path.is_file(), "{LIST} names {}, which is not there", path.display());
        // What explains decides nothing.
        if path.extension().is_none_or(|extension| extension != "md") {
            found.insert(path.to_owned());
        }
        return;
    }
    for entry in fs::read_dir(path).unwrap_or_else(|error| panic!("{error}")) {
        let entry = entry.unwrap_or_else(|error| panic!("{error}"));
        collect(&entry.path(), found);
    }
}

/// Returns crates by name and version, with all that they need, each with what else the lock says of it.
fn locked(lock: &str, wanted: BTreeSet<String>) -> BTreeMap<String, String> {
    let mut packages: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let name = package.lines().find_map(|line| line.strip_prefix("name = "));
        packages.entry(name.unwrap_or_default().trim_matches('"')).or_default().push(package);
    }
    let (mut left, mut found): (Vec<String>, BTreeMap<String, String>) =
        (wanted.into_iter().collect(), BTreeMap::new());
    while let Some(name) = left.pop() {
        let versions =
            packages.get(name.as_str()).unwrap_or_else(|| panic!("{LIST} names the crate {name}, which is not locked"));
        for package in versions {
            let facts: String = package.lines().take_while(|line| !line.starts_with("dependencies")).collect();
            if found.insert(format!("{name} {facts}"), facts).is_none() {
                let needed = package.lines().skip_while(|line| !line.starts_with("dependencies")).skip(1);
                let needed = needed.take_while(|line| *line != "]").map(|line| line.trim().trim_matches([',', '"']));
                left.extend(needed.filter_map(|one| one.split(' ').next()).map(str::to_owned));
            }
        }
    }
    found
}
