use super::*;

#[tokio::test]
async fn what_was_shown_is_told_before_what_comes_later() {
    let task = |id: &str| Task {
        id: id.parse().unwrap(),
        repository: "o/n".parse().unwrap(),
        track: crate::task::Track::TestUpdate,
        rev1: "0".repeat(40).parse().unwrap(),
        rev2: "1".repeat(40).parse().unwrap(),
        rev1_date: String::new(),
        rev2_date: String::new(),
        test_file: "A.java".parse().unwrap(),
        test_methods: Vec::new(),
        focal_methods: Vec::new(),
    };
    let needed =
        ["a", "b", "c", "d", "e"].map(|id| NeededExecution { build_set: id.into(), task: task(id), cell: Cell::Nn });
    let execute = |one: &NeededExecution| {
        std::future::ready(match one.build_set.as_str() {
            "a" => Ok((Outcome::Pass, String::new())),
            "b" => Ok((Outcome::InfraFail(InfraReason::Source), String::new())),
            "c" => Ok((Outcome::InfraFail(InfraReason::Resolution), String::new())),
            "d" => Err(ProofError::Io(std::io::Error::other("the disk is full"))),
            other => panic!("{other} is executed after a fault"),
        })
    };
    let mut shown = Vec::new();
    let mut keep = |execution: ProofStep| {
        shown.push(match execution {
            ProofStep::Held(execution) => execution.build_set,
            ProofStep::Failed(execution) => format!("{} {}", execution.build_set, execution.outcome),
        });
        Ok(())
    };
    let ended = execute_all(&needed, execute, 1, &EventSink::none(), &mut keep).await;
    assert!(matches!(ended, Err(ProofError::Io(_))));
    assert_eq!(shown, ["a", "c infra_fail(resolution)"], "missing sources are no fault of the image");
    let ended = execute_all(&needed[..3], execute, 1, &EventSink::none(), &mut |_| Ok(())).await;
    let failed: Vec<String> = ended.unwrap().into_iter().map(|one| one.build_set).collect();
    assert_eq!(failed, ["b", "c"]);
}

#[test]
fn what_the_image_failed_counts_until_the_same_execution_holds() {
    let sets = ["a".to_owned(), "b".to_owned()];
    let held = |set: &str, task: &str, cell| {
        ProofStep::Held(ProvenExecution {
            build_set: set.to_owned(),
            task_id: task.parse().unwrap(),
            cell,
            outcome: "pass".to_owned(),
        })
    };
    let failed = |set: &str, task: &str, cell| {
        ProofStep::Failed(Unproven {
            build_set: set.to_owned(),
            task_id: task.parse().unwrap(),
            cell,
            outcome: "infra_fail(build)".to_owned(),
            detail: String::new(),
        })
    };
    let mut proof = Proof::new(Digest::of(b"image"));
    proof.take(held("a", "t", Cell::Nn));
    proof.take(held("b", "u", Cell::Nn));
    assert!(proof.covers(&sets));
    proof.shown_for.push(Digest::of(b"quick"));
    proof.lock = Some(Digest::of(b"lock"));
    proof.take(failed("a", "v", Cell::No));
    assert!(!proof.covers(&sets) && proof.covers(&sets[1..]));
    assert!(proof.shown_for.is_empty() && proof.lock.is_none());
    proof.take(held("a", "v", Cell::Nn));
    proof.take(failed("a", "v", Cell::No));
    assert_eq!(proof.failed.len(), 1);
    assert!(!proof.covers(&sets), "another cell of the same task makes nothing good");
    proof.take(held("a", "v", Cell::No));
    assert!(proof.covers(&sets) && proof.failed.is_empty());

    // Whichever came first.
    let mut proof = Proof::new(Digest::of(b"image"));
    proof.take(failed("a", "v", Cell::Nn));
    proof.take(held("a", "v", Cell::No));
    assert!(!proof.covers(&sets[..1]));
}

#[test]
fn a_proof_must_cover_every_build_set() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("proof.json");
    assert_eq!(load(&path).unwrap(), None);
    let sets = |sets: &[&str]| sets.iter().map(|set| (*set).to_owned()).collect::<Vec<_>>();
    let execution = ProvenExecution {
        build_set: "a".to_owned(),
        task_id: "t".parse().unwrap(),
        cell: Cell::Nn,
        outcome: "pass".to_owned(),
    };
    let proof = Proof { executions: vec![execution], ..Proof::new(Digest::of(b"image")) };
    store(&path, &proof).unwrap();
    let loaded = load(&path).unwrap().unwrap();
    assert_eq!(loaded, proof);
    assert!(loaded.covers(&sets(&["a"])) && !loaded.covers(&sets(&["a", "b"])));
    fs::write(&path, "{}").unwrap();
    assert!(matches!(load(&path), Err(ProofError::Malformed { .. })));
}
