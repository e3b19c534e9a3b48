//! What `validate` is as a command: its exit status, and the last line of its standard output under `--format json`.

use std::collections::BTreeSet;
use std::process::Output;

use insta::assert_snapshot;
use serde_json::Value;
use testevo_sandbox::outcome::label::cells_of;
use testevo_sandbox::sample::{Miniature, SampleRepository};

/// Compares the summary of a run, each cell launched once, with the snapshot of the repository, which is the same whether it
/// took both paths or the direct one alone. Tasks where chance decides are left out of it: what comes of them is another
/// test's business.
/// Of a cross-section, whose tasks are `repository`'s, all but the snapshot is checked.
pub(super) fn is_as_ever(
    name: &str,
    repository: &SampleRepository,
    (is_whole, on_both): (bool, bool),
    output: &Output,
) {
    let mut summary = summary(output);
    let keys: BTreeSet<String> = summary.as_object().unwrap().keys().cloned().collect();
    let always = ["schema", "run_id", "tasks", "reproduced", "differing", "flaky", "infrastructure", "discriminating"];
    let ours = if on_both { &["not_discriminating", "path_differences"][..] } else { &["not_discriminating"] };
    let where_there_are_some = ["differing_paths", "unfit", "needs_network"];
    for key in always.iter().chain(ours) {
        assert!(keys.contains(*key), "{name}: no `{key}` among {keys:?}");
    }
    let some = where_there_are_some.iter().filter(|key| keys.contains(**key)).count();
    assert_eq!(keys.len(), always.len() + ours.len() + some, "{name}: {keys:?}");
    assert_eq!((&summary["schema"], &summary["run_id"]), (&1.into(), &repository.name.file_stem().into()));
    assert_eq!(summary["tasks"], repository.miniatures.len());

    let task = |miniature: &Miniature| format!("{}__{}", repository.name.file_stem(), miniature.name);
    let chance: BTreeSet<String> =
        repository.miniatures.iter().filter(|one| decided_by_chance(one)).map(task).collect();
    let is_chance = |entry: &Value| chance.contains(entry["task_id"].as_str().unwrap());
    let count = summary["path_differences"].as_u64().unwrap_or_default();
    if let Some(differing) = summary.as_object_mut().unwrap().remove("differing_paths") {
        let differing = differing.as_array().unwrap();
        assert_eq!(differing.len() as u64, count, "{name}: {differing:?}");
        assert!(differing.iter().all(is_chance), "{name}: {differing:?}");
    } else {
        assert_eq!(count, 0, "{name}");
    }
    let differing = summary["differing"].as_array_mut().unwrap();
    let missed: BTreeSet<String> =
        differing.iter().filter(|one| is_chance(one)).map(|one| one["task_id"].as_str().unwrap().to_owned()).collect();
    differing.retain(|one| !is_chance(one));
    summary["path_differences"] = 0.into();
    summary["tasks"] = (repository.miniatures.len() - chance.len()).into();
    summary["reproduced"] = (summary["reproduced"].as_u64().unwrap() as usize - (chance.len() - missed.len())).into();
    for list in ["differing", "needs_network", "infrastructure"] {
        for entry in summary.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            assert!(entry["detail"].is_string(), "{name}: {entry}");
            entry["detail"] = "[DETAIL]".into();
        }
    }
    let code = output.status.code().unwrap();
    if !is_whole {
        let has_more = ["differing", "infrastructure"].iter().any(|list| !summary[list].as_array().unwrap().is_empty());
        assert!(if has_more { code != 0 } else { code == 0 }, "{name}: exit {code}\n{summary:#}");
        return;
    }
    assert_snapshot!(format!("validate-{name}"), format!("exit {code}\n{summary:#}"));
}

/// Returns the last line of standard output.
pub(super) fn summary(output: &Output) -> Value {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or_else(|| panic!("nothing on standard output\n{said}"));
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {last}\n{said}"))
}

fn decided_by_chance(miniature: &Miniature) -> bool {
    let cells = cells_of(miniature.track);
    miniature.methods.iter().any(|method| cells.iter().any(|cell| method.expected[cell].len() > 1))
}
