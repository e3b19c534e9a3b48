//! The command `testevo-sandbox`; inside a container the same binary is the init.

use std::process::ExitCode;

use testevo_sandbox::engine::init;
use testevo_sandbox::engine::native::runtime;
use testevo_sandbox::umask::Umask;

fn main() -> ExitCode {
    // Before anything is made: containers must not depend on their caller's umask.
    let umask = Umask::take();
    // The container's init must not start threads (it forks) or read arguments as the command line does.
    if init::is_wanted() {
        return init::main();
    }
    // Nor must the process that makes a container's namespaces.
    if runtime::is_wanted() {
        return runtime::main();
    }
    testevo_sandbox::cli::run(std::env::args_os(), umask).into()
}
