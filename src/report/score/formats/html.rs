//! HTML: one file that needs nothing else, neither from the network nor beside it.
//!
//! The page is a template with a table of figures and one block of JSON; its script builds the sortable tables, plots and
//! the view of a task from that block, as text and never as markup. A policy in the page forbids everything else.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::junit::escaped;
use super::table::{COLUMNS, headings, rows, track_name};
use crate::metrics::aggregate::segment;
use crate::report::score::{ScoreReport, ScoredMethod, ScoredModel, ScoredTask};

const TEMPLATE: &str = include_str!("page.html");

/// Source files that the view of a task shows, by digest: the executed test files.
pub type Sources = BTreeMap<String, String>;

/// Returns the report as a page. `sources` are the executed test files that can be shown.
///
/// # Errors
/// A value is no JSON, which plain data never is.
pub fn render(report: &ScoreReport, models: &[ScoredModel], sources: &Sources) -> Result<String, serde_json::Error> {
    let mut table = String::new();
    table.push_str("<thead><tr>");
    for heading in headings() {
        table.push_str(&format!("<th scope=\"col\">{}</th>", escaped(heading)));
    }
    table.push_str("</tr></thead><tbody>");
    for row in rows(report) {
        table.push_str("<tr>");
        for cell in row {
            table.push_str(&format!("<td>{}</td>", escaped(&cell)));
        }
        table.push_str("</tr>");
    }
    table.push_str("</tbody>");
    let data = json!({
        "figures": COLUMNS.len(),
        "segments": segments(report),
        "tasks": models.iter().flat_map(tasks).collect::<Vec<_>>(),
        "sources": sources,
        "incomplete": report.runs.iter().filter(|run| !run.complete).map(|run| format!("{} {}", run.run_id, run.model)).collect::<Vec<_>>(),
    });
    Ok(TEMPLATE.replacen("<!--figures-->", &table, 1).replacen("\"@data@\"", &script_json(&data)?, 1))
}

fn segments(report: &ScoreReport) -> Vec<Value> {
    let mut found = Vec::new();
    for run in &report.runs {
        for (track, figures) in &run.tracks {
            for (name, part) in &figures.by_segment {
                found.push(json!({
                    "run": format!("{} {}", run.run_id, run.model),
                    "track": track_name(*track),
                    "segment": name,
                    "methods": part.methods,
                    "few": part.few_methods,
                    "success": part.success_percent,
                    "coverage": part.cov_on_pass,
                    "mutation": part.mut_on_pass,
                }));
            }
        }
    }
    found
}

fn tasks(model: &ScoredModel) -> Vec<Value> {
    model.tasks.iter().map(|scored| task(model, scored)).collect()
}

fn task(model: &ScoredModel, scored: &ScoredTask) -> Value {
    let submission = scored.submission.as_ref();
    json!({
        "run": model.run_id,
        "model": model.model,
        "track": track_name(scored.task.track),
        "repository": scored.task.repository,
        "task": scored.task.id,
        "segment": segment(&scored.task.rev2_date),
        "file": scored.task.test_file,
        "source": submission.and_then(|one| one.post_image).map(|digest| digest.hex()),
        "fault": submission.and_then(|one| one.fault.as_ref()).map(|fault| fault.detail.as_str()),
        "dropped": submission.map(|one| one.dropped.iter().map(|dropped| dropped.path.as_str()).collect::<Vec<_>>()),
        "focal": scored.focal.as_ref().map(|focal| focal.lines().iter().map(|lines| {
            format!("{}:{}-{}", lines.path, lines.first_line, lines.last_line)
        }).collect::<Vec<_>>()),
        "methods": scored.methods.iter().map(method).collect::<Vec<_>>(),
    })
}

fn method(method: &ScoredMethod) -> Value {
    let cells = |records: &[crate::execution::scoring::record::ExecutionRecord]| -> Vec<Value> {
        let cell = |record: &crate::execution::scoring::record::ExecutionRecord| {
            json!({
                "outcome": record.outcome.to_string(),
                "detail": record.detail,
                "logs": record.measured.logs,
                "ms": record.measured.launch_ms,
                "cached": record.cached,
            })
        };
        records.iter().map(cell).collect()
    };
    let covered = method.coverage.as_ref().map(|one| {
        one.focal.iter().map(|focal| json!({ "lines": focal.lines, "covered": focal.covered })).collect::<Vec<_>>()
    });
    json!({
        "method": method.method.method(),
        "category": method.verdict.paper_verdict.map(|category| category.name()),
        "strict": method.verdict.strict_success,
        "coverage": method.score.coverage_pred,
        "gold": method.score.coverage_gold,
        "mutation": method.score.mutation_pred,
        "covered": covered,
        "new": cells(&method.new),
        "old": cells(&method.old),
    })
}

/// Returns JSON that can stand inside a script: nothing in it can end the script or begin a comment.
fn script_json(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(value)?;
    Ok(text
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_can_not_leave_the_script() {
        let hostile = "</script><script>alert(1)</script><!--\u{2028}&";
        let text = script_json(&hostile).unwrap();
        assert!(!text.contains(['<', '>', '&', '\u{2028}']));
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), hostile);
    }

    #[test]
    fn the_page_asks_nobody_for_anything() {
        for word in ["http:", "https:", "src=", "@import", "url(", "innerHTML", "<link"] {
            assert!(!TEMPLATE.contains(word), "{word}");
        }
        assert!(TEMPLATE.contains("default-src 'none'"));
    }
}
