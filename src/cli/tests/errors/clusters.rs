//! The errors of clusters.

use super::{absent, disk, path, text};
use crate::cluster::ClusterError;
use crate::cluster::ended::Ended;
use crate::error::CommandError;

pub(super) fn of_clusters() -> Vec<CommandError> {
    let run = || text("run");
    let ended = |state| Some(Ended { state: text(state), node: Some(text("n1")) });
    super::all([
        ClusterError::NoClient { client: "sbatch", source: absent() },
        ClusterError::Refused { client: "sbatch", words: text("invalid partition specified: nowhere") },
        ClusterError::Refused { client: "squeue", words: text("invalid user") },
        ClusterError::Unreached { client: "sbatch", words: text("Socket timed out on send/recv operation") },
        ClusterError::Silent { client: "squeue", seconds: 180 },
        ClusterError::Option { option: text("--array=1-3") },
        ClusterError::TooMany { shards: 2000, most: 1000 },
        ClusterError::Answer { client: "squeue", answer: text("?") },
        ClusterError::Shard { run: run(), shard: 3, status: 2, words: text("no lock"), log: path() },
        ClusterError::Shard { run: run(), shard: 3, status: 7, words: text("no engine"), log: path() },
        ClusterError::Lost { run: run(), shard: 3, attempts: 3, ended: None, log: path() },
        ClusterError::Lost { run: run(), shard: 3, attempts: 3, ended: ended("NODE_FAIL"), log: path() },
        ClusterError::Lost { run: run(), shard: 3, attempts: 3, ended: ended("TIMEOUT"), log: path() },
        ClusterError::Lost { run: run(), shard: 3, attempts: 3, ended: ended("OUT_OF_MEMORY"), log: path() },
        ClusterError::Late { run: run(), shard: 3, seconds: 300, what: text("4 of 12 logs and other files") },
        ClusterError::Cancelled { run: run() },
        ClusterError::Other { run: run() },
        ClusterError::OtherShard { run: format!("{}-shard-1", run()) },
        ClusterError::NotSubmitted { run: run() },
        ClusterError::Malformed { path: path(), reason: text("no JSON") },
        ClusterError::Io(disk()),
        ClusterError::Gone(std::io::Error::from_raw_os_error(libc::ESTALE)),
    ])
}
