//! Records: what happened to one target method in one execution, a JSON line each.
//!
//! A record holds facts and the outcome made from them. Times and what belongs to the machine are kept apart, in
//! [`Measured`], so that two runs of the same inputs can be compared.

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
    /// The outcome and its reason.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// One or a few lines for people: the first error, the thrown class and message. Control characters escaped.
    pub detail: String,
    /// Containers started for the record, infrastructure retries included.
    pub attempts: u32,
    /// The execution key: equal keys mean equal inputs (design §7). `None` where nothing was executed.
    pub key: Option<Digest>,
    /// Times and machine; equal inputs may differ here.
    pub measured: Measured,
}

/// What is measured anew in each run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Wall time of the cell's compile container, in milliseconds, shared by all methods of the cell.
    pub compile_ms: Option<u64>,
    /// Wall time of the method's JVM, in milliseconds.
    pub launch_ms: Option<u64>,
    /// Processor time of the method's JVM, in milliseconds.
    pub launch_cpu_ms: Option<u64>,
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
