use super::*;

fn cell(cell: Cell, walls: [u64; 4], floor_ms: Option<u64>, unfit: bool) -> MeasuredCell {
    let times =
        Variant::ALL.into_iter().zip(walls).map(|(variant, wall_ms)| (variant, Times { wall_ms, ..Times::default() }));
    MeasuredCell {
        cell,
        order: Variant::ALL.to_vec(),
        times: times.collect(),
        floor_ms,
        unfit: unfit.then(|| "several compilers".to_owned()),
    }
}

fn task(id: &str, cells: Vec<MeasuredCell>, left_out: &[&str]) -> MeasuredTask {
    MeasuredTask {
        schema: MEASUREMENT_SCHEMA,
        setting: Setting { engine: "docker 1".into(), version: "0".into(), processors: 2, seed: 7 },
        load: 1.5,
        task_id: id.parse().unwrap(),
        repository: "o/n".parse().unwrap(),
        cells,
        revisions: Vec::new(),
        left_out: left_out.iter().map(|reason| (*reason).to_owned()).collect(),
    }
}

fn revision(prepare_ms: u64, maven_ms: u64, left_out: Option<&str>) -> MeasuredRevision {
    let left_out = left_out.map(str::to_owned);
    let revision = "a".repeat(40).parse().unwrap();
    MeasuredRevision { revision, module: String::new(), prepare_ms, maven_ms, left_out }
}

fn sample() -> Measurement {
    let mut first = task(
        "t1",
        vec![
            cell(Cell::Nn, [1000, 800, 200, 100], Some(50), false),
            cell(Cell::On, [600, 400, 100, 100], None, false),
            cell(Cell::No, [500, 300, 50, 50], None, false),
        ],
        &[],
    );
    first.revisions = vec![revision(900, 1000, None), revision(1, 1, Some("Maven failed"))];
    let unfit = task("t2", vec![cell(Cell::Nn, [1000, 500, 500, 500], None, true)], &[]);
    let differing =
        task("t3", vec![cell(Cell::Nn, [9, 9, 9, 9], Some(9), false)], &["nn A#m: literal fails, reference pass"]);
    measurement(vec![first, unfit, differing])
}

fn found(measurement: &Measurement, above: &str, below: &str, over: Over) -> (usize, Option<f64>) {
    let is = |ratio: &&Ratio| ratio.above == above && ratio.below == below && ratio.over == over;
    let ratio = measurement.ratios.iter().find(is).unwrap();
    (ratio.count, ratio.spread.map(|spread| spread.median))
}

#[test]
fn ratios_are_of_tasks_that_agree_and_unfit_ones_are_told_apart() {
    let measurement = sample();
    assert_eq!((measurement.measured, measurement.left_out, measurement.unfit_cells), (2, 1, 1));
    assert!(!measurement.enough);
    for (above, below, over, expected) in [
        // 2100 : 350 and 1000 : 500.
        ("literal", "direct", Over::Tasks, (2, Some(4.0))),
        ("literal", "direct", Over::FitTasks, (1, Some(6.0))),
        ("literal", "ahead", Over::FitTasks, (1, Some(8.4))),
        ("reference", "ahead", Over::FitTasks, (1, Some(6.0))),
        // A cell that does not compile is in the one and not in the other.
        ("direct", "floor", Over::FitTasks, (1, Some(7.0))),
        ("direct", "floor", Over::LaunchedCells, (1, Some(4.0))),
        ("ahead", "floor", Over::LaunchedCells, (1, Some(2.0))),
        // The old test file is no submission's.
        ("direct", "floor", Over::SubmissionCells, (1, Some(5.0))),
        ("ahead", "floor", Over::SubmissionCells, (1, Some(3.0))),
        ("prepare", "maven", Over::Revisions, (1, Some(0.9))),
    ] {
        assert_eq!(found(&measurement, above, below, over), expected, "{above} : {below} {over:?}");
    }
    let nothing = super::measurement(Vec::new());
    assert_eq!(found(&nothing, "literal", "direct", Over::Tasks), (0, None));
}

#[test]
fn quartiles_interpolate() {
    let spread = |values: &[f64]| {
        Spread::of(values.to_vec()).map(|spread| [spread.lower_quartile, spread.median, spread.upper_quartile])
    };
    assert_eq!(spread(&[]), None);
    assert_eq!(spread(&[3.0]), Some([3.0, 3.0, 3.0]));
    assert_eq!(spread(&[4.0, 1.0, 2.0, 3.0]), Some([1.75, 2.5, 3.25]));
}

#[test]
fn a_measured_task_is_read_as_it_was_written() {
    let task = sample().tasks.remove(0);
    let line = serde_json::to_string(&task).unwrap();
    assert_eq!(serde_json::from_str::<MeasuredTask>(&line).unwrap(), task, "{line}");
}

#[test]
fn people_read_tables_and_what_was_left_out() {
    let measurement = sample();
    let markdown = markdown(&measurement);
    assert!(markdown.contains("| literal : direct | tasks that fit the direct path | 1 | 6.00 | 6.00 | 6.00 | 6.00 |"));
    assert!(markdown.contains("| direct: all | 350 | 350 | 350 |"), "{markdown}");
    assert!(markdown.contains("- left out: t3: nn A\\#m: literal fails, reference pass\n"), "{markdown}");
    let text = text(&measurement);
    assert!(
        text.contains(
            "2 tasks in the ratios, fewer than the 30 that a statement needs; 1 left out; 1 cell did not fit"
        ),
        "{text}"
    );
    assert!(text.contains("docker 1 on 2 processors, version 0, orders by seed 7\nload 1.5 "), "{text}");
    assert!(text.contains("left out: o/n aaaaaaa .: Maven failed"), "{text}");
}
