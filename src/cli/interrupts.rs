//! Runs a command's asynchronous work until it ends or the user interrupts.

use std::io;

use crate::application::Context;
use crate::error::CommandError;

/// Runs asynchronous work to its end. The first interrupt cancels [`Context::cancellation`] so that the work can clean
/// up. A second one drops the work.
///
/// # Errors
/// The work's error; [`CommandError::Interrupted`] after an interrupt; [`CommandError::Runtime`].
pub fn block_on<T>(context: &Context, work: impl Future<Output = Result<T, CommandError>>) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(CommandError::Runtime)?;
    let done = runtime.block_on(async {
        let mut interrupts = Interrupts::new().map_err(CommandError::Runtime)?;
        let mut work = std::pin::pin!(work);
        tokio::select! {
            // First, so that no work is begun after an interrupt that has come.
            biased;
            () = interrupts.next() => {}
            done = &mut work => return done,
        }
        context.cancellation.cancel();
        context.events.warning("interrupted: cleaning up; interrupt again to stop at once");
        tokio::select! {
            // After an interrupt the work is incomplete, even if it succeeded.
            done = &mut work => done.and(Err(CommandError::Interrupted)),
            () = interrupts.next() => Err(CommandError::Interrupted),
        }
    });
    // Blocking tasks that outlive an interrupt must not hold the process.
    runtime.shutdown_background();
    done
}

struct Interrupts {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Interrupts {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
