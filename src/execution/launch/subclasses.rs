//! Puts the launches of one method in several concrete subclasses together. Each launch had a container of its own and
//! was judged by itself; the method passes only if it passes in every subclass.

use crate::execution::executor::Launched;
use crate::execution::run::record::Measured;
use crate::outcome::Outcome;
use crate::outcome::launch::shortened;
use crate::workspace::class_file::family::Subclasses;

/// Returns the worst of the launches in these subclasses, with the measurements of all.
pub(super) fn worst(launches: Vec<Launched>, found: Subclasses) -> Launched {
    let attempts = launches.iter().map(|one| one.attempts).fold(0, u32::saturating_add);
    let most = |of: fn(&Measured) -> Option<u64>| launches.iter().filter_map(|one| of(&one.measured)).max();
    let sum = |of: fn(&Measured) -> u64| launches.iter().map(|one| of(&one.measured)).fold(0, u64::saturating_add);
    let any = |of: fn(&Measured) -> bool| launches.iter().any(|one| of(&one.measured));
    let (container_ms, launch_ms) = (most(|one| one.container_ms), most(|one| one.launch_ms));
    let (launch_cpu_ms, launch_peak_bytes) = (most(|one| one.launch_cpu_ms), most(|one| one.launch_peak_bytes));
    let (forged_events, dropped_bytes) = (sum(|one| one.forged_events), sum(|one| one.dropped_bytes));
    let (unreported, oom_killed, believed) =
        (any(|one| one.unreported), any(|one| one.oom_killed), any(|one| one.believed));
    let files = launches.iter().flat_map(|one| one.files.iter().cloned()).collect();
    // The first of those that are equally bad, in the order of the subclasses.
    let at = (0..launches.len()).rev().max_by_key(|at| badness(launches[*at].outcome)).unwrap_or_default();
    let mut worst = launches.into_iter().zip(&found.classes).nth(at);
    let (outcome, detail, measured) = match worst.take() {
        Some((one, _)) if one.outcome == Outcome::Pass => (one.outcome, one.detail, one.measured),
        Some((one, class)) => (one.outcome, shortened(&format!("in {class}: {}", one.detail)), one.measured),
        None => (Outcome::ExecFail(crate::outcome::ExecReason::NotDiscovered), String::new(), Measured::default()),
    };
    let measured = Measured {
        container_ms,
        launch_ms,
        launch_cpu_ms,
        launch_peak_bytes,
        forged_events,
        dropped_bytes,
        unreported,
        oom_killed,
        believed,
        subclasses: found.classes,
        subclasses_left_out: u64::try_from(found.left_out).unwrap_or(u64::MAX),
        ..measured
    };
    Launched { outcome, detail, attempts, measured, files }
}

/// Returns how bad an outcome is beside others of the same method. A failure that is not the test's own shows nothing, so
/// it outweighs one that is.
fn badness(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Pass => 0,
        Outcome::ExecFail(reason) if reason.is_the_tests_own() => 1,
        Outcome::ExecFail(_) => 2,
        Outcome::CompileFail(_) | Outcome::HarnessFail(_) | Outcome::Absent => 3,
        Outcome::InfraFail(_) => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{ExecReason, InfraReason};

    #[test]
    fn a_method_passes_only_in_all_of_its_subclasses() {
        let (pass, assertion) = (Outcome::Pass, Outcome::ExecFail(ExecReason::Assertion));
        let exception = Outcome::ExecFail(ExecReason::Exception);
        let skipped = Outcome::ExecFail(ExecReason::Skipped);
        let fault = Outcome::InfraFail(InfraReason::Engine);
        for (outcomes, expected, detail) in [
            (&[pass, pass][..], pass, ""),
            (&[pass, assertion], assertion, "in p.B: x"),
            (&[exception, assertion, pass], exception, "in p.A: x"),
            (&[assertion, skipped], skipped, "in p.B: x"),
            (&[skipped, fault, assertion], fault, "in p.B: x"),
        ] {
            let launch = |(number, outcome): (u64, &Outcome)| Launched {
                outcome: *outcome,
                detail: if *outcome == pass { String::new() } else { "x".to_owned() },
                attempts: 1,
                measured: Measured { launch_ms: Some(number), forged_events: 1, ..Measured::default() },
                files: vec![None],
            };
            let launches: Vec<Launched> = (1..).zip(outcomes).map(launch).collect();
            let number = launches.len();
            let classes = ["p.A", "p.B", "p.C"].iter().take(number).map(|class| (*class).to_owned()).collect();
            let one = worst(launches, Subclasses { classes, left_out: 2 });
            assert_eq!((one.outcome, one.detail.as_str()), (expected, detail), "{outcomes:?}");
            assert_eq!(
                (one.attempts as usize, one.files.len(), one.measured.subclasses.len()),
                (number, number, number)
            );
            assert_eq!(one.measured.launch_ms, Some(number as u64));
            assert_eq!((one.measured.forged_events, one.measured.subclasses_left_out), (number as u64, 2));
        }
    }
}
