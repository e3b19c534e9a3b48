use std::sync::{Arc, Mutex};

use super::super::tests::{ALL, Place};
use super::*;
use crate::engine::scripted::Said;
use crate::engine::spec::{CommandLimits, ContainerSpec, Step};
use crate::execution::time_class::TimeClasses;
use crate::outcome::Outcome;

/// Returns what a run's records say of classes.
fn settled(records: &[ScoreRecord]) -> Vec<(Option<u64>, Option<u64>)> {
    let classes = records.iter().filter_map(|record| match record {
        ScoreRecord::TimeClass(one) => Some((one.launch_seconds, one.compile_seconds)),
        _ => None,
    });
    classes.collect()
}

#[tokio::test]
async fn all_submissions_of_a_run_have_the_class_that_was_recorded_before_the_first() {
    // Every container is gone before it has said anything; what it was asked for is noted.
    let asked: Arc<Mutex<Vec<CommandLimits>>> = Arc::default();
    let noted = Arc::clone(&asked);
    let place = Place::with_script(&["rounding"], move |_, spec: &ContainerSpec| {
        let run = |step: &Step| if let Step::Run(command) = step { Some(command.limits) } else { None };
        noted.lock().unwrap().extend(spec.program.steps.iter().filter_map(run));
        Said { frames: Vec::new(), ends: true }
    });
    let classes = TimeClasses::new(&place.data_dir);
    let times = || -> Vec<(u64, u64)> {
        let mut times: Vec<_> =
            asked.lock().unwrap().drain(..).map(|one| (one.cpu_seconds, one.wall_seconds)).collect();
        times.dedup();
        times
    };
    let keys = |records: &[ScoreRecord]| -> Vec<_> {
        let key = |record: &ScoreRecord| match record {
            ScoreRecord::Execution(one) => one.key,
            _ => None,
        };
        records.iter().filter_map(key).collect()
    };

    let mut first = place.begin("r1");
    let (records, _) = place.score(&ALL, &mut first, place.own()).await;
    assert_eq!(settled(&records), [(None, None)], "nothing is recorded");
    assert_eq!(times(), [(1200, 600)], "Maven has the repository's limit");
    let without = keys(&records);

    // What is recorded later is nothing to a run that is continued.
    classes.record(&place.tasks[0], Took { launch_ms: Some(100), build_ms: Some(20_000) }).unwrap();
    let known = records.into_iter().filter(|record| !matches!(record, ScoreRecord::Execution(_))).collect();
    let (records, _) = place.score(&ALL, &mut first, known).await;
    assert_eq!((settled(&records), times()), (vec![(None, None)], vec![(1200, 600)]));
    assert_eq!(keys(&records), without);

    let (records, _) = place.score(&ALL, &mut place.begin("r2"), place.own()).await;
    assert_eq!((settled(&records), times()), (vec![(Some(30), Some(90))], vec![(90, 360)]));
    let with = keys(&records);
    assert!(!with.is_empty() && with.iter().all(|key| !without.contains(key)), "the class is a part of keys");
    for record in &records {
        if let ScoreRecord::Execution(one) = record {
            assert!(matches!(one.outcome, Outcome::InfraFail(_)), "{one:?}");
        }
    }

    // Where a limit is asked for nothing is settled, and nothing recorded.
    let never = tokio_util::sync::CancellationToken::new();
    let mut run = place.begin("r3");
    let scored = place.with(&ALL, async |scoring| {
        let (trees, revisions) = (Arc::clone(&scoring.trees), Arc::clone(&scoring.revisions));
        let (cache, direct, time_classes) = (scoring.cache.clone(), None, None);
        let scoring = Scoring { trees, revisions, cache, direct, time_classes, ..*scoring };
        scoring.run(&mut run, place.own(), &crate::event::EventSink::none(), &never).await.unwrap()
    });
    let records = scored.await;
    assert_eq!((settled(&records), times()), (vec![], vec![(1200, 600)]));
}
