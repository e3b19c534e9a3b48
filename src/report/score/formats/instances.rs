//! Single results in files as SWE-bench's harness leaves them: `<run>/<model>/<instance>/report.json`, and a summary for each
//! model.
//!
//! As there, only completed instances have a file: a submission with a test file whose target methods were all judged.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use fs_err as fs;
use serde::Serialize;

use crate::data_dir::write_atomically;
use crate::execution::scoring::{log_directory, model_directory};
use crate::metrics::category::Category;
use crate::report::score::{ScoreReport, ScoredModel, ScoredTask};
use crate::task::{MethodId, Side, Track};

/// A completed instance, under the keys of SWE-bench where they mean the same.
#[derive(Serialize)]
struct Instance<'a> {
    #[serde(rename = "patch_is_None")]
    patch_is_none: bool,
    patch_exists: bool,
    patch_successfully_applied: bool,
    /// Whether every target method is a Success.
    resolved: bool,
    /// For generation alone: nothing is executed before an update.
    #[serde(skip_serializing_if = "Option::is_none")]
    tests_status: Option<TestsStatus<'a>>,
    /// Each target method's category.
    methods: BTreeMap<&'a MethodId, &'static str>,
    /// Directories of logs, of launches on new and on old code. Those of kept results lie in another run.
    logs: BTreeMap<&'static str, String>,
}

#[derive(Serialize)]
struct TestsStatus<'a> {
    #[serde(rename = "FAIL_TO_PASS")]
    fail_to_pass: Status<'a>,
}

#[derive(Serialize)]
struct Status<'a> {
    success: Vec<&'a MethodId>,
    failure: Vec<&'a MethodId>,
}

/// Writes the files into a directory, which must exist. Each model's summary is written after its instances.
///
/// # Errors
/// I/O errors of writing.
pub fn write_directory(directory: &Path, report: &ScoreReport, models: &[ScoredModel]) -> io::Result<()> {
    for (run, model) in report.runs.iter().zip(models) {
        let of_model = directory.join(&model.run_id).join(model_directory(&model.model));
        let completed = |scored: &&ScoredTask| model.instances.completed_ids.contains(&scored.task.id);
        for scored in model.tasks.iter().filter(completed) {
            let id = &scored.task.id;
            let of_instance = of_model.join(id.as_str());
            fs::create_dir_all(&of_instance)?;
            let bytes = serde_json::to_vec_pretty(&BTreeMap::from([(id, instance(model, scored))]))?;
            write_atomically(&of_instance.join("report.json"), &bytes)?;
        }
        let name = format!("{}.{}.json", model_directory(&model.model), model.run_id);
        write_atomically(&directory.join(name), &serde_json::to_vec_pretty(run)?)?;
    }
    Ok(())
}

fn instance<'a>(model: &ScoredModel, scored: &'a ScoredTask) -> Instance<'a> {
    let (mut success, mut failure) = (Vec::new(), Vec::new());
    let mut methods = BTreeMap::new();
    for method in &scored.methods {
        let category = method.verdict.paper_verdict;
        if category == Some(Category::Success) {
            success.push(&method.method)
        } else {
            failure.push(&method.method)
        }
        methods.insert(&method.method, category.map_or("unscored", Category::name));
    }
    let id = &scored.task.id;
    let logs = [("new", Side::New), ("old", Side::Old)].into_iter().filter_map(|(name, code)| {
        let own = log_directory(&model.model, id, code);
        let launches = scored.methods.iter().flat_map(|method| method.new.iter().chain(&method.old));
        let has_logs = launches.filter(|one| one.code == code).any(|one| one.measured.logs.as_ref() == Some(&own));
        let own = has_logs.then(|| model.path.join("logs").join(own));
        let kept = scored.kept_logs.iter().filter(|logs| logs.code == code);
        let kept = kept.map(|logs| logs.run.join("logs").join(&logs.directory));
        let directory = own.into_iter().chain(kept).find(|directory| directory.is_dir())?;
        Some((name, directory.display().to_string()))
    });
    Instance {
        patch_is_none: false,
        patch_exists: true,
        patch_successfully_applied: true,
        resolved: failure.is_empty(),
        logs: logs.collect(),
        tests_status: (scored.task.track == Track::TestGeneration)
            .then_some(TestsStatus { fail_to_pass: Status { success, failure } }),
        methods,
    }
}
