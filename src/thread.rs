//! Runs blocking work on a thread of its own.

use std::io;

/// Runs blocking work on a thread where it delays no other task.
///
/// # Errors
/// Errors of the work; an I/O error if it panicked.
pub async fn blocking<T: Send + 'static, E: From<io::Error> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(io::Error::other(error).into()),
    }
}
