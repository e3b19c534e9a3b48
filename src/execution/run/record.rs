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

/// One method in one cell in one repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Containers started for the record, infrastructure retries included.
    pub attempts: u32,
    /// The execution key: equal keys mean equal inputs. `None` where nothing was executed.
    pub key: Option<Digest>,
    /// Times and machine; equal inputs may differ here.
    pub measured: Measured,
}

/// A way to execute a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionPath {
    /// The reference: Maven in every cell.
    #[default]
    Maven,
    /// A revision compiled once, one file compiled again.
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

/// Values that each run measures anew.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The path that ran.
    #[serde(default)]
    pub path: ExecutionPath,
    /// Why the direct path was asked for and the reference ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit: Option<String>,
    /// Wall time until the cell's revision was at hand, prepared or found, in milliseconds. Direct path only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare_ms: Option<u64>,
    /// Wall time of the launch's container, from the request to its end, in milliseconds. Direct path only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_ms: Option<u64>,
    /// Wall time until the container's init began, in milliseconds. Direct path only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin_ms: Option<u64>,
    /// Wall time in milliseconds, shared by all methods of the cell: of the cell's compile container on the reference
    /// path, of the compilation on the direct path.
    pub compile_ms: Option<u64>,
    /// Processor time of Maven and what it started, in milliseconds. Reference path only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_cpu_ms: Option<u64>,
    /// Largest resident size of Maven or of a process that it started, in bytes. Reference path only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compile_peak_bytes: Option<u64>,
    /// Wall time of the method's JVM, in milliseconds.
    pub launch_ms: Option<u64>,
    /// Processor time of the method's JVM, in milliseconds.
    pub launch_cpu_ms: Option<u64>,
    /// Largest resident size of the method's JVM or of a process that it started, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_peak_bytes: Option<u64>,
    /// Whether the container's memory limit killed something.
    pub oom_killed: bool,
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
