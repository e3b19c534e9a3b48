//! What is recorded of tasks' starting files, and what submissions add to them.

use super::*;

/// Returns what is recorded of the tasks' starting files.
async fn starts(place: &Place, given: &Given, run_id: &str) -> Vec<StartRecord> {
    let (mut run, mut records, never) = (place.begin(run_id), Vec::new(), CancellationToken::new());
    let submissions = run.path().join(SUBMISSIONS);
    fs::create_dir_all(&submissions).unwrap();
    place
        .with(&Given { ..ALL }, async |scoring| {
            scoring.resolve_all(&mut run, &mut records, &submissions, &never).await.unwrap();
        })
        .await;
    let events = EventSink::none();
    let compiled =
        async |scoring: &Scoring<'_>| scoring.compile_starts(&mut run, records, (&events, &never)).await.unwrap();
    let records = place.with(given, compiled).await;
    let starts = records.into_iter().filter_map(|record| match record {
        ScoreRecord::Start(one) => Some(one),
        _ => None,
    });
    starts.collect()
}

#[tokio::test]
async fn a_starting_file_compiles_or_not_and_what_is_known_is_not_compiled_again() {
    for (error, compiles) in [(None, true), (Some("src/test/java/shop/StockTest.java"), false)] {
        let place = Place::new(&["fixed-bug"], move || compilation(error));
        let found = starts(&place, &ALL, "r1").await;
        let [one] = &found[..] else { panic!("{found:?}") };
        assert_eq!((one.start_compiles, one.lost), (Some(compiles), false), "{one:?}");
        assert_eq!(one.detail.as_deref().is_some_and(|detail| detail.contains("no such symbol")), !compiles, "{one:?}");
        assert_eq!(place.engine.started(), ["compile"]);
        assert_eq!(starts(&place, &ALL, "r2").await, found);
        assert_eq!(place.engine.started().len(), 1, "it is kept");
        assert_eq!(starts(&place, &Given { reads: false, ..ALL }, "r3").await, found);
        assert_eq!(place.engine.started().len(), 2, "and is not read where that is not asked for");
    }
}

#[tokio::test]
async fn a_starting_file_that_can_not_be_compiled_is_lost_and_tried_again() {
    let place = Place::new(&["fixed-bug"], gone);
    for (number, (given, cause)) in
        [(&ALL, "infra_fail(engine): "), (&Given { sources: false, ..ALL }, "infra_fail(source): ")]
            .into_iter()
            .enumerate()
    {
        let found = starts(&place, given, &format!("r{number}")).await;
        let [one] = &found[..] else { panic!("{found:?}") };
        assert_eq!((one.start_compiles, one.lost), (None, true), "{one:?}");
        assert!(one.detail.as_deref().is_some_and(|detail| detail.starts_with(cause)), "{one:?}");
    }
    assert_eq!(place.engine.started(), ["compile"; 3]);
    assert_eq!(starts(&place, &ALL, "r3").await.len(), 1);
    assert_eq!(place.engine.started(), ["compile"; 6], "a fault is not kept");
}

#[tokio::test]
async fn only_generation_tasks_with_a_starting_file_have_it_compiled() {
    let place = Place::new(&["new-class", "rounding"], gone);
    let found = starts(&place, &ALL, "r").await;
    let generation: Vec<&Task> = place.tasks.iter().filter(|task| task.track == Track::TestGeneration).collect();
    let [task] = generation[..] else { panic!("one of each track") };
    let [one] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&one.task_id, one.start_compiles, one.lost, &one.detail), (&task.id, None, false, &None));
    assert_eq!(place.engine.started(), Vec::<String>::new());
    let without = starts(&place, &Given { image: false, ..ALL }, "r2").await;
    assert_eq!(without, [], "what nothing is executed of is not compiled either");
}

#[tokio::test]
async fn a_type_of_the_project_in_a_test_file_is_seen() {
    let place = Place::new(&["fixed-bug"], gone);
    let task = &place.tasks[0];
    let resolved = |content: Content| place.with(&ALL, async move |scoring| scoring.trees.resolve(task, &content));
    let gold = resolved(Content::Gold).await.unwrap();
    assert_eq!(gold.shadows, Vec::<String>::new());
    let mut file = gold.extraction.content.unwrap();
    file.extend(b"\nclass Stock { int count() { return 1; } }\n");
    assert_eq!(resolved(Content::File(file)).await.unwrap().shadows, ["shop.Stock"]);
}
