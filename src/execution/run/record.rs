//! Records: the result of one target method in one execution, a JSON line each.
//!
//! A record holds facts and the outcome derived from them. Times and values of the machine are apart, in [`Measured`],
//! so that two runs of the same inputs can be compared.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::outcome::Outcome;
use crate::task::{Cell, MethodId, RepositoryName, TaskId, Track};

/// Version of the record's schema.
pub const RECORD_SCHEMA: u32 = 1;

/// The most missing paths in a record.
pub const MOST_MISSING: usize = 20;

/// One method in one cell in one repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CellRecord {
    /// [`RECORD_SCHEMA`].
    pub schema: u32,
    /// The task.
    pub task_id: TaskId,
    /// Its repository.
    pub repository: RepositoryName,
    /// Its track.
    pub track: Track,
    /// The cell.
    pub cell: Cell,
    /// The target method.
    pub method: MethodId,
    /// Counted from 1.
    pub repeat: u32,
    /// The requested path; [`Measured::path`] is the path that ran.
    #[serde(default)]
    pub path: ExecutionPath,
    /// The outcome and its reason.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// One or a few lines for people: the first error, the thrown class and message. Control characters escaped.
    pub detail: String,
    /// Whether an error lies in code that the method reaches, for `compile_fail(target_file)`. `None` for other
    /// outcomes and in records of earlier programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attributed: Option<bool>,
    /// What the code revision's tree lacks, at most [`MOST_MISSING`] paths: submodules, contents in git-lfs's store,
    /// contents that the git repository lacks. Empty for a pass, and where nothing is missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Containers started for the record, infrastructure retries included.
    pub attempts: u32,
    /// The execution key: equal keys mean equal inputs. `None` if nothing was executed.
    pub key: Option<Digest>,
    /// Times and facts about the machine; these may differ for equal inputs.
    pub measured: Measured,
}

/// A way to execute a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExecutionPath {
    /// The reference: Maven in every cell.
    #[default]
    Maven,
    /// The revision is compiled once, and one file is compiled again for each cell.
    Direct,
}

impl std::fmt::Display for ExecutionPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Maven => "maven",
            Self::Direct => "direct",
        })
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Values that each run measures anew.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Measured {
    /// The path that ran.
    #[serde(default)]
    pub path: ExecutionPath,
    /// Number of events without the runner's signature. Other code wrote them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub forged_events: u64,
    /// Whether what the method threw says that no network could be reached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network_missed: bool,
    /// Whether the method passed but its report is missing, although the runner wrote one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unreported: bool,
    /// The concrete subclasses in which the method of an abstract class or an interface was launched; each has to pass.
    /// Empty for any other method. Times and sizes are then the largest of these launches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subclasses: Vec<String>,
    /// How many more concrete subclasses there are, in which the method was not launched.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub subclasses_left_out: u64,
    /// Whether Maven built all modules, because it can't build the module and its dependencies alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole_build: bool,
    /// Why the reference path ran although the direct path was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit: Option<String>,
    /// Wall time in milliseconds until the cell's revision was available, prepared or found in the store. Direct path
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare_ms: Option<u64>,
    /// Wall time of the launch's container, from the request to its end, in milliseconds. Direct path only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_ms: Option<u64>,
    /// Wall time until the container's init began, in milliseconds. Direct path only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin_ms: Option<u64>,
    /// Wall time in milliseconds of the cell's compile container (reference path) or compilation (direct path). All
    /// methods of the cell share it.
    pub compile_ms: Option<u64>,
    /// Processor time of Maven and its child processes, in milliseconds. Reference path only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_cpu_ms: Option<u64>,
    /// Largest resident size of Maven or one of its child processes, in bytes. Reference path only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_peak_bytes: Option<u64>,
    /// Wall time of the method's JVM, in milliseconds.
    pub launch_ms: Option<u64>,
    /// Processor time of the method's JVM, in milliseconds.
    pub launch_cpu_ms: Option<u64>,
    /// Largest resident size of the method's JVM or one of its child processes, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_peak_bytes: Option<u64>,
    /// Whether the container's memory limit killed a process.
    pub oom_killed: bool,
    /// Whether a timeout or an exhausted compiler counted without a second run, because an earlier one of the
    /// submission was confirmed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub believed: bool,
    /// Output bytes that were dropped.
    pub dropped_bytes: u64,
    /// The engine, such as `docker 20.10.24`.
    pub engine: String,
    /// Protections that the engine could not give, sorted; empty means all of them.
    pub isolation_missing: Vec<String>,
    /// Directory of the logs, relative to the run's `logs`.
    pub logs: Option<String>,
}

/// Returns the milliseconds since an instant.
pub fn milliseconds(since: std::time::Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
