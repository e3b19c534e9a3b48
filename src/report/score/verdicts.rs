//! `verdicts.json` of a scoring run: equal for equal inputs except for the block `volatile`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::canonical_json::canonical_json;
use crate::execution::run::directory::RunRecord as _;
use crate::execution::run::verdicts::{Invocation, VERDICTS_SCHEMA};
use crate::execution::scoring::record::ScoreRecord;

/// Returns the file's bytes: canonical JSON of the records, sorted.
///
/// # Errors
/// JSON errors, which plain data never causes.
pub fn render(run_id: &str, records: &[ScoreRecord], process: &Invocation) -> Result<Vec<u8>, serde_json::Error> {
    let mut sorted: Vec<&ScoreRecord> = records.iter().collect();
    sorted.sort_by_cached_key(|record| record.name());
    let mut verdicts = Vec::new();
    let mut measured = BTreeMap::new();
    for record in sorted {
        let mut value = serde_json::to_value(record)?;
        let name = match record {
            ScoreRecord::Execution(one) => {
                format!("{} {} {:?} {} {}", one.model, one.task_id, one.code, one.method, one.repeat)
            }
            ScoreRecord::Coverage(one) => format!("{} {} {} coverage", one.model, one.task_id, one.method),
            ScoreRecord::Mutation(one) => format!("{} {} {} mutation", one.model, one.task_id, one.method),
            ScoreRecord::Controls(one) => format!("{} {} {} controls", one.model, one.task_id, one.method),
            ScoreRecord::Start(one) => format!("{} start", one.task_id),
            ScoreRecord::OwnFocal(one) => format!("{} own focal", one.task_id),
            ScoreRecord::TimeClass(one) => format!("{} time class", one.task_id),
            ScoreRecord::Submission(_) | ScoreRecord::Focal(_) | ScoreRecord::Mutants(_) => String::new(),
        };
        if let (Some(fields), false) = (value.as_object_mut(), name.is_empty()) {
            // A message may contain an address or a time. The key names inputs that differ between builds, and engines
            // differ in their protections. A class is measured.
            let volatile = [
                "attempts",
                "cached",
                "cause",
                "compile_seconds",
                "detail",
                "isolation_missing",
                "key",
                "launch_seconds",
                "measured",
            ];
            let mut parts: serde_json::Map<String, Value> =
                volatile.into_iter().filter_map(|field| Some((field.to_owned(), fields.remove(field)?))).collect();
            // Own focal methods have causes of their own.
            let methods = fields.get_mut("methods").and_then(Value::as_array_mut).into_iter().flatten();
            let causes: Vec<Value> = methods.filter_map(|method| method.as_object_mut()?.remove("cause")).collect();
            parts.extend((!causes.is_empty()).then(|| ("causes".to_owned(), causes.into())));
            measured.insert(name, parts);
        }
        verdicts.push(value);
    }
    canonical_json(&json!({
        "schema": VERDICTS_SCHEMA,
        "verdicts": verdicts,
        "volatile": { "run_id": run_id, "executions": measured, "process": process },
    }))
}
