//! Launches with the coverage agent on board, and what it wrote, analysed.

use super::{Direct, LaunchOptions, MethodLaunch, SwappedTree};
use crate::execution::cell::{Environment, Executor};
use crate::execution::coverage::{self, Classes, MethodCoverage, NO_DATA, SourceFile};
use crate::execution::logs::{CellLogs, method_name};
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
    /// Launches methods with the agent and returns what each covered.
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
        let options = LaunchOptions {
            jvm_arguments: vec![coverage::agent()],
            files: vec![coverage::data_file()],
            ..LaunchOptions::default()
        };
        let mut data = Vec::new();
        for method in methods {
            let name = format!("coverage-{}", method_name(covering.class, method));
            let launch = MethodLaunch { class: covering.class, method, options: &options, name: &name };
            let mut one = self.launch(executor, environment, swapped, &launch, covering.logs).await?;
            let written = match (one.outcome, one.files.pop().flatten()) {
                (Outcome::Pass, Some(data)) => Ok(data),
                (Outcome::Pass, None) => Err((NO_DATA.to_owned(), false)),
                (outcome, _) => Err(coverage::not_passed(outcome, &one.detail)),
            };
            data.push((method.clone(), written));
        }
        let revision = &swapped.masked.revision;
        let classes = Classes { archive: &swapped.masked.tree, class_path: &revision.class_path };
        executor.analyse(environment, &classes, data, covering.files).await
    }
}
