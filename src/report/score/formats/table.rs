//! The figures as rows and columns: what text, Markdown and CSV have in common.

use crate::metrics::aggregate::Figures;
use crate::report::score::ScoreReport;
use crate::task::Track;

/// A column: heading, value, digits after the point.
type Column = (&'static str, fn(&Figures) -> Option<f64>, usize);

/// The columns of figures, in order.
pub const COLUMNS: [Column; 14] = [
    ("Success%", |figures| figures.success_percent, 1),
    ("Redundant%", |figures| figures.redundant_percent, 1),
    ("ExecFail%", |figures| figures.exec_fail_percent, 1),
    ("CmplFail%", |figures| figures.cmpl_fail_percent, 1),
    ("HrnsFail%", |figures| figures.hrns_fail_percent, 1),
    ("Strict%", |figures| figures.strict_success_percent, 1),
    ("Coverage", |figures| figures.avg_coverage_pred, 1),
    ("CoverageGold", |figures| figures.avg_coverage_gold, 1),
    ("CovOnPass", |figures| figures.cov_on_pass, 1),
    ("CovHuman", |figures| figures.cov_on_pass_human, 1),
    ("Mutation", |figures| figures.avg_mutation_score_pred, 3),
    ("MutationGold", |figures| figures.avg_mutation_score_gold, 3),
    ("MutOnPass", |figures| figures.mut_on_pass, 3),
    ("MutHuman", |figures| figures.mut_on_pass_human, 3),
];

/// Returns the headings.
pub fn headings() -> Vec<&'static str> {
    let mut headings = vec!["run", "model", "track", "tasks", "methods", "unscored"];
    headings.extend(COLUMNS.iter().map(|(heading, _, _)| *heading));
    headings
}

/// Returns a row for each model and track.
pub fn rows(report: &ScoreReport) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for run in &report.runs {
        for (track, figures) in &run.tracks {
            let mut row = vec![run.run_id.clone(), run.model.clone(), track_name(*track).to_owned()];
            row.extend([figures.all.tasks, figures.all.methods, figures.all.unscored].map(|number| number.to_string()));
            row.extend(COLUMNS.iter().map(|(_, value, digits)| shown(value(&figures.all), *digits)));
            rows.push(row);
        }
    }
    rows
}

/// Returns a value with so many digits after its point; `–` where there is none.
pub fn shown(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

/// Returns a track's name in tables.
pub fn track_name(track: Track) -> &'static str {
    match track {
        Track::TestUpdate => "test_update",
        Track::TestGeneration => "test_generation",
    }
}
