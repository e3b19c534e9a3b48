//! JSON Schemas of the files and values that people's programs read, rendered from the types.

use std::collections::BTreeMap;
use std::path::Path;

use fs_err as fs;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

use crate::agent;
use crate::agent::dataset::DatasetRow;
use crate::bundle::description::Description;
use crate::execution::run::directory::RunDescription;
use crate::execution::run::inputs::RunInputs;
use crate::execution::run::record::CellRecord;
use crate::execution::scoring::inputs::ScoreInputs;
use crate::execution::scoring::record::ScoreRecord;
use crate::lock::{RepositoryLock, ToolchainLock};
use crate::manifest::RepositoryManifest;
use crate::report::comparison::RunComparison;
use crate::report::plan::Plan;
use crate::report::score::ScoreReport;
use crate::report::validation::ValidationSummary;
use crate::submission;
use crate::task;
use crate::task::shard::Costs;

/// Returns the schema of what is written of a type.
fn written<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

/// Returns the schema of a manifest's file, which may override what is above.
fn manifest() -> Schema {
    let mut schema = written::<RepositoryManifest>();
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut).unwrap();
    let keys: Vec<&String> = properties.keys().filter(|key| !matches!(key.as_str(), "schema" | "repository")).collect();
    let overrides = json!({
        "description": "What replaces or joins the keys above; the user's.",
        "type": "object",
        "propertyNames": { "enum": keys },
    });
    properties.insert("overrides".to_owned(), overrides);
    schema
}

/// Returns the schemas by the names of their files.
fn schemas() -> BTreeMap<&'static str, Schema> {
    BTreeMap::from([
        ("bundle", written::<Description>()),
        ("comparison", written::<RunComparison>()),
        ("costs", written::<Costs>()),
        ("dataset", written::<DatasetRow>()),
        ("manifest", manifest()),
        ("plan", written::<Plan>()),
        ("predictions", submission::predictions::schema::schema()),
        ("repository-lock", written::<RepositoryLock>()),
        ("report", written::<ScoreReport>()),
        ("run", written::<RunDescription>()),
        ("score-inputs", written::<ScoreInputs>()),
        ("score-record", written::<ScoreRecord>()),
        ("tasks", written::<task::file::TaskFile>()),
        ("toolchain-lock", written::<ToolchainLock>()),
        ("validate-inputs", written::<RunInputs>()),
        ("validate-record", written::<CellRecord>()),
        ("validate-summary", written::<ValidationSummary>()),
        ("workspace-task", written::<agent::TaskFile>()),
    ])
}

/// The files in docs/schemas are what the types say, no more and no less.
#[test]
fn schemas_are_those_of_the_types() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schemas");
    let mut files = BTreeMap::new();
    for (name, schema) in schemas() {
        let text = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        files.insert(format!("{name}.json"), text);
    }
    if std::env::var_os("RENDER_SCHEMAS").is_some() {
        fs::create_dir_all(&directory).unwrap();
        for entry in fs::read_dir(&directory).unwrap() {
            fs::remove_file(entry.unwrap().path()).unwrap();
        }
        for (name, text) in &files {
            fs::write(directory.join(name), text).unwrap();
        }
    }
    let there: BTreeMap<String, String> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap())
        })
        .collect();
    assert_eq!(there, files, "`RENDER_SCHEMAS=1 cargo test --lib schemas` writes them anew");
}
