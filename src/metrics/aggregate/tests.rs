use super::*;

fn method(category: Option<Category>, coverage: Option<f64>, gold: Option<f64>) -> MethodScore {
    let of = |coverage| Adequacy { coverage, ..Adequacy::default() };
    MethodScore { category, pred: of(coverage), gold: of(gold), ..MethodScore::default() }
}

fn task(id: &str, methods: Vec<MethodScore>) -> TaskScore {
    TaskScore {
        id: id.parse().unwrap(),
        repository: "o/n".parse().unwrap(),
        track: Track::TestGeneration,
        date: "2020-07-01".to_owned(),
        jdk: 8,
        methods,
        handed_in: true,
        well_formed: Some(true),
        cost_usd: None,
        tokens: None,
        measured: MeasuredAdequacy { coverage_pred: true, coverage_gold: true, ..MeasuredAdequacy::default() },
    }
}

#[test]
fn every_task_weighs_the_same_and_what_is_unscored_leaves() {
    let success = Some(Category::Success);
    let tasks = [
        task(
            "a",
            vec![method(success, None, None), method(Some(Category::ExecFail), None, None), method(None, None, None)],
        ),
        task("b", vec![method(success, None, None)]),
        task("c", vec![method(None, None, None)]),
    ];
    let figures = track_figures(&tasks.iter().collect::<Vec<_>>()).all;
    assert_eq!((figures.tasks, figures.methods, figures.unscored), (3, 5, 2));
    assert_eq!(figures.success_percent, Some(75.0));
    assert_eq!(figures.exec_fail_percent, Some(25.0));
    let sum = [
        figures.success_percent,
        figures.redundant_percent,
        figures.exec_fail_percent,
        figures.cmpl_fail_percent,
        figures.hrns_fail_percent,
    ];
    assert_eq!(sum.iter().flatten().sum::<f64>(), 100.0);
}

#[test]
fn wide_counts_missing_values_as_zero_and_narrow_leaves_them_out() {
    let pass = Some(Category::Redundant);
    let tasks = [
        task("a", vec![method(pass, Some(80.0), Some(60.0)), method(Some(Category::CmplFail), None, Some(100.0))]),
        task("b", vec![method(Some(Category::ExecFail), None, None)]),
    ];
    let figures = track_figures(&tasks.iter().collect::<Vec<_>>()).all;
    assert_eq!(figures.avg_coverage_pred, Some(20.0));
    assert_eq!(figures.avg_coverage_pred_success, Some(80.0));
    assert_eq!(figures.avg_coverage_gold, Some(40.0));
    assert_eq!(figures.avg_coverage_gold_success, Some(80.0));
    assert_eq!(
        (figures.cov_on_pass, figures.cov_on_pass_human, figures.cov_on_pass_delta),
        (Some(80.0), Some(60.0), Some(20.0))
    );
    assert_eq!((figures.mut_on_pass, figures.avg_mutation_score_pred_success), (None, None));
}

/// A submission's value needs no reference. The reference and the difference are over methods with both values.
#[test]
fn the_human_reference_is_over_the_same_methods() {
    let pass = Some(Category::Success);
    let mut tasks = [
        task(
            "a",
            vec![
                method(pass, Some(80.0), Some(60.0)),
                method(pass, Some(10.0), None),
                method(pass, None, Some(100.0)),
                method(Some(Category::ExecFail), Some(1.0), Some(2.0)),
            ],
        ),
        task("b", vec![method(pass, Some(30.0), None)]),
    ];
    let of = |tasks: &[&TaskScore]| {
        let figures = track_figures(tasks).all;
        (figures.cov_on_pass, figures.cov_on_pass_human, figures.cov_on_pass_delta)
    };
    // (80 + 10) / 2 and 30; of the first method alone both values are known.
    assert_eq!(of(&tasks.each_ref()), (Some(37.5), Some(60.0), Some(20.0)));
    assert_eq!(of(&[&tasks[1]]), (Some(30.0), None, None));
    assert_eq!(tasks.each_ref().map(|task| on_pass_of(task, Measure::Coverage)), [Some(45.0), Some(30.0)]);
    // A lost measurement leaves a task without a value.
    tasks[0].measured.coverage_pred = false;
    assert_eq!(of(&tasks.each_ref()), (Some(30.0), None, None));
}

#[test]
fn a_task_is_resolved_if_every_method_succeeds() {
    let [success, fail, unscored] = [Some(Category::Success), Some(Category::Redundant), None];
    for (categories, expected) in [
        (&[success, success][..], Some(true)),
        (&[success, fail], Some(false)),
        (&[success, unscored], None),
        (&[unscored, fail], Some(false)),
    ] {
        assert_eq!(resolved(categories.iter().copied()), expected, "{categories:?}");
    }
    let of = |id, categories: &[Option<Category>]| {
        task(id, categories.iter().map(|category| method(*category, None, None)).collect())
    };
    let mut tasks = [of("a", &[success, success]), of("b", &[success, fail]), of("c", &[success, unscored])];
    tasks[2].well_formed = Some(false);
    let figures = track_figures(&tasks.each_ref()).all;
    assert_eq!((figures.resolved_percent, figures.well_formed_percent), (Some(50.0), Some(200.0 / 3.0)));
    tasks[2].well_formed = None;
    assert_eq!(track_figures(&tasks.each_ref()).all.well_formed_percent, Some(100.0));
    assert_eq!(track_figures(&[]).all.resolved_percent, None);
}

#[test]
fn the_stricter_readings_have_means_of_their_own() {
    let of = |coverage: f64, kills: f64| Adequacy {
        coverage: Some(coverage),
        coverage_range: Some(coverage / 2.0),
        mutation: Some(kills),
        mutation_strict: Some(kills / 4.0),
        clean_coverage: Some(coverage / 8.0),
        clean_mutation: Some(kills / 8.0),
    };
    let one = MethodScore {
        category: Some(Category::Success),
        pred: of(80.0, 0.8),
        gold: of(40.0, 0.4),
        ..MethodScore::default()
    };
    let mut task = task("a", vec![one, method(Some(Category::ExecFail), None, None)]);
    task.measured.mutation_pred = true;
    let figures = track_figures(&[&task]).all;
    assert_eq!((figures.avg_coverage_range_pred, figures.avg_coverage_range_pred_success), (Some(20.0), Some(40.0)));
    assert_eq!((figures.avg_coverage_range_gold, figures.avg_coverage_range_gold_success), (Some(10.0), Some(20.0)));
    assert_eq!(figures.avg_mutation_score_strict_pred, Some(0.1));
    assert_eq!(figures.avg_mutation_score_strict_pred_success, Some(0.2));
    let gold = (figures.avg_mutation_score_strict_gold, figures.avg_mutation_score_strict_gold_success);
    assert_eq!(gold, (None, Some(0.1)), "what was not measured for a task has no wide mean");
}

/// Figures of a cap: tasks over it and without a cost; Success% and HrnsFail% by task, then by method.
fn capped(tasks: &[TaskScore]) -> Vec<([usize; 2], [Option<f64>; 4])> {
    let caps = track_figures(&tasks.iter().collect::<Vec<_>>()).all.cost_caps;
    let percents = |cap: &CostCap| {
        [cap.success_percent, cap.hrns_fail_percent, cap.method_success_percent, cap.method_hrns_fail_percent]
    };
    caps.iter().map(|cap| ([cap.tasks_over, cap.tasks_without_cost], percents(cap))).collect()
}

#[test]
fn over_the_cap_is_failed() {
    let success = Some(Category::Success);
    let mut tasks = [task("a", vec![method(success, None, None); 3]), task("b", vec![method(success, None, None)])];
    assert_eq!(capped(&tasks), []);
    tasks[1].cost_usd = Some(2.0);
    let within = ([0, 1], [100.0, 0.0, 100.0, 0.0].map(Some));
    let over = ([1, 1], [50.0, 50.0, 75.0, 25.0].map(Some));
    assert_eq!(capped(&tasks), [within, over, over]);
    tasks[0].handed_in = false;
    assert_eq!(capped(&tasks)[0].0, [0, 0], "nothing has no cost that could be missing");
}

#[test]
fn costs_and_tokens_are_those_of_the_tasks_within_the_cap() {
    let costs = [Some(0.2), Some(0.4), Some(0.9), Some(2.5), Some(8.0), None];
    let tokens = [Some(100), None, Some(500), Some(1_500), Some(9_000), Some(900)];
    let mut tasks = ["a", "b", "c", "d", "e", "f"].map(|id| task(id, vec![method(None, None, None)]));
    for (task, (cost, tokens)) in tasks.iter_mut().zip(costs.into_iter().zip(tokens)) {
        (task.cost_usd, task.tokens) = (cost, tokens);
    }
    let figures = track_figures(&tasks.iter().collect::<Vec<_>>()).all;
    let cents = |cap: &CostCap| cap.mean_cost_usd.map(|cost| (cost * 100.0).round());
    let means: Vec<_> = figures.cost_caps.iter().map(|cap| (cents(cap), cap.mean_tokens)).collect();
    assert_eq!(means, [(Some(100.0), Some(750.0)), (Some(50.0), Some(500.0)), (Some(30.0), Some(500.0))]);
    assert_eq!(figures.cost_deciles_usd, [0.2, 0.2, 0.4, 0.4, 0.9, 0.9, 2.5, 2.5, 8.0, 8.0]);
    let unknown = track_figures(&[&tasks[5]]).all;
    assert_eq!((unknown.cost_caps, unknown.cost_deciles_usd), (Vec::new(), Vec::new()));
}

/// What cost too much was not handed in, so that nothing of it is left to judge.
#[test]
fn over_the_cap_unscored_methods_are_failed_too() {
    let mut tasks = [
        task("a", vec![method(None, None, None), method(Some(Category::Success), None, None)]),
        task("b", vec![method(None, None, None)]),
        task("c", vec![method(Some(Category::HrnsFail), None, None), method(Some(Category::ExecFail), None, None)]),
    ];
    for (task, cost) in tasks.iter_mut().zip([0.75, 2.0, 0.1]) {
        task.cost_usd = Some(cost);
    }
    let third = 100.0 / 3.0;
    let found = capped(&tasks);
    assert_eq!(found[0], ([0, 0], [50.0, 25.0, third, third].map(Some)), "nothing of b is scored");
    assert_eq!(found[1], ([1, 0], [third, 50.0, 25.0, 50.0].map(Some)));
    assert_eq!(found[2], ([2, 0], [0.0, 250.0 / 3.0, 0.0, 80.0].map(Some)));
}

#[test]
fn parts_with_few_methods_are_marked() {
    let success = Some(Category::Success);
    let mut tasks =
        [task("a", vec![method(success, None, None); 19]), task("b", vec![method(success, None, None); 20])];
    tasks[1].jdk = 17;
    let figures = track_figures(&tasks.iter().collect::<Vec<_>>());
    let few = |jdk: &str| figures.by_jdk[jdk].few_methods;
    assert_eq!((few("8"), few("17"), figures.all.few_methods), (true, false, false));
}

#[test]
fn segments_are_half_years() {
    for (date, name) in
        [("2014-12-31", "Older"), ("2015-01-01", "2015-H1"), ("2020-06-30", "2020-H1"), ("2020-07-01", "2020-H2")]
    {
        assert_eq!(segment(date), name);
    }
}

#[test]
fn clean_figures_leave_out_what_something_speaks_against() {
    let of = |category, integrity, coverage, clean_coverage| MethodScore {
        category: Some(category),
        integrity,
        pred: Adequacy { coverage, clean_coverage, ..Adequacy::default() },
        ..MethodScore::default()
    };
    let figures = |methods: Vec<MethodScore>| {
        let mut task = task("a", methods);
        task.measured.coverage_pred = true;
        let figures = track_figures(&[&task]).all;
        let clean = (figures.clean_success_percent, figures.clean_coverage_pred);
        (figures.success_percent, clean, (figures.suspect_percent, figures.tampered_percent))
    };
    let clean = of(Category::Success, Integrity::Clean, Some(80.0), Some(80.0));
    let suspect = of(Category::Success, Integrity::Suspect, Some(100.0), None);
    let tampered = of(Category::ExecFail, Integrity::Tampered, None, None);
    let redundant = of(Category::Redundant, Integrity::Clean, None, None);
    assert_eq!(
        figures(vec![clean, suspect, tampered, redundant]),
        (Some(50.0), (Some(25.0), Some(20.0)), (Some(25.0), Some(25.0)))
    );
    // Without controls nothing is known, and nothing passes for clean.
    let unknown = of(Category::Success, Integrity::NotEvaluated, Some(80.0), Some(80.0));
    assert_eq!(figures(vec![unknown]), (Some(100.0), (None, None), (None, Some(0.0))));
    // Where nothing passes there was nothing to control.
    assert_eq!(figures(vec![tampered]), (Some(0.0), (Some(0.0), Some(0.0)), (Some(0.0), Some(100.0))));
}
