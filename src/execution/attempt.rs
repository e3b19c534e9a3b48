//! The one retry policy. A fault of ours is retried twice. A timeout counts only after a second run with nothing else
//! running. Once a second run has confirmed a timeout of a submission, its further timeouts count at once. After two second
//! runs that ended in time, further ones run beside other executions. So no submission may claim the machine for itself
//! again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::sync::RwLock;

/// The most tries of an execution that faults of the infrastructure keep from a verdict.
pub const ATTEMPTS: u32 = 3;

/// The most tries: the second run of a timeout is one more.
pub(super) const MOST_ATTEMPTS: u32 = ATTEMPTS + 1;

/// The result of one try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// An answer that stands.
    Answer,
    /// A fault of ours that may pass.
    Fault,
    /// A timeout that the submission or a busy machine may have caused.
    OutOfTime,
    /// A timeout of a step that is not the submission's. It says nothing about a submission.
    Slow,
}

/// The most second runs of a submission that stop all other executions and end in time. A test can time out at first and end
/// in time at its second run, as often as it likes.
const MOST_IN_TIME: u32 = 2;

/// Whether a second run has confirmed something about a submission. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct Confirmation(Arc<SecondRuns>);

#[derive(Debug, Default)]
struct SecondRuns {
    confirmed: AtomicBool,
    in_time: AtomicU32,
}

impl Confirmation {
    /// Notes the confirmation.
    pub fn confirm(&self) {
        self.0.confirmed.store(true, Ordering::SeqCst);
    }

    /// Tells whether a second run has confirmed it.
    pub fn is_confirmed(&self) -> bool {
        self.0.confirmed.load(Ordering::SeqCst)
    }

    /// Notes a second run that stopped all other executions and ended in time.
    fn note_in_time(&self) {
        self.0.in_time.fetch_add(1, Ordering::SeqCst);
    }

    /// Tells whether a second run may stop all other executions.
    fn may_exclude(&self) -> bool {
        self.0.in_time.load(Ordering::SeqCst) < MOST_IN_TIME
    }
}

/// What second runs have confirmed about one submission on a task. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct Confirmed {
    /// A launch exceeds its time.
    pub launches: Confirmation,
    /// A launch on a mutant exceeds its time. The mutant is the cause, so this says nothing about other launches.
    pub mutants: Confirmation,
    /// The submission's file exhausts a compiler.
    pub compilations: Confirmation,
}

/// The result of all tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tried<T> {
    /// The answer.
    pub(super) answer: T,
    /// Whether the answer is a timeout that counted without a second run.
    pub(super) believed: bool,
}

/// Tries until there is an answer. `once` gets the number of the try, from 1. Every execution holds `exclusive` shared;
/// a second run holds it exclusively, until two of the submission's have ended in time. A second timeout of the
/// submission sets `confirmed`; once that is set, there is no second run. A second timeout beside other executions
/// confirms nothing, and counts as one without a second run.
///
/// # Errors
/// The errors of `once`, which are not retried.
pub(super) async fn attempt<T>(
    exclusive: &RwLock<()>,
    confirmed: Option<&Confirmation>,
    once: impl AsyncFn(u32) -> std::io::Result<T>,
    came: impl Fn(&T) -> Came,
) -> std::io::Result<Tried<T>> {
    let is_confirmed = || confirmed.is_some_and(Confirmation::is_confirmed);
    let mut number = 1;
    let first = loop {
        let one = {
            let _shared = exclusive.read().await;
            once(number).await?
        };
        match came(&one) {
            Came::Fault if number < ATTEMPTS => number += 1,
            Came::OutOfTime if is_confirmed() => return Ok(Tried { answer: one, believed: true }),
            Came::OutOfTime | Came::Slow => break one,
            Came::Answer | Came::Fault => return Ok(Tried { answer: one, believed: false }),
        }
    };
    let is_of_submission = came(&first) == Came::OutOfTime;
    let may_exclude = !is_of_submission || confirmed.is_none_or(Confirmation::may_exclude);
    let _exclusive = if may_exclude { Some(exclusive.write().await) } else { None };
    let _shared = if may_exclude { None } else { Some(exclusive.read().await) };
    // Another execution of the submission may have confirmed it meanwhile.
    if is_of_submission && is_confirmed() {
        return Ok(Tried { answer: first, believed: true });
    }
    drop(first);
    loop {
        number += 1;
        let one = once(number).await?;
        let came = came(&one);
        match (came, confirmed) {
            (Came::OutOfTime, Some(confirmed)) if may_exclude => confirmed.confirm(),
            (Came::Answer, Some(confirmed)) if may_exclude && is_of_submission => confirmed.note_in_time(),
            _ => {}
        }
        if number > ATTEMPTS || came != Came::Fault {
            return Ok(Tried { answer: one, believed: came == Came::OutOfTime && !may_exclude });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Tries where each comes to the next of these, and returns what is believed, and of each try whether it was alone.
    async fn tried(comes: &[Came], confirmed: Option<&Confirmation>) -> (Tried<Came>, Vec<bool>) {
        let (lock, were_alone) = (RwLock::new(()), Mutex::new(Vec::new()));
        let once = async |number: u32| {
            were_alone.lock().unwrap().push(lock.try_read().is_err());
            Ok(comes[number as usize - 1])
        };
        let tried = attempt(&lock, confirmed, once, |came| *came).await.unwrap();
        (tried, were_alone.into_inner().unwrap())
    }

    #[tokio::test]
    async fn a_fault_has_two_more_tries_and_a_timeout_a_second_run_alone() {
        use Came::{Answer, Fault, OutOfTime, Slow};
        for (comes, believed, alone) in [
            (&[Answer][..], Answer, &[false][..]),
            (&[Fault, Answer], Answer, &[false; 2]),
            (&[Fault; 3], Fault, &[false; 3]),
            (&[OutOfTime, Answer], Answer, &[false, true]),
            (&[OutOfTime; 2], OutOfTime, &[false, true]),
            (&[Fault, OutOfTime, Fault, Fault], Fault, &[false, false, true, true]),
            (&[OutOfTime, Fault, Fault, Fault], Fault, &[false, true, true, true]),
            (&[Slow; 2], Slow, &[false, true]),
        ] {
            let expected = Tried { answer: believed, believed: false };
            assert_eq!(tried(comes, None).await, (expected, alone.to_vec()), "{comes:?}");
            assert_eq!(tried(comes, Some(&Confirmation::default())).await, (expected, alone.to_vec()), "{comes:?}");
        }
    }

    #[tokio::test]
    async fn after_a_confirmed_timeout_further_ones_are_believed_at_once() {
        use Came::{Answer, Fault, OutOfTime, Slow};
        let confirmed = Confirmation::default();
        for (comes, answer, believed, alone) in [
            // The second run is in time, or something else is slow: nothing is confirmed.
            (&[OutOfTime, Answer][..], Answer, false, &[false, true][..]),
            (&[Slow; 2], Slow, false, &[false, true]),
            (&[OutOfTime; 2], OutOfTime, false, &[false, true]),
            (&[OutOfTime], OutOfTime, true, &[false]),
            (&[Fault, OutOfTime], OutOfTime, true, &[false, false]),
            (&[Answer], Answer, false, &[false]),
            (&[Slow; 2], Slow, false, &[false, true]),
        ] {
            assert_eq!(tried(comes, Some(&confirmed)).await, (Tried { answer, believed }, alone.to_vec()), "{comes:?}");
        }
        // Another submission's are its own.
        let (other, alone) = tried(&[OutOfTime; 2], Some(&Confirmation::default())).await;
        assert_eq!((other.believed, alone), (false, vec![false, true]));
    }

    /// A submission that times out at every first try, and never at the second, stops the machine twice and no more.
    #[tokio::test]
    async fn two_second_runs_of_a_submission_stop_all_else() {
        use Came::{Answer, OutOfTime, Slow};
        let confirmed = Confirmation::default();
        for is_alone in [true, true, false, false] {
            let (tried, alone) = tried(&[OutOfTime, Answer], Some(&confirmed)).await;
            assert_eq!((tried, alone), (Tried { answer: Answer, believed: false }, vec![false, is_alone]));
        }
        let (_, alone) = tried(&[Slow, Answer], Some(&confirmed)).await;
        assert_eq!(alone, [false, true], "what is slow is not the submission's");
        let (other, alone) = tried(&[OutOfTime; 2], Some(&confirmed)).await;
        assert_eq!((other.believed, alone), (true, vec![false, false]), "nothing was confirmed");
        assert!(!confirmed.is_confirmed());
        // Second runs that met a fault, or were confirmed meanwhile, do not count.
        let other = Confirmation::default();
        for _ in 0..3 {
            let comes = [OutOfTime, Came::Fault, Came::Fault, Came::Fault];
            assert_eq!(tried(&comes, Some(&other)).await.1, [false, true, true, true]);
        }
    }

    #[tokio::test]
    async fn of_two_timeouts_at_once_one_has_a_second_run() {
        let (lock, confirmed, alone) = (RwLock::new(()), Confirmation::default(), Mutex::new(0));
        let both = tokio::sync::Barrier::new(2);
        let once = async |number: u32| {
            if number == 1 {
                both.wait().await;
            } else {
                *alone.lock().unwrap() += 1;
            }
            Ok(Came::OutOfTime)
        };
        let one = || attempt(&lock, Some(&confirmed), once, |came| *came);
        let (first, second) = tokio::join!(one(), one());
        let mut believed = [first, second].map(|tried| tried.unwrap().believed);
        believed.sort();
        assert_eq!((believed, *alone.lock().unwrap()), ([false, true], 1));
    }
}
