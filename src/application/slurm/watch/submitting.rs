//! Gives shards to Slurm.

use std::collections::{BTreeMap, BTreeSet};

use super::Watch;
use crate::cluster::ClusterError;
use crate::cluster::script;
use crate::cluster::slurm::{self, Job};
use crate::data_dir::write_atomically;
use crate::execution::run::reopening::recorded_bytes;
use crate::output::counted;

/// The most nodes that are avoided at once. Where more lose shards, the cause is hardly a node.
const MOST_AVOIDED: usize = 16;

impl Watch<'_> {
    /// Gives lost shards to Slurm. Those that avoid the same nodes are one job.
    pub(super) async fn submit_all(&mut self, lost: Vec<(u32, Option<String>)>) -> Result<(), ClusterError> {
        let mut groups: BTreeMap<BTreeSet<String>, Vec<u32>> = BTreeMap::new();
        for (shard, node) in lost {
            let mut avoided = self.sharded.avoided_for(shard);
            avoided.extend(node);
            groups.entry(avoided).or_default().push(shard);
        }
        for (avoided, shards) in groups {
            let avoided = if avoided.len() > MOST_AVOIDED { Vec::new() } else { avoided.into_iter().collect() };
            self.submit(shards, avoided).await?;
        }
        Ok(())
    }

    /// Gives shards to Slurm. The attempt is written down first: after a kill its job is found again by its name.
    async fn submit(&mut self, shards: Vec<u32>, mut avoided: Vec<String>) -> Result<(), ClusterError> {
        for shard in &shards {
            self.looks.remove(shard);
            self.ended.remove(shard);
            self.recorded.insert(*shard, recorded_bytes(self.data_dir, &self.sharded.run_of(*shard)));
            self.directory.forget_end(*shard)?;
        }
        let places = (self.data_dir.root(), self.directory.path());
        let script = script::render(&self.sharded, &self.program, places, &self.context.options.slurm);
        // For people who look for what ran.
        write_atomically(&self.directory.path().join("shard.sh"), script.as_bytes()).map_err(ClusterError::from)?;
        let name = self.sharded.add_attempt(shards.clone(), avoided.clone(), self.data_dir).name.clone();
        if let Err(error) = self.directory.write(&self.sharded) {
            self.sharded.attempts.pop();
            return Err(error);
        }
        let submit = async |avoided: &[String]| {
            let job = Job {
                name: &name,
                shards: &shards,
                node: None,
                avoided,
                directory: self.sharded.asked.directory.as_ref(),
                logs: self.directory.path(),
                script: &script,
            };
            slurm::submit(job, &self.context.options.slurm).await
        };
        let mut submitted = submit(&avoided).await;
        // There may be no other node.
        if !avoided.is_empty() && matches!(submitted, Err(ClusterError::Refused { .. })) {
            avoided.clear();
            submitted = submit(&avoided).await;
        }
        match submitted {
            Ok(number) => {
                if let Some(attempt) = self.sharded.attempts.last_mut() {
                    attempt.number = Some(number.clone());
                    self.directory.write(&self.sharded)?;
                }
                let what = counted(shards.len(), "shard", "shards");
                let elsewhere = match avoided.is_empty() {
                    true => String::new(),
                    false => format!(", away from {}", avoided.join(", ")),
                };
                self.context.events.message(format!("submitted {what} as job {number}{elsewhere}"));
            }
            // The controller may have the job: it is looked for by its name.
            Err(error @ (ClusterError::Unreached { .. } | ClusterError::Silent { .. })) => {
                self.context.events.warning(format!("{error}; it may have the job, which is looked for"));
            }
            Err(error) => {
                // Nothing was submitted, so this is no attempt.
                if matches!(
                    error,
                    ClusterError::Refused { .. } | ClusterError::NoClient { .. } | ClusterError::Option { .. }
                ) {
                    self.sharded.attempts.pop();
                    self.directory.write(&self.sharded)?;
                }
                return Err(error);
            }
        }
        if self.directory.is_cancelled() {
            slurm::cancel(&[&name]).await?;
        }
        Ok(())
    }
}
