//! Clusters: submits shards with Slurm's own clients, asks these for the states of jobs, and records each sharded run.

pub mod accounts;
pub mod ended;
pub mod script;
pub mod sharded_run;
pub mod shards;
pub mod slurm;

use std::io;
use std::path::PathBuf;

use self::ended::Ended;
use crate::data_dir::shared::{GONE_HINT, is_gone};
use crate::error::{ExitStatus, Failure};

/// Errors of a cluster.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// A client can't be run.
    #[error("Slurm's client `{client}` can't be run: {source}")]
    NoClient {
        /// The client.
        client: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A client failed.
    #[error("Slurm's `{client}` failed: {words}")]
    Refused {
        /// The client.
        client: &'static str,
        /// Its own words.
        words: String,
    },
    /// A client did not reach the controller, which may have what it was told all the same.
    #[error("Slurm's `{client}` did not reach the controller: {words}")]
    Unreached {
        /// The client.
        client: &'static str,
        /// Its own words.
        words: String,
    },
    /// A client did not end in time.
    #[error("Slurm's `{client}` gave no answer within {seconds} seconds")]
    Silent {
        /// The client.
        client: &'static str,
        /// The limit.
        seconds: u64,
    },
    /// A client's answer is of no known form.
    #[error("the answer of Slurm's `{client}` can't be understood: {answer}")]
    Answer {
        /// The client.
        client: &'static str,
        /// The answer's beginning.
        answer: String,
    },
    /// An option of the settings would replace what shards need.
    #[error("`{option}` can't be an option of `sbatch` here: shards would not be found again")]
    Option {
        /// The option.
        option: String,
    },
    /// The cluster's arrays are smaller.
    #[error("{shards} shards are more than this cluster's arrays can have, which are {most}")]
    TooMany {
        /// The wanted number.
        shards: u32,
        /// The largest number.
        most: u32,
    },
    /// A shard ended with an error that trying again does not mend.
    #[error("shard {shard} of run `{run}` failed with exit code {status}: {words}")]
    Shard {
        /// The run.
        run: String,
        /// The shard.
        shard: u32,
        /// Its exit code.
        status: u8,
        /// The last line of its log.
        words: String,
        /// Its log.
        log: PathBuf,
    },
    /// A shard was lost too often.
    #[error("shard {shard} of run `{run}` was lost {attempts} times{}", last(.ended))]
    Lost {
        /// The run.
        run: String,
        /// The shard.
        shard: u32,
        /// How often it was submitted.
        attempts: usize,
        /// How Slurm ended it the last time, if that is known.
        ended: Option<Ended>,
        /// Its log.
        log: PathBuf,
    },
    /// A shard has ended well, but its files do not appear.
    #[error(
        "shard {shard} of run `{run}` has its results, but they can't be seen here after {seconds} seconds: {what}"
    )]
    Late {
        /// The run.
        run: String,
        /// The shard.
        shard: u32,
        /// How long they were looked for.
        seconds: u64,
        /// What can't be seen.
        what: String,
    },
    /// `runs cancel` ended the shards.
    #[error("the shards of run `{run}` were cancelled")]
    Cancelled {
        /// The run.
        run: String,
    },
    /// A run of that name was submitted for something else.
    #[error("run `{run}` was submitted with other arguments, tasks or predictions")]
    Other {
        /// The run.
        run: String,
    },
    /// A finished run has the name of a shard, and is of another command.
    #[error("the run `{run}` is there already, of other tasks, predictions or options")]
    OtherShard {
        /// The shard's run.
        run: String,
    },
    /// The run is not on a cluster.
    #[error("run `{run}` has no shards on a cluster")]
    NotSubmitted {
        /// The run.
        run: String,
    },
    /// The record of a sharded run can't be read.
    #[error("the record `{path}` can't be read: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The parser's message.
        reason: String,
    },
    /// A record or script could not be read or written.
    #[error("the files of a sharded run could not be read or written: {0}")]
    Io(#[source] io::Error),
    /// The file system of the data directory is not there any more.
    #[error("the file system of the data directory does not answer: {0}")]
    Gone(#[source] io::Error),
}

/// Returns the end of an error message that names a job's end; empty if that is not known.
fn last(ended: &Option<Ended>) -> String {
    ended.as_ref().map(|ended| format!("; of the last time {ended}")).unwrap_or_default()
}

impl From<io::Error> for ClusterError {
    fn from(error: io::Error) -> Self {
        match is_gone(&error) {
            true => Self::Gone(error),
            false => Self::Io(error),
        }
    }
}

impl Failure for ClusterError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::NoClient { .. } => ExitStatus::Engine,
            Self::Other { .. }
            | Self::OtherShard { .. }
            | Self::NotSubmitted { .. }
            | Self::Option { .. }
            | Self::TooMany { .. } => ExitStatus::Usage,
            Self::Malformed { .. } => ExitStatus::Mismatch,
            Self::Cancelled { .. } => ExitStatus::Interrupted,
            Self::Refused { .. }
            | Self::Unreached { .. }
            | Self::Silent { .. }
            | Self::Answer { .. }
            | Self::Lost { .. }
            | Self::Late { .. }
            | Self::Io(_)
            | Self::Gone(_) => ExitStatus::Infrastructure,
            Self::Shard { status, .. } => match status {
                2 => ExitStatus::Usage,
                4 => ExitStatus::BadInput,
                5 => ExitStatus::Origin,
                6 => ExitStatus::Mismatch,
                7 => ExitStatus::Engine,
                _ => ExitStatus::Infrastructure,
            },
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoClient { .. } => "run this where Slurm's clients are in PATH, such as on a login node",
            Self::Refused { client: "sbatch", .. } => {
                "ask for what the cluster has below [slurm] in settings.toml; rerun the same command to resume"
            }
            Self::Refused { .. } | Self::Unreached { .. } | Self::Silent { .. } => {
                "look with `scontrol ping` whether the controller runs; rerun the same command to resume"
            }
            Self::Option { .. } => {
                "remove it from `options` below [slurm] in settings.toml; `at_once` there limits how many shards run"
            }
            Self::TooMany { .. } => "give a smaller number with `--shards`, or have MaxArraySize raised in slurm.conf",
            Self::Answer { .. } => "look whether this is Slurm's own client, and of version 20.02 or later",
            Self::Lost { ended: Some(ended), .. } if ended.hint().is_some() => return ended.hint().map(str::to_owned),
            Self::Shard { log, .. } | Self::Lost { log, .. } => {
                return Some(format!("read `{}`; rerun the same command to resume", log.display()));
            }
            Self::Late { .. } => {
                "look whether this machine and the nodes have the same file system at the data directory; the same command waits \
                 again. If files were removed, remove the shard's run with `runs rm`, end the jobs with `runs cancel`, and run the \
                 same command: it executes the shard anew"
            }
            Self::Gone(_) => GONE_HINT,
            Self::Cancelled { .. } => "the same command submits again what is unfinished",
            Self::Other { .. } => "name another run with `--run-id`, or none",
            Self::OtherShard { .. } => "name another run with `--run-id`, or remove that one with `runs rm`",
            Self::NotSubmitted { .. } => "`testevo-sandbox runs list` shows what there is",
            Self::Malformed { .. } => "remove its directory; the shards' runs are not touched by that",
            Self::Io(_) => "check the data directory's permissions and free space",
        };
        Some(hint.to_owned())
    }
}
