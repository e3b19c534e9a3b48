use super::*;
use crate::execution::scoring::record::{FocalRecord, OwnFocalRecord, SCORE_SCHEMA};
use crate::execution::scoring::unscored::LeftKind;
use crate::focal::own::{Basis, OwnFocal};
use crate::focal::{Focal, Found, Rule};
use crate::task::Track;

#[test]
fn focal_methods_are_kept_by_repository() {
    let task = |(id, repository): (&str, &str)| Task {
        id: id.parse().unwrap(),
        repository: repository.parse().unwrap(),
        track: Track::TestUpdate,
        rev1: "a".repeat(40).parse().unwrap(),
        rev2: "b".repeat(40).parse().unwrap(),
        rev1_date: "2020-01-01".to_owned(),
        rev2_date: "2020-01-01".to_owned(),
        test_file: "ATest.java".parse().unwrap(),
        test_methods: Vec::new(),
        focal_methods: Vec::new(),
    };
    let tasks = [("t1", "o/a"), ("t2", "o/b"), ("t3", "o/a"), ("t4", "o/c")].map(task);
    let focal =
        |method: &str| vec![Focal { method: method.parse().unwrap(), found: Found::Gone { rule: Rule::OldExtent } }];
    let own = |test: &str| vec![OwnFocal::whole(test.parse().unwrap(), &[], Basis::NoneEntered, None)];
    // Nothing was looked for in t4, and t5 is none of the selected.
    let records = [("t3", "A#m"), ("t2", "B#m"), ("t1", "C#m"), ("t5", "D#m")].map(|(id, method)| {
        let task_id = id.parse().unwrap();
        ScoreRecord::Focal(FocalRecord { schema: SCORE_SCHEMA, task_id, focal: focal(method) })
    });
    // What was lost of t2 is found out another time.
    let owns = [("t1", false), ("t2", true)].map(|(id, lost)| {
        ScoreRecord::OwnFocal(OwnFocalRecord {
            schema: SCORE_SCHEMA,
            task_id: id.parse().unwrap(),
            methods: if lost { Vec::new() } else { own("ATest#m") },
            cause: None,
            lost,
            isolation_missing: Vec::new(),
        })
    });
    let records: Vec<ScoreRecord> = records.into_iter().chain(owns).collect();
    let of = |found: &[(&str, &str, Option<Vec<OwnFocal>>)]| -> BTreeMap<TaskId, KnownFocal> {
        let known = |method: &str, own: &Option<Vec<OwnFocal>>| KnownFocal { focal: focal(method), own: own.clone() };
        found.iter().map(|(id, method, own)| (id.parse().unwrap(), known(method, own))).collect()
    };
    let expected = BTreeMap::from([
        ("o/a".parse().unwrap(), of(&[("t1", "C#m", Some(own("ATest#m"))), ("t3", "A#m", None)])),
        ("o/b".parse().unwrap(), of(&[("t2", "B#m", None)])),
    ]);
    assert_eq!(focal_of(&tasks, &records), expected);
}

#[test]
fn what_is_left_is_counted_by_kind() {
    let left = |kinds: &[LeftKind]| -> Vec<Left> {
        let left = |kind| Left { kind, task_id: "t".parse().unwrap(), of: String::new(), cause: String::new() };
        kinds.iter().copied().map(left).collect()
    };
    let (launch, coverage) = (LeftKind::Launch, LeftKind::Coverage);
    for (unscored, kinds, complete, expected) in [
        (0, &[][..], true, None),
        (1, &[launch], false, Some("1 method could not be scored; faults left 1 launch without a result")),
        // On old code, of an update, or in a later repeat.
        (0, &[launch, launch], true, Some("faults left 2 launches without a result")),
        (0, &[coverage, launch, coverage], false, Some("faults left 1 launch, 2 coverages without a result")),
        (0, &[], false, Some("something that was to be measured has no record")),
    ] {
        let expected = expected.map(|expected| format!("incomplete: {expected}"));
        assert_eq!(incomplete((unscored, 0), &left(kinds), complete), expected);
    }
    let failing = "incomplete: the developers' tests of 2 tasks fail on new code";
    assert_eq!(incomplete((0, 2), &[], true).as_deref(), Some(failing));
}
