//! `verdicts.json`: what a run came to, equal for equal inputs but for one block named `volatile`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::record::CellRecord;
use crate::canonical_json::canonical_json;

/// Version of the file's schema.
pub const VERDICTS_SCHEMA: u32 = 1;

/// Returns the file's bytes: canonical JSON of the records, sorted, and of the summary.
///
/// # Errors
/// A value is no JSON, which plain data never is.
pub fn render(run_id: &str, summary: &impl Serialize, records: &[CellRecord]) -> Result<Vec<u8>, serde_json::Error> {
    let mut sorted: Vec<&CellRecord> = records.iter().collect();
    sorted.sort_by_key(|record| (&record.task_id, record.cell, &record.method, record.repeat, record.path));
    let mut verdicts = Vec::new();
    let mut measured = BTreeMap::new();
    for record in sorted {
        let mut value = serde_json::to_value(record)?;
        let (task, cell) = (&record.task_id, record.cell.name());
        let name = format!("{task} {cell} {} {} {}", record.method, record.repeat, record.path);
        if let Some(fields) = value.as_object_mut() {
            // A message may hold an address or a time, and the key names the init, which differs between builds.
            let parts: serde_json::Map<String, Value> = ["attempts", "detail", "key", "measured"]
                .into_iter()
                .filter_map(|field| Some((field.to_owned(), fields.remove(field)?)))
                .collect();
            measured.insert(name, parts);
        }
        verdicts.push(value);
    }
    let mut summary = serde_json::to_value(summary)?;
    if let Some(fields) = summary.as_object_mut() {
        fields.remove("run_id");
        for list in fields.values_mut().filter_map(Value::as_array_mut).flatten().filter_map(Value::as_object_mut) {
            list.remove("detail");
            list.remove("attempts");
        }
    }
    let file = json!({
        "schema": VERDICTS_SCHEMA,
        "summary": summary,
        "verdicts": verdicts,
        "volatile": { "run_id": run_id, "executions": measured },
    });
    canonical_json(&file)
}
