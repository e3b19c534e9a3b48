//! Scores the hostile corpus on this machine, and compares what comes of each case with what must come of it.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use fs_err as fs;
use serde::Serialize;
use serde_json::json;

use super::Context;
use super::build::{BuildRequest, build};
use super::import::{ImportRequest, import};
use super::io_failure::IoFailure;
use super::lock::{LockRequest, lock};
use super::run::RunChoice;
use super::sample::prepare;
use super::score::{ScoreRequest, score};
use crate::error::CommandError;
use crate::execution::container::Surefire;
use crate::execution::run::record::ExecutionPath;
use crate::execution::scoring::record::ExecutionRecord;
use crate::metrics::category::Integrity;
use crate::output::counted;
use crate::report::score::{ScoredMethod, ScoredModel, ScoredTask};
use crate::sample::SampleRepository;
use crate::sample::corpus::{Case, Fact, Form, cases, repositories};
use crate::submission::predictions::Several;
use crate::task::selector::Selector;

/// What is tried.
#[derive(Clone, Debug)]
pub struct SelftestRequest {
    /// Names of cases; one that ends with `*` stands for all that begin so. Empty for all cases.
    pub cases: Vec<String>,
    /// How methods are executed.
    pub path: ExecutionPath,
    /// Whether mutants are made and run.
    pub mutation: bool,
}

/// How cases are tried, as far as it decides what must come of them.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Whether mutants are run.
    pub mutation: bool,
    /// The path. Only the direct path runs emptied bodies on mutants and gives focal methods old code's bodies.
    pub path: ExecutionPath,
}

/// What came of a case's method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tried {
    /// The case.
    pub case: &'static str,
    /// The attacks that it stands for, as docs/corpus.md numbers them.
    pub proves: Vec<&'static str>,
    /// What it does.
    pub about: &'static str,
    /// The method.
    pub method: String,
    /// What must come of it.
    pub expected: String,
    /// What came of it.
    pub found: String,
    /// Whether the one is the other.
    pub as_expected: bool,
}

/// Returns the cases of these names, in the corpus' order.
///
/// # Errors
/// [`CommandError::Usage`] for a name that no case has.
pub fn selected(names: &[String]) -> Result<Vec<Case>, CommandError> {
    let fits = |name: &str, case: &Case| match name.strip_suffix('*') {
        Some(beginning) => case.name.starts_with(beginning),
        None => case.name == name,
    };
    let mut chosen = cases();
    if let Some(unknown) = names.iter().find(|name| !chosen.iter().any(|case| fits(name, case))) {
        return Err(CommandError::Usage {
            message: format!("there is no case `{unknown}`"),
            hint: "docs/corpus.md lists the cases".to_owned(),
        });
    }
    chosen.retain(|case| names.is_empty() || names.iter().any(|name| fits(name, case)));
    Ok(chosen)
}

/// Tries cases of the corpus; `None` after a dry run.
///
/// # Errors
/// [`CommandError`] of locking, building and scoring.
pub async fn selftest(request: &SelftestRequest, context: &Context) -> Result<Option<Vec<Tried>>, CommandError> {
    const DIRECTORY: &str = "selftest";
    let cases = selected(&request.cases)?;
    let mut samples = repositories()?.to_vec();
    samples.retain(|sample| cases.iter().any(|case| case.task_id(std::slice::from_ref(sample)).is_some()));
    if context.options.dry_run {
        let root = context.options.data_dir.join(DIRECTORY);
        let number = counted(cases.len(), "hostile submission", "hostile submissions");
        context.events.message(format!("would score {number} in `{}`", root.display()));
        return Ok(None);
    }
    let (data, own) = prepare(&samples, DIRECTORY, context)?;
    drop(import(&ImportRequest { data, manifests: None, replace: true }, &own)?);
    let names =
        Selector { patterns: samples.iter().map(|sample| sample.name.to_string()).collect(), ..Selector::default() };
    if let Some(report) = lock(&LockRequest { selector: names.clone(), ..LockRequest::default() }, &own).await? {
        report.verdict()?;
    }
    if let Some(report) = build(&BuildRequest { selector: names, ..BuildRequest::default() }, &own).await? {
        report.verdict()?;
    }
    let manner = Manner { mutation: request.mutation, path: request.path };
    let mut all = Vec::new();
    for ((seconds, repeats), alike) in groups(&cases) {
        let predictions = own.options.data_dir.join("hostile.jsonl");
        fs::write(&predictions, predictions_of(&samples, &alike))
            .map_err(IoFailure::of("writing hostile submissions"))?;
        let request = ScoreRequest {
            selector: Selector { task_ids: tasks_of(&samples, &alike), ..Selector::default() },
            predictions: predictions.display().to_string(),
            strip_fences: false,
            several: Several::default(),
            path: request.path,
            surefire: Surefire::default(),
            repeats,
            seed: None,
            cache: false,
            coverage: true,
            mutation: request.mutation,
            controls: true,
            timeout: seconds,
            run: RunChoice { fresh: true, ..RunChoice::default() },
        };
        let Some(ended) = score(&request, &own).await? else { return Ok(None) };
        let scored = ended.add_up(None)?;
        scored.tell_left(&own);
        all.extend(tried(&scored.models, &alike, manner));
    }
    let place = |one: &Tried| cases.iter().position(|case| case.name == one.case);
    all.sort_by_key(place);
    Ok(Some(all))
}

/// Returns cases by what a whole run has: the processor time of launches, and their number.
pub fn groups(cases: &[Case]) -> BTreeMap<(Option<NonZeroU32>, NonZeroU32), Vec<Case>> {
    let mut groups: BTreeMap<_, Vec<Case>> = BTreeMap::new();
    for case in cases {
        groups.entry((case.seconds, case.repeats)).or_default().push(case.clone());
    }
    groups
}

/// Returns the ids of the tasks that cases are handed in for, each once.
pub fn tasks_of(samples: &[SampleRepository], cases: &[Case]) -> Vec<String> {
    let mut tasks: Vec<String> = cases.iter().filter_map(|case| case.task_id(samples)).collect();
    tasks.sort();
    tasks.dedup();
    tasks
}

/// Returns cases as predictions: each is a model, which hands in nothing for the other cases' tasks.
pub fn predictions_of(samples: &[SampleRepository], cases: &[Case]) -> String {
    let tasks = tasks_of(samples, cases);
    let mut lines = String::new();
    for case in cases {
        let own = case.task_id(samples);
        for task in &tasks {
            let mut line = json!({ "instance_id": task, "model_name_or_path": case.name });
            let (field, content) = match case.form {
                // Nothing is handed in for the other tasks.
                _ if own.as_ref() != Some(task) => ("model_patch", None),
                Form::File => ("model_file", Some(case.submission())),
                Form::Patch => ("model_patch", Some(case.submission())),
            };
            line[field] = content.into();
            lines.push_str(&format!("{line}\n"));
        }
    }
    lines
}

/// Compares what models came to with what must come of the cases that they stand for.
pub fn tried(models: &[ScoredModel], cases: &[Case], manner: Manner) -> Vec<Tried> {
    let models: BTreeMap<&str, &ScoredModel> = models.iter().map(|model| (model.model.as_str(), model)).collect();
    let mut tried = Vec::new();
    for case in cases {
        let tasks = models.get(case.name).into_iter().flat_map(|model| &model.tasks);
        let mut own = tasks.filter(|scored| scored.task.id.as_str().ends_with(&format!("__{}", case.task)));
        let Some(task) = own.next() else {
            tried.push(compared(case, String::new(), (expected(case, manner), "nothing was scored".to_owned())));
            continue;
        };
        for method in &task.methods {
            let name = method.method.method();
            if case.methods.is_empty() || case.methods.contains(&name) {
                let found = found(case, task, method, manner);
                tried.push(compared(case, name.to_owned(), (expected(case, manner), found)));
            }
        }
    }
    tried
}

fn compared(case: &Case, method: String, (expected, found): (Vec<String>, String)) -> Tried {
    Tried {
        case: case.name,
        proves: case.proves.clone(),
        about: case.about,
        method,
        as_expected: expected.contains(&found),
        expected: expected.join(" or "),
        found,
    }
}

/// Returns the facts that a case expects besides its verdict, without those that this run does not measure.
fn facts(case: &Case, manner: Manner) -> impl Iterator<Item = (Fact, &'static str)> {
    let facts = case.facts.clone().into_iter();
    facts.filter(move |(fact, _)| manner.mutation || *fact != Fact::CleanMutation)
}

/// Returns the results that are right for a case's methods, in the form of [`found`].
fn expected(case: &Case, manner: Manner) -> Vec<String> {
    let verdicts = match manner.path {
        ExecutionPath::Maven => &case.by_maven,
        ExecutionPath::Direct if manner.mutation => &case.expected,
        ExecutionPath::Direct => &case.without_mutants,
    };
    let facts: String = facts(case, manner).map(|(fact, value)| format!("; {}: {value}", fact.name())).collect();
    verdicts.iter().map(|verdict| format!("{verdict}{facts}")).collect()
}

/// Returns a method's result: its verdict, and the facts that the case names.
fn found(case: &Case, task: &ScoredTask, method: &ScoredMethod, manner: Manner) -> String {
    let verdict = &method.verdict;
    let integrity = match verdict.integrity {
        Integrity::NotEvaluated => "not_evaluated",
        Integrity::Clean => "clean",
        Integrity::Suspect => "suspect",
        Integrity::Tampered => "tampered",
    };
    let category = verdict.paper_verdict.map_or("unscored", |category| category.name());
    let flaky = verdict.flaky.map(|_| "flaky");
    let words = std::iter::once(category).chain(flaky).chain(std::iter::once(integrity));
    let mut found = words.chain(verdict.reasons.iter().map(|reason| reason.name())).collect::<Vec<_>>().join(" ");
    let first = |launches: &[ExecutionRecord]| launches.first().map(|launch| launch.outcome.to_string());
    for (fact, _) in facts(case, manner) {
        let value = match fact {
            Fact::New => first(&method.new),
            Fact::Old => first(&method.old),
            Fact::Strict => Some(if verdict.strict_success { "yes" } else { "no" }.to_owned()),
            Fact::Dropped => dropped(task),
            Fact::CleanCoverage => method.score.pred.clean_coverage.map(|value| value.to_string()),
            Fact::CleanMutation => method.score.pred.clean_mutation.map(|value| value.to_string()),
        };
        let value = value.unwrap_or_else(|| "none".to_owned());
        found.push_str(&format!("; {}: {value}", fact.name()));
    }
    found
}

fn dropped(task: &ScoredTask) -> Option<String> {
    let dropped = task.submission.as_ref()?.dropped.iter();
    let names = dropped.map(|file| match file.lying_header {
        true => format!("{} (lying header)", file.path),
        false => file.path.clone(),
    });
    let names: Vec<String> = names.collect();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_chosen_by_name_and_by_how_names_begin() {
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            selected(&names).map(|cases| cases.iter().map(|case| case.name).collect::<Vec<_>>())
        };
        assert_eq!(of(&[]).unwrap().len(), cases().len());
        assert_eq!(of(&["empty", "honest"]).unwrap(), ["honest", "empty"]);
        let junit4 = of(&["junit4-*"]).unwrap();
        assert!(junit4.len() > 5 && junit4.iter().all(|name| name.starts_with("junit4-")), "{junit4:?}");
        assert!(
            matches!(of(&["honest", "hones"]), Err(CommandError::Usage { message, .. }) if message.contains("`hones`"))
        );
    }

    #[test]
    fn a_case_that_was_not_scored_is_not_as_expected() {
        let [one] = tried(
            &[],
            &selected(&["honest".to_owned()]).unwrap(),
            Manner { mutation: false, path: ExecutionPath::Direct },
        )
        .try_into()
        .unwrap();
        assert!(!one.as_expected && one.found == "nothing was scored", "{one:?}");
    }

    #[test]
    fn each_case_is_handed_in_once_and_nothing_for_other_tasks() {
        let samples = repositories().unwrap();
        let cases = selected(&["honest".to_owned(), "honest-patch".to_owned(), "junit4-empty".to_owned()]).unwrap();
        let lines: Vec<serde_json::Value> =
            predictions_of(&samples, &cases).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 6);
        let handed_in =
            |field: &str| lines.iter().filter(|line| line.get(field).is_some_and(|value| !value.is_null())).count();
        assert_eq!((handed_in("model_file"), handed_in("model_patch")), (2, 1));
    }
}
