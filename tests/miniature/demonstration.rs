//! `demo` does the whole job: tasks, lock, image, proof and validation of the sample that the program carries.

use std::sync::OnceLock;

use testevo_sandbox::sample::SampleRepository;

use super::execution::Workshop;
use super::proof;

/// What the demonstration said, which is given once.
static SAID: OnceLock<String> = OnceLock::new();

/// Returns the sample of the demonstration, which was given: it is imported, locked, built, proven and validated.
pub(super) fn given() -> (SampleRepository, Workshop) {
    let repository = SampleRepository::demo().unwrap();
    let workshop = Workshop::of_demonstration(&repository);
    SAID.get_or_init(|| workshop.demonstrate());
    (repository, workshop)
}

#[test]
fn the_demonstration_is_given_and_explained() {
    let (repository, workshop) = given();
    let said = SAID.get().unwrap();
    let outcomes = said.find("What the four executions came to").unwrap_or_else(|| panic!("{said}"));
    insta::assert_snapshot!("demonstration", &said[outcomes..]);
    for step in ["import", "lock", "build-images", "validate"] {
        assert!(said[..outcomes].contains(&format!("\n$ testevo-sandbox {step}\n")), "{step}: {said}");
    }

    // Its sources are compiled for Java 21, so that nothing older launches them.
    assert_eq!(workshop.built(&repository.name).jdk, 21);
    assert_eq!(repository.jdk, 21);
    proof::is_proven(&workshop, &repository);
    let nested = workshop.data_dir.join("store");
    let shared = workshop.data_dir.parent().unwrap().join("store");
    assert_eq!(fs_err::canonicalize(nested).unwrap(), fs_err::canonicalize(shared).unwrap(), "bytes are shared");
}
