//! The command `testevo-sandbox`; inside a container the same binary is the init.

use std::process::ExitCode;

use testevo_sandbox::cli::{Cli, run};
use testevo_sandbox::engine::inside_container;
use testevo_sandbox::umask::Umask;

fn main() -> ExitCode {
    // First of all, because containers must not depend on their caller's umask.
    let umask = Umask::take();
    if let Some(code) = inside_container() {
        return code;
    }
    run::<Cli>(std::env::args_os(), umask).into()
}
