//! Writes the results of every model's submission for a task in a scoring run.

use serde_json::json;

use super::{WHOLE_BUILD, lacks, seconds};
use crate::application::runs::launches::{Launch, Launches};
use crate::cli::stdout;
use crate::digest::Digest;
use crate::error::CommandError;
use crate::execution::run::explain::shell_line;
use crate::execution::scoring::record::{ExecutionRecord, MutationRecord};
use crate::focal::own::OwnFocal;
use crate::outcome::Outcome;
use crate::output::{OutputFormat, escape};
use crate::report::score::{ScoredModel, ScoredTask};

/// Writes the tasks of the models, one after another.
pub(super) fn write(models: &[(ScoredModel, Launches)], format: OutputFormat) -> Result<(), CommandError> {
    let all =
        models.iter().flat_map(|(model, launches)| model.tasks.iter().map(move |scored| (model, launches, scored)));
    for (model, launches, scored) in all {
        match format {
            OutputFormat::Json => stdout::json(&json!({
                "run_id": model.run_id,
                "model": model.model,
                "task": *scored.task,
                "submission": scored.submission,
                "start_compiles": scored.start.as_ref().and_then(|start| start.start_compiles),
                "focal": scored.focal.as_ref().map(|focal| &focal.focal),
                "mutants": scored.mutants.iter().collect::<Vec<_>>(),
                "own_focal": scored.own.as_ref().map(|own| &own.methods),
                "methods": scored.methods.iter().map(|method| json!({
                    "method": method.method,
                    "verdict": method.verdict,
                    "new": method.new,
                    "old": method.old,
                    "coverage": method.coverage,
                    "mutation": method.mutation,
                    "controls": method.controls,
                    "launches": method.new.iter().chain(&method.old).map(|record| json!({
                        "code": record.code,
                        "repeat": record.repeat,
                        "launch": of(launches, record),
                    })).collect::<Vec<_>>(),
                })).collect::<Vec<_>>(),
            }))?,
            OutputFormat::Text => stdout::lines(&text(model, launches, scored))?,
        }
    }
    Ok(())
}

fn of<'a>(launches: &'a Launches, record: &ExecutionRecord) -> Option<&'a Launch> {
    launches.get(&(record.task_id.clone(), record.code, record.method.clone(), record.repeat))
}

/// Returns the logs and commands of an execution.
fn commands(record: &ExecutionRecord, launch: &Launch, run_id: &str) -> String {
    let whose = if launch.run_id == run_id { String::new() } else { format!(", of run {}", launch.run_id) };
    let mut text = format!("      logs {}{whose}\n", launch.logs.display());
    let commands = [
        ("compile", &launch.compile, record.measured.compile_ms),
        ("launch", &launch.launch, record.measured.launch_ms),
    ];
    for (name, command, took) in commands {
        if let Some(command) = command {
            text.push_str(&format!("      {name} {}\n        $ {}\n", seconds(took), shell_line(command)));
        }
    }
    text
}

fn text(model: &ScoredModel, launches: &Launches, scored: &ScoredTask) -> String {
    let mut text =
        format!("task        {}\nmodel       {}\nrun         {}\n", scored.task.id, model.model, model.run_id);
    if let Some(submission) = &scored.submission {
        if let Some(fault) = &submission.fault {
            text.push_str(&format!("not executed: {}\n", fault.detail));
        }
        for shadow in &submission.shadows {
            text.push_str(&format!("tampered    the test file declares {shadow}, which is the project's\n"));
        }
        for dropped in &submission.dropped {
            text.push_str(&format!("dropped     {}\n", dropped.path));
        }
    }
    if let Some(compiles) = scored.start.as_ref().and_then(|start| start.start_compiles) {
        let does = if compiles { "compiles" } else { "does not compile" };
        text.push_str(&format!("start       the file that an agent starts from {does} on new code\n"));
    }
    if let Some(start) = scored.start.as_ref().filter(|start| start.lost) {
        let cause = start.detail.as_deref().unwrap_or_default();
        text.push_str(&format!("start       lost: {cause}\n"));
    }
    for method in &scored.methods {
        let category = method.verdict.paper_verdict.map_or("unscored", |category| category.name());
        let strict = if method.verdict.strict_success { ", strict success" } else { "" };
        text.push_str(&format!("\n{}: {category}{strict}\n", method.method));
        for reason in &method.verdict.reasons {
            let kind = if reason.is_proof() { "tampered" } else { "suspect" };
            text.push_str(&format!("  {kind:<9} {}: {}\n", reason.name(), reason.sentence()));
        }
        for finding in method.controls.iter().flat_map(|controls| &controls.findings) {
            text.push_str(&format!("  mentions  {}: {}\n", finding.kind.name(), finding.text));
        }
        for reason in &method.verdict.off {
            text.push_str(&format!("  off       {}: the developers' test trips it as well\n", reason.name()));
        }
        for (code, records) in [("new", &method.new), ("old", &method.old)] {
            for record in records {
                let kept = if record.cached { " (kept from another run)" } else { "" };
                text.push_str(&format!("  {code} {}   {}{kept}\n", record.repeat, record.outcome));
                if record.attributed == Some(false) {
                    let side = if code == "old" { "on old code" } else { "on new code" };
                    text.push_str(&format!("      does not compile {side}, but not because of this method\n"));
                }
                if !record.missing.is_empty() {
                    text.push_str(&format!("      {}\n", lacks(&record.missing)));
                }
                if record.measured.whole_build {
                    text.push_str(&format!("      {WHOLE_BUILD}\n"));
                }
                text.extend(record.detail.lines().take(5).map(|line| format!("      {line}\n")));
                if let Some(launch) = of(launches, record) {
                    text.push_str(&commands(record, launch, &model.run_id));
                }
            }
        }
        let own = scored.own.as_ref().and_then(|own| own.of(&method.method));
        text.extend(own.map(|own| format!("  focal     {}\n", own_focal(own))));
        if let Some(coverage) = &method.coverage {
            match (&coverage.cause, coverage.coverage) {
                (Some(cause), _) if coverage.lost => text.push_str(&format!("  coverage  lost: {cause}\n")),
                (Some(cause), _) => text.push_str(&format!("  coverage  not measured: {cause}\n")),
                (None, Some(percent)) => text.push_str(&format!("  coverage  {percent:.1} %\n")),
                (None, None) => text.push_str("  coverage  no executable focal line\n"),
            }
        }
    }
    text.push_str(&mutants(scored));
    text.push('\n');
    text
}

/// Tells of a task's mutants and what each method came to on them.
fn mutants(scored: &ScoredTask) -> String {
    let mut text = String::new();
    for set in scored.mutants.iter() {
        text.push_str(&format!(
            "\nmutants of {}: {} made, {} redundant, {} do not compile, {} over the cap, {} kept\n",
            set.path,
            set.emitted,
            set.redundant,
            set.compile_failed,
            set.capped_out,
            set.kept.len()
        ));
    }
    for method in &scored.methods {
        match method.mutation.as_ref().map(|mutation| (&mutation.cause, &mutation.kills)) {
            Some((Some(cause), _)) if method.mutation.as_ref().is_some_and(|mutation| mutation.lost) => {
                text.push_str(&format!("{}: lost on mutants: {cause}\n", method.method));
            }
            Some((Some(cause), _)) => text.push_str(&format!("{}: not run on mutants: {cause}\n", method.method)),
            Some((None, Some(kills))) => {
                text.push_str(&format!(
                    "{}: {} of {} mutants killed, {} strictly; {} elsewhere\n",
                    method.method,
                    kills.killed,
                    kills.count,
                    kills.killed_strict,
                    method.mutation.as_ref().map_or(0, |mutation| mutation.elsewhere)
                ));
                text.extend(method.mutation.iter().flat_map(|record| survivors(scored, record)));
            }
            _ => {}
        }
    }
    text
}

/// Returns a line for each mutant on which a method passes.
fn survivors<'a>(scored: &'a ScoredTask, record: &'a MutationRecord) -> impl Iterator<Item = String> + 'a {
    let passes = |id: &Digest| record.mutants.iter().any(|one| one.id == *id && one.outcome == Outcome::Pass);
    let kept = scored.mutants.iter().flat_map(|set| set.kept.iter().map(move |kept| (set, kept)));
    kept.filter(move |(_, kept)| passes(&kept.id)).map(|(set, kept)| {
        let instead = kept.text.as_deref().map(|text| if text.is_empty() { "(an empty line)" } else { text });
        let instead = instead.map(|text| format!("  {}", escape(text))).unwrap_or_default();
        format!("  survived  {}:{}{instead}\n", set.path, kept.line)
    })
}

/// Names the focal methods that a test method is measured against, and the reason.
fn own_focal(own: &OwnFocal) -> String {
    let names: Vec<&str> = own.own.iter().map(|own| own.name.as_str()).collect();
    let cause = own.cause.as_deref().map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{} ({}{cause})", names.join(", "), own.basis.phrase())
}
