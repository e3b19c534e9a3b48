//! Notes to the figures, as sentences: counts of missing, unknown, left-out and uncertain results, and the first names
//! of each kind.

use std::collections::BTreeMap;

use crate::metrics::category::Category;
use crate::output::{counted, escape};
use crate::report::score::{Certified, Excluded, RunFigures, ScoreReport, ScoredModel, ScoredTask};

/// The most names of a kind.
const MOST_NAMED: usize = 10;

/// Returns the sentences of a report, each without its full stop. They contain untrusted names.
pub fn notes(report: &ScoreReport, models: &[ScoredModel]) -> Vec<String> {
    let mut notes = Vec::new();
    if !report.period.is_unbounded() {
        notes.push(format!("only {}", report.period));
    }
    notes.extend(report.certified.iter().map(of_certified));
    let mut last_run = None;
    for (run, model) in report.runs.iter().zip(models) {
        notes.extend(of_model(run, model));
        // Facts about a whole run are stated once.
        if last_run != Some(&model.path) {
            notes.extend(of_run(run, model));
            last_run = Some(&model.path);
        }
    }
    notes
}

/// Returns which tasks and methods are not certified, and why.
fn of_certified(certified: &Certified) -> String {
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for Excluded { task, method, reason } in &certified.excluded {
        let name = match method {
            Some(method) => format!("{task} {method}"),
            None => task.to_string(),
        };
        reasons.entry(reason).or_default().push(name);
    }
    let left_out = reasons.iter().map(|(reason, names)| {
        let number = names.len();
        format!("; {number} {reason}: {}", first(number, names.iter()))
    });
    format!(
        "certified by {}: {} of {}{}",
        certified.validation,
        certified.certified,
        counted(certified.tasks, "task", "tasks"),
        left_out.collect::<String>()
    )
}

/// Returns the sentences about one model in one run.
pub fn of_model(run: &RunFigures, model: &ScoredModel) -> Vec<String> {
    let mut notes = Vec::new();
    let who = format!("{} {}", run.run_id, run.model);
    if run.missing_count > 0 {
        let number = counted(run.missing_count, "selected task, which counts", "selected tasks, which count");
        let names = first(run.missing_count, run.missing.iter());
        notes.push(format!("{who}: nothing for {number} as HrnsFail: {names}"));
    }
    notes.extend(harness_reasons(model).map(|reasons| format!("{who}: methods that count as HrnsFail: {reasons}")));
    notes.extend(unscored(model).into_iter().map(|unscored| format!("{who}: {unscored}")));
    if run.unknown_count > 0 {
        let number = counted(run.unknown_count, "prediction for an unknown task", "predictions for unknown tasks");
        let places = model.unknown.iter().map(|unknown| format!("{} in {}", unknown.id, unknown.place));
        notes.push(format!("{who}: {number}: {}", first(run.unknown_count, places)));
    }
    if !run.flaky.is_empty() {
        let number = counted(run.flaky.len(), "method", "methods");
        let names = run.flaky.iter().map(|one| {
            let (passed, runs) = (one.flaky.passed, one.flaky.runs);
            format!("{} {} ({passed} of {runs})", one.task, one.method)
        });
        notes.push(format!("{who}: {number} passed in some repeats only: {}", first(run.flaky.len(), names)));
    }
    let tampered = |scored: &&ScoredTask| scored.submission.as_ref().is_some_and(|one| !one.shadows.is_empty());
    let tampered: Vec<&ScoredTask> = model.tasks.iter().filter(tampered).collect();
    if !tampered.is_empty() {
        let number = counted(tampered.len(), "test file declares", "test files declare");
        let names = first(tampered.len(), tampered.iter().map(|scored| &scored.task.id));
        notes.push(format!("{who}: tampered: {number} types of the project again: {names}"));
    }
    let caps = run.tracks.values().filter_map(|figures| figures.all.cost_caps.first());
    let without_cost: usize = caps.map(|cap| cap.tasks_without_cost).sum();
    if without_cost > 0 {
        let number = counted(without_cost, "task has no cost and counts", "tasks have no cost and count");
        notes.push(format!("{who}: {number} as within every cap"));
    }
    notes
}

/// Returns what an incomplete model lacks; `None` for a complete one.
pub fn lacks(model: &ScoredModel) -> Option<String> {
    let methods = model.tasks.iter().flat_map(|scored| &scored.methods);
    let unscored = methods.filter(|method| method.verdict.paper_verdict.is_none()).count();
    let mut lacks = Vec::new();
    if !model.finished {
        lacks.push("the run is not finished".to_owned());
    }
    if unscored > 0 {
        lacks.push(format!("{} unscored", counted(unscored, "method is", "methods are")));
    }
    if model.lost > 0 {
        lacks.push(format!("measurements of {} are missing", counted(model.lost, "task", "tasks")));
    }
    (!model.complete).then(|| lacks.join(", "))
}

/// Returns the methods without a verdict by reason, most first. Reasons beyond the first ten are counted.
fn unscored(model: &ScoredModel) -> Vec<String> {
    let mut reasons: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for scored in &model.tasks {
        for method in scored.methods.iter().filter(|method| method.verdict.paper_verdict.is_none()) {
            let reason = method.unscored_reason(scored.task.track, model.finished);
            reasons.entry(reason).or_default().push(format!("{} {}", scored.task.id, method.method));
        }
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by(|(one, names), (other, more)| more.len().cmp(&names.len()).then_with(|| one.cmp(other)));
    let rest = reasons.split_off(reasons.len().min(MOST_NAMED));
    let methods = |names: &[String]| counted(names.len(), "method", "methods");
    let shown = reasons.iter().map(|(reason, names)| {
        format!("{} unscored, {}: {}", methods(names), escape(reason), first(names.len(), names.iter()))
    });
    let mut notes: Vec<String> = shown.collect();
    if !rest.is_empty() {
        let names: Vec<String> = rest.iter().flat_map(|(_, names)| names.clone()).collect();
        let more = counted(rest.len(), "other reason", "other reasons");
        notes.push(format!("{} unscored for {more}: {}", methods(&names), first(names.len(), names.iter())));
    }
    notes
}

/// Returns how many methods count as HrnsFail for which reason, most first; `None` if there are none.
fn harness_reasons(model: &ScoredModel) -> Option<String> {
    let mut reasons: BTreeMap<(String, String), usize> = BTreeMap::new();
    for scored in &model.tasks {
        let fault = scored.submission.as_ref().and_then(|submission| submission.fault.as_ref());
        for method in &scored.methods {
            if method.verdict.paper_verdict != Some(Category::HrnsFail) {
                continue;
            }
            let outcome = method.new.first().map_or_else(|| "not executed".to_owned(), |new| new.outcome.to_string());
            let code = fault.and_then(|fault| fault.detail.split_once(':')).map_or("", |(code, _)| code);
            // Other details begin with a line, which differs from task to task.
            let code = if code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') { code } else { "" };
            *reasons.entry((outcome, code.to_owned())).or_default() += 1;
        }
    }
    let mut reasons: Vec<_> = reasons.into_iter().collect();
    reasons.sort_by(|(one, count), (other, more)| more.cmp(count).then_with(|| one.cmp(other)));
    let number = reasons.len();
    let shown = reasons.into_iter().map(|((outcome, detail), count)| match detail.as_str() {
        "" => format!("{count} {outcome}"),
        _ => format!("{count} {outcome} ({detail})"),
    });
    (number > 0).then(|| first(number, shown))
}

/// Returns the sentences about a run, which apply to each of its models.
pub fn of_run(run: &RunFigures, model: &ScoredModel) -> Vec<String> {
    let mut notes = Vec::new();
    if run.gold_incomplete > 0 {
        let number = counted(run.gold_incomplete, "task", "tasks");
        let unmeasured = model.tasks.iter().filter(|scored| scored.measured.gold_incomplete);
        let names = first(run.gold_incomplete, unmeasured.map(|scored| &scored.task.id));
        notes.push(format!(
            "{}: the developers' tests were not run, or not measured, for {number}, which no mean of theirs has: {names}",
            run.run_id
        ));
    }
    if !run.gold_failed.is_empty() {
        let (one, several) = ("task fail", "tasks fail");
        let number = counted(run.gold_failed.len(), one, several);
        let names = first(run.gold_failed.len(), run.gold_failed.iter());
        notes.push(format!(
            "{}: the developers' tests of {number} on new code, where their labels say that they pass: {names}",
            run.run_id
        ));
    }
    if run.not_selected > 0 {
        let number = counted(run.not_selected, "prediction", "predictions");
        notes.push(format!("{}: {number} for tasks that were not selected", run.run_id));
    }
    if run.repeated > 0 {
        let number = counted(run.repeated, "prediction", "predictions");
        notes.push(format!("{}: {number} there before, equal in bytes and cost", run.run_id));
    }
    notes
}

/// Returns the first of the names, and how many more there are. Line breaks in names are removed.
fn first(number: usize, names: impl Iterator<Item = impl ToString>) -> String {
    let mut named: Vec<String> = names.take(MOST_NAMED).map(|name| escape(&name.to_string()).into_owned()).collect();
    if number > named.len() {
        named.push(format!("and {} more", number - named.len()));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::scoring::record::{ScoreRecord, SubmissionFault};
    use crate::outcome::{HarnessReason, Outcome};
    use crate::report::score::tests::fixture::{Fixture, Ran};
    use crate::task::Track;

    #[test]
    fn every_reason_of_a_harness_failure_is_counted() {
        let task = |id, methods| (id, "a/one", Track::TestUpdate, "2024-01-01", methods);
        let (one, two) = (&["T#a"][..], &["T#a", "T#b"][..]);
        let mut run = Fixture::new(&["m"], &[task("t1", two), task("t2", one), task("t3", one)]);
        for (id, methods, reason, detail) in [
            ("t1", 2, HarnessReason::MalformedPatch, "markdown_fence: the patch lies in a fence"),
            ("t2", 1, HarnessReason::WrongBase, "line 3: another text"),
        ] {
            run.hands_in("m", id, None);
            let Some(ScoreRecord::Submission(submission)) = run.records.last_mut() else {
                panic!("{id}: no submission")
            };
            submission.fault = Some(SubmissionFault { reason, detail: detail.to_owned() });
            let outcomes = [Outcome::HarnessFail(reason); 2];
            let ran = Ran { new: &outcomes, old: &outcomes, covered: None, killed: None };
            run.runs("m", id, &vec![ran; methods]);
        }
        let reasons = harness_reasons(&run.read(true)[0]).unwrap();
        let fenced = "2 harness_fail(malformed_patch) (markdown_fence)";
        assert_eq!(reasons, format!("{fenced}, 1 harness_fail(empty), 1 harness_fail(wrong_base)"));
    }

    #[test]
    fn the_first_are_named_and_all_counted() {
        assert_eq!(first(2, ["a", "b"].iter()), "a, b");
        assert_eq!(first(12, 0..12), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 2 more");
    }
}
