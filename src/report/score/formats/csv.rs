//! CSV by RFC 4180: a row for each target method. A column tells whether its task is missing; predictions for no
//! selected task have no row.

use std::collections::BTreeSet;
use std::io::{self, Write};

use crate::output::visible_lines;
use crate::report::score::{Certified, ScoredModel, formats::table::track_name};
use crate::task::TaskId;

const HEADINGS: [&str; 28] = [
    "run_id",
    "model",
    "track",
    "repository",
    "jdk",
    "date",
    "task_id",
    "method",
    "category",
    "strict_success",
    "integrity",
    "new_outcome",
    "old_outcome",
    "coverage_pred",
    "coverage_gold",
    "mutation_score_pred",
    "mutation_score_gold",
    "cost_usd",
    "tokens",
    "missing",
    "flaky",
    "start_compiles",
    "old_attributed",
    "integrity_reasons",
    "clean_coverage_pred",
    "clean_mutation_score_pred",
    "not_certified",
    "sample_of",
];

/// Writes the scored methods as CSV. With `certified`, a column tells why a method is not certified.
///
/// # Errors
/// I/O errors of writing to `out`.
pub fn write(out: &mut impl Write, models: &[ScoredModel], certified: Option<&Certified>) -> io::Result<()> {
    row(out, HEADINGS.map(str::to_owned))?;
    let excluded = certified.map(Certified::reasons).unwrap_or_default();
    for model in models {
        let missing: BTreeSet<&TaskId> = model.missing.iter().collect();
        for scored in &model.tasks {
            let task = &scored.task;
            let submission = scored.submission.as_ref();
            let start_compiles = scored.start.as_ref().and_then(|start| start.start_compiles);
            for method in &scored.methods {
                let first = |records: &[crate::execution::scoring::record::ExecutionRecord]| {
                    records.first().map(|record| record.outcome.to_string()).unwrap_or_default()
                };
                let attributed = method.old.first().and_then(|record| record.attributed);
                let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
                let integrity = method.verdict.integrity.name().to_owned();
                row(
                    out,
                    [
                        model.run_id.clone(),
                        model.model.clone(),
                        track_name(task.track).to_owned(),
                        task.repository.to_string(),
                        scored.jdk.to_string(),
                        task.rev2_date.clone(),
                        task.id.to_string(),
                        method.method.to_string(),
                        method.verdict.paper_verdict.map(|category| category.name().to_owned()).unwrap_or_default(),
                        method.verdict.strict_success.to_string(),
                        integrity,
                        first(&method.new),
                        first(&method.old),
                        number(method.score.pred.coverage),
                        number(method.score.gold.coverage),
                        number(method.score.pred.mutation),
                        number(method.score.gold.mutation),
                        number(submission.and_then(|submission| submission.cost_usd)),
                        submission.and_then(|one| one.tokens).map(|tokens| tokens.to_string()).unwrap_or_default(),
                        missing.contains(&task.id).to_string(),
                        method.verdict.flaky.map(|one| format!("{} of {}", one.passed, one.runs)).unwrap_or_default(),
                        start_compiles.map(|compiles| compiles.to_string()).unwrap_or_default(),
                        attributed.map(|attributed| attributed.to_string()).unwrap_or_default(),
                        method.verdict.reasons.iter().map(|reason| reason.name()).collect::<Vec<_>>().join(" "),
                        number(method.score.pred.clean_coverage),
                        number(method.score.pred.clean_mutation),
                        [None, Some(&method.method)]
                            .iter()
                            .find_map(|which| excluded.get(&(&task.id, *which)))
                            .map(|reason| (*reason).to_owned())
                            .unwrap_or_default(),
                        model.sample_of.clone().unwrap_or_default(),
                    ],
                )?;
            }
        }
    }
    Ok(())
}

fn row<const COLUMNS: usize>(out: &mut impl Write, cells: [String; COLUMNS]) -> io::Result<()> {
    let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
    write!(out, "{}\r\n", cells.join(","))
}

fn quoted(cell: &str) -> String {
    let cell = visible_lines(cell);
    // Spreadsheets execute cells that begin like a formula.
    let cell = if cell.starts_with(['=', '+', '-', '@']) { format!("'{cell}") } else { cell };
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_no_formulas() {
        for (cell, written) in [
            ("a", "a"),
            ("a,\"b\"", "\"a,\"\"b\"\"\""),
            ("=1+1", "'=1+1"),
            ("", ""),
            ("a\u{202e}b\u{1b}", "a\u{fffd}b\u{fffd}"),
        ] {
            assert_eq!(quoted(cell), written);
        }
    }
}
