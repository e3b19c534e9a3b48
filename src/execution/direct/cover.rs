//! Launches with an agent on board, and what the coverage agent wrote, analysed.

use super::{Direct, LaunchOptions, MethodLaunch, SwappedTree};
use crate::execution::agent::{Agent, AgentData};
use crate::execution::cell::{Environment, Executor};
use crate::execution::coverage::{self, Classes, MethodCoverage, SourceFile};
use crate::execution::logs::CellLogs;
use crate::outcome::Outcome;
use crate::task::MethodId;

/// What is covered of a swapped tree.
#[derive(Clone, Copy)]
pub struct Covering<'a> {
    /// Binary name of the test class.
    pub class: &'a str,
    /// Source files of which lines are wanted.
    pub files: &'a [SourceFile],
    /// Where launches keep what they said.
    pub logs: &'a CellLogs,
}

impl Direct {
    /// Launches methods with the coverage agent and returns what each covered.
    ///
    /// # Errors
    /// The file system's.
    pub async fn cover<'a>(
        &self,
        executor: &Executor,
        environment: &Environment,
        swapped: &SwappedTree,
        covering: &Covering<'_>,
        methods: impl Iterator<Item = &'a MethodId>,
    ) -> std::io::Result<Vec<MethodCoverage>> {
        let at = (covering.class, covering.logs);
        let data = self.launch_all_with(&coverage::agent(), executor, environment, swapped, at, methods).await?;
        let revision = &swapped.masked.revision;
        let classes = Classes { archive: &swapped.masked.tree, class_path: &revision.class_path };
        executor.analyse(environment, &classes, data, covering.files).await
    }

    /// Launches methods of a test file's class with an agent and returns what it wrote of each.
    pub(in crate::execution) async fn launch_all_with<'a>(
        &self,
        agent: &Agent,
        executor: &Executor,
        environment: &Environment,
        swapped: &SwappedTree,
        (class, logs): (&str, &CellLogs),
        methods: impl Iterator<Item = &'a MethodId>,
    ) -> std::io::Result<Vec<(MethodId, AgentData)>> {
        let options = LaunchOptions {
            jvm_arguments: vec![agent.argument.clone()],
            files: vec![agent.writes.clone()],
            mounts: agent.mounts.clone(),
            ..LaunchOptions::default()
        };
        let mut data = Vec::new();
        for method in methods {
            let name = agent.log_name(class, method);
            let launch = MethodLaunch { class, method, options: &options, name: &name };
            let mut one = self.launch(executor, environment, swapped, &launch, logs).await?;
            let written = match (one.outcome, one.files.pop().flatten()) {
                (Outcome::Pass, Some(data)) => Ok(data),
                (Outcome::Pass, None) => Err(agent.wrote_nothing()),
                (outcome, _) => Err(agent.not_passed(outcome, &one.detail)),
            };
            data.push((method.clone(), written));
        }
        Ok(data)
    }
}
