//! Tests that are the other process of another test.

use std::process::Command;

/// Names the test to the process that runs it.
const VARIABLE: &str = "TESTEVO_TEST_OTHER_PROCESS";

/// Returns a command that runs one ignored test of this binary, such as `engine::faults::holds_a_container`.
pub(crate) fn other_process(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]).env(VARIABLE, test);
    command
}

/// Returns whether [`other_process`] started this process. Without it, as under `cargo test -- --ignored`, such a test has
/// nothing to do.
pub(crate) fn is_other_process() -> bool {
    std::env::var_os(VARIABLE).is_some()
}
