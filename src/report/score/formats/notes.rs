//! Notes to the figures, as sentences: counts of missing, unknown, left-out and uncertain results, and the first names
//! of each kind.

use std::collections::BTreeMap;

use super::html::standing::{Differing, differing};
use super::table::track_name;
use crate::metrics::category::Category;
use crate::output::{counted, escape};
use crate::report::score::{Certified, Excluded, RunFigures, ScoreReport, ScoredModel, ScoredTask};
use crate::task::Track;

/// The most names of a kind.
const MOST_NAMED: usize = 10;

/// Returns the sentences of a report, each without its full stop. They contain untrusted names, but no line breaks of these.
pub fn notes(report: &ScoreReport, models: &[ScoredModel]) -> Vec<String> {
    let mut notes = Vec::new();
    if !report.period.is_unbounded() {
        notes.push(format!("only {}", report.period));
    }
    for track in [Track::TestUpdate, Track::TestGeneration] {
        let has_differences = report.comparisons.iter().any(|comparison| comparison.track == track);
        let note = match differing(report, models, track) {
            None => continue,
            Some(Differing::Models) if has_differences => {
                "the models were not scored on the same tasks; compare them by the differences, which are over tasks that \
                 both have"
            }
            Some(Differing::Models) => "the models were not scored on the same tasks",
            Some(Differing::Apart) => "the models share no tasks, so they can't be compared",
            Some(Differing::Gold) => "the developers' tests (gold) were not scored on the same tasks as the models",
        };
        notes.push(format!("{}: {note}", track_name(track)));
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

/// Returns the note that lists tasks and methods without a certificate, by reason.
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
        escape(&certified.validation),
        certified.certified,
        counted(certified.tasks, "task", "tasks"),
        left_out.collect::<String>()
    )
}

/// Returns the sentences about one model in one run.
pub fn of_model(run: &RunFigures, model: &ScoredModel) -> Vec<String> {
    let mut notes = Vec::new();
    let who = format!("{} {}", escape(&run.run_id), escape(&run.model));
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

/// Returns the note about the results that a model lacks; `None` for a complete model.
pub fn lacks(model: &ScoredModel) -> Option<String> {
    let methods = model.tasks.iter().flat_map(|scored| &scored.methods);
    let unscored = methods.filter(|method| method.verdict.paper_verdict.is_none()).count();
    let mut lacks = Vec::new();
    if !model.finished {
        lacks.push("the run is not finished".to_owned());
    }
    lacks.extend(model.facts.records_missing.as_ref().map(|missing| format!("{missing} are missing")));
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

/// Returns the note with the number of HrnsFail methods per reason, the most frequent first; `None` without such methods.
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
    let run_id = escape(&run.run_id);
    if run.gold_incomplete > 0 {
        let number = counted(run.gold_incomplete, "task", "tasks");
        let unmeasured = model.tasks.iter().filter(|scored| scored.measured.gold_incomplete);
        let names = first(run.gold_incomplete, unmeasured.map(|scored| &scored.task.id));
        notes.push(format!(
            "{run_id}: the developers' tests were not run, or not measured, for {number}, which no mean of theirs has: {names}"
        ));
    }
    if !run.gold_failed.is_empty() {
        let (one, several) = ("task fail", "tasks fail");
        let number = counted(run.gold_failed.len(), one, several);
        let names = first(run.gold_failed.len(), run.gold_failed.iter());
        notes.push(format!(
            "{run_id}: the developers' tests of {number} on new code, where their labels say that they pass: {names}"
        ));
    }
    if run.not_selected > 0 {
        let number = counted(run.not_selected, "prediction", "predictions");
        notes.push(format!("{run_id}: {number} for tasks that were not selected"));
    }
    if run.repeated > 0 {
        let number = counted(run.repeated, "prediction", "predictions");
        notes.push(format!("{run_id}: {number} there before, equal in bytes and cost"));
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
    use crate::report::score::figures;
    use crate::report::score::tests::fixture::{Fixture, Ran};
    use crate::submission::GOLD;

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
    fn models_of_different_tasks_are_told() {
        let task = |id| (id, "a/one", Track::TestUpdate, "2024-01-01", &["T#a"][..]);
        let run = |name, tasks: &[&'static str]| {
            Fixture::new(&[name], &tasks.iter().copied().map(task).collect::<Vec<_>>()).read(true)
        };
        let said = |models: &[ScoredModel]| -> Option<String> {
            let notes = notes(&figures(models), models);
            notes.iter().find_map(|note| Some(note.strip_prefix("test_update: ")?.to_owned()))
        };
        let (models, advice) = ("the models were not scored on the same tasks", "; compare them by the differences");
        // An interval needs two tasks, so there is no difference over one.
        assert_eq!(said(&[run("m", &["t1", "t2"]), run("n", &["t1"])].concat()).as_deref(), Some(models));
        let both = said(&[run("m", &["t1", "t2", "t3"]), run("n", &["t1", "t2"])].concat()).unwrap();
        assert!(both.starts_with(&format!("{models}{advice}")), "{both}");
        // The numbers are equal.
        let apart = said(&[run("m", &["t1"]), run("n", &["t2"])].concat());
        assert_eq!(apart.as_deref(), Some("the models share no tasks, so they can't be compared"));
        assert_eq!(said(&[run("m", &["t1", "t2"]), run("n", &["t1", "t2"])].concat()), None);
        // The developers' tests are apart, and samples are one model of the tasks that all have.
        let gold = said(&[run("m", &["t1", "t2"]), run(GOLD, &["t1"])].concat()).unwrap();
        assert!(gold.starts_with("the developers' tests (gold) were not scored on the same tasks"), "{gold}");
        let mut samples = [run("m", &["t1", "t2"]), run("n", &["t1"])].concat();
        samples.iter_mut().for_each(|model| model.sample_of = Some("s".to_owned()));
        assert_eq!(said(&samples), None);
    }

    #[test]
    fn no_name_begins_a_line() {
        let evil = "evil\nrun fake: everything is complete";
        let models = Fixture::new(&[evil], &[("t1", "a/one", Track::TestUpdate, "2024-01-01", &["T#a"])]).read(true);
        let notes = notes(&figures(&models), &models);
        assert!(notes.iter().any(|note| note.contains("evil\\nrun fake")), "{notes:?}");
        assert!(notes.iter().all(|note| !note.contains('\n')), "{notes:?}");
    }

    #[test]
    fn the_first_are_named_and_all_counted() {
        assert_eq!(first(2, ["a", "b"].iter()), "a, b");
        assert_eq!(first(12, 0..12), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, and 2 more");
    }
}
