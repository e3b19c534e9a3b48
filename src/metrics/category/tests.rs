use super::*;
use crate::outcome::ExecReason;
use crate::outcome::{HarnessReason, InfraReason};

const ASSERTION: Outcome = Outcome::ExecFail(ExecReason::Assertion);
const TIMEOUT: Outcome = Outcome::ExecFail(ExecReason::Timeout);
const TARGET: Outcome = Outcome::CompileFail(CompileReason::TargetFile);
const INFRA: Outcome = Outcome::InfraFail(InfraReason::Engine);
const NO_MODULE: Outcome = Outcome::CompileFail(CompileReason::NoModule);

fn verdict(track: Track, new: &[Outcome], old: &[Outcome]) -> (Option<Category>, bool) {
    let old: Vec<OnOldCode> = old.iter().copied().map(OnOldCode::from).collect();
    let verdict = judge(track, new, &old, Integrity::NotEvaluated);
    (verdict.paper_verdict, verdict.strict_success)
}

#[test]
fn categories_are_the_papers() {
    use Category::{CmplFail, ExecFail, HrnsFail, Redundant, Success};
    let (update, generation) = (Track::TestUpdate, Track::TestGeneration);
    let harness = Outcome::HarnessFail(HarnessReason::WrongBase);
    for (track, new, old, category, strict) in [
        (update, Outcome::Pass, Outcome::Pass, Some(Success), true),
        (update, Outcome::Pass, INFRA, Some(Success), true),
        (update, ASSERTION, Outcome::Pass, Some(ExecFail), false),
        (update, TARGET, TARGET, Some(CmplFail), false),
        (update, harness, harness, Some(HrnsFail), false),
        (update, INFRA, ASSERTION, None, false),
        (generation, Outcome::Pass, ASSERTION, Some(Success), true),
        (generation, Outcome::Pass, TARGET, Some(Success), true),
        (generation, Outcome::Pass, NO_MODULE, Some(Success), false),
        (generation, Outcome::Pass, Outcome::CompileFail(CompileReason::OtherTestFile), Some(Success), false),
        (generation, Outcome::Pass, Outcome::CompileFail(CompileReason::Resource), Some(Redundant), false),
        (generation, Outcome::Pass, Outcome::Pass, Some(Redundant), false),
        (generation, Outcome::Pass, TIMEOUT, Some(Redundant), false),
        (generation, Outcome::Pass, Outcome::ExecFail(ExecReason::Skipped), Some(Redundant), false),
        (generation, Outcome::Pass, INFRA, None, false),
        (generation, TIMEOUT, ASSERTION, Some(ExecFail), false),
        (generation, TARGET, INFRA, Some(CmplFail), false),
    ] {
        assert_eq!(verdict(track, &[new], &[old]), (category, strict), "{track:?} {new} {old}");
    }
    assert_eq!(verdict(update, &[], &[]), (None, false), "nothing executed is nothing scored");
}

#[test]
fn the_paper_takes_the_first_repeat_and_the_strict_view_all() {
    let generation = Track::TestGeneration;
    let new = [Outcome::Pass, ASSERTION];
    let flaky = judge(generation, &new, &[ASSERTION.into(); 2], Integrity::NotEvaluated);
    assert_eq!((flaky.paper_verdict, flaky.strict_success), (Some(Category::Success), false));
    assert_eq!(flaky.flaky, Some(Flaky { passed: 1, runs: 2 }));
    assert_eq!(verdict(generation, &[Outcome::Pass; 2], &[ASSERTION, TIMEOUT]), (Some(Category::Success), false));
    let flagged = judge(Track::TestUpdate, &[Outcome::Pass], &[], Integrity::Suspect);
    assert_eq!((flagged.paper_verdict, flagged.strict_success), (Some(Category::Success), false));
}

#[test]
fn errors_of_another_method_keep_the_category_and_are_no_strict_success() {
    let old = |attributed| OnOldCode { outcome: TARGET, attributed };
    for (repeats, strict) in [
        (vec![old(Some(true))], true),
        (vec![old(None)], true),
        (vec![old(Some(false))], false),
        (vec![old(Some(true)), old(Some(false))], false),
    ] {
        let new = vec![Outcome::Pass; repeats.len()];
        let verdict = judge(Track::TestGeneration, &new, &repeats, Integrity::NotEvaluated);
        assert_eq!((verdict.paper_verdict, verdict.strict_success), (Some(Category::Success), strict), "{repeats:?}");
    }
}

#[test]
fn all_has_every_category() {
    let schema = schemars::schema_for!(Category);
    let variants = schema.get("oneOf").and_then(serde_json::Value::as_array).unwrap();
    assert_eq!(
        Category::ALL.map(|category| serde_json::json!(category)).to_vec(),
        variants.iter().map(|one| one["const"].clone()).collect::<Vec<_>>()
    );
}
