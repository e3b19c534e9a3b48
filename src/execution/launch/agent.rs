//! Launches of methods with an agent on the method's JVM: the agent's argument, and its output file, which init sends
//! out.
//!
//! The output file is untrusted: any code in the JVM can write it. This module bounds its size; its readers check its
//! content. The files of a submission's methods together can be larger than memory, so they stay on disk.

use std::sync::Arc;

use crate::engine::spec::ReadOnlyMount;
use crate::execution::build::built::Built;
use crate::execution::container::RepositoryImage;
use crate::execution::container::temporary::TemporaryFile;
use crate::execution::executor::Executor;
use crate::execution::launch::{LaunchOptions, MethodLaunch};
use crate::execution::run::logs::{CellLogs, method_name};
use crate::execution::time_class::launch_took;
use crate::outcome::Outcome;
use crate::outcome::launch::shortened;
use crate::task::MethodId;

/// An agent on a method's JVM.
#[derive(Clone, Debug)]
pub(in crate::execution) struct Agent {
    /// Names the agent in messages, and the logs of its launches.
    pub(in crate::execution) name: &'static str,
    /// The JVM's argument.
    pub(in crate::execution) argument: String,
    /// The file that the agent writes: absolute path, and largest size in bytes.
    pub(in crate::execution) writes: (String, u64),
    /// Further mounts of the container, such as the agent's jar.
    pub(in crate::execution) mounts: Vec<ReadOnlyMount>,
}

/// A method's launch with an agent.
pub(in crate::execution) struct WithAgent {
    /// The method.
    pub(in crate::execution) method: MethodId,
    /// The agent's output.
    pub(in crate::execution) data: AgentData,
    /// Duration of the launch in milliseconds, if the method passed: see [`launch_took`].
    pub(in crate::execution) took_ms: Option<u64>,
}

/// An agent's output for a method's launch, a file for each subclass that the method runs in; or the reason for none, and whether another try may help.
pub(in crate::execution) type AgentData = Result<Vec<Arc<TemporaryFile>>, (String, bool)>;

impl Agent {
    /// Reports that a passing method does not pass with the agent.
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
        image: &RepositoryImage,
        built: &Built,
        (class, logs): (&str, &CellLogs),
        methods: impl Iterator<Item = &'a MethodId>,
    ) -> std::io::Result<Vec<WithAgent>> {
        let options = LaunchOptions {
            jvm_arguments: vec![agent.argument.clone()],
            files: vec![agent.writes.clone()],
            mounts: agent.mounts.clone(),
        };
        let mut data = Vec::new();
        for method in methods {
            let name = format!("{}-{}", agent.name, method_name(class, method));
            let launch = MethodLaunch { class, method, options: &options, name: &name };
            let one = self.launch(image, built, &launch, logs).await?;
            let took = one.measured.launch_cpu_ms.zip(one.measured.launch_ms).filter(|_| one.outcome == Outcome::Pass);
            let took_ms = took.map(|(cpu, wall)| launch_took(cpu, wall));
            let written = match (
                one.outcome,
                one.files.into_iter().collect::<Option<Vec<_>>>().filter(|files| !files.is_empty()),
            ) {
                (Outcome::Pass, Some(data)) => Ok(data),
                (Outcome::Pass, None) => Err((format!("the {} agent wrote no data, or too much", agent.name), false)),
                (outcome, _) => Err(agent.not_passed(outcome, &one.detail)),
            };
            data.push(WithAgent { method: method.clone(), data: written, took_ms });
        }
        Ok(data)
    }
}
