//! The report of measured tasks: ratios between variants of executing the same cells, and shares of the time, as medians and
//! quartiles over tasks. No clock here: times come in as values.

mod formats;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) use self::formats::{markdown, text};
use testevo_sandbox::task::{Cell, RepositoryName, Revision, TaskId};

/// Version of measured tasks and of their summary.
pub(crate) const MEASUREMENT_SCHEMA: u32 = 3;

/// The least number of tasks for a statement about speed (`docs/performance.md`).
pub(crate) const LEAST_TASKS: usize = 30;

/// A variant of executing a cell, from its sources in git to its verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Variant {
    /// The paper's harness.
    Literal,
    /// Maven in every cell.
    Reference,
    /// A revision compiled once; each launch starts its own container.
    Direct,
    /// The direct path with containers started ahead.
    Ahead,
}

impl Variant {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::Literal, Self::Reference, Self::Direct, Self::Ahead];

    /// Returns the name used in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Literal => "literal",
            Self::Reference => "reference",
            Self::Direct => "direct",
            Self::Ahead => "ahead",
        }
    }
}

/// The parts of a cell's time, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Times {
    /// Everything, by the clock.
    pub(crate) wall_ms: u64,
    /// Until the prepared revision without the target file was at hand. Direct path only.
    pub(crate) prepare_ms: u64,
    /// Compiling: the compile container on the reference path, the warm compiler on the direct one.
    pub(crate) compile_ms: u64,
    /// Waiting for launch containers to begin. Direct path only.
    pub(crate) begin_ms: u64,
    /// Launch containers, from request to end. Direct path only.
    pub(crate) container_ms: u64,
    /// The JVMs of the methods.
    pub(crate) launch_ms: u64,
}

/// The setting of a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setting {
    /// The engine and its version.
    pub(crate) engine: String,
    /// This program's version and the beginning of its digest.
    pub(crate) version: String,
    /// Processors of the machine.
    pub(crate) processors: usize,
    /// Seed of the orders.
    pub(crate) seed: u64,
}

/// One cell, executed in every variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MeasuredCell {
    /// The cell.
    pub(crate) cell: Cell,
    /// The variants, in order of execution.
    pub(crate) order: Vec<Variant>,
    /// The times of each variant.
    pub(crate) times: BTreeMap<Variant, Times>,
    /// Time of the same JVMs in sequence in one container; `None` where the direct path launched none.
    pub(crate) floor_ms: Option<u64>,
    /// Why the direct path did not fit; its time then includes the reference path's run.
    pub(crate) unfit: Option<String>,
}

/// A revision, prepared and built by Maven alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MeasuredRevision {
    /// The revision.
    pub(crate) revision: Revision,
    /// The module, empty for the root.
    pub(crate) module: String,
    /// Time of preparing the revision from nothing, in milliseconds.
    pub(crate) prepare_ms: u64,
    /// `mvn -o test -DskipTests`.
    pub(crate) maven_ms: u64,
    /// Why the revision can't be compared.
    pub(crate) left_out: Option<String>,
}

/// One task, its cells one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MeasuredTask {
    /// [`MEASUREMENT_SCHEMA`].
    pub(crate) schema: u32,
    /// Where and how.
    pub(crate) setting: Setting,
    /// Runnable processes of the minute before its end, by the kernel's account; a quiet machine has few more than one.
    pub(crate) load: f64,
    /// The task.
    pub(crate) task_id: TaskId,
    /// Its repository.
    pub(crate) repository: RepositoryName,
    /// Cells in which something is executed.
    pub(crate) cells: Vec<MeasuredCell>,
    /// Its revisions, unless another task's measurement has them.
    pub(crate) revisions: Vec<MeasuredRevision>,
    /// Why the task is in no ratio: verdicts that differ, faults of ours.
    pub(crate) left_out: Vec<String>,
}

/// Which tasks and cells a ratio is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Over {
    /// All cells of all tasks. Where the direct path does not fit, its time includes the reference path's.
    Tasks,
    /// All cells of the tasks in which the direct path fits every cell.
    FitTasks,
    /// Of these, the cells in which a method is launched.
    LaunchedCells,
    /// Of these, the two cells of a submission: the test file after the change on new and on old code.
    SubmissionCells,
    /// Revisions.
    Revisions,
}

impl Over {
    /// Returns the words for people.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Tasks => "all tasks",
            Self::FitTasks => "tasks that fit the direct path",
            Self::LaunchedCells => "their cells that launch",
            Self::SubmissionCells => "their two cells of a submission",
            Self::Revisions => "revisions",
        }
    }
}

/// Median and quartiles.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    /// A quarter is below.
    pub(crate) lower_quartile: f64,
    /// Half is below.
    pub(crate) median: f64,
    /// Three quarters are below.
    pub(crate) upper_quartile: f64,
}

impl Spread {
    /// Returns the spread of values, `None` for none; between two values it interpolates linearly.
    pub(crate) fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let position = values.len().checked_sub(1)? as f64 * share;
            let (low, high) = (*values.get(position.floor() as usize)?, *values.get(position.ceil() as usize)?);
            Some(low + (high - low) * position.fract())
        };
        Some(Self { lower_quartile: at(0.25)?, median: at(0.5)?, upper_quartile: at(0.75)? })
    }
}

/// The ratio of two times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Ratio {
    /// The numerator, which should be the slower variant.
    pub(crate) above: &'static str,
    /// The denominator.
    pub(crate) below: &'static str,
    /// Over what.
    pub(crate) over: Over,
    /// Number of tasks or revisions in the ratio.
    pub(crate) count: usize,
    /// The ratio's spread over these, with equal weights; `None` without any.
    #[serde(flatten)]
    pub(crate) spread: Option<Spread>,
    /// All time above by all time below.
    pub(crate) summed: Option<f64>,
}

/// A part of a task's time, over tasks, in milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Part {
    /// The variant and its part.
    pub(crate) name: String,
    /// The spread over tasks; `None` without any.
    #[serde(flatten)]
    pub(crate) spread: Option<Spread>,
}

/// The report of all measured tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Measurement {
    /// [`MEASUREMENT_SCHEMA`].
    pub(crate) schema: u32,
    /// The settings, each once.
    pub(crate) settings: Vec<Setting>,
    /// Load while tasks were measured.
    pub(crate) load: Option<Spread>,
    /// Tasks in the ratios.
    pub(crate) measured: usize,
    /// Whether these tasks are enough for a statement.
    pub(crate) enough: bool,
    /// Measured tasks in no ratio.
    pub(crate) left_out: usize,
    /// Cells of the tasks in the ratios that the direct path does not fit.
    pub(crate) unfit_cells: usize,
    /// The ratios.
    pub(crate) ratios: Vec<Ratio>,
    /// The parts of the time, summed over a task's cells.
    pub(crate) parts: Vec<Part>,
    /// All measured tasks.
    pub(crate) tasks: Vec<MeasuredTask>,
}

/// Returns the report of measured tasks.
pub(crate) fn measurement(tasks: Vec<MeasuredTask>) -> Measurement {
    let mut settings: Vec<Setting> = Vec::new();
    for task in &tasks {
        if !settings.contains(&task.setting) {
            settings.push(task.setting.clone());
        }
    }
    let sound: Vec<&MeasuredTask> =
        tasks.iter().filter(|task| task.left_out.is_empty() && !task.cells.is_empty()).collect();
    let wall = |variant: Variant| move |cell: &MeasuredCell| cell.times.get(&variant).map_or(0, |times| times.wall_ms);
    let floor = |cell: &MeasuredCell| cell.floor_ms.unwrap_or(0);
    let mut ratios = Vec::new();
    for (above, below) in [
        (Variant::Literal, Variant::Direct),
        (Variant::Literal, Variant::Ahead),
        (Variant::Literal, Variant::Reference),
        (Variant::Reference, Variant::Direct),
        (Variant::Reference, Variant::Ahead),
    ] {
        for over in [Over::Tasks, Over::FitTasks] {
            ratios.push(ratio((above.name(), below.name()), over, &sums(&sound, over, wall(above), wall(below))));
        }
    }
    for variant in [Variant::Direct, Variant::Ahead] {
        for over in [Over::FitTasks, Over::LaunchedCells, Over::SubmissionCells] {
            ratios.push(ratio((variant.name(), "floor"), over, &sums(&sound, over, wall(variant), floor)));
        }
    }
    let revisions = tasks.iter().flat_map(|task| &task.revisions).filter(|revision| revision.left_out.is_none());
    let revisions: Vec<(u64, u64)> = revisions.map(|revision| (revision.prepare_ms, revision.maven_ms)).collect();
    ratios.push(ratio(("prepare", "maven"), Over::Revisions, &revisions));
    Measurement {
        schema: MEASUREMENT_SCHEMA,
        settings,
        load: Spread::of(tasks.iter().map(|task| task.load).collect()),
        measured: sound.len(),
        enough: sound.len() >= LEAST_TASKS,
        left_out: tasks.len() - sound.len(),
        unfit_cells: sound.iter().flat_map(|task| &task.cells).filter(|cell| cell.unfit.is_some()).count(),
        ratios,
        parts: parts(&sound),
        tasks,
    }
}

/// Returns the sums above and below of each task.
fn sums(
    tasks: &[&MeasuredTask],
    over: Over,
    above: impl Fn(&MeasuredCell) -> u64,
    below: impl Fn(&MeasuredCell) -> u64,
) -> Vec<(u64, u64)> {
    let fits = |task: &&&MeasuredTask| over == Over::Tasks || task.cells.iter().all(|cell| cell.unfit.is_none());
    let counts = |cell: &&MeasuredCell| match over {
        Over::LaunchedCells => cell.floor_ms.is_some(),
        Over::SubmissionCells => matches!(cell.cell, Cell::Nn | Cell::No),
        _ => true,
    };
    let sum = |task: &MeasuredTask, of: &dyn Fn(&MeasuredCell) -> u64| task.cells.iter().filter(counts).map(of).sum();
    tasks.iter().filter(fits).map(|task| (sum(task, &above), sum(task, &below))).collect()
}

/// Returns a ratio over pairs; what was divided by nothing is left out.
fn ratio((above, below): (&'static str, &'static str), over: Over, pairs: &[(u64, u64)]) -> Ratio {
    let pairs: Vec<(f64, f64)> =
        pairs.iter().filter(|(_, below)| *below > 0).map(|(above, below)| (*above as f64, *below as f64)).collect();
    let total = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>();
    Ratio {
        above,
        below,
        over,
        count: pairs.len(),
        spread: Spread::of(pairs.iter().map(|(above, below)| above / below).collect()),
        summed: (!pairs.is_empty()).then(|| total(|pair| pair.0) / total(|pair| pair.1)),
    }
}

/// A variant, a part's name, and the part.
type PartOf = (Variant, &'static str, fn(&Times) -> u64);

/// What is told of where the time goes; a part that a variant does not have is not among them.
const PARTS: [PartOf; 14] = [
    (Variant::Literal, "all", |times| times.wall_ms),
    (Variant::Reference, "all", |times| times.wall_ms),
    (Variant::Reference, "compile containers", |times| times.compile_ms),
    (Variant::Reference, "JVMs of methods", |times| times.launch_ms),
    (Variant::Direct, "all", |times| times.wall_ms),
    (Variant::Direct, "leaving the file out", |times| times.prepare_ms),
    (Variant::Direct, "compiling", |times| times.compile_ms),
    (Variant::Direct, "launch containers", |times| times.container_ms),
    (Variant::Direct, "of these until they begin", |times| times.begin_ms),
    (Variant::Direct, "of these JVMs of methods", |times| times.launch_ms),
    (Variant::Ahead, "all", |times| times.wall_ms),
    (Variant::Ahead, "launch containers", |times| times.container_ms),
    (Variant::Ahead, "of these until they begin", |times| times.begin_ms),
    (Variant::Ahead, "of these JVMs of methods", |times| times.launch_ms),
];

/// Returns where the time of tasks goes that fit the direct path: what does not fit has no such parts.
fn parts(tasks: &[&MeasuredTask]) -> Vec<Part> {
    let fit: Vec<&&MeasuredTask> =
        tasks.iter().filter(|task| task.cells.iter().all(|cell| cell.unfit.is_none())).collect();
    let spread = |of: &dyn Fn(&MeasuredCell) -> u64| {
        Spread::of(fit.iter().map(|task| task.cells.iter().map(of).sum::<u64>() as f64).collect())
    };
    let of_variant = PARTS.iter().map(|(variant, name, of)| Part {
        name: format!("{}: {name}", variant.name()),
        spread: spread(&|cell| cell.times.get(variant).map_or(0, of)),
    });
    let floor = Part { name: "floor".to_owned(), spread: spread(&|cell| cell.floor_ms.unwrap_or(0)) };
    of_variant.chain(std::iter::once(floor)).collect()
}

#[cfg(test)]
mod tests;
