//! Launches with an agent on the method's JVM: what the agent is told, and what it writes, out through the init.
//!
//! What an agent wrote is a stranger's: whoever runs in the JVM can write any. It is bounded here and checked where it is read.

use super::cell::{CellRequest, Executor, Ready};
use super::fault::{ATTEMPTS, Spool, command_end, not_done, of_engine};
use super::limits::ExecutionLimits;
use super::logs::{CellLogs, method_name};
use super::maven::{self, Launch, ModuleArguments, launch_program};
use crate::engine::session;
use crate::engine::spec::{Program, ReadOnlyMount, Step, StepResult};
use crate::outcome::Outcome;
use crate::outcome::launch::{LaunchFacts, classify, shortened};
use crate::task::MethodId;
use crate::workspace::cells::class_of_method;

/// An agent on a method's JVM.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    /// Names containers and logs of its launches.
    pub(super) name: &'static str,
    /// The JVM's argument.
    pub(super) argument: String,
    /// The file that it writes, and how much it may: absolute path and bytes.
    pub(super) writes: (String, u64),
    /// What the container has besides, such as the agent's jar.
    pub(super) mounts: Vec<ReadOnlyMount>,
}

/// What an agent wrote of a method's launch; or why there is nothing, and whether trying again may help.
pub(super) type AgentData = Result<Vec<u8>, (String, bool)>;

impl Agent {
    /// Says why there is nothing where the method passed.
    pub(super) fn wrote_nothing(&self) -> (String, bool) {
        (format!("the {} agent wrote no data, or too much", self.name), false)
    }

    /// Says that a method that passes does not with the agent.
    pub(super) fn not_passed(&self, outcome: Outcome, detail: &str) -> (String, bool) {
        let cause = format!("with the {} agent: {outcome}: {detail}", self.name);
        (shortened(&cause), matches!(outcome, Outcome::InfraFail(_)))
    }

    /// Returns the name of a method's logs.
    pub(super) fn log_name(&self, class: &str, method: &MethodId) -> String {
        format!("{}-{}", self.name, method_name(class, method))
    }
}

impl Executor {
    /// Compiles a cell as the reference path does, launches methods with an agent, and returns what it wrote of each.
    pub(super) async fn compile_and_launch_with(
        &self,
        agent: &Agent,
        request: &CellRequest<'_>,
        module: &ModuleArguments,
    ) -> std::io::Result<Vec<(MethodId, AgentData)>> {
        let logs = CellLogs::create(self.logs.as_deref(), &request.task.id, request.cell)?;
        let ready = match self.compile_tree(request, module, &logs).await? {
            Ok(ready) => ready,
            Err((outcome, detail)) => {
                let failed = |method: &MethodId| (method.clone(), Err(agent.not_passed(outcome, &detail)));
                return Ok(request.methods.iter().map(failed).collect());
            }
        };
        let data = self.launch_all_with(agent, request, &ready, &module.path(), request.methods, &logs).await?;
        super::cell::remove(&ready.archive)?;
        Ok(data)
    }

    /// Launches methods of a compiled tree with an agent, each in a container of its own, and returns what it wrote of each.
    pub(super) async fn launch_all_with(
        &self,
        agent: &Agent,
        request: &CellRequest<'_>,
        ready: &Ready,
        module: &str,
        methods: &[MethodId],
        logs: &CellLogs,
    ) -> std::io::Result<Vec<(MethodId, AgentData)>> {
        let mut all = Vec::new();
        for method in methods {
            let mut attempt = 1;
            let data = loop {
                match self.launch_with(agent, request, ready, module, method, logs).await? {
                    Err((_, true)) if attempt < ATTEMPTS => attempt += 1,
                    data => break data,
                }
            };
            all.push((method.clone(), data));
        }
        Ok(all)
    }

    async fn launch_with(
        &self,
        agent: &Agent,
        request: &CellRequest<'_>,
        ready: &Ready,
        module: &str,
        method: &MethodId,
        logs: &CellLogs,
    ) -> std::io::Result<AgentData> {
        let class = class_of_method(&request.input.class, method);
        let launch = Launch {
            java_home: &request.environment.java_home,
            console: maven::console_for(&ready.class_path, request.environment.jdk, request.environment.launcher),
            module,
            class_path: &ready.class_path,
            class: &class,
            method: method.method(),
            settings: &ready.settings,
            // An agent looks at every class as it is loaded.
            class_archive: false,
        };
        let (program, java, sent) = program_with(agent, &launch, &self.limits);
        let limits = (self.limits.launch, self.limits.launch_scratch_bytes);
        let image = request.environment.image;
        let mut spec = maven::container(agent.name, image, ready.archive.clone(), &self.jars, limits, program);
        spec.mounts.extend(agent.mounts.iter().cloned());
        let name = agent.log_name(&request.input.class, method);
        logs.invocation(&name, &spec.program, java)?;
        let spool = Spool::create(&self.temporary)?;
        let run = {
            let _shared = self.alone.read().await;
            match session::run(self.engine.as_ref(), &spec, spool.path()).await {
                Ok(run) => run,
                Err(error) => return Ok(Err((of_engine(&error).detail, true))),
            }
        };
        logs.command(&name, run.step(java))?;
        let Some((output, end)) = run.step(java).zip(command_end(&run, java)) else {
            return Ok(Err((not_done(&run, agent.name).detail, true)));
        };
        let events = output.events.bytes()?;
        let facts = LaunchFacts {
            end,
            oom_killed: run.memory_limit_met_in(java),
            events: &events,
            class: &class,
            method: method.method(),
        };
        let verdict = classify(&facts);
        if verdict.outcome != Outcome::Pass {
            return Ok(Err(agent.not_passed(verdict.outcome, &verdict.detail)));
        }
        match run.step(sent).filter(|step| step.result() == Some(&StepResult::Done)) {
            Some(sent) => Ok(Ok(sent.content.bytes()?.into_owned())),
            None => Ok(Err(agent.wrote_nothing())),
        }
    }
}

/// Returns the program that launches a method with an agent, and the indexes of the JVM and of what the agent wrote.
fn program_with(agent: &Agent, launch: &Launch<'_>, limits: &ExecutionLimits) -> (Program, usize, usize) {
    let (mut program, steps) = launch_program(std::slice::from_ref(launch), limits);
    let java = steps[0].java;
    if let Some(Step::Run(command)) = program.steps.get_mut(java) {
        command.argv.insert(1, agent.argument.clone());
    }
    let (path, max_bytes) = agent.writes.clone();
    program.steps.push(Step::SendFile { path, max_bytes });
    let sent = program.steps.len() - 1;
    (program, java, sent)
}
