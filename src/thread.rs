//! Work that blocks, on a thread of its own.

use std::io;

/// Does work that blocks on a thread where it holds nobody up.
///
/// # Errors
/// The work's; an I/O error where it panicked.
pub async fn blocking<T: Send + 'static, E: From<io::Error> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(io::Error::other(error).into()),
    }
}
