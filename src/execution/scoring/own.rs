//! Finds each test method's own focal methods before any measurement. They come from launches of the developers' tests
//! on new code, never from a submission. Source: protocol §4.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fs_err as fs;
use tokio_util::sync::CancellationToken;

use super::job::Shared;
use super::new_code::{NewCode, swap};
use super::record::{OwnFocalRecord, SCORE_SCHEMA, ScoreRecord};
use super::recorded::Done;
use super::{Scoring, blocking};
use crate::event::EventSink;
use crate::execution::build::built::Built;
use crate::execution::cell::FailedCell;
use crate::execution::container::RepositoryImage;
use crate::execution::direct::Swap;
use crate::execution::executor::Executor;
use crate::execution::launch::agent::{AgentData, WithAgent};
use crate::execution::launch::tracing::{Trace, agent, read_traces, trace_key};
use crate::execution::module::ModuleArguments;
use crate::execution::request::{CellIdentity, CellRequest};
use crate::execution::run::directory::RunDirectory;
use crate::execution::run::logs::CellLogs;
use crate::execution::run::record::ExecutionPath;
use crate::execution::run::stage::{RunError, Stage};
use crate::execution::time_class::Took;
use crate::execution::trees::CellFacts;
use crate::focal::FocalLines;
use crate::focal::own::{Basis, OwnFocal};
use crate::outcome::launch::shortened;
use crate::output::counted;
use crate::submission::GOLD;
use crate::task::{Cell, MethodId, Side, Task, TaskId};
use crate::workspace::cells::class_of_method;

/// The methods that a developers' test entered; or why they are unknown, and whether another try may help.
type Traced = Result<Trace, (String, bool)>;

/// The developers' test file of a task on new code.
struct Gold<'a> {
    task: &'a Task,
    executor: &'a Executor,
    image: &'a RepositoryImage,
    text: Vec<u8>,
    facts: CellFacts,
}

/// The results of launching the developers' test file.
struct Launched {
    data: Vec<(MethodId, AgentData)>,
    took: Took,
}

impl Launched {
    fn of(launched: Vec<WithAgent>, built: &Built) -> Self {
        let launch_ms = launched.iter().filter_map(|one| one.took_ms).max();
        let data = launched.into_iter().map(|one| (one.method, one.data)).collect();
        Self { data, took: Took { launch_ms, build_ms: built.build_cpu_ms } }
    }
}

impl Scoring<'_> {
    /// Finds the own focal methods of all tasks that need measurements and have no record of own focal methods yet.
    /// Returns all records.
    pub(super) async fn find_own(
        &self,
        run: &mut RunDirectory,
        records: Vec<ScoreRecord>,
        shared: &Shared<'_>,
        (events, cancellation): (&EventSink, &CancellationToken),
    ) -> Result<Vec<ScoreRecord>, RunError> {
        let wanted: Vec<(&Task, Vec<FocalLines>)> = {
            let done = Done::of(&records);
            let executed = done.submissions.values().filter(|submission| submission.post_image.is_some());
            let executed: BTreeSet<&TaskId> = executed.map(|submission| &submission.task_id).collect();
            let wanted = self
                .tasks
                .iter()
                .filter(|task| executed.contains(&task.id) && done.own.get(&task.id).is_none_or(|own| own.lost));
            let looked_for = wanted.filter_map(|task| {
                let lines = done.focal.get(&task.id)?.lines();
                Some((task, lines.into_iter().cloned().collect()))
            });
            looked_for.collect()
        };
        let done = Done::of(&records).own.values().filter(|own| !own.lost).count();
        let jobs = wanted.into_iter().map(|(task, focal)| {
            let found = async move { Ok(vec![ScoreRecord::OwnFocal(self.own_of(task, focal, shared).await?)]) };
            (task.id.to_string(), found)
        });
        let summary = |records: &[ScoreRecord]| match records {
            [ScoreRecord::OwnFocal(one)] if one.lost => ("lost".to_owned(), true),
            [ScoreRecord::OwnFocal(one)] => (counted(one.methods.len(), "method", "methods"), false),
            _ => (String::new(), false),
        };
        let stage = Stage { name: "focal methods", jobs: self.jobs, done, events, cancellation };
        stage.run(run, records, jobs, summary).await
    }

    async fn own_of(
        &self,
        task: &Task,
        focal: Vec<FocalLines>,
        shared: &Shared<'_>,
    ) -> std::io::Result<OwnFocalRecord> {
        let executor = shared.executors.get(&(GOLD, &task.repository));
        let record = |methods: Result<Vec<OwnFocal>, String>| OwnFocalRecord {
            schema: SCORE_SCHEMA,
            task_id: task.id.clone(),
            lost: methods.is_err(),
            cause: methods.as_ref().err().map(|cause| shortened(cause)),
            methods: methods.unwrap_or_default(),
            isolation_missing: executor.map(|executor| executor.isolation_missing.clone()).unwrap_or_default(),
        };
        if let Some(fault) = self.obstacles.fault(task, Side::New) {
            return Ok(record(Err(fault.detail)));
        }
        let (Some(executor), Some(image)) = (executor, self.images.get(&task.repository)) else {
            return Ok(record(Err(self.obstacles.without_image(task, Side::New).detail)));
        };
        let (trees, wanted) = (Arc::clone(&self.trees), task.clone());
        let described = blocking(move || {
            let text = trees.new_file(&wanted, wanted.test_file.as_str())?;
            let facts = trees.describe(&wanted, Side::New, text.clone())?;
            Ok((text, facts))
        });
        let (text, facts) = match described.await? {
            Ok(described) => described,
            Err(error) => return Ok(record(Err(error.to_string()))),
        };
        let gold = Gold { task, executor, image, text, facts };
        let mut methods = Vec::new();
        for (method, traced) in self.trace(&gold).await? {
            methods.push(match traced {
                Ok(trace) => {
                    let classes = trace.lineage(&class_of_method(&gold.facts.class, &method));
                    let mut own = OwnFocal::of(method, &classes, &focal, &trace.entered);
                    let untraced = trace.untraced.first().map(|class| format!("the tracer could not change {class}"));
                    own.cause = own.cause.or_else(|| untraced.as_deref().map(shortened));
                    own
                }
                Err((cause, true)) => return Ok(record(Err(cause))),
                Err((cause, false)) => OwnFocal::whole(method, &focal, Basis::NotTraced, Some(shortened(&cause))),
            });
        }
        Ok(record(Ok(methods)))
    }

    /// Returns the methods that each target method of the developers' test file enters. A cached answer is reused.
    async fn trace(&self, gold: &Gold<'_>) -> std::io::Result<Vec<(MethodId, Traced)>> {
        let Gold { task, executor, image, facts, .. } = gold;
        let Some(module) = &facts.module else {
            let cause = "the target file lies in no module of this tree".to_owned();
            return Ok(task.test_methods.iter().map(|method| (method.clone(), Err((cause.clone(), false)))).collect());
        };
        let path = if self.direct.is_some() { ExecutionPath::Direct } else { ExecutionPath::Maven };
        let identity = CellIdentity { task, cell: Cell::Nn, image, tree: &facts.tree, swapped: facts.swapped(), path };
        let key = |method: &MethodId| trace_key(executor.key(&identity, method, 1, path), &executor.jars);
        let mut known = BTreeMap::new();
        for method in &task.test_methods {
            if let Some(trace) = self.cache.value::<Result<Trace, String>>(key(method))? {
                known.insert(method, trace);
            }
        }
        let unknown = task.test_methods.iter().filter(|method| !known.contains_key(method));
        let unknown: Vec<MethodId> = unknown.cloned().collect();
        let mut traced: BTreeMap<MethodId, Traced> = BTreeMap::new();
        if !unknown.is_empty() {
            let launched = self.launch_traced(gold, module, &unknown).await?;
            // Done before traces are cached, because a cached method is not launched again.
            if unknown.len() == task.test_methods.len() {
                self.record_class(task, launched.took).await?;
            }
            for (method, data) in launched.data {
                let trace = traced_by(data)?;
                // A missing answer is cached too, so that another run has the same answer.
                match &trace {
                    Ok(trace) => self.cache.put_value(&task.id, key(&method), &Ok::<_, ()>(trace))?,
                    Err((cause, false)) => self.cache.put_value(&task.id, key(&method), &Err::<(), _>(cause))?,
                    Err((_, true)) => {}
                }
                traced.insert(method, trace);
            }
        }
        let known = known.into_iter().map(|(method, trace)| (method.clone(), trace.map_err(|cause| (cause, false))));
        traced.extend(known);
        Ok(task.test_methods.iter().filter_map(|method| traced.remove_entry(method)).collect())
    }

    /// Launches methods of the developers' test file with the tracer, on the direct path if it fits.
    async fn launch_traced(
        &self,
        gold: &Gold<'_>,
        module: &ModuleArguments,
        methods: &[MethodId],
    ) -> std::io::Result<Launched> {
        let Gold { task, executor, image, text, facts } = gold;
        let agent = agent(&executor.jars);
        let none = |cause: &str, may_pass: bool| {
            let cause = |method: &MethodId| (method.clone(), Err((cause.to_owned(), may_pass)));
            Launched { data: methods.iter().map(cause).collect(), took: Took::default() }
        };
        if let Some(direct) = &self.direct {
            let on = NewCode { trees: &self.revisions, task, tree: &facts.tree, module };
            match swap(direct, (executor, image), &on, text).await? {
                Some(Swap::Compiled(swapped)) => {
                    let logs = CellLogs::create(executor.logs.as_ref(), &task.id, Cell::Nn)?;
                    let at = (facts.class.as_str(), &logs);
                    let built = &swapped.built;
                    let launched = executor.launch_with(&agent, image, built, at, methods.iter()).await?;
                    return Ok(Launched::of(launched, built));
                }
                Some(Swap::Failed { detail, .. }) => {
                    return Ok(none(&format!("the developers' test does not compile: {detail}"), false));
                }
                // Only Maven can compile it.
                None => {}
            }
        }
        let (trees, wanted, text, described) = (Arc::clone(&self.trees), (*task).clone(), text.clone(), facts.clone());
        let written = blocking(move || trees.write(&wanted, Side::New, &text, &described)).await?;
        let input = match written {
            Ok(input) => input,
            Err(error) => return Ok(none(&error.to_string(), true)),
        };
        let request = CellRequest {
            task,
            cell: Cell::Nn,
            input: &input,
            image,
            methods,
            repeats: 1,
            path: ExecutionPath::Maven,
            other_text: None,
        };
        match executor.build_cell(&request, module).await? {
            (Ok(built), logs) => {
                let at = (facts.class.as_str(), &logs);
                let launched = executor.launch_with(&agent, image, &built, at, methods.iter()).await?;
                Ok(Launched::of(launched, &built))
            }
            (Err(FailedCell { outcome, detail, .. }), _) => {
                let failed = |method: &MethodId| (method.clone(), Err(agent.not_passed(outcome, &detail)));
                Ok(Launched { data: methods.iter().map(failed).collect(), took: Took::default() })
            }
        }
    }
}

/// Reads the tracer's output of one method.
fn traced_by(data: AgentData) -> std::io::Result<Traced> {
    let files = match data {
        Ok(files) => files,
        Err(error) => return Ok(Err(error)),
    };
    let texts = files.iter().map(|file| fs::read(file.path())).collect::<std::io::Result<Vec<_>>>()?;
    Ok(read_traces(&texts).map_err(|error| (error.to_string(), false)))
}
