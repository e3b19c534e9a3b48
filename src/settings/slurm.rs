//! How shards are submitted to Slurm: the table `[slurm]`.

use std::num::NonZeroU32;

use serde::Deserialize;

/// What is asked of Slurm for each shard. What is unset is the cluster's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SlurmSettings {
    /// Number of shards, where `--shards` gives none.
    pub shards: Option<NonZeroU32>,
    /// The most shards that run at once.
    pub at_once: Option<NonZeroU32>,
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
    /// As `sbatch --cpus-per-task`. Without `--jobs`, a shard executes as many jobs at once, but only one for each 4 GiB of
    /// its memory.
    pub cpus: Option<NonZeroU32>,
    /// As `--scratch` of each shard; the shell of the node replaces variables such as `$TMPDIR`.
    pub scratch: Option<String>,
    /// As `--scratch-gib` of each shard.
    pub scratch_gib: Option<NonZeroU32>,
    /// More options of `sbatch`, each in one word such as `--exclude=node7`.
    pub options: Vec<String>,
}

impl SlurmSettings {
    /// Returns the time limit of a shard in milliseconds; `None` without one, or in a form that only Slurm knows.
    pub fn time_ms(&self) -> Option<u64> {
        let text = self.time.as_deref()?;
        let (days, rest) = match text.split_once('-') {
            Some((days, rest)) => (days.parse::<u64>().ok()?, rest),
            None => (0, text),
        };
        let parts = rest.split(':').map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>()?;
        // The first number means hours after days or before two more, else minutes.
        let (hours, minutes, seconds) = match (parts.as_slice(), text.contains('-')) {
            ([hours], true) => (*hours, 0, 0),
            ([hours, minutes], true) => (*hours, *minutes, 0),
            ([hours, minutes, seconds], _) => (*hours, *minutes, *seconds),
            ([minutes], false) => (0, *minutes, 0),
            ([minutes, seconds], false) => (0, *minutes, *seconds),
            _ => return None,
        };
        let hours = days.checked_mul(24)?.checked_add(hours)?;
        hours
            .checked_mul(60)?
            .checked_add(minutes)?
            .checked_mul(60)?
            .checked_add(seconds)?
            .checked_mul(1000)
            .filter(|time| *time > 0)
    }

    /// Returns the memory of a shard in bytes; `None` if there is no limit, or in a form that only Slurm knows.
    pub fn memory_bytes(&self) -> Option<u64> {
        let text = self.memory.as_deref()?;
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let shift = match unit {
            "K" => 10,
            "" | "M" => 20,
            "G" => 30,
            "T" => 40,
            _ => return None,
        };
        number.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
    }

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
    fn limits_are_read_as_slurm_reads_them() {
        let time = |text: &str| SlurmSettings { time: Some(text.to_owned()), ..Default::default() }.time_ms();
        let seconds = ["90", "1:30", "8:00:00", "1-2", "1-2:03", "1-02:03:04"].map(|text| time(text).unwrap() / 1000);
        assert_eq!(seconds, [5400, 90, 28_800, 93_600, 93_780, 93_784]);
        // Slurm takes 0 for no limit.
        assert_eq!(["", "UNLIMITED", "1:2:3:4", "-1", "99999999999999999999", "0"].map(time), [None; 6]);
        let memory = |text: &str| SlurmSettings { memory: Some(text.to_owned()), ..Default::default() }.memory_bytes();
        assert_eq!(["16G", "2048", "1T", "1024K"].map(memory), [16 << 30, 2 << 30, 1 << 40, 1 << 20].map(Some));
        assert_eq!(["", "0", "G", "1.5G", "16GB"].map(memory), [None; 5]);
    }

    #[test]
    fn each_setting_is_an_argument() {
        let text = "partition = \"short\"\nmemory = \"8G\"\ncpus = 4\noptions = [\"--exclude=a b\"]\n";
        let settings: SlurmSettings = toml::from_str(text).unwrap();
        let expected = ["--partition=short", "--mem=8G", "--cpus-per-task=4", "--exclude=a b"];
        assert_eq!(settings.arguments(), expected);
        assert!(toml::from_str::<SlurmSettings>("partitions = \"short\"").is_err());
    }
}
