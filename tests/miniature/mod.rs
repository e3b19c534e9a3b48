//! The sample repositories of the tests, and what must come of them.

mod agents;
mod bundles;
mod demonstration;
mod documentation;
mod execution;
mod extension_jars;
mod harbor;
mod integrity;
mod interruption;
mod kills;
mod locking;
mod native;
mod proof;
mod scoring;
mod sharding;
mod sharing;
mod slurm;
mod submissions;
mod verdict;
mod workshop;

use std::collections::BTreeSet;

use testevo_sandbox::task::{Cell, Side, published};

use crate::support::miniature;

#[test]
fn every_miniature_is_whole() {
    let mut repositories = BTreeSet::new();
    for name in miniature::names() {
        let repository = miniature::load(&name);
        assert!(repositories.insert(repository.name.clone()), "{name}: another repository has its name");
        for miniature in &repository.miniatures {
            for method in &miniature.methods {
                let declaration = format!(" {}(", method.id.method());
                for cell in Cell::ALL {
                    let text = miniature.files(cell.test()).get(&miniature.test_file);
                    let absent = method.expected[&cell].iter().any(|outcome| outcome.name() == "absent");
                    let declared = text.is_some_and(|text| String::from_utf8_lossy(text).contains(&declaration));
                    let inherited = miniature.files(cell.test()).iter().any(|(path, text)| {
                        path.as_str().contains("src/test/") && String::from_utf8_lossy(text).contains(&declaration)
                    });
                    assert_ne!(
                        absent,
                        declared || inherited,
                        "{name}/{}: {} in {}",
                        miniature.name,
                        method.id,
                        cell.name()
                    );
                }
            }
            for focal in &miniature.focal {
                let declared = [Side::Old, Side::New].into_iter().any(|side| {
                    let text = miniature.files(side).get(&focal.file);
                    text.is_some_and(|text| String::from_utf8_lossy(text).contains(&focal.anchor))
                });
                assert!(declared, "{name}/{}: {} is nowhere", miniature.name, focal.method);
            }
        }
    }
}

#[test]
fn every_history_can_be_written_and_imported() {
    let directory = tempfile::tempdir().unwrap();
    for name in miniature::names() {
        let repository = miniature::load(&name);
        let pairs = repository.write_git(&directory.path().join(&name)).unwrap();
        assert_eq!(pairs.len(), repository.miniatures.len());
        let file = directory.path().join(format!("{name}.json"));
        fs_err::write(&file, repository.published(&pairs)).unwrap();
        let [imported] = published::read(&[file]).unwrap().try_into().unwrap();
        assert_eq!((&imported.name, imported.java_version), (&repository.name, repository.jdk));
        assert_eq!(imported.tasks.len(), pairs.len());
    }
}
