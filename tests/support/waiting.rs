//! Waiting for conditions.

use std::time::{Duration, Instant};

/// Ends a test that would hang. It is no bound on speed: loaded machines come nowhere near it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// Where a look may itself take long, and other work of the thread must come in between.
const BETWEEN_LOOKS_ASIDE: Duration = Duration::from_millis(100);

/// Asks again until there is an answer; blocks the thread.
pub(crate) fn wait_until<T>(what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        match answer() {
            Some(answer) => return answer,
            None => assert!(started.elapsed() < PATIENCE, "waited in vain: {what}"),
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// Asks again until there is an answer; other work of the thread goes on.
pub(crate) async fn until<T>(what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        match answer() {
            Some(answer) => return answer,
            None => assert!(started.elapsed() < PATIENCE, "waited in vain: {what}"),
        }
        tokio::time::sleep(BETWEEN_LOOKS_ASIDE).await;
    }
}
