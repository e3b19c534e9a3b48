//! The command `testevo-sandbox`; inside a container the same binary is the init.

use std::process::ExitCode;

use testevo_sandbox::engine::init;
use testevo_sandbox::engine::native::runtime;

fn main() -> ExitCode {
    // The container's init must not start threads (it forks) or read arguments as the command line does.
    if init::is_wanted() {
        return init::main();
    }
    // Nor must the process that makes a container's namespaces.
    if runtime::is_wanted() {
        return runtime::main();
    }
    testevo_sandbox::cli::run(std::env::args_os()).into()
}
