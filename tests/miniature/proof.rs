//! Proofs with a real engine: what makes an image ready, and what does not.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;
use testevo_sandbox::digest::Digest;
use testevo_sandbox::engine::Engine as _;
use testevo_sandbox::execution::container::images::identity;
use testevo_sandbox::execution::proof::{self, Proof};
use testevo_sandbox::image::{ready_tag, tag};
use testevo_sandbox::lock::{LockFile as _, RepositoryLock};
use testevo_sandbox::sample::SampleRepository;

use super::verdict::summary;
use super::workshop::Workshop;
use crate::engine::support::daemon;
use crate::support::miniature;

/// Proves the repository's image by every task on both revisions: it must be ready then, and was not before.
pub(super) fn makes_the_image_ready(workshop: &Workshop, repository: &SampleRepository) {
    let name = repository.name.as_str();
    let digest = forget(workshop, repository);
    assert!(!listed(workshop, name)["proven"].as_bool().unwrap());
    assert!(!is_ready(workshop, repository));
    let arguments = ["build-images", "--proof", "full", "--format", "json", name];
    let output = workshop.command(&arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let built = summary(&output);
    assert_eq!((&built["proven"], &built["unproven"]), (&true.into(), &Value::Array(Vec::new())), "{built}");
    is_proven(workshop, repository);

    let shown = proof_of(workshop, &digest).unwrap().executions;
    let mut shown: Vec<String> =
        shown.iter().map(|one| format!("{} {} {}", one.task_id, one.cell.name(), one.outcome)).collect();
    shown.sort();
    let mut expected = Vec::new();
    for miniature in &repository.miniatures {
        let outcomes = &miniature.methods[0].expected;
        for (cell, outcomes) in outcomes.iter().filter(|(cell, _)| ["nn", "no"].contains(&cell.name())) {
            let task = format!("{}__{}", repository.name.file_stem(), miniature.name);
            expected.push(format!("{task} {} {}", cell.name(), outcomes[0]));
        }
    }
    expected.sort();
    assert_eq!(shown, expected);
}

/// Tells of an image that was proven: in the engine, in the list and in its proof, which covers the lock.
pub(super) fn is_proven(workshop: &Workshop, repository: &SampleRepository) {
    let built = listed(workshop, repository.name.as_str());
    assert_eq!((&built["proven"], &built["up_to_date"]), (&true.into(), &true.into()), "{built}");
    let digest = workshop.built(&repository.name).image.config_digest;
    assert_eq!(built["config_digest"], digest.to_string());
    assert!(is_ready(workshop, repository), "{}", ready_tag(&repository.name));
    let proof = proof_of(workshop, &digest).unwrap();
    let lock = RepositoryLock::load(&workshop.lock_path(&repository.name)).unwrap();
    assert!(proof.covers(&lock.build_sets), "{proof:?}");
}

/// Two tasks of one set of build files: the new code of one does not compile.
#[test]
fn a_proof_fails_and_is_lost_by_a_task_whose_code_does_not_compile() {
    const SOUND: &str = "5-module-info";
    const BROKEN: &str = "6-broken-main";
    let repository = miniature::part("builds-17", "proofs-17", &[SOUND, BROKEN]);
    let workshop = Workshop::new(&repository);
    workshop.prepare(&repository, "");
    fails_where_nothing_compiles(&workshop, &repository, BROKEN);
    is_lost_by_a_task_that_fails(&workshop, &repository, BROKEN, SOUND);
}

/// Proves the image by one task whose new code does not compile: that is told, nothing is ready, and what was shown
/// meanwhile is kept.
fn fails_where_nothing_compiles(workshop: &Workshop, repository: &SampleRepository, miniature: &str) {
    let digest = forget(workshop, repository);
    let task = format!("{}__{miniature}", repository.name.file_stem());
    let arguments = ["build-images", "--proof", "full", "--format", "json", &task];
    let output = workshop.command(&arguments).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("1 execution failed without a network"), "{said}");
    let built = summary(&output);
    assert_eq!(built["proven"], false, "{built}");
    let [unproven] = built["unproven"].as_array().unwrap().as_slice() else { panic!("{built}") };
    let found = ["task_id", "cell", "outcome"].map(|key| unproven[key].as_str().unwrap());
    assert_eq!(found, [&task, "nn", "infra_fail(build)"]);
    assert!(unproven["detail"].as_str().unwrap().contains("maven-compiler-plugin"), "{unproven}");
    assert!(!is_ready(workshop, repository));
    assert_eq!(listed(workshop, repository.name.as_str())["proven"], false);
    let proof = proof_of(workshop, &digest).unwrap();
    assert!(proof.shown_for.is_empty() && proof.lock.is_none(), "{proof:?}");
    let [shown] = proof.executions.as_slice() else { panic!("{proof:?}") };
    assert_eq!((shown.task_id.as_str(), shown.cell.name(), shown.outcome.as_str()), (task.as_str(), "no", "pass"));
}

/// Fails the full proof by a task, whose set of build files another task has shown by a quick one: the image is ready before
/// and no more after it, whatever asks. What was failed is asked for again.
fn is_lost_by_a_task_that_fails(workshop: &Workshop, repository: &SampleRepository, miniature: &str, other: &str) {
    let digest = forget(workshop, repository);
    let name = repository.name.as_str();
    let build = |arguments: &[&str]| {
        let arguments = [&["build-images", "--format", "json"], arguments].concat();
        let output = workshop.command(&arguments).output().unwrap();
        (output.status.code(), summary(&output))
    };
    let (code, built) = build(&[name]);
    assert_eq!((code, &built["proven"]), (Some(0), &true.into()), "{built}");
    is_proven(workshop, repository);
    let before = proof_of(workshop, &digest).unwrap();
    let task = |miniature: &str| format!("{}__{miniature}", repository.name.file_stem());
    for arguments in [&["--proof", "full", &task(miniature)][..], &[name], &["--proof", "quick", &task(miniature)]] {
        let (code, built) = build(arguments);
        assert_eq!((code, &built["proven"]), (Some(1), &false.into()), "{arguments:?}: {built}");
        let [unproven] = built["unproven"].as_array().unwrap().as_slice() else { panic!("{built}") };
        assert_eq!((&unproven["task_id"], &unproven["cell"]), (&task(miniature).into(), &"nn".into()));
        assert_eq!(listed(workshop, name)["proven"], false, "{arguments:?}");
        assert!(!is_ready(workshop, repository), "{arguments:?}");
    }
    // Those who do not ask for that task are not told that theirs failed, nor that the image is proven.
    let (code, built) = build(&[&task(other)]);
    assert_eq!((code, &built["proven"]), (Some(0), &false.into()), "{built}");
    assert_eq!((&listed(workshop, name)["proven"], is_ready(workshop, repository)), (&false.into(), false));
    let after = proof_of(workshop, &digest).unwrap();
    let sets = |proof: &Proof| proof.executions.iter().map(|one| one.build_set.clone()).collect::<BTreeSet<_>>();
    assert_eq!(sets(&after), sets(&before), "every set is shown as before");
    assert_eq!(after.failed.len(), 1);
}

/// Makes an image as unproven as a new one, and returns its config digest. An earlier run may have left proof and name.
fn forget(workshop: &Workshop, repository: &SampleRepository) -> Digest {
    let digest = workshop.built(&repository.name).image.config_digest;
    match fs_err::remove_file(proof_path(workshop, &digest)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
        _ => {}
    }
    if is_ready(workshop, repository) {
        // The image has another name beside this one, so it stays.
        let removed = Command::new("docker").args(["image", "rm", &ready_tag(&repository.name)]).output().unwrap();
        assert!(removed.status.success(), "{}", String::from_utf8_lossy(&removed.stderr));
    }
    digest
}

fn proof_path(workshop: &Workshop, digest: &Digest) -> std::path::PathBuf {
    workshop.data_dir.join("proofs").join(format!("{}.json", digest.hex()))
}

fn proof_of(workshop: &Workshop, digest: &Digest) -> Option<Proof> {
    proof::load(&proof_path(workshop, digest)).unwrap()
}

/// Returns what `images list` says of a repository's image.
fn listed(workshop: &Workshop, repository: &str) -> Value {
    let output = workshop.command(&["images", "list", repository, "--format", "json"]).output().unwrap();
    let images = summary(&output);
    let [image] = images.as_array().unwrap().as_slice() else { panic!("{images}") };
    image.clone()
}

/// Tells whether the engine calls the repository's image ready.
fn is_ready(workshop: &Workshop, repository: &SampleRepository) -> bool {
    let built = workshop.built(&repository.name);
    let names = [ready_tag(&repository.name), tag(&built.image, Some(&repository.name), built.jdk)];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let loaded = runtime.block_on(async {
        let engine = daemon().await;
        engine.introduce(&identity(&built.image, &names));
        engine.inspect_image(&built.image.config_digest).await.unwrap()
    });
    loaded.is_some_and(|image| image.names.contains(&names[0]))
}
