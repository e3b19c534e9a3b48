//! A submission's cell on the direct path: the prepared revision with the submission's file in it, each method launched in a
//! container of its own, and launched again with the coverage agent where that is asked for.

use std::sync::Arc;
use std::time::Instant;

use crate::execution::cell::{CellIdentity, Executor, Launched};
use crate::execution::coverage::{self, Classes, CoverageRequest, MethodCoverage, NO_DATA};
use crate::execution::direct::{Direct, LaunchOptions, MethodLaunch, Swap, SwappedTree, Unfit};
use crate::execution::fault::milliseconds;
use crate::execution::logs::CellLogs;
use crate::execution::prepared::RevisionInput;
use crate::execution::record::{CellRecord, ExecutionPath, Measured};
use crate::execution::trees::{CellFacts, Trees};
use crate::outcome::{CompileReason, Outcome};
use crate::task::MethodId;

/// A submission's cell.
pub(super) struct SubmissionCell<'a> {
    /// What records are about.
    pub(super) identity: CellIdentity<'a>,
    /// The tree and the file.
    pub(super) facts: &'a CellFacts,
    /// Methods to launch.
    pub(super) methods: &'a [MethodId],
    /// Repeats of each launch.
    pub(super) repeats: u32,
    /// What is covered, where that is measured.
    pub(super) cover: Option<&'a CoverageRequest<'a>>,
}

type Executed = (Vec<CellRecord>, Vec<MethodCoverage>);

/// Executes a cell; where only Maven can, says why.
pub(super) async fn run_cell(
    direct: &Direct,
    executor: &Executor,
    trees: &Arc<Trees>,
    cell: &SubmissionCell<'_>,
) -> std::io::Result<Result<Executed, Unfit>> {
    let identity = &cell.identity;
    let logs = CellLogs::create(executor.logs.as_deref(), &identity.task.id, identity.cell)?;
    let mut measured = Measured { path: ExecutionPath::Direct, ..executor.measured(&logs) };
    let all = |outcome, detail: &str, attempts, measured: &Measured| {
        let launched = || Launched { outcome, detail: detail.to_owned(), attempts, measured: measured.clone() };
        (executor.records(identity, cell.methods, cell.repeats, launched), Vec::new())
    };
    let (Some(text), Some(module)) = (&cell.facts.text, &cell.facts.module) else {
        let detail = "the target file lies in no module of this tree";
        return Ok(Ok(all(Outcome::CompileFail(CompileReason::NoModule), detail, 0, &measured)));
    };
    let started = Instant::now();
    let input = RevisionInput { tree: cell.facts.tree.clone(), module: module.clone() };
    let (trees, task, side) = (Arc::clone(trees), identity.task.clone(), identity.cell.code());
    let archive = move || trees.revision(&task, side);
    let revision = match direct.revision(executor, identity.environment, &input, archive).await? {
        Ok(revision) => revision,
        Err(unfit) => return Ok(Err(unfit)),
    };
    let masked = match direct.masked(executor, &revision, identity.task.test_file.as_str()).await? {
        Ok(masked) => masked,
        Err(unfit) => return Ok(Err(unfit)),
    };
    measured.prepare_ms = Some(milliseconds(started));
    let started = Instant::now();
    let swap = direct.swap(executor, identity.environment, &masked, text).await?;
    measured.compile_ms = Some(milliseconds(started));
    let swapped = match swap {
        Swap::Compiled(swapped) => swapped,
        Swap::Failed { reason, detail, .. } => {
            return Ok(Ok(all(Outcome::CompileFail(reason), &detail, 1, &measured)));
        }
        Swap::Unfit(unfit) => return Ok(Err(unfit)),
    };
    let mut records = Vec::new();
    let options = LaunchOptions::default();
    for repeat in 1..=cell.repeats {
        for method in cell.methods {
            let name = format!("direct-{}-{repeat}", method.method());
            let launch = MethodLaunch { class: &cell.facts.class, method, options: &options, name: &name };
            let one = direct.launch(executor, identity.environment, &swapped, &launch, &logs).await?;
            let measured = Measured {
                prepare_ms: measured.prepare_ms,
                compile_ms: measured.compile_ms,
                logs: measured.logs.clone(),
                ..one.measured
            };
            let one = Launched { outcome: one.outcome, detail: one.detail, attempts: one.attempts, measured };
            records.push(executor.record(identity, method, repeat, one));
        }
    }
    let covered = match cell.cover {
        Some(cover) => covered(direct, executor, cell, cover, &swapped, &records, &logs).await?,
        None => Vec::new(),
    };
    Ok(Ok((records, covered)))
}

async fn covered(
    direct: &Direct,
    executor: &Executor,
    cell: &SubmissionCell<'_>,
    cover: &CoverageRequest<'_>,
    swapped: &SwappedTree,
    records: &[CellRecord],
    logs: &CellLogs,
) -> std::io::Result<Vec<MethodCoverage>> {
    let passed = records.iter().filter(|record| record.repeat == 1 && record.outcome == Outcome::Pass);
    let options = LaunchOptions {
        jvm_arguments: vec![coverage::agent()],
        files: vec![coverage::data_file()],
        ..LaunchOptions::default()
    };
    let mut data = Vec::new();
    for method in cover.methods.iter().chain(passed.map(|record| &record.method)) {
        let name = format!("coverage-{}", method.method());
        let launch = MethodLaunch { class: &cell.facts.class, method, options: &options, name: &name };
        let environment = cell.identity.environment;
        let mut one = direct.launch(executor, environment, swapped, &launch, logs).await?;
        let written = match (one.outcome, one.files.pop().flatten()) {
            (Outcome::Pass, Some(data)) => Ok(data),
            (Outcome::Pass, None) => Err((NO_DATA.to_owned(), false)),
            (outcome, _) => Err(coverage::not_passed(outcome, &one.detail)),
        };
        data.push((method.clone(), written));
    }
    let revision = &swapped.masked.revision;
    let classes = Classes { archive: &swapped.masked.tree, class_path: &revision.class_path };
    executor.analyse(cell.identity.environment, &classes, data, cover.files).await
}
