use super::super::{CompileReason, ExecReason, InfraReason};
use super::*;

const ASSERTION: Outcome = Outcome::ExecFail(ExecReason::Assertion);
const TIMEOUT: Outcome = Outcome::ExecFail(ExecReason::Timeout);

#[test]
fn labels_ask_for_attributable_failures() {
    for (outcome, met) in [
        (ASSERTION, true),
        (Outcome::ExecFail(ExecReason::Exception), true),
        (Outcome::CompileFail(CompileReason::TargetFile), true),
        (Outcome::CompileFail(CompileReason::OtherTestFile), true),
        (Outcome::CompileFail(CompileReason::NoModule), true),
        (Outcome::CompileFail(CompileReason::Resource), false),
        (TIMEOUT, false),
        (Outcome::ExecFail(ExecReason::Exit), false),
        (Outcome::ExecFail(ExecReason::Skipped), false),
        (Outcome::Pass, false),
        (Outcome::Absent, false),
    ] {
        assert_eq!(Expectation::Fail.is_met_by(outcome), met, "{outcome}");
    }
}

#[test]
fn repeats_are_unanimous_or_flaky() {
    use CellVerdict::{Differs, Flaky, Infrastructure, Met};
    let infra = Outcome::InfraFail(InfraReason::Engine);
    for (expectation, outcomes, verdict) in [
        (Expectation::Pass, vec![Outcome::Pass; 3], Met),
        (Expectation::Pass, vec![Outcome::Pass, ASSERTION], Flaky { passed: 1, runs: 2 }),
        (Expectation::Pass, vec![ASSERTION, ASSERTION], Differs(ASSERTION)),
        (Expectation::Pass, vec![ASSERTION, infra], Infrastructure),
        (Expectation::Fail, vec![ASSERTION, TIMEOUT], Flaky { passed: 0, runs: 2 }),
        (Expectation::Fail, vec![TIMEOUT], Differs(TIMEOUT)),
        (Expectation::Free, vec![TIMEOUT], Met),
        (Expectation::Free, vec![infra], Infrastructure),
        (Expectation::Pass, vec![], Infrastructure),
    ] {
        let repeats: Vec<Observed> = outcomes.iter().map(|outcome| (*outcome).into()).collect();
        assert_eq!(judge(expectation, &repeats), verdict, "{expectation:?} {outcomes:?}");
    }
}

#[test]
fn the_worst_class_wins() {
    let verdicts = [CellVerdict::Met, CellVerdict::Differs(ASSERTION), CellVerdict::Flaky { passed: 1, runs: 2 }];
    assert_eq!(task_class(verdicts), TaskClass::Flaky);
    assert_eq!(task_class([CellVerdict::Met]), TaskClass::Reproduced);
    assert_eq!(task_class([]), TaskClass::Infrastructure);
}

#[test]
fn discrimination_needs_unanimity() {
    assert_eq!(discriminating(&[ASSERTION.into()]), Discriminating::Yes);
    assert_eq!(discriminating(&[Outcome::Pass.into()]), Discriminating::No);
    assert_eq!(discriminating(&[TIMEOUT.into()]), Discriminating::Inconclusive);
    assert_eq!(discriminating(&[Outcome::Pass.into(), ASSERTION.into()]), Discriminating::Inconclusive);
}

#[test]
fn a_label_that_a_network_would_decide_is_neither_met_nor_wrong() {
    use CellVerdict::{Flaky, Infrastructure, Met, NeedsNetwork};
    let exception = Outcome::ExecFail(ExecReason::Exception);
    let refused = Observed { outcome: exception, doubt: Some(Doubt::Network) };
    let infra = Outcome::InfraFail(InfraReason::Engine);
    for (expectation, repeats, verdict) in [
        (Expectation::Pass, vec![refused, refused], NeedsNetwork(exception)),
        (Expectation::Pass, vec![refused, ASSERTION.into()], NeedsNetwork(exception)),
        (Expectation::Pass, vec![refused, Outcome::Pass.into()], Flaky { passed: 1, runs: 2 }),
        (Expectation::Pass, vec![refused, infra.into()], Infrastructure),
        (Expectation::Fail, vec![refused], NeedsNetwork(exception)),
        (Expectation::Free, vec![refused], Met),
    ] {
        assert_eq!(judge(expectation, &repeats), verdict, "{expectation:?} {repeats:?}");
    }
    assert_eq!(task_class([NeedsNetwork(exception), CellVerdict::Differs(ASSERTION)]), TaskClass::NeedsNetwork);
    assert_eq!(task_class([NeedsNetwork(exception), Flaky { passed: 1, runs: 2 }]), TaskClass::Flaky);
    assert_eq!(discriminating(&[refused]), Discriminating::Inconclusive);
    let lacking = Observed { outcome: ASSERTION, doubt: Some(Doubt::Contents) };
    assert_eq!(discriminating(&[lacking]), Discriminating::Inconclusive);
}
