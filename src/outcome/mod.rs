//! Outcomes: the meaning of an execution, as a closed set. Source: protocol §3.
//!
//! Everything here is a pure function of facts: the runner's events, exit facts, compiler diagnostics. A test's printed
//! text has no effect.

use std::fmt;

use serde::{Deserialize, Serialize};

pub mod compile;
pub mod label;
pub mod launch;

/// The outcome of one target method in one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "outcome", content = "reason", rename_all = "snake_case")]
pub enum Outcome {
    /// Exit status 0, exactly the requested method discovered, started and successful, at least one leaf, none skipped
    /// or aborted.
    Pass,
    /// The method ran, or should have run, and did not pass.
    ExecFail(ExecReason),
    /// Test sources did not compile, or there is no module to compile them in.
    CompileFail(CompileReason),
    /// The submission is at fault before any compilation. Gold never is.
    HarnessFail(HarnessReason),
    /// A fault of ours. Never a label.
    InfraFail(InfraReason),
    /// The method does not exist in that revision of the test file.
    Absent,
}

/// Why a method that compiled did not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExecReason {
    /// An assertion failed.
    Assertion,
    /// Anything else was thrown.
    Exception,
    /// The JVM ended before the launcher did.
    Exit,
    /// The method, its class or a leaf was skipped.
    Skipped,
    /// A failed assumption aborted it.
    Aborted,
    /// It has no executed leaf (an empty test factory).
    NoLeaf,
    /// The launcher did not find the test.
    NotDiscovered,
    /// Wall or processor time ran out.
    Timeout,
    /// The heap or the container's memory ran out.
    OutOfMemory,
    /// No process or thread could be created.
    Pids,
    /// Scratch space ran out.
    Disk,
}

/// Why the method's class could not be compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CompileReason {
    /// The target file has an error.
    TargetFile,
    /// Only other test sources have errors.
    OtherTestFile,
    /// The compiler itself ran out of memory or time.
    Resource,
    /// The target file is in no module of that tree.
    NoModule,
}

/// Why a submission could not be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HarnessReason {
    /// It equals the starting file, or is empty.
    Empty,
    /// The file does not declare the target method.
    NoTargetMethod,
    /// The patch can't be read.
    MalformedPatch,
    /// The patch does not apply to the starting file.
    WrongBase,
    /// It is too large.
    Size,
    /// It is not text.
    Encoding,
}

/// Why the infrastructure gave no verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum InfraReason {
    /// The engine refused or lost the container.
    Engine,
    /// The image is missing or corrupted.
    Image,
    /// The host's disk is full or unreadable.
    Disk,
    /// Something killed the container from outside.
    Killed,
    /// An artifact did not resolve.
    Resolution,
    /// A plugin or the unmodified main sources failed.
    Build,
    /// The sources are not available: a revision or a file is missing.
    Source,
}

impl InfraReason {
    /// Tells whether another machine may do better, and not only other sources or builds.
    pub fn is_the_machines(self) -> bool {
        match self {
            Self::Engine | Self::Image | Self::Disk | Self::Killed => true,
            Self::Resolution | Self::Build | Self::Source => false,
        }
    }
}

impl ExecReason {
    /// Tells whether the test itself says that it failed. Source: protocol §3, "Not pass is not fail".
    pub fn is_the_tests_own(self) -> bool {
        match self {
            Self::Assertion | Self::Exception => true,
            Self::Exit
            | Self::Skipped
            | Self::Aborted
            | Self::NoLeaf
            | Self::NotDiscovered
            | Self::Timeout
            | Self::OutOfMemory
            | Self::Pids
            | Self::Disk => false,
        }
    }
}

impl CompileReason {
    /// Tells whether the sources are at fault, rather than the compiler's resources.
    fn is_attributable(self) -> bool {
        match self {
            Self::TargetFile | Self::OtherTestFile | Self::NoModule => true,
            Self::Resource => false,
        }
    }
}

impl Outcome {
    /// Tells whether the outcome counts as a failure of the test on old code. Source: protocol §3, "Not pass is not
    /// fail".
    pub fn is_attributable_failure(self) -> bool {
        match self {
            Self::ExecFail(reason) => reason.is_the_tests_own(),
            Self::CompileFail(reason) => reason.is_attributable(),
            Self::Pass | Self::HarnessFail(_) | Self::InfraFail(_) | Self::Absent => false,
        }
    }

    /// Returns the outcome's name in records, without its reason.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::ExecFail(_) => "exec_fail",
            Self::CompileFail(_) => "compile_fail",
            Self::HarnessFail(_) => "harness_fail",
            Self::InfraFail(_) => "infra_fail",
            Self::Absent => "absent",
        }
    }

    /// Returns the reason's name in records; `None` for an outcome without a reason.
    pub fn reason(self) -> Option<String> {
        match self {
            Self::Pass | Self::Absent => None,
            Self::ExecFail(reason) => Some(text_of(&reason)),
            Self::CompileFail(reason) => Some(text_of(&reason)),
            Self::HarnessFail(reason) => Some(text_of(&reason)),
            Self::InfraFail(reason) => Some(text_of(&reason)),
        }
    }
}

fn text_of(reason: &impl Serialize) -> String {
    match serde_json::to_value(reason) {
        Ok(serde_json::Value::String(text)) => text,
        other => unreachable!("reasons are unit variants: {other:?}"),
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason() {
            Some(reason) => write!(f, "{}({reason})", self.name()),
            None => f.write_str(self.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde::de::DeserializeOwned;

    use super::*;

    /// Returns the names between backticks.
    fn quoted(text: &str) -> BTreeSet<String> {
        text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    }

    /// Returns the names of all variants, which serde lists for a name that is none.
    fn names<R: DeserializeOwned + fmt::Debug>() -> BTreeSet<String> {
        let error = serde_json::from_str::<R>("\"?\"").unwrap_err().to_string();
        quoted(error.split_once("expected one of ").unwrap().1)
    }

    #[test]
    fn the_protocol_names_every_reason_and_no_other() {
        let protocol = include_str!("../../docs/protocol.md");
        for (outcome, reasons) in [
            ("exec_fail", names::<ExecReason>()),
            ("compile_fail", names::<CompileReason>()),
            ("harness_fail", names::<HarnessReason>()),
            ("infra_fail", names::<InfraReason>()),
        ] {
            let row = protocol.lines().find_map(|line| line.strip_prefix(&format!("| `{outcome}` | "))).unwrap();
            assert_eq!(quoted(row), reasons, "{outcome}");
        }
    }
}
