//! How Slurm ended a shard's job.

use std::fmt;

/// How Slurm ended an element of a job's array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The state, as Slurm names it, such as `TIMEOUT`.
    pub state: String,
    /// The node where it ran, if it ran on one.
    pub node: Option<String>,
}

impl Ended {
    /// Tells whether Slurm ended the job before its script did. After `OUT_OF_MEMORY` the script may have gone on, since the
    /// kernel ends one process.
    pub fn was_killed(&self) -> bool {
        matches!(self.state.as_str(), "NODE_FAIL" | "BOOT_FAIL" | "TIMEOUT" | "DEADLINE" | "PREEMPTED" | "CANCELLED")
    }

    /// Tells whether the same job could do better on another node.
    pub fn is_the_nodes_fault(&self) -> bool {
        !matches!(self.state.as_str(), "TIMEOUT" | "DEADLINE" | "PREEMPTED" | "CANCELLED" | "OUT_OF_MEMORY")
    }

    /// Returns the remedy for a job that ended this way; `None` if only the job's log can tell.
    pub fn hint(&self) -> Option<&'static str> {
        match self.state.as_str() {
            "TIMEOUT" | "DEADLINE" => {
                Some("give each shard more `time` below [slurm] in settings.toml; rerun the same command to resume")
            }
            "OUT_OF_MEMORY" => {
                Some("give each shard more `memory` below [slurm] in settings.toml; rerun the same command to resume")
            }
            _ => None,
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.node {
            Some(node) => write!(f, "Slurm says {} on {node}", self.state),
            None => write!(f, "Slurm says {}", self.state),
        }
    }
}
