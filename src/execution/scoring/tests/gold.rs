//! Developers' tests that fail on new code.

use super::*;
use crate::execution::scoring::gold::failing;

#[tokio::test]
async fn nothing_is_kept_of_a_task_whose_developers_test_fails_on_new_code() {
    let place = Place::new(&["rounding"], || compilation(Some("src/test/java/shop/Other.java")));
    let task = &place.tasks[0];
    // It passed once, or nobody could tell damage from a wrong label.
    place.with(&ALL, async |scoring| assert!(scoring.doubtful(&place.own()).unwrap().is_empty())).await;
    let took = Took { launch_ms: Some(10), build_ms: None };
    TimeClasses::new(&place.data_dir).record(task, took).unwrap();
    let mut expected = String::new();
    for run in ["r1", "r2"] {
        let (records, cells) = place.score(&ALL, &mut place.begin(run), place.own()).await;
        let executions: Vec<&ExecutionRecord> = records
            .iter()
            .filter_map(|record| match record {
                ScoreRecord::Execution(one) => Some(one),
                _ => None,
            })
            .collect();
        assert_eq!((executions.len(), cells.len()), (task.test_methods.len(), 1), "{records:?}");
        assert!(executions.iter().all(|one| !one.cached && one.key.is_some()), "{run} finds nothing of another run");
        expected = format!("{}: {}", executions[0].method, executions[0].outcome);
        let doubtful = place.with(&ALL, async |scoring| scoring.doubtful(&records).unwrap()).await;
        assert_eq!(doubtful, BTreeMap::from([(task.id.clone(), expected.clone())]));
        let kept = |directory: &Path| {
            let mut open = vec![directory.to_owned()];
            let mut files = Vec::new();
            while let Some(directory) = open.pop() {
                for entry in fs::read_dir(&directory).unwrap() {
                    let path = entry.unwrap().path();
                    if path.is_dir() { open.push(path) } else { files.push(path) }
                }
            }
            files
        };
        assert_eq!(kept(&place.data_dir.join("results")), Vec::<PathBuf>::new());
    }
    assert!(expected.contains("compile_fail"), "{expected}");
}

#[test]
fn a_developers_test_that_passes_once_does_not_fail() {
    let place = Place::new(&["rounding"], gone);
    let ScoreRecord::Execution(passed) = place.passed().remove(0) else { panic!("launches come first") };
    let one = |repeat, code, model: &str, outcome| ExecutionRecord {
        repeat,
        code,
        model: model.to_owned(),
        outcome,
        ..passed.clone()
    };
    let failed = Outcome::ExecFail(ExecReason::Assertion);
    let fault = Outcome::InfraFail(InfraReason::Engine);
    for (executions, fails) in [
        (vec![one(1, Side::New, GOLD, failed)], true),
        (vec![one(1, Side::New, GOLD, failed), one(2, Side::New, GOLD, fault)], true),
        (vec![one(1, Side::New, GOLD, failed), one(2, Side::New, GOLD, Outcome::Pass)], false),
        (vec![one(1, Side::New, GOLD, fault)], false),
        (vec![one(1, Side::Old, GOLD, failed), one(1, Side::New, "m", failed)], false),
        (Vec::new(), false),
    ] {
        assert_eq!(failing(&executions).is_some(), fails, "{executions:?}");
    }
}
