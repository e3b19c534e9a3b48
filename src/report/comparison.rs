//! Two runs side by side: which results differ.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use super::score::{ScoredMethod, ScoredModel};
use crate::execution::run::record::CellRecord;
use crate::task::{Task, TaskId};

/// The most values of inputs that are named.
const MOST_INPUTS: usize = 100;
/// Version of the comparison's schema.
const COMPARISON_SCHEMA: u32 = 1;

/// The comparison of two runs of the same command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunComparison {
    /// Version of this value's schema, now 1.
    pub schema: u32,
    /// The two runs.
    pub runs: [String; 2],
    /// Their command.
    pub command: String,
    /// Values of `inputs.json` that differ, but for the tasks; the first hundred.
    pub inputs: Vec<DifferingInput>,
    /// Tasks that only the first has, and those that only the second has.
    pub only: [Vec<TaskId>; 2],
    /// Tasks that both have, with different data: other revisions, methods or files under the same id.
    pub other_data: Vec<TaskId>,
    /// Models that only the first has, and those that only the second has.
    pub only_models: [Vec<String>; 2],
    /// Number of results that both have: of methods of models, or of executions.
    pub compared: usize,
    /// Of tasks and models that both have: results that only the first has, and those that only the second has.
    pub only_results: [usize; 2],
    /// How many values differ of each kind.
    pub differing_by: BTreeMap<&'static str, usize>,
    /// Those that differ, in the order of models and tasks.
    pub differing: Vec<Differing>,
}

/// A value of `inputs.json` that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DifferingInput {
    /// Its keys from the top on, with dots between.
    pub key: String,
    /// The first run's value; `null` if it has none.
    pub one: Value,
    /// The second run's value; `null` if it has none.
    pub other: Value,
}

impl DifferingInput {
    /// Returns the differences between two inputs, down to single values. Skips the top-level keys in `left_out`.
    pub fn between(one: &Map<String, Value>, other: &Map<String, Value>, left_out: &[&str]) -> Vec<Self> {
        let mut found = Vec::new();
        let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
        for key in keys.into_iter().filter(|key| !left_out.contains(&key.as_str())) {
            let value = |map: &Map<String, Value>| map.get(key).cloned().unwrap_or_default();
            differences(key.clone(), &value(one), &value(other), &mut found);
        }
        found
    }
}

fn differences(key: String, one: &Value, other: &Value, found: &mut Vec<DifferingInput>) {
    if one == other || found.len() >= MOST_INPUTS {
        return;
    }
    let (Value::Object(ones), Value::Object(others)) = (one, other) else {
        found.push(DifferingInput { key, one: one.clone(), other: other.clone() });
        return;
    };
    let keys: BTreeSet<&String> = ones.keys().chain(others.keys()).collect();
    for part in keys {
        let value = |map: &Map<String, Value>| map.get(part).cloned().unwrap_or_default();
        differences(format!("{key}.{part}"), &value(ones), &value(others), found);
    }
}

/// A result that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Differing {
    /// The model; `None` for a validation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The task.
    pub task: TaskId,
    /// The method, of a validation with its cell, path and repeat.
    pub of: String,
    /// What differs: `category`, `strict`, `integrity`, `coverage`, `mutation` or `outcome`.
    pub what: &'static str,
    /// The first run's value.
    pub one: String,
    /// The second run's value.
    pub other: String,
}

/// The results of a run, by what they are of.
type Results = BTreeMap<(Option<String>, TaskId, String), Vec<(&'static str, String)>>;

impl RunComparison {
    /// Compares two runs of `score`.
    pub fn of_scores(runs: [String; 2], inputs: Vec<DifferingInput>, models: [&[ScoredModel]; 2]) -> Self {
        let tasks = models.map(|models| models.iter().flat_map(|model| &model.tasks).map(|one| &*one.task));
        let names = models.map(|models| models.iter().map(|model| model.model.clone()).collect::<BTreeSet<_>>());
        Self::of(
            runs,
            "score",
            inputs,
            (tasks.map(|tasks| tasks.map(|task| (task.id.clone(), task)).collect()), names),
            models.map(scores),
        )
    }

    /// Compares two runs of `validate`.
    pub fn of_validations(
        runs: [String; 2],
        inputs: Vec<DifferingInput>,
        tasks: [&[Task]; 2],
        records: [&[CellRecord]; 2],
    ) -> Self {
        let tasks = tasks.map(|tasks| tasks.iter().map(|task| (task.id.clone(), task)).collect());
        Self::of(runs, "validate", inputs, (tasks, Default::default()), records.map(outcomes))
    }

    fn of(
        runs: [String; 2],
        command: &str,
        inputs: Vec<DifferingInput>,
        (tasks, [one_models, other_models]): ([BTreeMap<TaskId, &Task>; 2], [BTreeSet<String>; 2]),
        [one, other]: [Results; 2],
    ) -> Self {
        let [one_tasks, other_tasks] = tasks.each_ref().map(|tasks| tasks.keys().cloned().collect::<BTreeSet<_>>());
        let differs = |(id, task): &(&TaskId, &&Task)| tasks[1].get(*id).is_some_and(|other| other != *task);
        let other_data = tasks[0].iter().filter(differs).map(|(id, _)| id.clone()).collect();
        let left_out = |these: &Results, those: &Results, tasks: &BTreeSet<TaskId>, models: &BTreeSet<String>| {
            let comparable = |(model, task, _): &&(Option<String>, TaskId, String)| {
                tasks.contains(task) && model.as_ref().is_none_or(|model| models.contains(model))
            };
            these.keys().filter(comparable).filter(|key| !those.contains_key(*key)).count()
        };
        let only_results =
            [left_out(&one, &other, &other_tasks, &other_models), left_out(&other, &one, &one_tasks, &one_models)];
        let mut differing = Vec::new();
        let mut compared = 0;
        for ((model, task, of), values) in &one {
            let Some(others) = other.get(&(model.clone(), task.clone(), of.clone())) else { continue };
            compared += 1;
            let different = values.iter().zip(others).filter(|((_, one), (_, other))| one != other);
            differing.extend(different.map(|((what, one), (_, other))| Differing {
                model: model.clone(),
                task: task.clone(),
                of: of.clone(),
                what,
                one: one.clone(),
                other: other.clone(),
            }));
        }
        let only_models = [only(&one_models, &other_models), only(&other_models, &one_models)];
        let only = [only(&one_tasks, &other_tasks), only(&other_tasks, &one_tasks)];
        let mut differing_by = BTreeMap::new();
        for one in &differing {
            *differing_by.entry(one.what).or_default() += 1;
        }
        let (schema, command) = (COMPARISON_SCHEMA, command.to_owned());
        Self {
            schema,
            runs,
            command,
            inputs,
            only,
            other_data,
            only_models,
            compared,
            only_results,
            differing_by,
            differing,
        }
    }

    /// Tells whether both runs have the same results of the same tasks, with the same data, and models.
    pub fn is_equal(&self) -> bool {
        self.differing.is_empty()
            && self.only.iter().all(Vec::is_empty)
            && self.other_data.is_empty()
            && self.only_models.iter().all(Vec::is_empty)
            && self.only_results == [0, 0]
    }
}

fn only<T: Ord + Clone>(these: &BTreeSet<T>, those: &BTreeSet<T>) -> Vec<T> {
    these.difference(those).cloned().collect()
}

fn scores(models: &[ScoredModel]) -> Results {
    let mut results = Results::new();
    for model in models {
        for scored in &model.tasks {
            for method in &scored.methods {
                let of = (Some(model.model.clone()), scored.task.id.clone(), method.method.to_string());
                results.insert(of, values(method));
            }
        }
    }
    results
}

/// Returns a method's values that figures are computed from, by name.
fn values(method: &ScoredMethod) -> Vec<(&'static str, String)> {
    let number = |value: Option<f64>, digits: usize| super::score::formats::table::shown(value, digits);
    let (verdict, pred) = (&method.verdict, &method.score.pred);
    vec![
        ("category", verdict.paper_verdict.map_or("unscored", |category| category.name()).to_owned()),
        ("strict", verdict.strict_success.to_string()),
        ("integrity", verdict.integrity.name().to_owned()),
        ("coverage", number(pred.coverage, 2)),
        ("mutation", number(pred.mutation, 4)),
    ]
}

fn outcomes(records: &[CellRecord]) -> Results {
    let result = |record: &CellRecord| {
        let mut of = format!("{} {} {}", record.cell.name(), record.method, record.path);
        if record.repeat > 1 {
            of.push_str(&format!(" repeat {}", record.repeat));
        }
        ((None, record.task_id.clone(), of), vec![("outcome", record.outcome.to_string())])
    };
    records.iter().map(result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::super::score::tests::fixture;
    use super::*;
    use crate::metrics::category::Category;

    #[test]
    fn what_differs_is_named_with_both_values() {
        let one = fixture().read(true);
        let names = || ["one", "other"].map(str::to_owned);
        let same = RunComparison::of_scores(names(), Vec::new(), [&one, &one]);
        // Two models with five tasks of seven methods each.
        assert_eq!((same.compared, same.is_equal()), (14, true));
        let mut changed = one.clone();
        Arc::make_mut(&mut changed[0].tasks[0].task).test_methods.pop();
        let compared = RunComparison::of_scores(names(), Vec::new(), [&changed[..1], &one[..1]]);
        assert_eq!(
            (compared.other_data.as_slice(), compared.is_equal()),
            (&[one[0].tasks[0].task.id.clone()][..], false)
        );
        let mut other = one.clone();
        other[0].tasks[1].methods[0].verdict.paper_verdict = Some(Category::Redundant);
        other[0].tasks.pop();
        other.truncate(1);
        let compared = RunComparison::of_scores(names(), Vec::new(), [&one, &other]);
        assert_eq!((compared.compared, compared.is_equal()), (6, false));
        let [Differing { task, what, one: first, other: second, .. }] = compared.differing.as_slice() else {
            panic!("{compared:?}")
        };
        assert_eq!((task.as_str(), *what, first.as_str(), second.as_str()), ("t2", "category", "Success", "Redundant"));
        assert_eq!(compared.differing_by, BTreeMap::from([("category", 1)]));
        assert_eq!(compared.only_models[0], [one[1].model.clone()]);
        // The first run's other model still has the task.
        assert_eq!(compared.only[0].iter().map(TaskId::as_str).collect::<Vec<_>>(), ["t5"]);
    }

    #[test]
    fn inputs_differ_down_to_single_values() {
        let object = |value: Value| value.as_object().unwrap().clone();
        let one = object(json!({"seed": 1, "tasks": [1], "limits": {"a/b": {"cpus": 2, "wall": 9}}, "same": [1]}));
        let other =
            object(json!({"seed": 2, "tasks": [2], "limits": {"a/b": {"cpus": 2, "wall": 8}}, "same": [1], "new": {}}));
        let found = DifferingInput::between(&one, &other, &["tasks"]);
        let found: Vec<_> = found.iter().map(|one| (one.key.as_str(), &one.one, &one.other)).collect();
        assert_eq!(
            found,
            [
                ("limits.a/b.wall", &json!(9), &json!(8)),
                ("new", &json!(null), &json!({})),
                ("seed", &json!(1), &json!(2)),
            ]
        );
    }
}
