//! Launches of methods with an agent on the method's JVM: the agent's argument, and its output file, which init sends
//! out.
//!
//! The output file is untrusted: any code in the JVM can write it. This module bounds its size; its readers check its
//! content.

use crate::engine::spec::ReadOnlyMount;
use crate::execution::build::built::Built;
use crate::execution::container::Environment;
use crate::execution::executor::Executor;
use crate::execution::launch::{LaunchOptions, MethodLaunch};
use crate::execution::run::logs::{CellLogs, method_name};
use crate::outcome::Outcome;
use crate::outcome::launch::shortened;
use crate::task::MethodId;

/// An agent on a method's JVM.
#[derive(Clone, Debug)]
pub(in crate::execution) struct Agent {
    /// Names logs of its launches, and the agent in messages.
    pub(in crate::execution) name: &'static str,
    /// The JVM's argument.
    pub(in crate::execution) argument: String,
    /// The file that it writes, and how much it may: absolute path and bytes.
    pub(in crate::execution) writes: (String, u64),
    /// Further mounts of the container, such as the agent's jar.
    pub(in crate::execution) mounts: Vec<ReadOnlyMount>,
}

/// An agent's output for a method's launch, or the reason for none and whether another try may help.
pub(in crate::execution) type AgentData = Result<Vec<u8>, (String, bool)>;

impl Agent {
    /// Says that a method that passes does not with the agent.
    pub(in crate::execution) fn not_passed(&self, outcome: Outcome, detail: &str) -> (String, bool) {
        let cause = format!("with the {} agent: {outcome}: {detail}", self.name);
        (shortened(&cause), matches!(outcome, Outcome::InfraFail(_)))
    }
}

impl Executor {
    /// Launches methods of a test file's class with an agent, and returns the agent's output for each.
    ///
    /// # Errors
    /// I/O errors of writing logs and temporary files.
    pub(in crate::execution) async fn launch_with<'a>(
        &self,
        agent: &Agent,
        environment: &Environment,
        built: &Built,
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
            let name = format!("{}-{}", agent.name, method_name(class, method));
            let launch = MethodLaunch { class, method, options: &options, name: &name };
            let mut one = self.launch(environment, built, &launch, logs).await?;
            let written = match (one.outcome, one.files.pop().flatten()) {
                (Outcome::Pass, Some(data)) => Ok(data),
                (Outcome::Pass, None) => Err((format!("the {} agent wrote no data, or too much", agent.name), false)),
                (outcome, _) => Err(agent.not_passed(outcome, &one.detail)),
            };
            data.push((method.clone(), written));
        }
        Ok(data)
    }
}
