//! What a stage counts as done when it begins.

use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;

use super::{ALL, Place, gone};
use crate::event::{Event, EventSink};
use crate::execution::scoring::record::ScoreRecord;
use crate::task::{Task, Track};

/// Returns the number of cells when scoring begins, how many of them are done, and the records in the end.
async fn counts(place: &Place, known: Vec<ScoreRecord>) -> (Option<u64>, u64, Vec<ScoreRecord>) {
    let told = Arc::new(Mutex::new(None));
    let heard = Arc::clone(&told);
    let events = EventSink::new(move |event| {
        if let Event::StageStarted { stage, total, done } = event
            && stage == "score"
        {
            *heard.lock().unwrap() = Some((total, done));
        }
    });
    let (mut run, never) = (place.begin("r1"), CancellationToken::new());
    let records = place.with(&ALL, async |scoring| scoring.run(&mut run, known, &events, &never).await.unwrap()).await;
    let (total, done) = told.lock().unwrap().unwrap();
    (total, done, records)
}

#[tokio::test]
async fn a_resumed_run_counts_what_was_executed_before() {
    let place = Place::new(&["rounding", "new-class"], gone);
    // Update counts on new code only, generation on both.
    let cells = |task: &Task| if task.track == Track::TestGeneration { 2 } else { 1 };
    let all = place.tasks.iter().map(cells).sum();
    let (total, done, records) = counts(&place, Vec::new()).await;
    assert_eq!((total, done), (Some(all), 0));
    let first = &place.tasks[0];
    let of_others = |record: &&ScoreRecord| !matches!(record, ScoreRecord::Execution(one) if one.task_id == first.id);
    let known = records.iter().filter(of_others).cloned().collect();
    let (total, done, _) = counts(&place, known).await;
    assert_eq!((total, done), (Some(all), all - cells(first)));
    let (total, done, _) = counts(&place, records).await;
    assert_eq!((total, done), (Some(all), all));
}
