//! Standings: each track's models with intervals, over all tasks and over certified ones, and which differences between
//! two models are significant.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::table_name;
use crate::metrics::aggregate::{Figures, mean};
use crate::metrics::bootstrap::{interval, paired};
use crate::metrics::category::{Category, Integrity};
use crate::report::score::{Certified, ScoreReport, ScoredMethod, ScoredModel, ScoredTask};
use crate::task::{MethodId, RepositoryName, TaskId, Track};

/// Why tasks and methods are not certified.
type Excluded<'a> = BTreeMap<(&'a TaskId, Option<&'a MethodId>), &'static str>;

/// Each scored task's repository and share of methods that succeed, percent.
type Rates<'a> = BTreeMap<&'a TaskId, (&'a RepositoryName, f64)>;

/// A reading of success.
struct Reading {
    name: &'static str,
    succeeds: fn(&ScoredMethod) -> bool,
    /// The report's own value, `None` if the reading is not known.
    percent: fn(&Figures) -> Option<f64>,
}

const READINGS: [Reading; 3] = [
    Reading {
        name: "paper",
        succeeds: |method| method.verdict.paper_verdict == Some(Category::Success),
        percent: |figures| figures.success_percent,
    },
    Reading {
        name: "clean",
        succeeds: |method| {
            method.verdict.paper_verdict == Some(Category::Success) && method.verdict.integrity == Integrity::Clean
        },
        percent: |figures| figures.clean_success_percent,
    },
    Reading {
        name: "strict",
        succeeds: |method| method.verdict.strict_success,
        percent: |figures| figures.strict_success_percent,
    },
];

/// A difference of two models in one reading, over the tasks that both have scored.
#[derive(Serialize)]
struct Pair {
    one: usize,
    other: usize,
    difference: f64,
    low: f64,
    high: f64,
    /// The interval by resampling repositories and their tasks; `None` for one repository.
    repositories: Option<[f64; 2]>,
    significant: bool,
    tasks: usize,
}

/// Returns each track's standing.
pub(super) fn standings(report: &ScoreReport, models: &[ScoredModel]) -> Vec<Value> {
    let tracks = [Track::TestUpdate, Track::TestGeneration].into_iter();
    let there = tracks.filter(|track| report.runs.iter().any(|run| run.tracks.contains_key(track)));
    let excluded = report.certified.as_ref().map(Certified::reasons).unwrap_or_default();
    there.map(|track| standing(report, models, track, &excluded)).collect()
}

fn standing(report: &ScoreReport, models: &[ScoredModel], track: Track, excluded: &Excluded<'_>) -> Value {
    let mut rows = Vec::new();
    let mut rates: Vec<Vec<(usize, Rates<'_>)>> = READINGS.iter().map(|_| Vec::new()).collect();
    for (place, (run, model)) in report.runs.iter().zip(models).enumerate() {
        let Some(figures) = run.tracks.get(&track).map(|figures| &figures.all) else { continue };
        let mut readings = BTreeMap::new();
        for (reading, rates) in READINGS.iter().zip(&mut rates) {
            let of_model = of_tasks(model, track, reading.succeeds, &Excluded::new());
            let Some(value) = value(reading, figures, &of_model) else { continue };
            readings.insert(reading.name, value);
            rates.push((place, of_model));
        }
        // Certified models are in the order of the report's.
        let certified = report.certified.as_ref().and_then(|certified| certified.runs.get(place)?.tracks.get(&track));
        let certified = certified.map(|figures| {
            let value = |reading: &Reading| {
                let of_model = of_tasks(model, track, reading.succeeds, excluded);
                Some((reading.name, value(reading, &figures.all, &of_model)?))
            };
            let readings: BTreeMap<&str, Value> = READINGS.iter().filter_map(value).collect();
            json!({ "tasks": figures.all.tasks, "methods": figures.all.methods, "readings": readings })
        });
        rows.push(row(place, model, figures, (track, &readings, certified)));
    }
    let pairs: BTreeMap<&str, Vec<Pair>> =
        READINGS.iter().zip(&rates).map(|(reading, rates)| (reading.name, pairs(rates))).collect();
    json!({ "track": table_name(track), "rows": rows, "pairs": pairs })
}

/// Returns a reading with its interval; `None` if it is not known.
fn value(reading: &Reading, figures: &Figures, of_tasks: &Rates<'_>) -> Option<Value> {
    let percent = (reading.percent)(figures)?;
    let [low, high] = match reading.name {
        "paper" => figures.success_percent_interval,
        _ => interval(&of_tasks.values().map(|(_, rate)| *rate).collect::<Vec<_>>()),
    }
    .map_or([None; 2], |ends| ends.map(Some));
    Some(json!({ "percent": percent, "low": low, "high": high }))
}

fn row(
    place: usize,
    model: &ScoredModel,
    figures: &Figures,
    (track, readings, certified): (Track, &BTreeMap<&str, Value>, Option<Value>),
) -> Value {
    let submissions = || model.tasks.iter().filter(|one| one.task.track == track).map(|one| one.submission.as_ref());
    let costs = || submissions().map(|one| one.and_then(|one| one.cost_usd));
    json!({
        "run": place,
        "tasks": figures.tasks,
        "methods": figures.methods,
        "unscored": figures.unscored,
        "few": figures.few_methods,
        "readings": readings,
        "certified": certified,
        "mix": Category::ALL.map(|category| figures.percent_of(category)),
        "coverage": figures.avg_coverage_pred,
        "coverage_gold": figures.avg_coverage_gold,
        "mutation": figures.avg_mutation_score_pred,
        "mutation_gold": figures.avg_mutation_score_gold,
        "cost": mean(costs()),
        "with_cost": costs().flatten().count(),
    })
}

/// Returns the share of each scored task's methods that succeed, percent. Excluded tasks and methods do not count.
fn of_tasks<'a>(
    model: &'a ScoredModel,
    track: Track,
    succeeds: fn(&ScoredMethod) -> bool,
    excluded: &Excluded<'_>,
) -> Rates<'a> {
    let rate = |scored: &ScoredTask| {
        let counts = |method: &MethodId| {
            ![None, Some(method)].iter().any(|which| excluded.contains_key(&(&scored.task.id, *which)))
        };
        let judged = scored.methods.iter().filter(|method| method.verdict.paper_verdict.is_some());
        let judged = judged.filter(|method| counts(&method.method));
        mean(judged.map(|method| Some(if succeeds(method) { 100.0 } else { 0.0 })))
    };
    let tasks = model.tasks.iter().filter(|scored| scored.task.track == track);
    tasks.filter_map(|scored| Some((&scored.task.id, (&scored.task.repository, rate(scored)?)))).collect()
}

fn pairs(rates: &[(usize, Rates<'_>)]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (index, (one, of_one)) in rates.iter().enumerate() {
        for (other, of_other) in rates.iter().skip(index + 1) {
            let both = of_one.iter().filter_map(|(task, (group, rate))| Some((*group, *rate, of_other.get(task)?.1)));
            let Some(found) = paired(both) else { continue };
            let ([low, high], repositories) = (found.interval, found.interval_groups);
            let (difference, significant, tasks) = (found.mean, found.is_significant(), found.tasks);
            pairs.push(Pair { one: *one, other: *other, difference, low, high, repositories, significant, tasks });
        }
    }
    pairs
}
