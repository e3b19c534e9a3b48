//! The command `testevo-sandbox`; inside a container the same binary is the init.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The container's init must not start threads or read arguments as the command line does.
    // PLACE OF THE INIT: `if std::env::args_os().nth(1).is_some_and(|argument| argument == "container-init")`
    // returns `testevo_sandbox::engine::init::main()` from here.
    testevo_sandbox::cli::run(std::env::args_os()).into()
}
