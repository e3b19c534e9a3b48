use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::execution::scoring::record::{MutantsRecord, SCORE_SCHEMA};

fn mutants(path: &str) -> Mutants {
    Mutants { set: MutantSet { path: path.to_owned(), ..MutantSet::default() }, texts: vec!["text".to_owned()] }
}

fn task() -> TaskId {
    "t1".parse().unwrap()
}

fn path_of(found: Mutants) -> String {
    found.set.path
}

#[tokio::test]
async fn a_set_is_made_once_a_run_though_no_other_runs_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let (run, results) = (directory.path().join("run"), directory.path().join("results"));
    let others = ResultCache::new(results.clone(), false);
    let (key, task) = (Digest::of(b"key"), task());
    others.put_value(&task, key, &mutants("of another run")).unwrap();
    let made = AtomicUsize::new(0);
    let make = || async {
        let number = made.fetch_add(1, Ordering::Relaxed);
        // Long enough for the other one to come.
        tokio::task::yield_now().await;
        Ok(mutants(&format!("made {number}")))
    };
    let begun = RunMutants::of(&run, &[]);
    let (one, other) = tokio::join!(begun.get((&task, key), &others, make()), begun.get((&task, key), &others, make()));
    assert_eq!([one, other].map(|found| path_of(found.unwrap())), ["made 0", "made 0"]);
    assert_eq!(path_of(begun.get((&task, Digest::of(b"other")), &others, make()).await.unwrap()), "made 1");

    let continued = RunMutants::of(&run, &[]);
    assert_eq!(path_of(continued.get((&task, key), &others, make()).await.unwrap()), "made 0", "the run is the same");
    continued.remove().unwrap();
    continued.remove().unwrap();
    assert_eq!(path_of(continued.get((&task, key), &others, make()).await.unwrap()), "made 2");

    let reading = ResultCache::new(results, true);
    let next = RunMutants::of(&directory.path().join("next"), &[]);
    assert_eq!(path_of(next.get((&task, key), &reading, make()).await.unwrap()), "made 2", "the last that was kept");
    let never = || async { Err(NoAnswer::never("no source").into()) };
    for make in [never(), never()] {
        assert!(next.get((&task, Digest::of(b"none")), &reading, make).await.is_err());
    }
    assert!(next.get((&task, Digest::of(b"none")), &reading, make()).await.is_err(), "found out once");
    let fault = || async { Err(NoAnswer::fault("no engine").into()) };
    assert!(next.get((&task, Digest::of(b"third")), &reading, fault()).await.is_err());
    assert_eq!(
        path_of(next.get((&task, Digest::of(b"third")), &reading, make()).await.unwrap()),
        "made 3",
        "tried again"
    );
}

#[test]
fn all_tests_of_a_task_meet_the_same_sets() {
    let sets = |path: &str| vec![mutants(path).set];
    let task = |id: &str| id.parse::<TaskId>().unwrap();
    let record = MutantsRecord { schema: SCORE_SCHEMA, task_id: task("known"), sets: sets("a") };
    let met = RunMutants::of(Path::new(""), &[ScoreRecord::Mutants(record)]);
    for (id, path, expected) in [
        ("known", "b", false),
        ("known", "a", true),
        ("first", "b", true),
        ("first", "a", false),
        ("first", "b", true),
        ("other", "a", true),
    ] {
        assert_eq!(met.are_met(&task(id), &sets(path)), expected, "{id} {path}");
    }
}
