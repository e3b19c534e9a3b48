//! `measure`: how long cells take, side by side on the same tasks: the literal harness of the paper, the reference path,
//! the direct path, and the floor. Hidden: for `docs/performance.md` and for whoever doubts it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use serde::Serialize;
use tokio::sync::RwLock;

use super::Context;
use super::selector::SelectorArguments;
use super::workbench::{Workbench, by_repository, environment};
use crate::engine::session;
use crate::engine::spec::ContainerLimits;
use crate::error::CommandError;
use crate::execution::cell::{CellIdentity, CellRequest, Environment, Executor};
use crate::execution::direct::{Direct, DirectCell};
use crate::execution::literal::literal_program;
use crate::execution::maven::{self, ExecutionLimits};
use crate::execution::record::{CellRecord, ExecutionPath};
use crate::execution::trees::Trees;
use crate::outcome::label::cells_of;
use crate::task::{Cell, RepositoryName, Side, Task};

/// Arguments of `measure`.
#[derive(Debug, Args)]
pub(super) struct MeasureArguments {
    #[command(flatten)]
    selector: SelectorArguments,
}

/// One task, all of its cells together, in milliseconds.
#[derive(Debug, Serialize)]
struct MeasuredTask {
    task_id: String,
    cells: usize,
    literal_ms: u64,
    reference_ms: u64,
    direct_ms: u64,
    /// What the JVMs of the direct path's methods took.
    floor_ms: u64,
    /// The direct path's compilations.
    direct_compile_ms: u64,
    /// Waiting for containers to begin.
    direct_begin_ms: u64,
    /// Cells that the direct path does not fit.
    unfit: usize,
    /// Methods whose outcome differs between the paths.
    differences: usize,
}

/// Median and quartiles of a ratio over tasks.
#[derive(Debug, Serialize)]
struct Spread {
    lower_quartile: f64,
    median: f64,
    upper_quartile: f64,
}

#[derive(Debug, Serialize)]
struct Measured {
    schema: u32,
    literal_to_direct: Spread,
    literal_to_reference: Spread,
    reference_to_direct: Spread,
    direct_to_floor: Spread,
    tasks: Vec<MeasuredTask>,
}

pub(super) fn run(arguments: &MeasureArguments, context: &Context) -> Result<(), CommandError> {
    let tasks = arguments.selector.tasks(context)?;
    let measured = context.block_on(measure(&tasks, context))?;
    let spread = |ratio: fn(&MeasuredTask) -> (u64, u64)| {
        let ratios = measured.iter().map(ratio).filter(|(_, below)| *below > 0);
        spread(ratios.map(|(above, below)| above as f64 / below as f64).collect())
    };
    context.output.json(&Measured {
        schema: 1,
        literal_to_direct: spread(|task| (task.literal_ms, task.direct_ms)),
        literal_to_reference: spread(|task| (task.literal_ms, task.reference_ms)),
        reference_to_direct: spread(|task| (task.reference_ms, task.direct_ms)),
        direct_to_floor: spread(|task| (task.direct_ms, task.floor_ms)),
        tasks: measured,
    })
}

fn spread(mut ratios: Vec<f64>) -> Spread {
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let index = (ratios.len().saturating_sub(1)) as f64 * share;
        ratios.get(index.round() as usize).copied().unwrap_or(f64::NAN)
    };
    Spread { lower_quartile: at(0.25), median: at(0.5), upper_quartile: at(0.75) }
}

/// What the cells of a repository need.
struct Place {
    environment: Environment,
    executor: Executor,
}

async fn measure(tasks: &[Task], context: &Context) -> Result<Vec<MeasuredTask>, CommandError> {
    let workbench = Workbench::open(context)?;
    let engine = workbench.engine().await?;
    let toolchain = workbench.toolchain()?;
    let jars = workbench.jars(engine.as_ref(), &toolchain).await?;
    let alone = Arc::new(RwLock::new(()));
    let mut places: BTreeMap<RepositoryName, Place> = BTreeMap::new();
    let mut paths = BTreeMap::new();
    for (repository, tasks) in by_repository(tasks) {
        let manifest = workbench.manifest(&repository)?;
        let image = workbench.ready_image(engine.as_ref(), &manifest).await?;
        let limits = ExecutionLimits::from(&manifest.limits);
        let executor = workbench.executor(&engine, &jars, limits, None, &alone).await?;
        places.insert(repository.clone(), Place { environment: environment(&manifest, &image), executor });
        paths.insert(repository, workbench.repository(&manifest, &tasks).await?.path().to_owned());
    }
    let (trees, direct) = (workbench.trees(paths), workbench.direct(&engine, &jars));
    let mut measured = Vec::new();
    for task in tasks {
        if context.cancellation.is_cancelled() {
            break;
        }
        if let Some(place) = places.get(&task.repository) {
            let one = measure_task(task, place, &trees, &direct).await?;
            context.events.message(format!(
                "{}: literal {} ms, reference {} ms, direct {} ms, floor {} ms",
                one.task_id, one.literal_ms, one.reference_ms, one.direct_ms, one.floor_ms
            ));
            measured.push(one);
        }
    }
    drop(direct);
    engine.close().await?;
    Ok(measured)
}

async fn measure_task(
    task: &Task,
    place: &Place,
    trees: &Arc<Trees>,
    direct: &Direct,
) -> Result<MeasuredTask, CommandError> {
    let mut one = MeasuredTask {
        task_id: task.id.to_string(),
        cells: 0,
        literal_ms: 0,
        reference_ms: 0,
        direct_ms: 0,
        floor_ms: 0,
        direct_compile_ms: 0,
        direct_begin_ms: 0,
        unfit: 0,
        differences: 0,
    };
    let failed = CommandError::Runtime;
    for &cell in cells_of(task.track) {
        let unusable = |cause: String| failed(std::io::Error::other(cause));
        if trees.facts(task, cell).map_err(unusable)?.text.is_none() {
            continue;
        }
        // Once unmeasured: it prepares the revision and warms the compiler.
        direct_cell(task, cell, place, trees, direct).await?;
        one.cells += 1;
        let input = trees.cell(task, cell).map_err(unusable)?;
        one.literal_ms += literal(&input, task, place).await?;
        let started = Instant::now();
        let request = CellRequest {
            task,
            cell,
            input: &input,
            environment: &place.environment,
            methods: &task.test_methods,
            repeats: 1,
            path: ExecutionPath::Maven,
            apart: false,
        };
        let reference = place.executor.run_cell(&request).await.map_err(failed)?;
        one.reference_ms += milliseconds(started);
        fs_err::remove_file(&input.archive).map_err(failed)?;
        let started = Instant::now();
        let records = direct_cell(task, cell, place, trees, direct).await?;
        one.direct_ms += milliseconds(started);
        match records {
            None => one.unfit += 1,
            Some(records) => {
                let outcomes = |records: &[CellRecord]| -> Vec<_> {
                    records.iter().map(|record| (record.method.clone(), record.outcome)).collect()
                };
                one.differences += usize::from(outcomes(&records) != outcomes(&reference));
                for record in &records {
                    one.floor_ms += record.measured.launch_ms.unwrap_or(0);
                    one.direct_begin_ms += record.measured.begin_ms.unwrap_or(0);
                }
                one.direct_compile_ms += records.first().and_then(|first| first.measured.compile_ms).unwrap_or(0);
            }
        }
    }
    Ok(one)
}

async fn direct_cell(
    task: &Task,
    cell: Cell,
    place: &Place,
    trees: &Arc<Trees>,
    direct: &Direct,
) -> Result<Option<Vec<CellRecord>>, CommandError> {
    let facts = trees.facts(task, cell).map_err(|cause| CommandError::Runtime(std::io::Error::other(cause)))?;
    let identity = CellIdentity {
        task,
        cell,
        environment: &place.environment,
        tree: &facts.tree,
        swapped: facts.swapped(),
        path: ExecutionPath::Direct,
    };
    let request = DirectCell { identity, facts: &facts, methods: &task.test_methods, repeats: 1 };
    let (trees, wanted, side): (_, _, Side) = (Arc::clone(trees), task.clone(), cell.code());
    let executed = direct.run_cell(&place.executor, &request, move || trees.revision(&wanted, side)).await;
    Ok(executed.map_err(CommandError::Runtime)?.ok().map(|executed| executed.records))
}

/// Runs a cell as the paper does, in one container, and returns how long that took.
async fn literal(input: &crate::execution::cell::CellInput, task: &Task, place: &Place) -> Result<u64, CommandError> {
    let Some(module) = &input.module else { return Ok(0) };
    let methods: Vec<&str> = task.test_methods.iter().map(|method| method.method()).collect();
    let executor = &place.executor;
    let program = literal_program(&place.environment, module, &input.class, &methods, &executor.limits);
    let limits = ContainerLimits { wall_seconds: 3_600, ..executor.limits.compile };
    let scratch = (limits, executor.limits.compile_scratch_bytes);
    let image = place.environment.image;
    let spec = maven::container("literal", image, input.archive.clone(), &executor.jars, scratch, program);
    let started = Instant::now();
    session::run(executor.engine.as_ref(), &spec, &executor.temporary).await?;
    Ok(milliseconds(started))
}

fn milliseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
