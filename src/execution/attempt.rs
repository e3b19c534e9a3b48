//! The one retry policy. A fault of ours is retried twice. A timeout counts only after a second run with nothing else
//! running.

use tokio::sync::RwLock;

/// The most tries of an execution that faults of the infrastructure keep from a verdict.
pub const ATTEMPTS: u32 = 3;

/// Tries at most: the second run of a timeout counts as one more.
pub(super) const MOST_ATTEMPTS: u32 = ATTEMPTS + 1;

/// The result of one try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// An answer that stands.
    Answer,
    /// A fault of ours that may pass.
    Fault,
    /// A timeout, which a busy machine may have caused.
    OutOfTime,
}

/// Tries until there is an answer. `once` is told the number of the try, from 1; `exclusive` is held shared by every execution, and alone
/// by a second run.
///
/// # Errors
/// Those of `once`, which are not tried again.
pub(super) async fn attempt<T>(
    exclusive: &RwLock<()>,
    once: impl AsyncFn(u32) -> std::io::Result<T>,
    came: impl Fn(&T) -> Came,
) -> std::io::Result<T> {
    let mut number = 1;
    loop {
        let one = {
            let _shared = exclusive.read().await;
            once(number).await?
        };
        match came(&one) {
            Came::Fault if number < ATTEMPTS => number += 1,
            Came::OutOfTime => break,
            Came::Answer | Came::Fault => return Ok(one),
        }
    }
    let _alone = exclusive.write().await;
    loop {
        number += 1;
        let one = once(number).await?;
        if number > ATTEMPTS || came(&one) != Came::Fault {
            return Ok(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Tries where each comes to the next of these, and returns what is believed, and of each try whether it was alone.
    async fn tried(comes: &[Came]) -> (Came, Vec<bool>) {
        let (lock, were_alone) = (RwLock::new(()), Mutex::new(Vec::new()));
        let once = async |number: u32| {
            were_alone.lock().unwrap().push(lock.try_read().is_err());
            Ok(comes[number as usize - 1])
        };
        let believed = attempt(&lock, once, |came| *came).await.unwrap();
        (believed, were_alone.into_inner().unwrap())
    }

    #[tokio::test]
    async fn a_fault_has_two_more_tries_and_a_timeout_a_second_run_alone() {
        use Came::{Answer, Fault, OutOfTime};
        for (comes, believed, alone) in [
            (&[Answer][..], Answer, &[false][..]),
            (&[Fault, Answer], Answer, &[false; 2]),
            (&[Fault; 3], Fault, &[false; 3]),
            (&[OutOfTime, Answer], Answer, &[false, true]),
            (&[OutOfTime; 2], OutOfTime, &[false, true]),
            (&[Fault, OutOfTime, Fault, Fault], Fault, &[false, false, true, true]),
            (&[OutOfTime, Fault, Fault, Fault], Fault, &[false, true, true, true]),
        ] {
            assert_eq!(tried(comes).await, (believed, alone.to_vec()), "{comes:?}");
        }
    }
}
