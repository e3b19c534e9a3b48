//! Runs a submission's passing methods on a task's mutants, on either path.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cache::ResultCache;
use super::focal::TaskFocal;
use super::record::MutantOutcome;
use super::run_mutants::RunMutants;
use crate::artifact::key::key;
use crate::digest::Digest;
use crate::execution::container::Environment;
use crate::execution::direct::{Direct, SwappedTree};
use crate::execution::executor::Executor;
use crate::execution::fault::{ExecutionError, NoAnswer, Remedy, answered};
use crate::execution::mutation::launches::{MUTANT_SECONDS, MutantLaunches, Passing};
use crate::execution::mutation::reference;
use crate::execution::mutation::{self, Judge, MainCompiler, Mutants, MutatedFile, mutants_key};
use crate::execution::request::{CellRequest, OtherText};
use crate::execution::run::logs::CellLogs;
use crate::execution::run::record::CellRecord;
use crate::focal::FocalLines;
use crate::metrics::mutation::MutantSet;
use crate::outcome::Outcome;
use crate::task::{MethodId, TaskId};

/// How mutants are judged and run.
#[derive(Clone, Copy)]
pub(super) enum MutantRunner<'a> {
    /// By the warm compiler, and launched as the direct path launches.
    Direct {
        /// The path.
        direct: &'a Direct,
        /// New code with the test file in it.
        swapped: &'a SwappedTree,
        /// Binary name of the test file's class.
        class: &'a str,
        /// Where launches are logged.
        logs: &'a CellLogs,
    },
    /// Each mutant in a cell of its own, which Maven builds.
    Reference {
        /// The cell without a mutant.
        cell: &'a CellRequest<'a>,
        /// Who says which mutants compile: the warm compiler where only the test file does not fit the direct path.
        judge: Judge<'a>,
    },
}

/// The judge of mutants, by name. New code alone decides it, not the path of a test, so that all tests of a task meet
/// the same mutants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JudgedBy {
    /// The warm compiler, wherever new code itself fits the direct path and the compiler makes the classes that the build has.
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

/// What is mutated.
pub(super) struct MutationRequest<'a> {
    /// The mutants that all tests of the run meet.
    pub(super) mutants: &'a RunMutants,
    /// Where mutants are kept for other runs.
    pub(super) cache: &'a ResultCache,
    /// The task.
    pub(super) task_id: TaskId,
    /// Its focal methods.
    pub(super) focal: TaskFocal,
    /// The files, or why they can't be had.
    pub(super) files: Result<Vec<FileToMutate>, NoAnswer>,
    /// Methods to run on mutants that are not launched now.
    pub(super) passing: Vec<Passing>,
}

impl MutationRequest<'_> {
    /// Returns these methods and those that pass by records of a launch just now.
    pub(super) fn passing_with(&self, records: &[CellRecord]) -> Vec<Passing> {
        let passed = records.iter().filter(|record| record.repeat == 1 && record.outcome == Outcome::Pass);
        let passed = passed.map(|record| Passing {
            own: self.focal.mutated(&record.method),
            method: record.method.clone(),
            launch_ms: record.measured.launch_ms,
        });
        self.passing.iter().cloned().chain(passed).collect()
    }

    /// Says of all of them why they meet no mutants.
    pub(super) fn without(&self, records: &[CellRecord], reason: &NoAnswer) -> MutatedMethods {
        self.passing_with(records).into_iter().map(|one| (one.method, Err(reason.clone()))).collect()
    }
}

/// Path, lines, and source of a file.
pub(super) type FileToMutate = (String, Vec<usize>, Vec<u8>);

/// A method's results on a task's mutants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Mutated {
    /// Who said which mutants compile.
    pub(super) by: JudgedBy,
    /// The mutants.
    pub(super) sets: Vec<MutantSet>,
    /// What became of the method on each kept one in its own focal methods, in order.
    pub(super) mutants: Vec<MutantOutcome>,
}

impl Mutated {
    /// Returns the outcomes alone.
    pub(super) fn outcomes(&self) -> Vec<Outcome> {
        self.mutants.iter().map(|mutant| mutant.outcome).collect()
    }
}

/// Returns the key of what a method does to a task's mutants of lines in its own focal methods, given the key of its launch:
/// which mutants are kept follows from the task and from who says which compile.
pub(super) fn mutation_key(
    launch: Digest,
    by: JudgedBy,
    task_id: &TaskId,
    (lines, own): (&BTreeMap<String, Vec<usize>>, &[FocalLines]),
) -> Digest {
    let own: Vec<_> = own.iter().map(|own| (own.path.as_str(), own.first_line, own.last_line)).collect();
    key("mutation", 6, &(MUTANT_SECONDS, launch, by, task_id, lines, own))
}

/// Methods and what became of them on mutants, or why there are none.
pub(super) type MutatedMethods = Vec<(MethodId, Result<Mutated, NoAnswer>)>;

/// Tells whether the warm compiler was none for the build, so that Maven is to be asked. All methods meet the same mutants.
pub(super) fn asks_maven(mutated: &MutatedMethods) -> bool {
    mutated.iter().any(|(_, result)| result.as_ref().is_err_and(|reason| reason.remedy == Remedy::AskMaven))
}

/// Makes the mutants, unless they are kept, and runs on each what passes without.
pub(super) async fn mutated(
    way: MutantRunner<'_>,
    (executor, environment): (&Executor, &Environment),
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
    Ok(match answered(met(way, (executor, environment), request, &passing).await)? {
        Ok((sets, found)) => {
            let of = |mutants| Ok(Mutated { by, sets: sets.clone(), mutants });
            methods.zip(found.into_iter().map(of)).collect()
        }
        Err(reason) => methods.map(|method| (method, Err(reason.clone()))).collect(),
    })
}

/// Returns the mutants, and for each method what becomes of it on each.
async fn met(
    way: MutantRunner<'_>,
    (executor, environment): (&Executor, &Environment),
    request: &MutationRequest<'_>,
    passing: &[Passing],
) -> Result<(Vec<MutantSet>, Vec<Vec<MutantOutcome>>), ExecutionError> {
    let sets = sets(way, (executor, environment), request).await?;
    let mut found: Vec<Vec<MutantOutcome>> = vec![Vec::new(); passing.len()];
    let mut before = 0;
    for (mutants, source) in sets.iter().filter(|(mutants, _)| !mutants.texts.is_empty()) {
        let met = mutants.set.kept.iter().map(|mutant| meeting(passing, &mutants.set.path, mutant.line)).collect();
        let on = OnFile { mutants, source, before, met };
        let became = match way {
            MutantRunner::Direct { direct, swapped, class, logs } => {
                let methods = passing;
                let launches = MutantLaunches { direct, executor, environment, swapped, class, methods, logs };
                launched(launches, &on).await?
            }
            MutantRunner::Reference { cell, .. } => rebuilt(executor, cell, passing, &on).await?,
        };
        before += mutants.texts.len();
        for ((mutant, outcomes), met) in mutants.set.kept.iter().zip(became).zip(on.met) {
            for (outcome, place) in outcomes.into_iter().zip(met) {
                found[place].push(MutantOutcome { id: mutant.id, outcome });
            }
        }
    }
    Ok((sets.into_iter().map(|(mutants, _)| mutants.set).collect(), found))
}

/// Returns the mutants of each file, with its source, as all tests of the task meet them.
async fn sets<'a>(
    way: MutantRunner<'_>,
    (executor, environment): (&Executor, &Environment),
    request: &'a MutationRequest<'_>,
) -> Result<Vec<(Mutants, &'a [u8])>, ExecutionError> {
    let judge = way.judge();
    let mut sets = Vec::new();
    for (path, lines, source) in request.files.as_ref().map_err(NoAnswer::clone)? {
        let file = MutatedFile { task_id: &request.task_id, path, source, lines };
        let key = mutants_key(environment, judge.key(executor, environment), &file);
        let make = mutation::make(judge, executor, environment, &file);
        sets.push((request.mutants.get(key, request.cache, make).await?, source.as_slice()));
    }
    let own: Vec<MutantSet> = sets.iter().map(|(mutants, _)| mutants.set.clone()).collect();
    if !request.mutants.are_met(&request.task_id, &own) {
        return Err(NoAnswer::fault("the mutants are not those that other tests of the task met").into());
    }
    Ok(sets)
}

/// The kept mutants of a source, and who meets which.
struct OnFile<'a> {
    mutants: &'a Mutants,
    source: &'a [u8],
    /// So many mutants of other sources came before.
    before: usize,
    /// For each mutant the places of the methods that meet it.
    met: Vec<Vec<usize>>,
}

impl<'a> OnFile<'a> {
    /// Returns number, text, and the methods that meet it, of each mutant.
    fn each<'b>(&'b self, methods: &'b [Passing]) -> impl Iterator<Item = (usize, &'a str, Vec<Passing>)> + 'b {
        let texts = self.mutants.texts.iter().zip(&self.met).enumerate();
        texts.map(|(number, (text, met))| {
            let methods = met.iter().map(|place| methods[*place].clone()).collect();
            (self.before + number + 1, text.as_str(), methods)
        })
    }
}

/// Returns the places of the methods in whose own focal methods a line is: only these are scored on its mutants.
fn meeting(passing: &[Passing], path: &str, line: usize) -> Vec<usize> {
    let has =
        |one: &Passing| one.own.iter().any(|own| own.path == path && (own.first_line..=own.last_line).contains(&line));
    (0..passing.len()).filter(|place| has(&passing[*place])).collect()
}

/// Launches methods on the mutants that they meet and returns what becomes of them, in order.
async fn launched(launches: MutantLaunches<'_>, on: &OnFile<'_>) -> Result<Vec<Vec<Outcome>>, ExecutionError> {
    let MutantLaunches { direct, executor, environment, swapped, .. } = launches;
    let (path, revision) = (&on.mutants.set.path, &swapped.masked.revision);
    if on.met.iter().all(Vec::is_empty) {
        return Ok(vec![Vec::new(); on.met.len()]);
    }
    let compiler = MainCompiler::new(direct, executor, environment, revision, path, on.source).await?;
    let mut became = Vec::new();
    for (number, text, methods) in on.each(launches.methods) {
        if methods.is_empty() {
            became.push(Vec::new());
            continue;
        }
        let outcomes = (MutantLaunches { methods: &methods, ..launches }).on(&compiler, (number, text)).await?;
        let changed = || NoAnswer::fault(format!("a mutant of {path} compiled before and does not now"));
        became.push(outcomes.ok_or_else(changed)?);
    }
    Ok(became)
}

/// Has Maven build each mutant of a source that methods meet, and returns what becomes of these on it, in order.
async fn rebuilt(
    executor: &Executor,
    cell: &CellRequest<'_>,
    methods: &[Passing],
    on: &OnFile<'_>,
) -> std::io::Result<Vec<Vec<Outcome>>> {
    let mut became = Vec::new();
    for (number, text, methods) in on.each(methods) {
        let mutant = OtherText { number, path: &on.mutants.set.path, text };
        became.push(match methods.is_empty() {
            true => Vec::new(),
            false => reference::run(executor, cell, &methods, mutant).await?,
        });
    }
    Ok(became)
}
