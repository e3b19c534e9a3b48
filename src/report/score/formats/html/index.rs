//! The index's data: models, standings, published values, half-years, and one short row for each task.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::super::notes::lacks;
use super::script::script_json;
use super::standing::{Entry, entries, over_shared, run_of, standings};
use super::{ByTask, table_name};
use crate::metrics::aggregate::{Figures, TrackFigures, mean, segment};
use crate::report::score::{AgentMeans, Certified, ScoreReport, ScoredMethod, ScoredModel, ScoredTask};
use crate::submission::GOLD;
use crate::task::Track;

/// Writes the data as one JSON value. `inline` tells whether the page contains the tasks' own data.
///
/// # Errors
/// I/O errors of writing to `out`.
pub(super) fn write(
    out: &mut impl Write,
    report: &ScoreReport,
    models: &[ScoredModel],
    tasks: &ByTask<'_>,
    inline: bool,
) -> io::Result<()> {
    let lacking = |model: &ScoredModel| Some(format!("{} {}: {}", model.run_id, model.model, lacks(model)?));
    let incomplete: Vec<String> = models.iter().filter_map(lacking).collect();
    let period = (!report.period.is_unbounded()).then(|| report.period.to_string());
    write!(out, "{{\"inline\":{inline},\"incomplete\":")?;
    script_json(out, &incomplete)?;
    out.write_all(b",\"period\":")?;
    script_json(out, &period)?;
    out.write_all(b",\"facts\":")?;
    script_json(out, &facts(models))?;
    out.write_all(b",\"runs\":")?;
    script_json(out, &runs(models))?;
    out.write_all(b",\"groups\":")?;
    script_json(out, &entries(report).iter().map(group).collect::<Vec<_>>())?;
    out.write_all(b",\"standings\":")?;
    script_json(out, &standings(report, models))?;
    out.write_all(b",\"certified\":")?;
    script_json(out, &report.certified.as_ref().map(certified))?;
    out.write_all(b",\"published\":")?;
    script_json(out, &report.published.iter().map(published).collect::<Vec<_>>())?;
    out.write_all(b",\"segments\":")?;
    script_json(out, &segments(report, models))?;
    out.write_all(b",\"tasks\":[")?;
    let mut between: &[u8] = b"";
    for scored in tasks.values() {
        out.write_all(between)?;
        script_json(out, &row(scored))?;
        between = b",\n";
    }
    out.write_all(b"]}")
}

/// Returns the models, in the order of their places. Samples of a model have its rank, and a number each: so their colours are alike.
pub(super) fn runs(models: &[ScoredModel]) -> Vec<Value> {
    let mut seen: Vec<((&str, &str), usize)> = Vec::new();
    let mut found = Vec::new();
    for model in models {
        let gold = model.model == GOLD;
        // Runs of one name that are samples have that name as their model's.
        let of_run = if model.sample_of.as_ref() == Some(&model.model) { "" } else { model.run_id.as_str() };
        let key = (of_run, model.sample_of.as_ref().unwrap_or(&model.model).as_str());
        let rank = seen.iter().position(|(known, _)| *known == key).unwrap_or(seen.len());
        match seen.get_mut(rank) {
            Some((_, samples)) => *samples += 1,
            None if gold => {}
            None => seen.push((key, 0)),
        }
        let sample = seen.get(rank).map_or(0, |(_, samples)| *samples);
        found.push(json!({ "run": model.run_id, "model": model.model, "gold": gold, "rank": rank, "sample": sample }));
    }
    found
}

/// Returns the sources of the figures: the program that computed them, and each run once.
pub(super) fn facts(models: &[ScoredModel]) -> Value {
    let mut runs: Vec<(&ScoredModel, BTreeSet<&str>)> = Vec::new();
    for model in models {
        let methods = model.tasks.iter().flat_map(|scored| &scored.methods);
        let launches = methods.flat_map(|method| method.new.iter().chain(&method.old));
        let engines = launches.map(|record| record.measured.engine.as_str()).filter(|engine| !engine.is_empty());
        match runs.iter_mut().find(|(known, _)| known.path == model.path) {
            Some((_, known)) => known.extend(engines),
            None => runs.push((model, engines.collect())),
        }
    }
    let run = |(model, engines): &(&ScoredModel, BTreeSet<&str>)| {
        let facts = &*model.facts;
        json!({
            "run": model.run_id,
            "started": facts.started,
            "finished": facts.finished,
            // The page's numbers are doubles, which have no room for all digits of a seed.
            "seed": facts.seed.to_string(),
            "repeats": facts.repeats,
            "measured": facts.measured,
            "identity": facts.identity,
            "missing": facts.isolation_missing,
            "engines": engines,
        })
    };
    json!({ "program": concat!("testevo-sandbox ", env!("CARGO_PKG_VERSION")), "runs": runs.iter().map(run).collect::<Vec<_>>() })
}

fn certified(certified: &Certified) -> Value {
    json!({ "validation": certified.validation, "excluded": certified.excluded })
}

fn published(agent: &AgentMeans) -> Value {
    let AgentMeans { success_percent, redundant_percent, exec_fail_percent, cmpl_fail_percent, .. } = agent;
    json!({
        "track": table_name(agent.track),
        "name": agent.name,
        "tasks": agent.tasks,
        "mix": [success_percent, redundant_percent, exec_fail_percent, cmpl_fail_percent, &agent.hrns_fail_percent],
        "coverage": agent.cov_on_pass,
        "mutation": agent.mut_on_pass,
    })
}

/// Returns the places of a model, or of its samples with the model's name and their run.
fn group(entry: &Entry<'_>) -> Value {
    match entry {
        Entry::Model(place) => json!({ "runs": [place] }),
        Entry::Samples(model, places) => json!({ "runs": places, "model": model.model, "of_run": run_of(model) }),
    }
}

/// Returns the values of each model by track and half-year. A model with several samples has their mean over the tasks that all
/// samples have. Without such a task, each sample is over its own.
pub(super) fn segments(report: &ScoreReport, models: &[ScoredModel]) -> Vec<Value> {
    let mut found = Vec::new();
    for entry in entries(report) {
        let places = match &entry {
            Entry::Model(place) => std::slice::from_ref(place),
            Entry::Samples(_, places) => places,
        };
        for track in [Track::TestUpdate, Track::TestGeneration] {
            let is_shared = matches!(&entry, Entry::Samples(model, _) if model.tracks.contains_key(&track));
            let together = if is_shared { places.len() } else { 1 };
            let samples = places.chunks(together).flat_map(|places| over_shared(report, models, places, track));
            let samples: Vec<_> = samples.collect();
            let of_track: Vec<&TrackFigures> = samples.iter().map(|figures| &**figures).collect();
            let names: BTreeSet<&String> = of_track.iter().flat_map(|figures| figures.by_segment.keys()).collect();
            for name in names {
                let parts: Vec<(&Figures, &Figures)> =
                    of_track.iter().filter_map(|one| Some((&one.all, one.by_segment.get(name)?))).collect();
                let of = |value: fn(&Figures) -> Option<f64>| mean(parts.iter().map(|(_, part)| value(part)));
                // A half-year without a passing method has a clean success of 0, though controls were not launched.
                let clean: Option<Vec<f64>> =
                    parts.iter().map(|(all, part)| all.clean_success_percent.and(part.clean_success_percent)).collect();
                found.push(json!({
                    "run": places[0],
                    "track": table_name(track),
                    "segment": name,
                    "samples": parts.len(),
                    "methods": parts.iter().map(|(_, part)| part.methods).min(),
                    "few": parts.iter().any(|(_, part)| part.few_methods),
                    "success": of(|part| part.success_percent),
                    "clean": clean.and_then(|values| mean(values.into_iter().map(Some))),
                    "coverage": of(|part| part.cov_on_pass),
                    "mutation": of(|part| part.mut_on_pass).map(|score| 100.0 * score),
                }));
            }
        }
    }
    found
}

fn row(scored: &[(usize, &ScoredTask)]) -> Value {
    let first = scored.first().map(|(_, scored)| scored);
    let models = scored.iter().map(|(place, scored)| {
        let values = |value: fn(&ScoredMethod) -> Option<f64>| mean(scored.methods.iter().map(value));
        let letters: String = scored.methods.iter().map(letter).collect();
        json!({
            "run": place,
            "is": letters,
            "coverage": values(|method| method.score.pred.coverage),
            "mutation": values(|method| method.score.pred.mutation),
            "cost": scored.submission.as_ref().and_then(|submission| submission.cost_usd),
            "why": reasons(scored),
        })
    });
    json!({
        "task": first.map(|scored| &scored.task.id),
        "repository": first.map(|scored| &scored.task.repository),
        "track": first.map(|scored| table_name(scored.task.track)),
        "jdk": first.map(|scored| scored.jdk),
        "segment": first.map(|scored| segment(&scored.task.rev2_date)),
        "models": models.collect::<Vec<_>>(),
    })
}

/// Returns the first letter of a method's category; `U` if it is unscored.
fn letter(method: &ScoredMethod) -> char {
    method.verdict.paper_verdict.and_then(|category| category.name().chars().next()).unwrap_or('U')
}

/// Returns the names of everything that kept a task's methods from a success, of outcomes on old code where these count,
/// and of the findings against its tests.
fn reasons(scored: &ScoredTask) -> BTreeSet<String> {
    let mut reasons = BTreeSet::new();
    for method in &scored.methods {
        let new = method.new.iter().filter(|record| record.outcome.reason().is_some());
        reasons.extend(new.map(|record| record.outcome.to_string()));
        // On old code a pass is what keeps a generated test from a success, and a failure's reason tells why it is one.
        if scored.task.track == Track::TestGeneration {
            reasons.extend(method.old.iter().map(|record| format!("old code: {}", record.outcome)));
        }
        reasons.extend(method.verdict.reasons.iter().map(|reason| reason.name().to_owned()));
    }
    reasons
}
