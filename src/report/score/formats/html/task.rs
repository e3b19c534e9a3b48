//! A task's data: its focal methods and mutants once, and every model's results on them.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::table_name;
use crate::digest::Digest;
use crate::execution::scoring::record::{CoverageRecord, ExecutionRecord, MutantOutcome};
use crate::focal::FocalLines;
use crate::focal::own::OwnFocal;
use crate::metrics::aggregate::segment;
use crate::metrics::coverage::FocalCoverage;
use crate::report::score::attachments::{Attachment, Attachments, first_shown, last_shown};
use crate::report::score::{ScoredMethod, ScoredModel, ScoredTask};
use crate::submission::GOLD;
use crate::task::Side;

/// The most bytes of a failure's text. Records of runs are short; a stranger's may not be.
const MOST_DETAIL: usize = 16 << 10;
/// The most own focal methods of a test method that are listed.
const MOST_OWN: usize = 20;

/// The places of a task's mutants by digest.
type MutantPlaces = BTreeMap<Digest, usize>;

/// Returns a task's data, and numbers its attachments.
pub(super) fn task<'a>(
    models: &'a [ScoredModel],
    scored: &[(usize, &'a ScoredTask)],
    attachments: &mut Attachments<'a>,
) -> Value {
    let Some((first, any)) = scored.first().copied() else { return Value::Null };
    let with_focal = scored.iter().find_map(|(place, one)| Some((*place, *one, one.focal.as_deref()?)));
    let lines: Vec<&FocalLines> = with_focal.map(|(_, _, focal)| focal.lines()).unwrap_or_default();
    let focal = lines.iter().map(|lines| {
        let (place, one) = with_focal.map_or((first, any), |(place, one, _)| (place, one));
        let source = models.get(place).map(|model| {
            let run: &Path = &model.path;
            attachments.number(Attachment::focal(run, &one.task, lines))
        });
        json!({
            "path": lines.path, "first": lines.first_line, "last": last_shown(lines), "from": first_shown(lines),
            "added": lines.added, "source": source,
        })
    });
    let focal: Vec<Value> = focal.collect();
    let (mutants, places) = mutants(scored);
    let gold = any.methods.iter().filter(|method| !method.gold_mutants.is_empty()).map(
        |method| json!({ "method": method.method.method(), "mutants": on_mutants(&method.gold_mutants, &places) }),
    );
    let start = any.start.as_ref().and_then(|start| {
        let compiles = start.start_compiles?;
        Some(json!({ "compiles": compiles, "detail": start.detail.as_deref().map(bounded) }))
    });
    let task = &any.task;
    let gold: Vec<Value> = gold.collect();
    let of_models = scored.iter().filter_map(|(place, one)| {
        let model = models.get(*place)?;
        Some(of_model((*place, model), one, (&lines, &places), attachments))
    });
    json!({
        "task": task.id,
        "repository": task.repository,
        "track": table_name(task.track),
        "jdk": any.jdk,
        "segment": segment(&task.rev2_date),
        "date": task.rev2_date,
        "file": task.test_file,
        "old": task.rev1,
        "new": task.rev2,
        "start": start,
        "focal": focal,
        "mutants": mutants,
        "gold": gold,
        "gold_failed": any.gold_failed,
        "models": of_models.collect::<Vec<_>>(),
    })
}

/// Returns the mutants of all runs, each once, and where each stands.
fn mutants(scored: &[(usize, &ScoredTask)]) -> (Vec<Value>, MutantPlaces) {
    let (mut mutants, mut places) = (Vec::<Value>::new(), MutantPlaces::new());
    for set in scored.iter().flat_map(|(_, one)| one.mutants.iter()) {
        for kept in &set.kept {
            let text = kept.text.as_deref().map(bounded);
            match places.get(&kept.id) {
                // Runs of earlier versions have no text.
                Some(place) if text.is_some() => mutants[*place]["text"] = json!(text),
                Some(_) => {}
                None => {
                    places.insert(kept.id, mutants.len());
                    mutants.push(json!({ "path": set.path, "line": kept.line, "id": kept.id, "text": text }));
                }
            }
        }
    }
    (mutants, places)
}

fn on_mutants(outcomes: &[MutantOutcome], places: &MutantPlaces) -> Vec<Value> {
    let known = outcomes.iter().filter_map(|one| Some(json!([places.get(&one.id)?, one.outcome.to_string()])));
    known.collect()
}

fn of_model<'a>(
    (place, model): (usize, &'a ScoredModel),
    scored: &'a ScoredTask,
    (lines, places): (&[&FocalLines], &MutantPlaces),
    attachments: &mut Attachments<'a>,
) -> Value {
    let run: &Path = &model.path;
    let submission = scored.submission.as_ref();
    let file = submission.and_then(|one| one.post_image);
    let start = submission.and_then(|one| one.start);
    let test = file.map(|file| attachments.number(Attachment::Test { run, start, file }));
    let gold = file.zip(scored.gold_file).filter(|_| model.model != GOLD);
    let against = gold.map(|(file, gold)| attachments.number(Attachment::Gold { run, gold, file }));
    let mut logs = |code: Side, records: fn(&ScoredMethod) -> &[ExecutionRecord]| {
        let own = scored.methods.iter().flat_map(records).find_map(|record| Attachment::logs(run, record));
        let kept = scored.kept_logs.iter().filter(|logs| logs.code == code);
        let kept = kept.map(|logs| (Attachment::kept_logs(logs), Some(&logs.run_id)));
        let found = own.map(|logs| (logs, None)).into_iter().chain(kept);
        let found = found.map(|(logs, run_id)| json!({ "at": attachments.number(logs), "run": run_id }));
        found.collect::<Vec<_>>()
    };
    let new = logs(Side::New, |method| &method.new);
    let logs = json!({ "new": new, "old": logs(Side::Old, |method| &method.old) });
    let digests =
        submission.map(|one| json!({ "submitted": one.submitted, "start": one.start, "file": one.post_image }));
    json!({
        "run": place,
        "test": test,
        "against": against,
        "same_as_gold": gold.is_some_and(|(file, gold)| file == gold),
        "fault": submission.and_then(|one| one.fault.as_ref()).map(|fault| bounded(&fault.detail)),
        "dropped": submission.map(|one| one.dropped.iter().map(|dropped| dropped.path.as_str()).collect::<Vec<_>>()),
        "shadows": submission.map(|one| &one.shadows),
        "cost": submission.and_then(|one| one.cost_usd),
        "tokens": submission.and_then(|one| one.tokens),
        "digests": digests,
        "logs": logs,
        "methods": scored.methods.iter().map(|one| method(scored, one, (lines, places))).collect::<Vec<_>>(),
    })
}

fn method(scored: &ScoredTask, method: &ScoredMethod, (lines, places): (&[&FocalLines], &MutantPlaces)) -> Value {
    let covered = method.coverage.as_ref().map(|one| {
        let of = |lines: &&FocalLines| {
            let extent = (lines.first_line, lines.last_line);
            let focal = one.focal.iter().find(|focal| (focal.first_line, focal.last_line) == extent)?;
            Some(json!({ "lines": focal.lines, "covered": focal.covered }))
        };
        lines.iter().map(of).collect::<Vec<_>>()
    });
    let kills = method.mutation.as_ref().and_then(|record| {
        let kills = record.kills.as_ref()?;
        Some(json!({ "killed": kills.killed, "count": kills.count, "elsewhere": record.elsewhere }))
    });
    let own = scored.own.as_ref().and_then(|own| own.of(&method.method));
    let mutants = method.mutation.as_ref().map(|record| on_mutants(&record.mutants, places));
    json!({
        "method": method.method.method(),
        "category": method.verdict.paper_verdict.map(|category| category.name()),
        "strict": method.verdict.strict_success,
        "integrity": method.verdict.integrity,
        "reasons": method.verdict.reasons.iter().map(|one| [one.name(), one.sentence()]).collect::<Vec<_>>(),
        "off": method.verdict.off.iter().map(|one| [one.name(), one.sentence()]).collect::<Vec<_>>(),
        "coverage": method.score.pred.coverage,
        "coverage_gold": method.score.gold.coverage,
        "kills": kills,
        "own": own.map(|own| own.places().collect::<Vec<_>>()),
        "own_lines": method.coverage.as_ref().and_then(|record| own_lines(record, own)),
        "covered": covered,
        "mutants": mutants,
        "new": method.new.iter().map(launch).collect::<Vec<_>>(),
        "old": method.old.iter().map(launch).collect::<Vec<_>>(),
    })
}

/// Returns the lines that a method's coverage counts, and how many of them it covers: in all, and for each own focal method.
fn own_lines(record: &CoverageRecord, own: Option<&OwnFocal>) -> Option<Value> {
    record.coverage?;
    // Earlier programs counted all listed methods.
    let counted = record.own.as_ref().unwrap_or(&record.focal);
    let named = own.filter(|own| record.own.is_some() && own.own.len() == counted.len());
    let each = named.into_iter().flat_map(|own| own.own.iter().zip(counted)).take(MOST_OWN);
    let each = each.map(|(method, found)| json!([method.name, found.covered.len(), found.lines.len()]));
    let sum = |lines: fn(&FocalCoverage) -> usize| counted.iter().map(lines).sum::<usize>();
    Some(json!({
        "methods": counted.len(),
        "covered": sum(|found| found.covered.len()),
        "lines": sum(|found| found.lines.len()),
        "each": each.collect::<Vec<_>>(),
    }))
}

fn launch(record: &ExecutionRecord) -> Value {
    json!({
        "outcome": record.outcome.to_string(),
        "detail": bounded(&record.detail),
        "attributed": record.attributed,
        "ms": record.measured.launch_ms,
        "compile_ms": record.measured.compile_ms,
        "cached": record.cached,
        "attempts": record.attempts,
        "key": record.key,
        "path": record.measured.path.to_string(),
        "unfit": record.measured.unfit,
        "engine": record.measured.engine,
    })
}

/// Returns the text's beginning, at most [`MOST_DETAIL`] bytes of it.
fn bounded(text: &str) -> String {
    match text.len() <= MOST_DETAIL {
        true => text.to_owned(),
        false => format!("{}\n… {} bytes …", &text[..text.floor_char_boundary(MOST_DETAIL)], text.len() - MOST_DETAIL),
    }
}
