//! A submission's cell on the direct path: the prepared revision with the submission's file in it, each method launched in a
//! container of its own, and launched again with the coverage agent where that is asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::cache::ResultCache;
use super::record::MutantOutcome;
use super::sets::RunMutants;
use crate::digest::Digest;
use crate::execution::cell::Executor;
use crate::execution::coverage::{CoverageRequest, MethodCoverage};
use crate::execution::direct::{Covering, Direct, DirectCell, ExecutedCell, SwappedTree, Unfit};
use crate::execution::logs::CellLogs;
use crate::execution::mutation::launches::{MUTANT_SECONDS, MutantLaunches, Passing};
use crate::execution::mutation::{self, MainCompiler, MutatedFile, NoMutants, mutants_key};
use crate::execution::record::CellRecord;
use crate::execution::trees::Trees;
use crate::metrics::mutation::MutantSet;
use crate::outcome::Outcome;
use crate::task::{MethodId, TaskId};

/// A submission's cell.
pub(super) struct SubmissionCell<'a> {
    /// What is executed of it.
    pub(super) executed: DirectCell<'a>,
    /// What is covered, where that is measured.
    pub(super) cover: Option<&'a CoverageRequest<'a>>,
    /// What is mutated, where that is measured.
    pub(super) mutate: Option<&'a MutationRequest>,
    /// The mutants that all tests of the run meet.
    pub(super) mutants: &'a RunMutants,
    /// Where mutants are kept for other runs.
    pub(super) cache: &'a ResultCache,
}

/// What is mutated.
pub(super) struct MutationRequest {
    /// The task.
    pub(super) task_id: TaskId,
    /// The files, or why they can't be had.
    pub(super) files: Result<Vec<FileToMutate>, NoMutants>,
    /// Methods to run on mutants that are not launched now.
    pub(super) passing: Vec<Passing>,
}

/// Path, lines, and source of a file.
pub(super) type FileToMutate = (String, Vec<usize>, Vec<u8>);

/// What a method did to a task's mutants.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Mutated {
    /// The mutants.
    pub(super) sets: Vec<MutantSet>,
    /// What became of the method on each kept one, in order.
    pub(super) mutants: Vec<MutantOutcome>,
}

impl Mutated {
    /// Returns the outcomes alone.
    pub(super) fn outcomes(&self) -> Vec<Outcome> {
        self.mutants.iter().map(|mutant| mutant.outcome).collect()
    }
}

/// Returns the key of what a method does to a task's mutants of lines, given the key of its launch: which mutants are kept
/// follows from the task.
pub(super) fn mutation_key(launch: Digest, task_id: &TaskId, lines: &BTreeMap<String, Vec<usize>>) -> Digest {
    #[derive(Serialize)]
    struct Keyed<'a> {
        schema: u32,
        what: &'a str,
        seconds: u64,
        launch: Digest,
        task_id: &'a TaskId,
        lines: &'a BTreeMap<String, Vec<usize>>,
    }
    let keyed = Keyed { schema: 3, what: "mutation", seconds: MUTANT_SECONDS, launch, task_id, lines };
    match serde_json::to_vec(&keyed) {
        Ok(bytes) => Digest::of(&bytes),
        Err(error) => unreachable!("the inputs are plain data: {error}"),
    }
}

type MutatedMethods = Vec<(MethodId, Result<Mutated, NoMutants>)>;

type Executed = (Vec<CellRecord>, Vec<MethodCoverage>, MutatedMethods);

/// Executes a cell; where only Maven can, says why.
pub(super) async fn run_cell(
    direct: &Direct,
    executor: &Executor,
    trees: &Arc<Trees>,
    cell: &SubmissionCell<'_>,
) -> std::io::Result<Result<Executed, Unfit>> {
    let identity = &cell.executed.identity;
    let (trees, task, side) = (Arc::clone(trees), identity.task.clone(), identity.cell.code());
    let archive = move || trees.revision(&task, side);
    let ExecutedCell { records, launched } = match direct.run_cell(executor, &cell.executed, archive).await? {
        Ok(executed) => executed,
        Err(unfit) => return Ok(Err(unfit)),
    };
    let Some((swapped, logs)) = launched else { return Ok(Ok((records, Vec::new(), Vec::new()))) };
    let covered = match cell.cover {
        Some(cover) => {
            let passed = records.iter().filter(|record| record.repeat == 1 && record.outcome == Outcome::Pass);
            let methods = cover.methods.iter().chain(passed.map(|record| &record.method));
            let class = &cell.executed.facts.class;
            let covering = Covering { class, files: cover.files, logs: &logs };
            direct.cover(executor, identity.environment, &swapped, &covering, methods).await?
        }
        None => Vec::new(),
    };
    let mutated = match cell.mutate {
        Some(request) => mutated(direct, executor, cell, request, &swapped, &records, &logs).await?,
        None => Vec::new(),
    };
    Ok(Ok((records, covered, mutated)))
}

/// Makes the mutants, unless they are kept, and launches what passes on each.
async fn mutated(
    direct: &Direct,
    executor: &Executor,
    cell: &SubmissionCell<'_>,
    request: &MutationRequest,
    swapped: &SwappedTree,
    records: &[CellRecord],
    logs: &CellLogs,
) -> std::io::Result<MutatedMethods> {
    let passed = records.iter().filter(|record| record.repeat == 1 && record.outcome == Outcome::Pass);
    let passed = passed.map(|record| Passing { method: record.method.clone(), launch_ms: record.measured.launch_ms });
    let passing: Vec<Passing> = request.passing.iter().cloned().chain(passed).collect();
    if passing.is_empty() {
        return Ok(Vec::new());
    }
    let none = |reason: NoMutants| -> std::io::Result<MutatedMethods> {
        Ok(passing.iter().map(|one| (one.method.clone(), Err(reason.clone()))).collect())
    };
    let environment = cell.executed.identity.environment;
    let revision = &swapped.masked.revision;
    let files = match &request.files {
        Ok(files) => files,
        Err(reason) => return none(reason.clone()),
    };
    let mut sets = Vec::new();
    for (path, lines, source) in files {
        let file = MutatedFile { task_id: &request.task_id, path, source, lines };
        let key = mutants_key(environment, revision, &file);
        let make = mutation::make(direct, executor, environment, revision, &file);
        match cell.mutants.get(key, cell.cache, make).await? {
            Ok(mutants) => sets.push((mutants, source)),
            Err(reason) => return none(reason),
        }
    }
    let own: Vec<MutantSet> = sets.iter().map(|(mutants, _)| mutants.set.clone()).collect();
    if !cell.mutants.are_met(&request.task_id, &own) {
        return none(NoMutants::passing("the mutants are not those that other tests of the task met"));
    }
    let class = &cell.executed.facts.class;
    let launches = MutantLaunches { direct, executor, environment, swapped, class, methods: &passing, logs };
    let mut found: Vec<Vec<MutantOutcome>> = vec![Vec::new(); passing.len()];
    for (mutants, source) in sets.iter().filter(|(mutants, _)| !mutants.texts.is_empty()) {
        let path = &mutants.set.path;
        let compiler = match MainCompiler::new(direct, executor, environment, revision, path, source).await? {
            Ok(compiler) => compiler,
            Err(reason) => return none(reason),
        };
        for (number, (mutant, text)) in mutants.set.kept.iter().zip(&mutants.texts).enumerate() {
            let became = match launches.on(&compiler, (number + 1, text)).await? {
                Ok(Some(became)) => became,
                Ok(None) => {
                    let cause = format!("a mutant of {path} compiled before and does not now");
                    return none(NoMutants { cause, may_pass: true });
                }
                Err(reason) => return none(reason),
            };
            for (outcome, outcomes) in became.into_iter().zip(&mut found) {
                outcomes.push(MutantOutcome { id: mutant.id, outcome });
            }
        }
    }
    let of = |mutants| Ok(Mutated { sets: own.clone(), mutants });
    Ok(passing.into_iter().map(|one| one.method).zip(found.into_iter().map(of)).collect())
}
