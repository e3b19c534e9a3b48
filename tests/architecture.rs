//! What ARCHITECTURE.md says of the code holds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::support::imports::sources;

/// Imports against the order, which ARCHITECTURE.md names.
const EXCEPTIONS: [(&str, &str); 3] = [("data_dir", "artifact"), ("artifact", "lock"), ("artifact", "image")];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the modules of the sentence on imports, each with its place in the order.
fn order(text: &str) -> BTreeMap<String, usize> {
    let (_, rest) = text.split_once("Imports point one way: `").unwrap();
    let (order, _) = rest.split_once('`').unwrap();
    let levels = order.split('→').enumerate();
    levels.flat_map(|(level, names)| names.split(',').map(move |name| (name.trim().to_owned(), level))).collect()
}

/// Returns the top-level modules, each with its files.
fn modules() -> BTreeMap<String, Vec<PathBuf>> {
    let mut modules: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for file in sources(root()) {
        let name = file.iter().nth(1).unwrap().to_str().unwrap();
        modules.entry(name.trim_end_matches(".rs").to_owned()).or_default().push(root().join(&file));
    }
    for of_the_crate in ["lib", "main"] {
        modules.remove(of_the_crate).unwrap();
    }
    modules
}

/// Returns the modules that a text names as `crate::module`.
fn imports(text: &str) -> BTreeSet<String> {
    assert!(!text.contains("crate::{"), "modules of the crate are named one by one, or they can't be found here");
    let name = |rest: &str| rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect::<String>();
    text.split("crate::").skip(1).map(name).filter(|name| !name.is_empty()).collect()
}

#[test]
fn imports_point_one_way() {
    let order = order(&fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap());
    let modules = modules();
    assert_eq!(modules.keys().collect::<Vec<_>>(), order.keys().collect::<Vec<_>>());
    let mut against = BTreeSet::new();
    for (module, files) in &modules {
        for file in files {
            for imported in imports(&fs::read_to_string(file).unwrap()) {
                if imported != *module && order[&imported] <= order[module] {
                    against.insert((module.clone(), imported));
                }
            }
        }
    }
    let exceptions = EXCEPTIONS.map(|(module, imported)| (module.to_owned(), imported.to_owned()));
    assert_eq!(against, BTreeSet::from(exceptions));
}

#[test]
fn every_module_has_a_row() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| `")).map(|line| line.split('|').nth(1).unwrap());
    let named = rows.flat_map(|names| names.split(',').map(|name| name.trim().trim_matches('`').to_owned()));
    assert_eq!(named.collect::<BTreeSet<_>>(), modules().into_keys().collect());
}
