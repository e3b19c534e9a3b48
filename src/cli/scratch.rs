//! `--scratch`: a disk of the node for what a command takes from a shared data directory.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args;

use super::options::positive;
use crate::application::Context;
use crate::application::scratch::{Scratch, ScratchChoice};
use crate::error::CommandError;
use crate::task::selector::Selector;

/// The scratch of a command.
#[derive(Debug, Args)]
pub(super) struct ScratchArguments {
    /// A directory on this machine's own disk: layers are unpacked there, and what is used often is copied there once, from a
    /// data directory that many machines share
    #[arg(long, value_name = "DIR", env = "TESTEVO_SANDBOX_SCRATCH", hide_env_values = true)]
    scratch: Option<PathBuf>,
    /// The most that the scratch may take; a command that begins with nobody else there removes what exceeds it
    #[arg(
        long,
        value_name = "GIB",
        env = "TESTEVO_SANDBOX_SCRATCH_GIB",
        hide_env_values = true,
        value_parser = positive::<NonZeroU32>
    )]
    scratch_gib: Option<NonZeroU32>,
}

impl ScratchArguments {
    /// Returns the scratch of the command, if one is wanted.
    pub(super) fn open(&self, selector: &Selector, context: &Context) -> Result<Option<Scratch>, CommandError> {
        let directory = self.scratch.clone().filter(|directory| !directory.as_os_str().is_empty());
        let most_bytes = self.scratch_gib.map(|gib| u64::from(gib.get()) << 30);
        Scratch::open(&ScratchChoice { directory, most_bytes }, selector, context)
    }
}
