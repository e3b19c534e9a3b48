//! How shards are submitted to Slurm: the table `[slurm]`.

use std::num::NonZeroU32;

use serde::Deserialize;

/// What is asked of Slurm for each shard. What is unset is the cluster's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SlurmSettings {
    /// Number of shards, where `--shards` gives none.
    pub shards: Option<NonZeroU32>,
    /// As `sbatch --partition`.
    pub partition: Option<String>,
    /// As `sbatch --account`.
    pub account: Option<String>,
    /// As `sbatch --qos`.
    pub qos: Option<String>,
    /// As `sbatch --constraint`.
    pub constraint: Option<String>,
    /// As `sbatch --time`, such as `8:00:00`.
    pub time: Option<String>,
    /// As `sbatch --mem`, such as `16G`.
    pub memory: Option<String>,
    /// As `sbatch --cpus-per-task`. A shard executes as many jobs at once.
    pub cpus: Option<NonZeroU32>,
    /// As `--scratch` of each shard; the shell of the node replaces variables such as `$TMPDIR`.
    pub scratch: Option<String>,
    /// As `--scratch-gib` of each shard.
    pub scratch_gib: Option<NonZeroU32>,
    /// More options of `sbatch`, each in one word such as `--exclude=node7`.
    pub options: Vec<String>,
}

impl SlurmSettings {
    /// Returns the arguments of `sbatch` that ask for this.
    pub fn arguments(&self) -> Vec<String> {
        let texts = [
            ("partition", &self.partition),
            ("account", &self.account),
            ("qos", &self.qos),
            ("constraint", &self.constraint),
            ("time", &self.time),
            ("mem", &self.memory),
        ];
        let texts = texts.into_iter().filter_map(|(name, value)| Some(format!("--{name}={}", value.as_ref()?)));
        let cpus = self.cpus.map(|cpus| format!("--cpus-per-task={cpus}"));
        texts.chain(cpus).chain(self.options.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_setting_is_an_argument() {
        let text = "partition = \"short\"\nmemory = \"8G\"\ncpus = 4\noptions = [\"--exclude=a b\"]\n";
        let settings: SlurmSettings = toml::from_str(text).unwrap();
        let expected = ["--partition=short", "--mem=8G", "--cpus-per-task=4", "--exclude=a b"];
        assert_eq!(settings.arguments(), expected);
        assert!(toml::from_str::<SlurmSettings>("partitions = \"short\"").is_err());
    }
}
