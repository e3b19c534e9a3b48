//! Compiles mutants, and launches on each of them the methods that pass without a mutant.
//!
//! Mutants may have the same class files, and the source's own. A launch sees nothing else of a mutant. So a tree that is
//! launched on already is not launched on again (`KnownOutcomes`).

use std::collections::BTreeMap;

use super::{MainCompilation, MainCompiler};
use crate::digest::Digest;
use crate::execution::attempt::Confirmed;
use crate::execution::build::compiler::Files;
use crate::execution::build::merged::OpenTree;
use crate::execution::container::RepositoryImage;
use crate::execution::direct::{Direct, SwappedTree};
use crate::execution::executor::Executor;
use crate::execution::fault::ExecutionError;
use crate::execution::launch::coverage::SourceFile;
use crate::execution::launch::{LaunchOptions, MethodLaunch};
use crate::execution::rebuilding::rebuilt_mutant;
use crate::execution::run::logs::{CellLogs, method_name};
use crate::focal::FocalLines;
use crate::outcome::Outcome;
use crate::task::MethodId;
use crate::thread::blocking;

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
    /// The repository's image.
    pub image: &'a RepositoryImage,
    /// New code with the test file.
    pub swapped: &'a SwappedTree,
    /// The same tree, opened to put mutants into it.
    pub tree: &'a OpenTree,
    /// The source files of all focal methods of the task. Their classes have other bytes in each launch.
    pub sources: &'a [SourceFile],
    /// Binary name of the test file's class.
    pub class: &'a str,
    /// The methods.
    pub methods: &'a [Passing],
    /// The logs of launches.
    pub logs: &'a CellLogs,
    /// Decides the bytes of classes.
    pub seed: u64,
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
        self.with(name, files).await.map(Some)
    }

    /// Returns the methods' outcomes on the tree with these files, as [`Self::on`], where `known` does not have them.
    ///
    /// # Errors
    /// I/O errors of writing logs and temporary files.
    pub(in crate::execution) async fn with_unknown(
        &self,
        name: &str,
        files: Files,
        known: &mut KnownOutcomes,
    ) -> Result<Vec<Outcome>, ExecutionError> {
        let tree = KnownOutcomes::tree(&files);
        let unknown = self.methods.iter().filter(|one| known.of(tree, &files, one).is_none());
        let unknown: Vec<Passing> = unknown.cloned().collect();
        if !unknown.is_empty() {
            let outcomes = MutantLaunches { methods: &unknown, ..*self }.with(name, files.clone()).await?;
            for (one, outcome) in unknown.iter().zip(outcomes) {
                known.launched.insert((tree, one.method.clone()), outcome);
            }
        }
        let outcomes = self.methods.iter().filter_map(|one| known.of(tree, &files, one)).collect();
        known.launched.retain(|_, outcome| !matches!(outcome, Outcome::InfraFail(_)));
        Ok(outcomes)
    }

    /// Returns the methods' outcomes on the tree with these files, in the order of the methods.
    async fn with(&self, name: &str, files: Files) -> Result<Vec<Outcome>, ExecutionError> {
        // Whoever looks at bytes sees others in every launch, and can't tell a mutant from new code by them. They follow from the
        // submission, too: a list of the bytes that mutants had in one run holds for no other submission.
        let seed = self.seed ^ KnownOutcomes::tree(&files).first_bytes();
        let (tree, class_path) = (self.tree.clone(), self.swapped.built.class_path.clone());
        let sources = self.sources.to_vec();
        let files = blocking(move || rebuilt_mutant(&tree, &class_path, &sources, files, seed)).await?;
        let built = self.tree.with(&self.swapped.built, files, &self.executor.temporary).await?;
        let options = LaunchOptions::default();
        let mut outcomes = Vec::new();
        for one in self.methods {
            let name = format!("{name}-{}", method_name(self.class, &one.method));
            let launch = MethodLaunch { class: self.class, method: &one.method, options: &options, name: &name };
            let executor = limited(self.executor, one.launch_ms);
            let launched = executor.launch(self.image, &built, &launch, self.logs).await?;
            outcomes.push(launched.outcome);
        }
        Ok(outcomes)
    }
}

/// The outcomes of methods on trees with other files of one swapped tree.
#[derive(Debug, Default)]
pub(in crate::execution) struct KnownOutcomes {
    launched: BTreeMap<(Digest, MethodId), Outcome>,
}

impl KnownOutcomes {
    /// Returns what tells trees with other files apart.
    fn tree(files: &Files) -> Digest {
        let mut bytes = Vec::new();
        for (path, content) in files {
            for part in [path.as_bytes(), content] {
                bytes.extend((part.len() as u64).to_be_bytes());
                bytes.extend(part);
            }
        }
        Digest::of(&bytes)
    }

    /// Returns a method's outcome on a tree. Without other files it is the tree on which the method passed, within the limit
    /// of a launch on a mutant if its time is known.
    fn of(&self, tree: Digest, files: &Files, one: &Passing) -> Option<Outcome> {
        let launched = self.launched.get(&(tree, one.method.clone())).copied();
        launched.or((files.is_empty() && one.launch_ms.is_some()).then_some(Outcome::Pass))
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
    fn a_tree_that_is_launched_on_is_known() {
        let one = |method: &str, launch_ms| Passing { method: method.parse().unwrap(), launch_ms, own: Vec::new() };
        let (first, second) = (one("ATest#first", Some(5)), one("ATest#second", None));
        let files = |content: &str| -> Files { vec![("A.class".to_owned(), content.as_bytes().to_vec())] };
        let mut known = KnownOutcomes::default();
        let killed = Outcome::ExecFail(crate::outcome::ExecReason::Timeout);
        known.launched.insert((KnownOutcomes::tree(&files("a")), first.method.clone()), killed);
        let of = |files: Files, one| known.of(KnownOutcomes::tree(&files), &files, one);
        assert_eq!(of(files("a"), &first), Some(killed));
        for (other, one) in [(files("b"), &first), (files("a"), &second)] {
            assert_eq!(of(other, one), None);
        }
        let split: Files = vec![("A.class".to_owned(), Vec::new()), (String::new(), b"a".to_vec())];
        assert_eq!(of(split, &first), None);
        assert_eq!(of(Files::new(), &first), Some(Outcome::Pass), "nothing is changed");
        assert_eq!(of(Files::new(), &second), None, "its time is not known, so it may meet the limit");
    }

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
