//! From outcomes to categories, from categories to figures and intervals.

use std::hint::black_box;

use criterion::{Criterion, Throughput};
use testevo_sandbox::metrics::aggregate::{Adequacy, MeasuredAdequacy, MethodScore, TaskScore, track_figures};
use testevo_sandbox::metrics::bootstrap;
use testevo_sandbox::metrics::category::{Category, Integrity, OnOldCode, judge};
use testevo_sandbox::outcome::{ExecReason, Outcome};
use testevo_sandbox::task::Track;

use crate::Numbers;

pub(crate) fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("metrics");
    group.sample_size(20);
    for tasks in [275, 5_000] {
        let scores = scores(tasks);
        let scores: Vec<&TaskScore> = scores.iter().collect();
        assert!(track_figures(&scores).all.success_percent_interval.is_some());
        group.throughput(Throughput::Elements(tasks as u64));
        group.bench_function(format!("figures of {tasks} tasks in 40 repositories"), |bencher| {
            bencher.iter(|| track_figures(black_box(&scores)));
        });
    }
    let mut numbers = Numbers(3);
    let pairs: Vec<(usize, f64, f64)> = (0..275).map(|task| (task % 40, numbers.share(), numbers.share())).collect();
    group.throughput(Throughput::Elements(pairs.len() as u64));
    group.bench_function("paired intervals of 275 tasks in 40 repositories", |bencher| {
        bencher.iter(|| bootstrap::paired(black_box(&pairs).iter().copied()).unwrap());
    });
    let failed = Outcome::ExecFail(ExecReason::Assertion);
    let repeats: Vec<([Outcome; 3], [OnOldCode; 3])> = (0..10_000)
        .map(|_| {
            let mut three = || [0; 3].map(|_| if numbers.below(3) == 0 { failed } else { Outcome::Pass });
            (three(), three().map(OnOldCode::from))
        })
        .collect();
    group.throughput(Throughput::Elements(repeats.len() as u64));
    group.bench_function("categories of 10,000 methods, 3 repeats", |bencher| {
        bencher.iter(|| {
            let judged = black_box(&repeats)
                .iter()
                .map(|(new, old)| judge(Track::TestUpdate, new, old, Integrity::NotEvaluated));
            judged.filter(|verdict| verdict.strict_success).count()
        });
    });
    group.finish();
}

/// Scores of tasks with one to eight methods, of which four in five have coverage and mutation scores.
fn scores(tasks: usize) -> Vec<TaskScore> {
    const CATEGORIES: [Category; 4] = [Category::Success, Category::Redundant, Category::ExecFail, Category::CmplFail];
    let mut numbers = Numbers(2);
    let mut score = |number: usize| {
        let methods = (0..1 + numbers.below(8))
            .map(|_| {
                let category = CATEGORIES[numbers.below(4)];
                let mut measured = |most: f64| (numbers.below(5) > 0).then(|| most * numbers.share());
                let mut adequacy = || Adequacy {
                    coverage: measured(100.0),
                    coverage_range: measured(100.0),
                    mutation: measured(1.0),
                    mutation_strict: measured(1.0),
                    clean_coverage: measured(100.0),
                    clean_mutation: measured(1.0),
                };
                MethodScore {
                    category: Some(category),
                    strict_success: category == Category::Success,
                    integrity: Integrity::Clean,
                    pred: adequacy(),
                    gold: adequacy(),
                }
            })
            .collect();
        TaskScore {
            id: format!("owner__repository{}-{number}", number % 40).parse().unwrap(),
            repository: format!("owner/repository{}", number % 40).parse().unwrap(),
            track: Track::TestUpdate,
            date: format!("20{:02}-{:02}-11", 15 + number % 11, 1 + number % 12),
            jdk: [8, 11, 17, 21][number % 4],
            methods,
            handed_in: true,
            well_formed: Some(true),
            cost_usd: Some(4.0 * numbers.share()),
            tokens: None,
            measured: MeasuredAdequacy {
                coverage_pred: true,
                coverage_gold: true,
                mutation_pred: true,
                mutation_gold: true,
                gold_incomplete: false,
            },
        }
    };
    (0..tasks).map(&mut score).collect()
}
