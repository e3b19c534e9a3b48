//! What ARCHITECTURE.md says of the code holds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::support::imports::{module, sources, used};

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
    assert_eq!(against, BTreeSet::new());
}

/// Returns the files that a file uses, those above and below it in its own folder left out: they are one module.
fn uses(all: &BTreeSet<PathBuf>, file: &Path) -> BTreeSet<PathBuf> {
    let own = module(file);
    let is_other = |used: &PathBuf| {
        let used = module(used);
        !own.starts_with(&used) && !used.starts_with(&own)
    };
    used(root(), all, file).into_iter().filter(is_other).collect()
}

/// Returns the files from which one comes back to itself.
fn in_circles(uses: &BTreeMap<PathBuf, BTreeSet<PathBuf>>) -> BTreeSet<PathBuf> {
    let comes_back = |file: &PathBuf| {
        let (mut seen, mut left) = (BTreeSet::new(), vec![file]);
        while let Some(next) = left.pop() {
            for used in uses.get(next).into_iter().flatten() {
                if used == file {
                    return true;
                }
                if seen.insert(used) {
                    left.push(used);
                }
            }
        }
        false
    };
    uses.keys().filter(|file| comes_back(file)).cloned().collect()
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    let is_test = |file: &Path| file.iter().any(|part| part == "tests" || part == "tests.rs");
    let all: BTreeSet<PathBuf> = sources(root()).into_iter().filter(|file| !is_test(file)).collect();
    let mut uses: BTreeMap<PathBuf, BTreeSet<PathBuf>> =
        all.iter().map(|file| (file.clone(), uses(&all, file))).collect();
    assert_eq!(in_circles(&uses), BTreeSet::new());
    // And one is found: class archives name places.
    let [places, archives] = ["src/execution/container/places.rs", "src/execution/sharing.rs"].map(PathBuf::from);
    assert!(uses[&archives].contains(&places));
    uses.get_mut(&places).unwrap().insert(archives.clone());
    assert!(in_circles(&uses).is_superset(&BTreeSet::from([places, archives])));
}

#[test]
fn no_folders_of_executions_use_each_other_in_a_circle() {
    let of_tests = ["tests", "tests.rs", "scripted.rs"];
    let is_test = |file: &Path| file.iter().any(|part| of_tests.iter().any(|of_tests| part == *of_tests));
    let part = |file: &Path| Some(PathBuf::from(module(file).get(1)?));
    let is_execution = |file: &Path| file.starts_with("src/execution") && !file.ends_with("mod.rs") && !is_test(file);
    let all: BTreeSet<PathBuf> = sources(root()).into_iter().filter(|file| is_execution(file)).collect();
    let mut by_part: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
    for file in &all {
        let used = uses(&all, file);
        by_part.entry(part(file).unwrap()).or_default().extend(used.iter().filter_map(|used| part(used)));
    }
    for (own, used) in &mut by_part {
        used.remove(own);
    }
    assert_eq!(in_circles(&by_part), BTreeSet::new(), "{by_part:#?}");
}

#[test]
fn every_module_has_a_row() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (modules_table, _) = text.split_once("Imports point one way").unwrap();
    let rows = modules_table.lines().filter(|line| line.starts_with("| `")).map(|line| line.split('|').nth(1).unwrap());
    let named = rows.flat_map(|names| names.split(',').map(|name| name.trim().trim_matches('`').to_owned()));
    assert_eq!(named.collect::<BTreeSet<_>>(), modules().into_keys().collect());
}
