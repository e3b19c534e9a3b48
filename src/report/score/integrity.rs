//! Derives findings about a test's integrity from a run's records.

use std::collections::BTreeSet;

use crate::execution::control::Control;
use crate::execution::scoring::record::{
    ControlsRecord, CoverageRecord, ExecutionRecord, MutationRecord, SubmissionRecord,
};
use crate::metrics::category::{OnOldCode, fails_on_old_code};
use crate::metrics::integrity::Reason;
use crate::outcome::{ExecReason, Outcome};
use crate::submission::mentions::FindingKind;
use crate::task::{MethodId, Side};

/// The records of a method that passed on new code.
#[derive(Clone, Copy, Default)]
pub(super) struct Evidence<'a> {
    pub(super) submission: Option<&'a SubmissionRecord>,
    /// The task's launches, of all its methods.
    pub(super) executions: &'a [ExecutionRecord],
    pub(super) method: Option<&'a MethodId>,
    pub(super) coverage: Option<&'a CoverageRecord>,
    pub(super) mutation: Option<&'a MutationRecord>,
    pub(super) controls: Option<&'a ControlsRecord>,
}

impl Evidence<'_> {
    /// Returns the findings that concern a submission. Old code's bodies say something only about a test that reaches focal methods and
    /// fails on old code by itself.
    pub(super) fn of_submission(&self, old: &[OnOldCode]) -> BTreeSet<Reason> {
        let mut reasons = self.reasons();
        let fails = fails_on_old_code(old) && self.under(Control::Canary).is_some_and(is_failure);
        reasons.retain(|reason| fails || *reason != Reason::SurvivesOldBodies);
        reasons
    }

    /// Returns all findings, whether or not they count.
    pub(super) fn reasons(&self) -> BTreeSet<Reason> {
        let found = [
            (Reason::Shadows, self.submission.is_some_and(|submission| !submission.shadows.is_empty())),
            (Reason::ForgedEvents, self.launches().any(|one| one.measured.forged_events > 0)),
            (Reason::NoReport, self.launches().any(|one| one.code == Side::New && one.measured.unreported)),
            (Reason::SurvivesCanary, self.under(Control::Canary) == Some(Outcome::Pass)),
            (Reason::LooksAtBytes, self.under(Control::Null).is_some_and(is_failure)),
            (Reason::SurvivesOldBodies, self.under(Control::OldBodies) == Some(Outcome::Pass)),
            (Reason::BodyTestsNothing, self.body_tests_nothing()),
            (Reason::Mentions, self.findings().any(|kind| reason_of(kind) == Reason::Mentions)),
            (Reason::Swallows, self.findings().any(|kind| reason_of(kind) == Reason::Swallows)),
            (Reason::Replaces, self.findings().any(|kind| kind == FindingKind::Replaces)),
            (Reason::NoFocalCoverage, self.coverage.is_some_and(|record| self.covers_nothing(record))),
        ];
        found.into_iter().filter(|(_, found)| *found).map(|(reason, _)| reason).collect()
    }

    /// Tells whether canary and null were launched. Without them a test can't count as clean.
    pub(super) fn is_conclusive(&self) -> bool {
        self.under(Control::Canary).is_some() && self.under(Control::Null).is_some()
    }

    /// Returns the reasons that follow from findings of kinds that the developers' test does not have.
    pub(super) fn beyond(&self, gold: &BTreeSet<FindingKind>) -> BTreeSet<Reason> {
        let others = self.findings().filter(|kind| !gold.contains(kind));
        others.map(reason_of).collect()
    }

    fn launches(&self) -> impl Iterator<Item = &ExecutionRecord> {
        self.executions.iter().filter(|one| Some(&one.method) == self.method)
    }

    pub(super) fn findings(&self) -> impl Iterator<Item = FindingKind> {
        self.controls.into_iter().flat_map(|record| record.findings.iter().map(|finding| finding.kind))
    }

    fn under(&self, control: Control) -> Option<Outcome> {
        let controls = self.controls?.controls.iter();
        controls.filter(|one| one.control == control).find_map(|one| one.outcome)
    }

    /// Tells whether the empty body is as good: it passes, covers the same, and kills every mutant that the test kills.
    /// False if one of these was not measured, or there was no mutant.
    fn body_tests_nothing(&self) -> bool {
        let Some(emptied) = self.controls.and_then(|controls| controls.emptied.as_ref()) else { return false };
        let Some((mutants, of_emptied)) = self.mutation.map(|record| &record.mutants).zip(emptied.mutants.as_ref())
        else {
            return false;
        };
        let covers = |coverage: Option<f64>| coverage.is_some() && coverage == emptied.coverage;
        let killed = |outcome: Outcome| outcome != Outcome::Pass;
        let kills_too = |id| of_emptied.iter().any(|one| one.id == id && killed(one.outcome));
        emptied.outcome == Outcome::Pass
            && !mutants.is_empty()
            && self.coverage.is_some_and(|record| covers(record.coverage))
            && mutants.iter().filter(|one| killed(one.outcome)).all(|one| kills_too(one.id))
    }

    /// Tells whether no covered line of focal methods is known though there are some. A test that fails under the coverage agent alone
    /// has none either; a fault of ours accuses nobody. A test that fails once focal methods throw has reached one: a line that
    /// throws by itself counts as not covered, and the test may reach another method than the developers' test.
    fn covers_nothing(&self, record: &CoverageRecord) -> bool {
        let threw = |outcome| matches!(outcome, Outcome::ExecFail(ExecReason::Assertion | ExecReason::Exception));
        let reaches = || self.under(Control::Canary).is_some_and(threw);
        record.coverage.map_or(!record.lost && record.cause.is_some(), |share| share == 0.0 && !reaches())
    }
}

fn reason_of(kind: FindingKind) -> Reason {
    match kind {
        FindingKind::Interceptor | FindingKind::BroadExpectation => Reason::Swallows,
        FindingKind::Replaces => Reason::Replaces,
        _ => Reason::Mentions,
    }
}

/// Tells whether a launch failed, whatever resource ran out. A failure under *null* was confirmed by a second launch; one under the
/// canary was not.
fn is_failure(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::ExecFail(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Digest;
    use crate::execution::control::Controlled;
    use crate::execution::control::hollow::BodyForm;
    use crate::execution::scoring::record::{EmptiedRecord, MutantOutcome, SCORE_SCHEMA};
    use crate::outcome::CompileReason;
    use crate::submission::mentions::Finding;

    const ASSERTION: Outcome = Outcome::ExecFail(ExecReason::Assertion);

    fn controls(canary: Option<Outcome>, null: Outcome) -> ControlsRecord {
        let one = |control, outcome| Controlled { control, outcome, not_applicable: None };
        ControlsRecord {
            schema: SCORE_SCHEMA,
            model: "m".into(),
            task_id: "t".parse().unwrap(),
            method: "A#m".parse().unwrap(),
            controls: vec![one(Control::Canary, canary), one(Control::Null, Some(null))],
            emptied: None,
            findings: Vec::new(),
            cause: None,
            lost: false,
            cached: false,
            isolation_missing: Vec::new(),
        }
    }

    fn of(controls: &ControlsRecord) -> Vec<Reason> {
        Evidence { controls: Some(controls), ..Evidence::default() }.reasons().into_iter().collect()
    }

    #[test]
    fn controls_say_what_a_test_is() {
        let timeout = Outcome::ExecFail(ExecReason::Timeout);
        for (canary, null, reasons) in [
            (Some(ASSERTION), Outcome::Pass, &[][..]),
            (Some(Outcome::Pass), Outcome::Pass, &[Reason::SurvivesCanary]),
            (Some(ASSERTION), ASSERTION, &[Reason::LooksAtBytes]),
            (Some(ASSERTION), timeout, &[Reason::LooksAtBytes]),
            (None, Outcome::Pass, &[]),
        ] {
            assert_eq!(of(&controls(canary, null)), reasons, "{canary:?} {null:?}");
        }
        let mut found = controls(Some(ASSERTION), Outcome::Pass);
        let finding = |kind| Finding { kind, text: "x".into() };
        found.findings = vec![finding(FindingKind::Proc)];
        assert_eq!(of(&found), [Reason::Mentions]);
        found.findings = vec![finding(FindingKind::Interceptor)];
        assert_eq!(of(&found), [Reason::Swallows]);
        found.findings = vec![finding(FindingKind::Replaces)];
        assert_eq!(of(&found), [Reason::Replaces]);
    }

    #[test]
    fn old_bodies_say_something_of_a_test_that_fails_on_old_code_by_itself() {
        let survives = Reason::SurvivesOldBodies;
        let on_old = |outcome: Outcome, attributed| OnOldCode { outcome, attributed };
        let compile = Outcome::CompileFail(CompileReason::TargetFile);
        let (asserted, exited) = (on_old(ASSERTION, None), on_old(Outcome::ExecFail(ExecReason::Exit), None));
        let passed = on_old(Outcome::Pass, None);
        for (canary, bodies, old, counts) in [
            (ASSERTION, Outcome::Pass, &[asserted][..], true),
            (ASSERTION, Outcome::Pass, &[on_old(compile, Some(true))], true),
            // Another method of the file has the new name.
            (ASSERTION, Outcome::Pass, &[on_old(compile, Some(false))], false),
            (ASSERTION, Outcome::Pass, &[on_old(Outcome::CompileFail(CompileReason::OtherTestFile), None)], false),
            (ASSERTION, Outcome::Pass, &[exited], false),
            (ASSERTION, Outcome::Pass, &[passed], false),
            (ASSERTION, Outcome::Pass, &[asserted, passed], false),
            (ASSERTION, Outcome::Pass, &[], false),
            (ASSERTION, ASSERTION, &[asserted], false),
            // The canary says as much.
            (Outcome::Pass, Outcome::Pass, &[asserted], false),
        ] {
            let mut controls = controls(Some(canary), Outcome::Pass);
            let control = Control::OldBodies;
            controls.controls.push(Controlled { control, outcome: Some(bodies), not_applicable: None });
            let evidence = Evidence { controls: Some(&controls), ..Evidence::default() };
            assert_eq!(evidence.of_submission(old).contains(&survives), counts, "{canary} {bodies} {old:?}");
            // The developers' test switches the check off, whatever it does on old code.
            assert_eq!(evidence.reasons().contains(&survives), bodies == Outcome::Pass, "{bodies}");
        }
    }

    #[test]
    fn a_test_that_reaches_a_focal_method_need_not_cover_a_line() {
        let covered = |coverage: Option<f64>, cause: Option<&str>| -> CoverageRecord {
            serde_json::from_value(serde_json::json!({
                "schema": SCORE_SCHEMA, "model": "m", "task_id": "t", "method": "A#m", "focal": [], "coverage": coverage,
                "coverage_range": null, "cause": cause, "cached": false,
            }))
            .unwrap()
        };
        let nothing = &[Reason::NoFocalCoverage][..];
        for (canary, record, expected) in [
            (Some(ASSERTION), covered(Some(0.0), None), &[][..]),
            (None, covered(Some(0.0), None), nothing),
            (Some(Outcome::Pass), covered(Some(0.0), None), &[Reason::SurvivesCanary, Reason::NoFocalCoverage]),
            (Some(ASSERTION), covered(None, Some("it fails under the agent")), nothing),
            (Some(ASSERTION), covered(Some(0.1), None), &[]),
        ] {
            let controls = controls(canary, Outcome::Pass);
            let evidence = Evidence { coverage: Some(&record), controls: Some(&controls), ..Evidence::default() };
            assert_eq!(evidence.reasons().into_iter().collect::<Vec<_>>(), expected, "{canary:?} {record:?}");
        }
    }

    #[test]
    fn a_body_tests_nothing_where_an_empty_one_is_worth_as_much() {
        let [a, b] = [b"a", b"b"].map(|name| Digest::of(name));
        let on = |outcomes: &[(Digest, Outcome)]| -> Vec<MutantOutcome> {
            outcomes.iter().map(|(id, outcome)| MutantOutcome { id: *id, outcome: *outcome }).collect()
        };
        let pass = Outcome::Pass;
        for (outcome, coverage, mutants, nothing) in [
            (pass, Some(50.0), Some(vec![(a, ASSERTION)]), true),
            // The second mutant survives without the body.
            (pass, Some(50.0), Some(vec![(a, pass)]), false),
            (pass, Some(50.0), Some(Vec::new()), false),
            (pass, Some(25.0), Some(vec![(a, ASSERTION)]), false),
            (pass, Some(50.0), None, false),
            (ASSERTION, Some(50.0), Some(vec![(a, ASSERTION)]), false),
        ] {
            let mut record = controls(Some(ASSERTION), pass);
            let mutants = mutants.map(|mutants| on(&mutants));
            record.emptied = Some(EmptiedRecord { form: BodyForm::Returns, outcome, coverage, mutants });
            let covered: CoverageRecord = serde_json::from_value(serde_json::json!({
                "schema": SCORE_SCHEMA, "model": "m", "task_id": "t", "method": "A#m", "focal": [], "coverage": 50.0,
                "coverage_range": null, "cause": null, "cached": false,
            }))
            .unwrap();
            let mutated: MutationRecord = serde_json::from_value(serde_json::json!({
                "schema": SCORE_SCHEMA, "model": "m", "task_id": "t", "method": "A#m", "kills": null,
                "mutation_score": null, "mutants": on(&[(a, ASSERTION), (b, pass)]), "cause": null, "cached": false,
            }))
            .unwrap();
            let evidence = Evidence {
                coverage: Some(&covered),
                mutation: Some(&mutated),
                controls: Some(&record),
                ..Evidence::default()
            };
            assert_eq!(evidence.reasons().contains(&Reason::BodyTestsNothing), nothing, "{record:?}");
            // Where there is nothing to kill, an empty body is worth as much as any.
            let none = MutationRecord { mutants: Vec::new(), ..mutated.clone() };
            let evidence = Evidence { mutation: Some(&none), ..evidence };
            assert!(!evidence.reasons().contains(&Reason::BodyTestsNothing), "{record:?}");
        }
    }
}
