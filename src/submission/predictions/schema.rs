//! The JSON schema of a file of predictions, made from the type that reads them.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use super::json::BEGINNINGS;
use super::keys::KNOWN;
use super::raw::Raw;

const DESCRIPTION: &str = "A file of predictions: one `$defs/prediction` a line, or one value. That value is a `$defs/list`, \
    or a `$defs/dictionary` by the tasks' ids. The program refuses some files that conform, such as those with two different \
    submissions of a model for a task (docs/scoring.md).";

/// Returns the schema. A file of JSON lines conforms line by line.
pub(crate) fn schema() -> Schema {
    let raw = SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<Raw>();
    let mut content = serde_json::to_value(raw).unwrap();
    let object = content.as_object_mut().unwrap();
    object.remove("$schema");
    object.insert("title".to_owned(), json!("Submission"));
    let named = |key: &str| json!({ "required": [key], "properties": { key: { "type": "string" } } });
    object.insert("anyOf".to_owned(), json!([{ "required": ["model_patch"] }, { "required": ["model_file"] }]));
    let both = json!({ "allOf": [named("model_patch"), named("model_file")] });
    object.insert("not".to_owned(), both);
    let beginnings = format!("^\\s*({})", BEGINNINGS.join("|"));
    let value: Value = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Predictions",
        "description": DESCRIPTION,
        "anyOf": [
            { "$ref": "#/$defs/prediction" }, { "$ref": "#/$defs/list" }, { "$ref": "#/$defs/dictionary" },
        ],
        "$defs": {
            "submission": content,
            "prediction": {
                "description": "A submission that names its task.",
                "allOf": [
                    { "$ref": "#/$defs/submission" },
                    { "anyOf": [named("instance_id"), named("task_id")] },
                ],
            },
            "list": { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/prediction" } },
            "dictionary": {
                "type": "object",
                "minProperties": 1,
                "propertyNames": { "not": { "enum": KNOWN } },
                "additionalProperties": { "anyOf": [
                    { "$ref": "#/$defs/submission" },
                    { "description": "The text of a diff.", "type": "string", "pattern": beginnings },
                    { "description": "Nothing.", "type": "null" },
                ] },
            },
        },
    });
    Schema::try_from(value).unwrap()
}

#[cfg(test)]
mod tests {
    use super::super::{Selection, Several, read};
    use super::*;

    /// The reader takes a file where the schema does.
    #[test]
    fn the_reader_and_the_schema_agree() {
        let whole = serde_json::to_value(schema()).unwrap();
        let part = |form: &str| {
            let one = json!({ "$ref": format!("#/$defs/{form}"), "$defs": whole["$defs"] });
            jsonschema::draft202012::new(&one).unwrap()
        };
        let valid = jsonschema::draft202012::new(&whole).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let known = [super::super::tests::task("t")];
        let path = directory.path().join("p.json");
        for (form, text, taken) in [
            ("prediction", json!({"instance_id": "t", "model_patch": "x"}), true),
            ("prediction", json!({"task_id": "t", "model_file": "x", "model_name_or_path": "m", "tokens": 1}), true),
            ("prediction", json!({"instance_id": "t", "model_patch": null, "cost_usd": 0.5, "more": [1]}), true),
            ("prediction", json!({"instance_id": "t", "task_id": null, "model_patch": null, "model_file": "x"}), true),
            ("prediction", json!({"instance_id": "t", "model_patch": "x", "model_file": "x"}), false),
            ("prediction", json!({"instance_id": "t"}), false),
            ("prediction", json!({"instance_id": "t", "model_patch": 1}), false),
            ("prediction", json!({"instance_id": "t", "model_patch": "x", "cost_usd": -1}), false),
            ("prediction", json!({"instance_id": "t", "model_patch": "x", "tokens": 0.5}), false),
            ("prediction", json!({"instance_id": null, "model_patch": "x"}), false),
            ("list", json!([{"instance_id": "t", "model_patch": "x"}]), true),
            ("list", json!([{"model_patch": "x"}]), false),
            ("list", json!([]), false),
            ("list", json!(["diff --git a/x b/x"]), false),
            ("dictionary", json!({"t": {"model_patch": "x"}}), true),
            ("dictionary", json!({"t": " diff --git a/x b/x", "u": "~~~diff"}), true),
            ("dictionary", json!({"t": {"instance_id": "t", "model_file": null}}), true),
            ("dictionary", json!({"t": "package a;"}), false),
            ("dictionary", json!({"t": {}}), false),
            ("dictionary", json!({"t": null}), true),
            ("dictionary", json!({"t": null, "model_patch": null}), false),
            ("dictionary", json!({"id": "t", "model_patch": "x"}), false),
            ("dictionary", json!({}), false),
        ] {
            fs_err::write(&path, text.to_string()).unwrap();
            let found = read(&path, Selection { known: &known, selected: &known }, Several::Repetitions);
            assert_eq!(found.is_ok(), taken, "{text}: {found:?}");
            assert_eq!(part(form).is_valid(&text), taken, "{text}");
            assert_eq!(valid.is_valid(&text), taken, "{text}");
        }
    }
}
