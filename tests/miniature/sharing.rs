//! Class archives decide nothing but the order of identity hash codes: what comes of a run, and what its tests print, is the
//! same without, and what shows that order shows the same one on both paths.

use std::collections::{BTreeMap, BTreeSet};

use fs_err as fs;
use testevo_sandbox::execution::run::record::{CellRecord, ExecutionPath, Measured};
use testevo_sandbox::sample::SampleRepository;

use super::demonstration;
use super::workshop::Workshop;
use crate::support::miniature;

/// What of a run may not depend on class archives.
#[derive(Debug, PartialEq)]
struct Executed {
    records: Vec<CellRecord>,
    /// What launches printed, by log.
    said: BTreeMap<String, Vec<u8>>,
}

/// Validates on the direct path; `archives` says whether launches are to have them, and every command must show it.
fn execute(workshop: &Workshop, repository: &SampleRepository, tasks: &str, archives: bool) -> Executed {
    let run = format!("{}-{}-archives", repository.name.file_stem(), if archives { "with" } else { "without" });
    let directory = workshop.data_dir.join("runs").join(&run);
    if directory.exists() {
        fs::remove_dir_all(&directory).unwrap();
    }
    let mut arguments = vec!["validate", "--no-confirm", "--path", "direct", "--run-id", &run, tasks];
    arguments.extend((!archives).then_some("--no-class-archives"));
    let (_, output) = workshop.try_run(&arguments);
    let Some(records) = workshop.records(&run) else { panic!("nothing was executed\n{output}") };
    assert!(!output.contains("class archive"), "{output}");
    let mut said = BTreeMap::new();
    let mut folders = vec![directory.join("logs")];
    let mut launches = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&directory).unwrap().to_str().unwrap().to_owned();
            let of_launch = path.file_name().unwrap().to_str().unwrap().starts_with("direct-");
            if path.is_dir() {
                folders.push(path);
            } else if of_launch && name.ends_with(".command.json") {
                launches += 1;
                let command = fs::read_to_string(&path).unwrap();
                assert_eq!(command.contains("-XX:SharedArchiveFile="), archives, "{name}: {command}");
            } else if of_launch && (name.ends_with(".stdout") || name.ends_with(".stderr")) {
                said.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    let on_direct_path = |record: &&CellRecord| record.measured.path == ExecutionPath::Direct;
    let launched = records.values().filter(on_direct_path).filter(|record| record.measured.launch_ms.is_some()).count();
    assert!(launches >= launched && launched > 0, "{launches} commands of {launched} launches");
    let timeless = |record: CellRecord| CellRecord { measured: Measured::default(), key: None, ..record };
    Executed { records: records.into_values().map(timeless).collect(), said }
}

/// Returns what the launches of a repository's one task printed on both paths, by log.
fn printed(workshop: &Workshop, repository: &SampleRepository, task: &str, more: &[&str]) -> BTreeMap<String, String> {
    let run = format!("{}-order{}", repository.name.file_stem(), more.concat());
    let directory = workshop.data_dir.join("runs").join(&run);
    if directory.exists() {
        fs::remove_dir_all(&directory).unwrap();
    }
    let arguments = ["validate", "--no-confirm", "--paths", "both", "--run-id", &run, task];
    workshop.run(&[&arguments, more].concat());
    let mut printed = BTreeMap::new();
    let mut folders = vec![directory.join("logs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "stdout") {
                let text = fs::read_to_string(&path).unwrap();
                let said = text.lines().filter(|line| line.starts_with("order: ")).collect::<String>();
                if !said.is_empty() {
                    printed.insert(path.strip_prefix(&directory).unwrap().to_str().unwrap().to_owned(), said);
                }
            }
        }
    }
    printed
}

#[test]
fn enum_constants_have_the_same_order_on_both_paths() {
    let repository = miniature::load("jupiter-17");
    let workshop = Workshop::new(&repository);
    workshop.prepare(&repository, "");
    for more in [&[][..], &["--no-class-archives"]] {
        let printed = printed(&workshop, &repository, "*__enum-order", more);
        let direct = printed.keys().filter(|log| log.contains("direct-printsOrder")).count();
        // Four cells, two paths.
        assert_eq!((printed.len(), direct), (8, 4), "{printed:#?}");
        let orders: BTreeSet<&String> = printed.values().collect();
        assert_eq!(orders.len(), 1, "{printed:#?}");
    }
}

fn check(workshop: &Workshop, repository: &SampleRepository, tasks: &str, prints: bool) {
    let with = execute(workshop, repository, tasks, true);
    assert_eq!(!with.said.is_empty(), prints, "{:?}", with.said);
    assert_eq!(with, execute(workshop, repository, tasks, false));
}

#[test]
#[ignore = "takes a minute: every launch once more"]
fn full_the_sample_comes_out_the_same_without_class_archives() {
    let (sample, workshop) = demonstration::given();
    check(&workshop, &sample, sample.name.as_str(), false);
}

#[test]
#[ignore = "takes a minute: launches on both paths with and without archives"]
fn full_nothing_is_added_to_what_a_test_prints() {
    let repository = miniature::load("jupiter-17");
    let workshop = Workshop::new(&repository);
    workshop.prepare(&repository, "");
    check(&workshop, &repository, "*__noise", true);
}
