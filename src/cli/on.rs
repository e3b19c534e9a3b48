//! `--on`: the shards of a command on a cluster.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::interrupts::block_on;
use super::options::positive;
use crate::application::Context;
use crate::application::merge::MergedRun;
use crate::application::run::RunChoice;
use crate::application::slurm::{SlurmRequest, execute};
use crate::digest::Digest;
use crate::error::CommandError;
use crate::task::selector::Selector;

/// Options with a value that concern only the process that watches the shards, or that it sets for them.
const OWN_OPTIONS: [&str; 7] = ["--on", "--shards", "--run-id", "--format", "--events", "--color", "--data-dir"];
/// Such options without a value.
const OWN_SWITCHES: [&str; 7] = ["--detach", "--fresh", "--dry-run", "--verbose", "--quiet", "-v", "-q"];

/// Where the selection is executed.
#[derive(Debug, Args)]
pub(super) struct OnArguments {
    /// Execute the selection in shards on a cluster, by its own clients, and merge them. The data directory must have the
    /// same path on its nodes
    #[arg(long, value_enum, value_name = "CLUSTER", group = "parts", conflicts_with = "bundle")]
    on: Option<Cluster>,
    /// Number of shards [default: that of settings.toml; else as `--weights` and the limits of settings.toml ask for, or 8]
    #[arg(long, value_name = "N", requires = "on", value_parser = positive::<NonZeroU32>)]
    shards: Option<NonZeroU32>,
    /// Return once the shards are submitted; the same command without it waits for them
    #[arg(long, requires = "on")]
    detach: bool,
}

/// Kinds of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Cluster {
    /// One that Slurm manages
    Slurm,
}

impl OnArguments {
    /// Executes the command on the cluster that is named. `decided` returns the digest of what its shards have in common, and the number
    /// of models. The outer value is `None` if none is, the inner one if there is
    /// no merged run yet.
    ///
    /// # Errors
    /// Those of [`execute`].
    pub(super) fn run<'a>(
        &self,
        selector: &Selector,
        run: &RunChoice,
        costs: Option<&PathBuf>,
        decided: impl FnOnce() -> Result<(Digest, u64), CommandError>,
        context: &'a Context,
    ) -> Result<Option<Option<MergedRun<'a>>>, CommandError> {
        let Some(Cluster::Slurm) = self.on else { return Ok(None) };
        let (decided, models) = decided()?;
        let request = SlurmRequest {
            arguments: of_shards(std::env::args_os().skip(1))?,
            selector: selector.clone(),
            decided,
            shards: self.shards,
            costs: costs.map(|file| (file.clone(), models)),
            run_id: run.run_id.clone(),
            fresh: run.fresh,
            detach: self.detach,
        };
        block_on(context, execute(&request, context)).map(Some)
    }
}

/// Returns those of the typed arguments that the shards get.
fn of_shards(typed: impl IntoIterator<Item = OsString>) -> Result<Vec<String>, CommandError> {
    let mut typed = typed.into_iter();
    let mut kept = Vec::new();
    while let Some(argument) = typed.next() {
        let argument = argument.into_string().map_err(|argument| CommandError::Usage {
            message: format!("the argument `{}` is not UTF-8", argument.display()),
            hint: "name it otherwise: a script for the cluster has to hold it".to_owned(),
        })?;
        let name = argument.split('=').next().unwrap_or_default();
        if argument == "--" {
            kept.push(argument);
            break;
        }
        // Several short switches may stand in one word.
        let is_own_switch = OWN_SWITCHES.contains(&argument.as_str())
            || (argument.len() > 2
                && !argument.starts_with("--")
                && argument.strip_prefix('-').is_some_and(is_verbosity));
        if OWN_OPTIONS.contains(&name) {
            if name == argument {
                typed.next();
            }
        } else if !is_own_switch {
            kept.push(argument);
        }
    }
    for argument in typed {
        kept.push(argument.into_string().map_err(|argument| CommandError::Usage {
            message: format!("the argument `{}` is not UTF-8", argument.display()),
            hint: "name it otherwise: a script for the cluster has to hold it".to_owned(),
        })?);
    }
    Ok(kept)
}

fn is_verbosity(letters: &str) -> bool {
    letters.bytes().all(|letter| matches!(letter, b'v' | b'q'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_get_what_concerns_them() {
        let typed = "-vv --data-dir /d validate --on=slurm a/* --shards 3 --run-id=x --detach --jobs 2 --format json --weights w -- --on";
        let kept = of_shards(typed.split(' ').map(OsString::from)).unwrap();
        assert_eq!(kept.join(" "), "validate a/* --jobs 2 --weights w -- --on");
    }
}
