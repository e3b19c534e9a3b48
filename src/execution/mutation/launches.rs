//! Compiles mutants one by one, and launches on each of them the methods that pass without a mutant.

use super::{MainCompilation, MainCompiler};
use crate::execution::attempt::Confirmed;
use crate::execution::build::merged::OpenTree;
use crate::execution::container::Environment;
use crate::execution::direct::{Direct, SwappedTree};
use crate::execution::executor::Executor;
use crate::execution::fault::ExecutionError;
use crate::execution::launch::{LaunchOptions, MethodLaunch};
use crate::execution::run::logs::{CellLogs, method_name};
use crate::focal::FocalLines;
use crate::outcome::Outcome;
use crate::task::MethodId;

/// Wall time limit of a launch on a mutant, in seconds. It is this value, or three times the launch's time without a
/// mutant if that is more, but at most the launch's own limit. A looping mutant counts as killed, and a run of ten such
/// mutants must end. Universal Mutator's own analysis uses the same limit.
pub const MUTANT_SECONDS: u64 = 30;

/// Load alone never slows a launch by this factor. If a limit is that far above the launch's time without a mutant, the
/// first timeout counts. Otherwise each looping mutant would need a second run with nothing else running.
const TIMES_SLOWER: u64 = 10;

/// A method that passes on new code.
#[derive(Clone, Debug)]
pub struct Passing {
    /// The method.
    pub method: MethodId,
    /// Run time of its JVM, in milliseconds; `None` if unknown.
    pub launch_ms: Option<u64>,
    /// Its own focal methods. The method is run on mutants in these.
    pub own: Vec<FocalLines>,
}

/// Launches methods on mutants.
#[derive(Clone, Copy)]
pub struct MutantLaunches<'a> {
    /// The direct path, which launches.
    pub direct: &'a Direct,
    /// The executor, with the limits of launches without a mutant.
    pub executor: &'a Executor,
    /// The repository's environment.
    pub environment: &'a Environment,
    /// New code with the test file.
    pub swapped: &'a SwappedTree,
    /// The same tree, opened to put mutants into it.
    pub tree: &'a OpenTree,
    /// Binary name of the test file's class.
    pub class: &'a str,
    /// The methods.
    pub methods: &'a [Passing],
    /// The logs of launches.
    pub logs: &'a CellLogs,
}

impl MutantLaunches<'_> {
    /// Returns the methods' outcomes on another text of a source, such as a mutant, in the order of the methods. `None`
    /// if the text does not compile. `name` names its logs.
    ///
    /// # Errors
    /// I/O errors of writing logs and temporary files.
    pub async fn on(
        &self,
        compiler: &MainCompiler<'_>,
        (name, text): (&str, &str),
    ) -> Result<Option<Vec<Outcome>>, ExecutionError> {
        let MainCompilation::Compiled(files) = compiler.compile(text).await? else { return Ok(None) };
        let built = self.tree.with(&self.swapped.built, files, &self.executor.temporary).await?;
        let options = LaunchOptions::default();
        let mut outcomes = Vec::new();
        for one in self.methods {
            let name = format!("{name}-{}", method_name(self.class, &one.method));
            let launch = MethodLaunch { class: self.class, method: &one.method, options: &options, name: &name };
            let executor = limited(self.executor, one.launch_ms);
            let launched = executor.launch(self.environment, &built, &launch, self.logs).await?;
            outcomes.push(launched.outcome);
        }
        Ok(Some(outcomes))
    }
}

/// Returns the executor with the limits of a launch on a mutant.
pub(in crate::execution) fn limited(executor: &Executor, launch_ms: Option<u64>) -> Executor {
    let mut limited = executor.clone();
    let limit = &mut limited.limits.launch_command;
    // The limit on processor time stays, because several threads use it up faster than wall time passes.
    limit.wall_seconds = seconds(limit.wall_seconds, launch_ms);
    // Timeouts of launches without a mutant and with one confirm nothing about each other.
    limited.confirmed = limited.confirmed.map(|of| Confirmed { launches: of.mutants, ..Confirmed::default() });
    limited.trusts_first_timeout = launch_ms.is_some_and(|took| is_far_above(limit.wall_seconds, took));
    limited
}

/// Returns the wall time limit in seconds of a launch on a mutant, given the limit and the duration without a mutant:
/// see [`MUTANT_SECONDS`].
fn seconds(own: u64, launch_ms: Option<u64>) -> u64 {
    own.min(MUTANT_SECONDS.max(launch_ms.unwrap_or_default().saturating_mul(3) / 1000))
}

/// Tells whether the first timeout at this limit counts: see [`TIMES_SLOWER`].
fn is_far_above(seconds: u64, launch_ms: u64) -> bool {
    seconds.saturating_mul(1000) / TIMES_SLOWER >= launch_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_on_a_mutant_has_three_times_what_it_took_and_never_more_than_its_own_limit() {
        for (own, launch_ms, expected) in [
            (600, None, 30),
            (600, Some(0), 30),
            (600, Some(10_000), 30),
            (600, Some(10_334), 31),
            (600, Some(100_000), 300),
            (600, Some(200_000), 600),
            (600, Some(599_000), 600),
            (20, None, 20),
            (60, Some(59_000), 60),
            (100, Some(50_000), 100),
            (u64::MAX, Some(u64::MAX), u64::MAX / 1000),
        ] {
            assert_eq!(seconds(own, launch_ms), expected, "{own} {launch_ms:?}");
        }
    }

    #[test]
    fn a_timeout_is_believed_at_once_far_above_what_the_launch_took() {
        for (seconds, launch_ms, believed) in
            [(30, 0, true), (30, 600, true), (30, 3_000, true), (30, 3_001, false), (300, 100_000, false)]
        {
            assert_eq!(is_far_above(seconds, launch_ms), believed, "{seconds} {launch_ms}");
        }
    }
}
