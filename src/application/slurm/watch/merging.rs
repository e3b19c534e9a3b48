//! What becomes of shards that are done.

use super::Watch;
use crate::application::merge::{self, MergedRun, merge};
use crate::cluster::ClusterError;
use crate::cluster::shards::has_finished;
use crate::error::CommandError;
use crate::execution::run::directory::RunDirectoryError;
use crate::execution::run::list::remove;

impl<'a> Watch<'a> {
    /// Merges the shards, and removes what the merged run has of them.
    pub(in crate::application::slurm) fn merged(self) -> Result<MergedRun<'a>, CommandError> {
        let Self { context, data_dir, directory, sharded, .. } = self;
        let shards = || (1..=sharded.shards).map(|shard| sharded.run_of(shard));
        let run_id = sharded.run_id.clone();
        let merged = match has_finished(data_dir, &run_id)? {
            true => merge::merged(&run_id, context)?,
            false => match merge(&shards().collect::<Vec<_>>(), Some(run_id.clone()), context)? {
                Some(merged) => merged,
                None => return Err(ClusterError::NotSubmitted { run: run_id }.into()),
            },
        };
        for shard in shards() {
            match remove(data_dir, &shard, false) {
                Ok(_) | Err(RunDirectoryError::Unknown(_)) => {}
                Err(error) => context.events.warning(format!("the run {shard} is merged, but stays: {error}")),
            }
        }
        // A job that is about to end may still write there. What stays is found by the same command, which then prints the run.
        if let Err(error) = directory.remove() {
            let path = directory.path().display();
            context.events.warning(format!("the run {run_id} is merged, but `{path}` stays: {error}"));
        }
        Ok(merged)
    }
}
