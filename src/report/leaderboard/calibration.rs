//! Compares the developers' tests with published values of the same tasks, as if our coverage and mutation score were
//! measured as in the paper.
//!
//! Only the new revision's date identifies published rows. If a date has one task and one row per agent, that row is
//! the task's. If it has several, tasks and rows are compared as multisets, which only counts equal values. If the
//! numbers of tasks and rows differ, some rows belong to tasks that were not run here, and nothing is compared.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Leaderboard, Row, agents_means};
use crate::metrics::aggregate::{Adequacy, mean};
use crate::report::score::{AgentMeans, ScoredModel, ScoredTask};
use crate::task::{MethodId, TaskId, Track};

/// Greatest difference of equal values. Published values have four digits, of which three are compared.
const TOLERANCE: f64 = 0.000_55;

/// Version of the calibration's schema.
pub const CALIBRATION_SCHEMA: u32 = 1;

/// The comparison of the developers' tests in some runs with a leaderboard.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// [`CALIBRATION_SCHEMA`].
    pub schema: u32,
    /// The runs of these developers' tests.
    pub runs: Vec<String>,
    /// Agreement by track and value.
    pub agreement: Vec<Agreement>,
    /// The agents' own means over the file.
    pub agents: Vec<AgentMeans>,
    /// Every group with a value that differs from all agents' values, or from a value on which all agents agree.
    pub differences: Vec<Difference>,
}

/// A compared value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// Focal line coverage.
    Coverage,
    /// Mutation score.
    Mutation,
}

impl Value {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Coverage => "coverage",
            Self::Mutation => "mutation",
        }
    }

    fn of(self, row: &Row) -> Option<f64> {
        match self {
            Self::Coverage => row.cov,
            Self::Mutation => row.mutation,
        }
    }
}

/// How one value of the developers' tests and the agents' agree on a track. Values are in [0, 1].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// The track.
    pub track: Track,
    /// The value.
    pub value: Value,
    /// Tasks of the run.
    pub tasks: usize,
    /// Tasks whose row is known, and tasks compared as a part of a multiset.
    pub by_task: usize,
    /// See [`Agreement::by_task`].
    pub by_multiset: usize,
    /// Tasks at dates for which the file has another number of rows, or none.
    pub left_out: usize,
    /// Compared tasks in which at least two agents have a value and all have the same one.
    pub agreed: usize,
    /// Of these, tasks in which ours is equal.
    pub equal_where_agreed: usize,
    /// Compared tasks in which some agent has a value.
    pub published: usize,
    /// Of these, tasks in which ours equals some agent's. For a multiset, the number shared with the agent that shares
    /// most.
    pub equal_to_some: usize,
    /// Compared tasks without a value of ours or of any agent that passes.
    pub both_undefined: usize,
    /// Compared tasks in which only we have a value.
    pub only_ours: usize,
    /// Compared tasks in which only agents have one.
    pub only_theirs: usize,
    /// Our mean over the compared tasks with a value.
    pub mean: Option<f64>,
    /// The agents' mean over their values, every agent with the same weight.
    pub mean_of_agents: Option<f64>,
    /// Mean of our value minus the agents' mean in the same task. Within a multiset, values are paired in ascending
    /// order.
    pub mean_difference: Option<f64>,
    /// Median of that.
    pub median_difference: Option<f64>,
}

/// Tasks of a date in which a value differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The track.
    pub track: Track,
    /// The value.
    pub value: Value,
    /// The date.
    pub date: String,
    /// Whether all agents agree.
    pub agreed: bool,
    /// Each agent's values.
    pub agents: BTreeMap<String, Vec<Option<f64>>>,
    /// Our values with their counts.
    pub tasks: Vec<MeasuredTask>,
}

/// The measurements of one task.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredTask {
    /// The task.
    pub task: TaskId,
    /// The mean over its methods.
    pub value: Option<f64>,
    /// Its methods.
    pub methods: Vec<MeasuredMethod>,
}

/// The measurements of one method of the developers' tests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeasuredMethod {
    /// The method.
    pub method: MethodId,
    /// Its own focal methods among all of the task.
    pub own_focal: String,
    /// Covered lines of all lines, or killed mutants of all mutants; empty if nothing was measured.
    pub counts: String,
}

/// A task with the developers' values.
struct Ours<'a> {
    scored: &'a ScoredTask,
    coverage: Option<f64>,
    mutation: Option<f64>,
}

/// Compares the developers' tests with a leaderboard. The tests are scored as a model in runs without common tasks.
pub fn calibrate(models: &[&ScoredModel], leaderboard: &Leaderboard) -> Calibration {
    let mut groups: BTreeMap<(Track, &str), Vec<Ours<'_>>> = BTreeMap::new();
    for scored in models.iter().flat_map(|model| &model.tasks) {
        groups.entry((scored.task.track, scored.task.rev2_date.as_str())).or_default().push(ours(scored));
    }
    let mut agreement = Vec::new();
    let mut differences = Vec::new();
    let mut tracks: Vec<Track> = groups.keys().map(|(track, _)| *track).collect();
    tracks.dedup();
    for track in tracks {
        for value in [Value::Coverage, Value::Mutation] {
            let mut sums = Sums::new(track, value);
            for ((_, date), ours) in groups.iter().filter(|((of, _), _)| *of == track) {
                differences.extend(sums.add(date, ours, leaderboard));
            }
            agreement.push(sums.agreement());
        }
    }
    let agents = agents_means(leaderboard);
    let runs = models.iter().map(|model| model.run_id.clone()).collect();
    Calibration { schema: CALIBRATION_SCHEMA, runs, agreement, agents, differences }
}

fn ours(scored: &ScoredTask) -> Ours<'_> {
    let over =
        |value: fn(&Adequacy) -> Option<f64>| mean(scored.methods.iter().map(|method| value(&method.score.pred)));
    // After a lost measurement, the other methods' mean is not the task's value.
    let coverage = over(|values| values.coverage).map(|percent| percent / 100.0);
    let coverage = coverage.filter(|_| scored.measured.coverage_pred);
    Ours { scored, coverage, mutation: over(|values| values.mutation).filter(|_| scored.measured.mutation_pred) }
}

impl Ours<'_> {
    fn value(&self, value: Value) -> Option<f64> {
        match value {
            Value::Coverage => self.coverage,
            Value::Mutation => self.mutation,
        }
    }

    fn measured(&self, value: Value) -> MeasuredTask {
        let all = self.scored.focal.as_ref().map_or(0, |focal| focal.lines().len());
        let methods = self.scored.methods.iter().map(|method| {
            let own = self.scored.own.as_ref().and_then(|own| own.of(&method.method));
            let own_focal = own.map(|own| format!("{} with {} of {all} listed", own.own.len(), own.places().count()));
            let own_focal = own_focal.unwrap_or_default();
            let counts = match value {
                Value::Coverage => method.coverage.as_ref().and_then(|record| {
                    record.coverage?;
                    let own = record.own.as_ref().unwrap_or(&record.focal);
                    let (covered, lines) = own
                        .iter()
                        .fold((0, 0), |(covered, lines), one| (covered + one.covered.len(), lines + one.lines.len()));
                    Some(format!("{covered} of {lines} lines"))
                }),
                Value::Mutation => method.mutation.as_ref().and_then(|record| {
                    let kills = record.kills?;
                    Some(format!("{} of {} mutants", kills.killed, kills.count))
                }),
            };
            MeasuredMethod { method: method.method.clone(), own_focal, counts: counts.unwrap_or_default() }
        });
        MeasuredTask { task: self.scored.task.id.clone(), value: self.value(value), methods: methods.collect() }
    }
}

/// The sums of an agreement.
struct Sums {
    agreement: Agreement,
    ours: Vec<Option<f64>>,
    agents: BTreeMap<String, Vec<Option<f64>>>,
    differences: Vec<f64>,
}

impl Sums {
    fn new(track: Track, value: Value) -> Self {
        let agreement = Agreement {
            track,
            value,
            tasks: 0,
            by_task: 0,
            by_multiset: 0,
            left_out: 0,
            agreed: 0,
            equal_where_agreed: 0,
            published: 0,
            equal_to_some: 0,
            both_undefined: 0,
            only_ours: 0,
            only_theirs: 0,
            mean: None,
            mean_of_agents: None,
            mean_difference: None,
            median_difference: None,
        };
        Self { agreement, ours: Vec::new(), agents: BTreeMap::new(), differences: Vec::new() }
    }

    /// Adds the tasks of a date, and returns them if a value differs.
    fn add(&mut self, date: &str, ours: &[Ours<'_>], leaderboard: &Leaderboard) -> Option<Difference> {
        let (track, value, number) = (self.agreement.track, self.agreement.value, ours.len());
        self.agreement.tasks += number;
        let entries = leaderboard.tracks.get(&track).map_or(&[][..], Vec::as_slice);
        let mut agents: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
        for entry in entries {
            let rows: Vec<Option<f64>> =
                entry.tasks.iter().filter(|row| row.d == date).map(|row| value.of(row)).collect();
            if !rows.is_empty() {
                agents.insert(entry.name(), rows);
            }
        }
        if agents.is_empty() || agents.values().any(|rows| rows.len() != number) {
            self.agreement.left_out += number;
            return None;
        }
        match number {
            1 => self.agreement.by_task += 1,
            _ => self.agreement.by_multiset += number,
        }
        let own = sorted(ours.iter().filter_map(|one| one.value(value)));
        // An agent whose submission does not pass has no value, which tells nothing about the task.
        let most = agents.values().map(|rows| rows.iter().flatten().count()).max().unwrap_or_default();
        let full: Vec<Vec<f64>> = agents
            .values()
            .map(|rows| sorted(rows.iter().copied().flatten()))
            .filter(|rows| rows.len() == most && most > 0)
            .collect();
        let agreed = full.len() > 1 && full.windows(2).all(|pair| shared(&pair[0], &pair[1]) == most);
        let equal = full.iter().map(|rows| shared(&own, rows)).max().unwrap_or_default();
        self.agreement.published += most;
        self.agreement.equal_to_some += equal;
        if agreed {
            self.agreement.agreed += most;
            self.agreement.equal_where_agreed += equal;
        }
        let both = own.len().min(most);
        self.agreement.both_undefined += number - own.len().max(most);
        self.agreement.only_ours += own.len() - both;
        self.agreement.only_theirs += most - both;
        if own.len() == most && most > 0 {
            for (place, one) in own.iter().enumerate() {
                self.differences
                    .extend(mean(full.iter().map(|rows| rows.get(place).copied())).map(|theirs| one - theirs));
            }
        }
        self.ours.extend(ours.iter().map(|one| one.value(value)));
        let differs = equal < most || own.len() != most;
        let difference = differs.then(|| Difference {
            track,
            value,
            date: date.to_owned(),
            agreed,
            agents: agents.clone(),
            tasks: ours.iter().map(|one| one.measured(value)).collect(),
        });
        for (name, rows) in agents {
            self.agents.entry(name).or_default().extend(rows);
        }
        difference
    }

    fn agreement(mut self) -> Agreement {
        self.differences.sort_by(f64::total_cmp);
        let middle = self.differences.len() / 2;
        let median = match self.differences.len() {
            0 => None,
            number if number % 2 == 1 => Some(self.differences[middle]),
            _ => Some(f64::midpoint(self.differences[middle - 1], self.differences[middle])),
        };
        Agreement {
            mean: mean(self.ours.into_iter()),
            mean_of_agents: mean(self.agents.into_values().map(|rows| mean(rows.into_iter()))),
            mean_difference: mean(self.differences.iter().copied().map(Some)),
            median_difference: median,
            ..self.agreement
        }
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// Returns the number of pairs of equal values, each with one value of either ascending list.
fn shared(one: &[f64], other: &[f64]) -> usize {
    let (mut at, mut number) = (0, 0);
    for value in one {
        while other.get(at).is_some_and(|other| *other < value - TOLERANCE) {
            at += 1;
        }
        if other.get(at).is_some_and(|other| *other <= value + TOLERANCE) {
            (at, number) = (at + 1, number + 1);
        }
    }
    number
}
