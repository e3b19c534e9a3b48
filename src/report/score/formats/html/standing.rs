//! Standings: each track's models with intervals, over all tasks and over certified ones, and which differences between
//! two models are significant. Samples of one model stand together: the model has their mean, and they follow it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use super::table_name;
use crate::metrics::aggregate::{Figures, TaskScore, TrackFigures, mean, track_figures};
use crate::metrics::bootstrap::{interval, paired};
use crate::metrics::category::{Category, Integrity};
use crate::report::score::samples::{Rates, rates, shared};
use crate::report::score::{Certified, RunFigures, SampledModel, ScoreReport, ScoredMethod, ScoredModel};
use crate::submission::GOLD;
use crate::task::{MethodId, TaskId, Track};

/// Why tasks and methods are not certified.
type Excluded<'a> = BTreeMap<(&'a TaskId, Option<&'a MethodId>), &'static str>;

/// What stands for itself in a report.
pub(super) enum Entry<'a> {
    /// The model at this place of the report.
    Model(usize),
    /// A model with its samples' places.
    Samples(&'a SampledModel, Vec<usize>),
}

/// What each row of a track is made of.
struct Rows<'a> {
    report: &'a ScoreReport,
    models: &'a [ScoredModel],
    track: Track,
    excluded: &'a Excluded<'a>,
}

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
    let entries = entries(report);
    there.map(|track| Rows { report, models, track, excluded: &excluded }.standing(&entries)).collect()
}

/// Returns the models in the order of the report. Samples stand where the first of them does.
pub(super) fn entries(report: &ScoreReport) -> Vec<Entry<'_>> {
    let is = |run: &RunFigures, (run_id, model): &(String, String)| run.run_id == *run_id && run.model == *model;
    let places = |sampled: &SampledModel| -> Vec<usize> {
        let of_model = |run: &RunFigures| sampled.samples.iter().any(|sample| is(run, sample));
        report.runs.iter().enumerate().filter(|(_, run)| of_model(run)).map(|(place, _)| place).collect()
    };
    let sampled: Vec<(&SampledModel, Vec<usize>)> = report.samples.iter().map(|one| (one, places(one))).collect();
    let entry = |place: usize| match sampled.iter().find(|(_, places)| places.contains(&place)) {
        Some((model, places)) => (places[0] == place).then(|| Entry::Samples(model, places.clone())),
        None => Some(Entry::Model(place)),
    };
    (0..report.runs.len()).filter_map(entry).collect()
}

/// Returns the run that all samples of a model are of. Samples of several runs belong to none of them.
pub(super) fn run_of(model: &SampledModel) -> Option<&str> {
    let runs: BTreeSet<&str> = model.samples.iter().map(|(run, _)| run.as_str()).collect();
    if runs.len() == 1 { runs.first().copied() } else { None }
}

/// Returns a track's figures of each sample, over the tasks that all these samples have.
pub(super) fn over_shared<'a>(
    report: &'a ScoreReport,
    models: &[ScoredModel],
    places: &[usize],
    track: Track,
) -> Vec<Cow<'a, TrackFigures>> {
    let samples: Vec<&ScoredModel> = places.iter().filter_map(|place| models.get(*place)).collect();
    let shared = shared(&samples);
    let of = |place: &usize| {
        let (own, model) = (report.runs.get(*place)?.tracks.get(&track)?, models.get(*place)?);
        let is_shared = |task: &TaskId| shared.contains_key(task);
        if model.tasks_of(track).into_iter().all(is_shared) {
            return Some(Cow::Borrowed(own));
        }
        let scores = model.task_scores();
        let left: Vec<&TaskScore> =
            scores.iter().filter(|score| score.track == track && is_shared(&score.id)).collect();
        Some(Cow::Owned(track_figures(&left)))
    };
    places.iter().filter_map(of).collect()
}

/// Whose tasks differ in a track, so that its rows can't be compared as they stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::report::score::formats) enum Differing {
    /// Those of two rows of models.
    Models,
    /// Those of all rows of models: no two share a task.
    Apart,
    /// Only those of the developers' tests.
    Gold,
}

/// Returns whose tasks differ in a track; `None` if all rows are over the same tasks. Samples of one model are one row.
pub(in crate::report::score::formats) fn differing(
    report: &ScoreReport,
    models: &[ScoredModel],
    track: Track,
) -> Option<Differing> {
    let excluded = Excluded::new();
    let rows = Rows { report, models, track, excluded: &excluded };
    let mut found = Vec::new();
    for entry in entries(report) {
        let places = match entry {
            Entry::Samples(model, places) if model.tracks.contains_key(&track) => vec![places],
            Entry::Samples(_, places) => places.into_iter().map(|place| vec![place]).collect(),
            Entry::Model(place) => vec![vec![place]],
        };
        for places in places {
            let is_gold = models.get(places[0]).is_some_and(|model| model.model == GOLD);
            found.push((is_gold, rows.tasks(&places)));
        }
    }
    found.retain(|(_, tasks)| !tasks.is_empty());
    differ(&found)
}

fn differ(rows: &[(bool, BTreeSet<&TaskId>)]) -> Option<Differing> {
    let of_models: Vec<_> = rows.iter().filter(|(is_gold, _)| !is_gold).collect();
    let is_equal = |rows: &[&(bool, BTreeSet<&TaskId>)]| rows.windows(2).all(|two| two[0].1 == two[1].1);
    let shares = |row: usize| of_models[row + 1..].iter().any(|other| !other.1.is_disjoint(&of_models[row].1));
    match (is_equal(&of_models), is_equal(&rows.iter().collect::<Vec<_>>())) {
        (false, _) if (0..of_models.len()).any(shares) => Some(Differing::Models),
        (false, _) => Some(Differing::Apart),
        (true, false) => Some(Differing::Gold),
        (true, true) => None,
    }
}

impl<'a> Rows<'a> {
    fn standing(&self, entries: &[Entry<'a>]) -> Value {
        let mut rows = Vec::new();
        let mut rates: Vec<Vec<(usize, Rates<'a>)>> = READINGS.iter().map(|_| Vec::new()).collect();
        for entry in entries {
            let found: Vec<(Vec<usize>, Option<Value>)> = match entry {
                Entry::Model(place) => vec![(vec![*place], self.row(*place))],
                Entry::Samples(model, places) if model.tracks.contains_key(&self.track) => {
                    vec![(places.clone(), self.sampled(model, places))]
                }
                // Samples without a common task have no mean, and stand each for itself.
                Entry::Samples(_, places) => places.iter().map(|place| (vec![*place], self.row(*place))).collect(),
            };
            for (places, row) in found {
                let Some(row) = row else { continue };
                for (reading, rates) in READINGS.iter().zip(&mut rates) {
                    if !row["readings"][reading.name].is_null() {
                        // A model stands under the place of its first sample.
                        rates.push((places[0], self.rates(&places, &reading.succeeds, &Excluded::new())));
                    }
                }
                rows.push(row);
            }
        }
        let pairs: BTreeMap<&str, Vec<Pair>> =
            READINGS.iter().zip(&rates).map(|(reading, rates)| (reading.name, pairs(rates))).collect();
        let differ = differing(self.report, self.models, self.track);
        json!({ "track": table_name(self.track), "differ": differ, "rows": rows, "pairs": pairs })
    }

    /// Returns the tasks that all these samples have.
    fn tasks(&self, places: &[usize]) -> BTreeSet<&'a TaskId> {
        let shared = shared(&self.samples(places)).into_iter();
        shared.filter(|(_, scored)| scored[0].task.track == self.track).map(|(task, _)| task).collect()
    }

    fn samples(&self, places: &[usize]) -> Vec<&'a ScoredModel> {
        places.iter().filter_map(|place| self.models.get(*place)).collect()
    }

    fn figures(&self, place: usize) -> Option<&'a Figures> {
        self.report.runs.get(place)?.tracks.get(&self.track).map(|figures| &figures.all)
    }

    /// Returns the share of each scored task's methods that `is` holds for, percent. Excluded tasks and methods do not count.
    fn rates(&self, places: &[usize], is: &dyn Fn(&ScoredMethod) -> bool, excluded: &Excluded<'_>) -> Rates<'a> {
        rates(&self.samples(places), self.track, is, &|task, method| !is_excluded(excluded, task, method))
    }

    /// Returns the row of one model, or of one sample.
    fn row(&self, place: usize) -> Option<Value> {
        let figures = self.figures(place)?;
        let value = |reading: &Reading| {
            let percent = (reading.percent)(figures)?;
            let known = (reading.name == "paper").then_some(figures.success_percent_interval);
            let found = || interval_of(&self.rates(&[place], &reading.succeeds, &Excluded::new()));
            Some((reading.name, json_of(percent, known.unwrap_or_else(found))))
        };
        let readings: BTreeMap<&str, Value> = READINGS.iter().filter_map(value).collect();
        let (cost, with_cost) = self.cost(&[place]);
        Some(json!({
            "run": place,
            "tasks": figures.tasks,
            "methods": figures.methods,
            "readings": readings,
            "certified": self.certified(&[place]),
            "mix": Category::ALL.map(|category| figures.percent_of(category)),
            "coverage": figures.avg_coverage_pred,
            "coverage_gold": figures.avg_coverage_gold,
            "mutation": figures.avg_mutation_score_pred,
            "mutation_gold": figures.avg_mutation_score_gold,
            "cost": cost,
            "with_cost": with_cost,
        }))
    }

    /// Returns the row of a model with several samples: their mean over the tasks that all have, and their own rows.
    fn sampled(&self, model: &SampledModel, places: &[usize]) -> Option<Value> {
        let over_shared = over_shared(self.report, self.models, places, self.track);
        let figures: Vec<&Figures> = over_shared.iter().map(|figures| &figures.all).collect();
        let first = figures.first()?;
        let rates = |is: &dyn Fn(&ScoredMethod) -> bool| self.rates(places, is, &Excluded::new());
        let value = |reading: &Reading| {
            // Clean success is known only if it is of every sample.
            figures.iter().map(|figures| (reading.percent)(figures)).collect::<Option<Vec<f64>>>()?;
            let of_tasks = rates(&reading.succeeds);
            Some((reading.name, json_of(mean_of(&of_tasks)?, interval_of(&of_tasks))))
        };
        let readings: BTreeMap<&str, Value> = READINGS.iter().filter_map(value).collect();
        let shared = shared(&self.samples(places));
        let methods =
            shared.values().filter(|scored| scored[0].task.track == self.track).map(|one| one[0].methods.len());
        let methods: Vec<usize> = methods.collect();
        let mix = Category::ALL
            .map(|category| mean_of(&rates(&|method: &ScoredMethod| method.verdict.paper_verdict == Some(category))));
        let of_samples = |value: fn(&Figures) -> Option<f64>| mean(figures.iter().map(|figures| value(figures)));
        let (cost, with_cost) = self.cost(places);
        Some(json!({
            "run": places[0],
            "model": model.model,
            "of_run": run_of(model),
            "samples": places.iter().filter_map(|place| self.row(*place)).collect::<Vec<_>>(),
            "pass": model.tracks.get(&self.track).map(|all| all.iter().map(|one| json!([one.k, one.pass_percent, one.tasks])).collect::<Vec<_>>()),
            "tasks": methods.len(),
            "methods": methods.iter().sum::<usize>(),
            "readings": readings,
            "certified": self.certified(places),
            "mix": mix,
            "coverage": of_samples(|figures| figures.avg_coverage_pred),
            "coverage_gold": first.avg_coverage_gold,
            "mutation": of_samples(|figures| figures.avg_mutation_score_pred),
            "mutation_gold": first.avg_mutation_score_gold,
            "cost": cost,
            "with_cost": with_cost,
        }))
    }

    /// Returns the values over certified tasks; `None` without a validation.
    fn certified(&self, places: &[usize]) -> Option<Value> {
        // Certified models are in the order of the report's.
        let runs = &self.report.certified.as_ref()?.runs;
        let of = |place: &usize| Some(&runs.get(*place)?.tracks.get(&self.track)?.all);
        let figures: Vec<&Figures> = places.iter().map(of).collect::<Option<_>>()?;
        let value = |reading: &Reading| {
            let percents = figures.iter().map(|figures| (reading.percent)(figures)).collect::<Option<Vec<f64>>>()?;
            let of_tasks = self.rates(places, &reading.succeeds, self.excluded);
            let known = (reading.name == "paper" && places.len() == 1).then_some(figures[0].success_percent_interval);
            let percent = if let [percent] = percents[..] { percent } else { mean_of(&of_tasks)? };
            Some((reading.name, json_of(percent, known.unwrap_or_else(|| interval_of(&of_tasks)))))
        };
        let readings: BTreeMap<&str, Value> = READINGS.iter().filter_map(value).collect();
        // Of several samples the tasks that all have count.
        let methods = || {
            let shared = shared(&self.samples(places)).into_values();
            let of_track = shared.filter(|scored| scored[0].task.track == self.track);
            let left = of_track.map(|scored| {
                let (task, methods) = (&scored[0].task.id, scored[0].methods.iter());
                methods.filter(|method| !is_excluded(self.excluded, task, &method.method)).count()
            });
            left.filter(|methods| *methods > 0).collect::<Vec<_>>()
        };
        let (tasks, methods) = match places {
            [_] => (figures[0].tasks, figures[0].methods),
            _ => (methods().len(), methods().iter().sum()),
        };
        Some(json!({ "tasks": tasks, "methods": methods, "readings": readings }))
    }

    /// Returns the mean known cost of a submission to the tasks that all these samples have, and the number of tasks with one.
    fn cost(&self, places: &[usize]) -> (Option<f64>, usize) {
        let tasks = shared(&self.samples(places)).into_values().flatten().filter(|one| one.task.track == self.track);
        let costs: Vec<(&TaskId, f64)> =
            tasks.filter_map(|one| Some((&one.task.id, one.submission.as_ref()?.cost_usd?))).collect();
        let with_cost: BTreeSet<&TaskId> = costs.iter().map(|(task, _)| *task).collect();
        (mean(costs.iter().map(|(_, cost)| Some(*cost))), with_cost.len())
    }
}

/// Tells whether a method, or all of its task, is not certified.
fn is_excluded(excluded: &Excluded<'_>, task: &TaskId, method: &MethodId) -> bool {
    [None, Some(method)].iter().any(|which| excluded.contains_key(&(task, *which)))
}

fn json_of(percent: f64, interval: Option<[f64; 2]>) -> Value {
    let [low, high] = interval.map_or([None; 2], |ends| ends.map(Some));
    json!({ "percent": percent, "low": low, "high": high })
}

fn mean_of(rates: &Rates<'_>) -> Option<f64> {
    mean(rates.values().map(|(_, rate)| Some(*rate)))
}

fn interval_of(rates: &Rates<'_>) -> Option<[f64; 2]> {
    interval(&rates.values().map(|(_, rate)| *rate).collect::<Vec<_>>())
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
