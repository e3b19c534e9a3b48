//! Runs a submission's passing methods on a task's mutants, on either path.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::cache::ResultCache;
use super::focal::TaskFocal;
use super::record::MutantOutcome;
use super::run_mutants::RunMutants;
use crate::artifact::key::key;
use crate::digest::Digest;
use crate::execution::build::merged::OpenTree;
use crate::execution::container::RepositoryImage;
use crate::execution::direct::{Direct, SwappedTree};
use crate::execution::executor::Executor;
use crate::execution::fault::{ExecutionError, NoAnswer, Remedy, answered};
use crate::execution::launch::coverage::SourceFile;
use crate::execution::mutation::launches::{KnownOutcomes, MUTANT_SECONDS, MutantLaunches, Passing};
use crate::execution::mutation::reference;
use crate::execution::mutation::{
    self, Judge, MainCompilation, MainCompiler, Mutants, MutatedFile, as_mutated, mutants_key,
};
use crate::execution::request::{CellRequest, OtherText};
use crate::execution::run::logs::CellLogs;
use crate::execution::run::record::CellRecord;
use crate::focal::FocalLines;
use crate::metrics::mutation::{KeptMutant, MutantSet};
use crate::outcome::Outcome;
use crate::task::{MethodId, TaskId};

/// How mutants are compiled and run.
#[derive(Clone, Copy)]
pub(super) enum MutantRunner<'a> {
    /// The warm compiler compiles them, and the direct path launches methods.
    Direct {
        /// The path.
        direct: &'a Direct,
        /// New code with the test file.
        swapped: &'a SwappedTree,
        /// Binary name of the test file's class.
        class: &'a str,
        /// The logs of launches.
        logs: &'a CellLogs,
    },
    /// Maven builds each mutant in a cell of its own.
    Reference {
        /// The cell without a mutant.
        cell: &'a CellRequest<'a>,
        /// The compiler that judges mutants. It is the warm compiler if only the test file does not fit the direct
        /// path.
        judge: Judge<'a>,
    },
}

/// The judge of mutants, by name. It follows from new code alone, not from the path of a test, so that all tests of a
/// task meet the same mutants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JudgedBy {
    /// The warm compiler. It judges if new code itself fits the direct path, and the compiler makes the build's
    /// classes.
    Warm,
    /// Maven.
    Maven,
}

impl<'a> MutantRunner<'a> {
    fn judge(self) -> Judge<'a> {
        match self {
            Self::Direct { direct, swapped, .. } => Judge::Warm { direct, revision: &swapped.masked.revision },
            Self::Reference { judge, .. } => judge,
        }
    }
}

/// The request for mutants of a task.
pub(super) struct MutationRequest<'a> {
    /// The mutants that all tests of the run meet.
    pub(super) mutants: &'a RunMutants,
    /// The cache of mutants for other runs.
    pub(super) cache: &'a ResultCache,
    /// The task.
    pub(super) task_id: TaskId,
    /// Its focal methods.
    pub(super) focal: TaskFocal,
    /// The files, or why they are not available.
    pub(super) files: Result<Vec<FileToMutate>, NoAnswer>,
    /// Methods to run on mutants without launching them on new code now.
    pub(super) passing: Vec<Passing>,
    /// Decides the bytes of mutants' classes.
    pub(super) seed: u64,
}

impl MutationRequest<'_> {
    /// Returns these methods, and those that pass in the records of the present launch.
    pub(super) fn passing_with(&self, records: &[CellRecord]) -> Vec<Passing> {
        let passed = records.iter().filter(|record| record.repeat == 1 && record.outcome == Outcome::Pass);
        let passed = passed.map(|record| Passing {
            own: self.focal.mutated(&record.method),
            method: record.method.clone(),
            launch_ms: record.measured.launch_ms,
        });
        self.passing.iter().cloned().chain(passed).collect()
    }

    /// Returns a request for one method that is not launched on new code now, where it took so long.
    pub(super) fn of_method(&self, method: &MethodId, launch_ms: Option<u64>) -> Self {
        let own = self.focal.mutated(method);
        Self {
            task_id: self.task_id.clone(),
            focal: self.focal.clone(),
            files: self.files.clone(),
            passing: vec![Passing { method: method.clone(), launch_ms, own }],
            ..*self
        }
    }

    /// Returns the same reason for missing mutants for every method.
    pub(super) fn without(&self, records: &[CellRecord], reason: &NoAnswer) -> MutatedMethods {
        self.passing_with(records).into_iter().map(|one| (one.method, Err(reason.clone()))).collect()
    }
}

/// Path, lines, and source of a file.
pub(super) type FileToMutate = (String, Vec<usize>, Vec<u8>);

/// A method's results on a task's mutants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Mutated {
    /// The judge of the mutants.
    pub(super) by: JudgedBy,
    /// The mutants.
    pub(super) sets: Vec<MutantSet>,
    /// The method's outcome on each kept mutant in its own focal methods, in order.
    pub(super) mutants: Vec<MutantOutcome>,
    /// The method's outcome on the text that mutants start from, if that differs from the source: the first that is not
    /// a pass, if any.
    pub(super) unmutated: Option<Outcome>,
}

impl Mutated {
    /// Returns the outcomes alone.
    pub(super) fn outcomes(&self) -> Vec<Outcome> {
        self.mutants.iter().map(|mutant| mutant.outcome).collect()
    }

    /// Returns the mutants that do not survive.
    pub(super) fn killed(&self) -> BTreeSet<Digest> {
        let killed = self.mutants.iter().filter(|mutant| mutant.outcome != Outcome::Pass);
        killed.map(|mutant| mutant.id).collect()
    }
}

/// Returns the key of a method's results on mutants in its own focal methods, given the key of its launch. The kept
/// mutants follow from the task and the judge. `sources` are those of all focal methods, whose classes have other bytes.
/// `chosen_seed` is the seed that the caller of the run chose. It is part of the key, so that no result of a run whose
/// seed could be computed beforehand is used in its place. What Maven builds has the same bytes with every seed.
pub(super) fn mutation_key(
    launch: Digest,
    by: JudgedBy,
    task_id: &TaskId,
    (lines, own): (&BTreeMap<String, Vec<usize>>, &[FocalLines]),
    sources: &[SourceFile],
    chosen_seed: Option<u64>,
) -> Digest {
    let own: Vec<_> = own.iter().map(|own| (own.path.as_str(), own.first_line, own.last_line)).collect();
    let chosen_seed = chosen_seed.filter(|_| by == JudgedBy::Warm);
    key("mutation", 9, &(MUTANT_SECONDS, launch, by, task_id, lines, own, sources, chosen_seed))
}

/// Methods and their results on mutants, or why there are none.
pub(super) type MutatedMethods = Vec<(MethodId, Result<Mutated, NoAnswer>)>;

/// Tells whether the warm compiler did not fit the build, so that Maven must judge. All methods meet the same mutants.
pub(super) fn asks_maven(mutated: &MutatedMethods) -> bool {
    mutated.iter().any(|(_, result)| result.as_ref().is_err_and(|reason| reason.remedy == Remedy::AskMaven))
}

/// Makes the mutants unless they are cached, and runs the passing methods on each.
pub(super) async fn mutated(
    way: MutantRunner<'_>,
    (executor, image): (&Executor, &RepositoryImage),
    request: &MutationRequest<'_>,
    records: &[CellRecord],
) -> std::io::Result<MutatedMethods> {
    let passing = request.passing_with(records);
    if passing.is_empty() {
        return Ok(Vec::new());
    }
    let methods = passing.iter().map(|one| one.method.clone());
    let by = match way.judge() {
        Judge::Warm { .. } => JudgedBy::Warm,
        Judge::Maven(_) => JudgedBy::Maven,
    };
    Ok(match answered(met(way, (executor, image), request, &passing).await)? {
        Ok((sets, found)) => {
            let of = |(mutants, unmutated)| Ok(Mutated { by, sets: sets.clone(), mutants, unmutated });
            methods.zip(found.into_iter().map(of)).collect()
        }
        Err(reason) => methods.map(|method| (method, Err(reason.clone()))).collect(),
    })
}

/// A method's outcomes on mutants, and on the text that they start from.
type MetMutants = (Vec<MutantOutcome>, Option<Outcome>);

/// Methods' outcomes on the mutants of a source. If the text that mutants start from differs from the source, there is
/// an outcome of every method on that text. On each mutant there are outcomes of the methods that meet it.
struct OnMutants {
    unmutated: Vec<Outcome>,
    became: Vec<Vec<Outcome>>,
}

/// Returns the first part of a mutant's log names.
fn mutant_name(number: usize) -> String {
    format!("mutant-{number}")
}

/// Returns the text that the mutants of a source start from, if it lacks characters of the source. A test of these
/// characters would kill every mutant.
fn unmutated(source: &[u8]) -> Option<String> {
    std::str::from_utf8(source).ok().filter(|source| !source.is_ascii()).map(as_mutated)
}

/// Returns the mutants, and each method's outcomes on them.
async fn met(
    way: MutantRunner<'_>,
    (executor, image): (&Executor, &RepositoryImage),
    request: &MutationRequest<'_>,
    passing: &[Passing],
) -> Result<(Vec<MutantSet>, Vec<MetMutants>), ExecutionError> {
    let sets = sets(way, (executor, image), request).await?;
    let mut found: Vec<MetMutants> = vec![(Vec::new(), None); passing.len()];
    let (mut before, sources) = (0, &request.focal.files());
    for (mutants, source) in sets.iter().filter(|(mutants, _)| !mutants.texts.is_empty()) {
        let met = mutants.set.kept.iter().map(|mutant| meeting(passing, &mutants.set.path, mutant.line)).collect();
        let on = OnFile { mutants, source, before, met };
        let OnMutants { unmutated, became } = match way {
            MutantRunner::Direct { direct, swapped, class, logs } => {
                let methods = passing;
                let tree = &OpenTree::of(&swapped.built).await.map_err(std::io::Error::from)?;
                let seed = request.seed;
                let launches =
                    MutantLaunches { direct, executor, image, swapped, tree, sources, class, methods, logs, seed };
                launched(launches, &on).await?
            }
            MutantRunner::Reference { cell, .. } => rebuilt(executor, cell, passing, &on).await?,
        };
        before += mutants.texts.len();
        for (found, outcome) in found.iter_mut().zip(unmutated) {
            // The first outcome that is not a pass stays.
            found.1 = found.1.filter(|known| *known != Outcome::Pass).or(Some(outcome));
        }
        for ((mutant, outcomes), met) in mutants.set.kept.iter().zip(became).zip(on.met) {
            for (outcome, place) in outcomes.into_iter().zip(met) {
                found[place].0.push(MutantOutcome { id: mutant.id, outcome });
            }
        }
    }
    Ok((sets.into_iter().map(|(mutants, _)| mutants.set).collect(), found))
}

/// Runs a request's one method on its mutants, or on the named ones of them, until one survives. Returns the method's
/// outcome on each.
pub(super) async fn survives(
    way: MutantRunner<'_>,
    (executor, image): (&Executor, &RepositoryImage),
    request: &MutationRequest<'_>,
    named: Option<&BTreeSet<Digest>>,
) -> Result<Vec<MutantOutcome>, ExecutionError> {
    let MutantRunner::Direct { direct, swapped, class, logs } = way else {
        return Err(NoAnswer::unfit("only the direct path runs single mutants").into());
    };
    let (sets, methods) = (sets(way, (executor, image), request).await?, &request.passing);
    let sources = &request.focal.files();
    let tree = &OpenTree::of(&swapped.built).await.map_err(std::io::Error::from)?;
    let seed = request.seed;
    let launches = MutantLaunches { direct, executor, image, swapped, tree, sources, class, methods, logs, seed };
    let (mut outcomes, mut before) = (Vec::new(), 0);
    for (mutants, source) in &sets {
        let (path, first) = (&mutants.set.path, before + 1);
        before += mutants.texts.len();
        let wanted = |mutant: &KeptMutant| {
            !meeting(methods, path, mutant.line).is_empty() && named.is_none_or(|named| named.contains(&mutant.id))
        };
        let all = mutants.set.kept.iter().zip(&mutants.texts).enumerate();
        let wanted: Vec<_> = all.filter(|(_, (mutant, _))| wanted(mutant)).collect();
        if wanted.is_empty() {
            continue;
        }
        let compiler = MainCompiler::new(direct, executor, image, &swapped.masked.revision, path, source).await?;
        for (number, (mutant, text)) in wanted {
            let changed = || NoAnswer::fault(format!("a mutant of {path} compiled before and does not now"));
            let became = launches.on(&compiler, (&mutant_name(first + number), text)).await?.ok_or_else(changed)?;
            let Some(outcome) = became.first().copied() else { continue };
            outcomes.push(MutantOutcome { id: mutant.id, outcome });
            // Only the survival of a mutant that the test kills says something.
            if outcome == Outcome::Pass && named.is_some() {
                return Ok(outcomes);
            }
        }
    }
    Ok(outcomes)
}

/// Returns the mutants of each file with its source, equal for all tests of the task.
async fn sets<'a>(
    way: MutantRunner<'_>,
    (executor, image): (&Executor, &RepositoryImage),
    request: &'a MutationRequest<'_>,
) -> Result<Vec<(Mutants, &'a [u8])>, ExecutionError> {
    let judge = way.judge();
    let mut sets = Vec::new();
    for (path, lines, source) in request.files.as_ref().map_err(NoAnswer::clone)? {
        let file = MutatedFile { task_id: &request.task_id, path, source, lines };
        let key = mutants_key(image, judge.key(executor, image), &file);
        let make = mutation::make(judge, executor, image, &file);
        sets.push((request.mutants.get((&request.task_id, key), request.cache, make).await?, source.as_slice()));
    }
    let own: Vec<MutantSet> = sets.iter().map(|(mutants, _)| mutants.set.clone()).collect();
    if !request.mutants.are_met(&request.task_id, &own) {
        return Err(NoAnswer::fault("the mutants are not those that other tests of the task met").into());
    }
    Ok(sets)
}

/// The kept mutants of a source, and the methods that meet each.
struct OnFile<'a> {
    mutants: &'a Mutants,
    source: &'a [u8],
    /// Number of mutants of earlier sources.
    before: usize,
    /// For each mutant, the indexes of the methods that meet it.
    met: Vec<Vec<usize>>,
}

impl<'a> OnFile<'a> {
    /// Returns each mutant's number and text, and the methods that meet it.
    fn each<'b>(&'b self, methods: &'b [Passing]) -> impl Iterator<Item = (usize, &'a str, Vec<Passing>)> + 'b {
        let texts = self.mutants.texts.iter().zip(&self.met).enumerate();
        texts.map(|(number, (text, met))| {
            let methods = met.iter().map(|place| methods[*place].clone()).collect();
            (self.before + number + 1, text.as_str(), methods)
        })
    }
}

/// Returns the indexes of the methods with this line in their own focal methods. Only these are scored on the line's
/// mutants.
fn meeting(passing: &[Passing], path: &str, line: usize) -> Vec<usize> {
    let has =
        |one: &Passing| one.own.iter().any(|own| own.path == path && (own.first_line..=own.last_line).contains(&line));
    (0..passing.len()).filter(|place| has(&passing[*place])).collect()
}

/// Launches methods on the mutants that they meet and returns their outcomes, in order. The tree is the one on which the
/// methods passed.
async fn launched(launches: MutantLaunches<'_>, on: &OnFile<'_>) -> Result<OnMutants, ExecutionError> {
    let MutantLaunches { direct, executor, image, swapped, .. } = launches;
    let (path, revision) = (&on.mutants.set.path, &swapped.masked.revision);
    if on.met.iter().all(Vec::is_empty) {
        return Ok(OnMutants { unmutated: Vec::new(), became: vec![Vec::new(); on.met.len()] });
    }
    let compiler = MainCompiler::new(direct, executor, image, revision, path, on.source).await?;
    let unmutated = match unmutated(on.source) {
        // If this text does not compile, a mutant compiles only by chance.
        Some(text) => launches.on(&compiler, (&format!("unmutated-{}", on.before), &text)).await?.unwrap_or_default(),
        None => Vec::new(),
    };
    let each: Vec<_> = on.each(launches.methods).collect();
    let met = each.iter().filter(|(_, _, methods)| !methods.is_empty());
    let texts: Vec<&str> = met.map(|(_, text, _)| *text).collect();
    let (mut compiled, mut known) = (compiler.compile_all(&texts).await?.into_iter(), KnownOutcomes::default());
    let mut became = Vec::new();
    for (number, _, methods) in each {
        if methods.is_empty() {
            became.push(Vec::new());
            continue;
        }
        let Some(MainCompilation::Compiled(files)) = compiled.next() else {
            return Err(NoAnswer::fault(format!("a mutant of {path} compiled before and does not now")).into());
        };
        let launches = MutantLaunches { methods: &methods, ..launches };
        became.push(launches.with_unknown(&mutant_name(number), files, &mut known).await?);
    }
    Ok(OnMutants { unmutated, became })
}

/// Lets Maven build each mutant of a source that methods meet, runs these methods, and returns their outcomes, in
/// order.
async fn rebuilt(
    executor: &Executor,
    cell: &CellRequest<'_>,
    methods: &[Passing],
    on: &OnFile<'_>,
) -> std::io::Result<OnMutants> {
    let path = &on.mutants.set.path;
    let unmutated = match unmutated(on.source).filter(|_| on.met.iter().any(|met| !met.is_empty())) {
        Some(text) => {
            let other = OtherText { number: 0, path, text: &text, original: on.source };
            reference::run(executor, cell, methods, other).await?
        }
        None => Vec::new(),
    };
    let mut became = Vec::new();
    for (number, text, methods) in on.each(methods) {
        let mutant = OtherText { number, path, text, original: on.source };
        became.push(match methods.is_empty() {
            true => Vec::new(),
            false => reference::run(executor, cell, &methods, mutant).await?,
        });
    }
    Ok(OnMutants { unmutated, became })
}
