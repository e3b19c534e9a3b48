//! The figures as rows and columns, shared by text, Markdown and HTML.

use std::collections::BTreeMap;

use crate::metrics::aggregate::{Figures, TrackFigures};
use crate::report::score::{AgentMeans, OneSample, PassAt, SampledModel, ScoreReport};
use crate::task::Track;

/// A column: heading, value, digits after the point.
type Column = (&'static str, fn(&Figures) -> Option<f64>, usize);

/// The columns of figures, in order.
pub const COLUMNS: [Column; 17] = [
    ("Success%", |figures| figures.success_percent, 1),
    ("Redundant%", |figures| figures.redundant_percent, 1),
    ("ExecFail%", |figures| figures.exec_fail_percent, 1),
    ("CmplFail%", |figures| figures.cmpl_fail_percent, 1),
    ("HrnsFail%", |figures| figures.hrns_fail_percent, 1),
    ("Strict%", |figures| figures.strict_success_percent, 1),
    ("Clean%", |figures| figures.clean_success_percent, 1),
    ("Resolved%", |figures| figures.resolved_percent, 1),
    ("WellFormed%", |figures| figures.well_formed_percent, 1),
    ("Coverage", |figures| figures.avg_coverage_pred, 1),
    ("CoverageGold", |figures| figures.avg_coverage_gold, 1),
    ("CovOnPass", |figures| figures.cov_on_pass, 1),
    ("CovHuman", |figures| figures.cov_on_pass_human, 1),
    ("Mutation", |figures| figures.avg_mutation_score_pred, 3),
    ("MutationGold", |figures| figures.avg_mutation_score_gold, 3),
    ("MutOnPass", |figures| figures.mut_on_pass, 3),
    ("MutHuman", |figures| figures.mut_on_pass_human, 3),
];

/// Further columns of figures, which text output omits.
const MORE: [Column; 15] = [
    ("CoverageNarrow", |figures| figures.avg_coverage_pred_success, 1),
    ("CoverageGoldNarrow", |figures| figures.avg_coverage_gold_success, 1),
    ("CoverageRange", |figures| figures.avg_coverage_range_pred, 1),
    ("CoverageRangeGold", |figures| figures.avg_coverage_range_gold, 1),
    ("CovDelta", |figures| figures.cov_on_pass_delta, 1),
    ("MutationNarrow", |figures| figures.avg_mutation_score_pred_success, 3),
    ("MutationGoldNarrow", |figures| figures.avg_mutation_score_gold_success, 3),
    ("MutationStrict", |figures| figures.avg_mutation_score_strict_pred, 3),
    ("MutationStrictGold", |figures| figures.avg_mutation_score_strict_gold, 3),
    ("MutDelta", |figures| figures.mut_on_pass_delta, 3),
    ("Suspect%", |figures| figures.suspect_percent, 1),
    ("Tampered%", |figures| figures.tampered_percent, 1),
    ("CleanCoverage", |figures| figures.clean_coverage_pred, 1),
    ("CleanMutation", |figures| figures.clean_mutation_score_pred, 3),
    ("GoldIncomplete", |figures| Some(figures.gold_incomplete as f64), 0),
];

/// Columns of intervals of Success%: of tasks, and of repositories and their tasks.
const INTERVALS: [Column; 5] = [
    ("Success%", |figures| figures.success_percent, 1),
    ("low", |figures| figures.success_percent_interval.map(|[low, _]| low), 1),
    ("high", |figures| figures.success_percent_interval.map(|[_, high]| high), 1),
    ("low by repositories", |figures| figures.success_percent_interval_repositories.map(|[low, _]| low), 1),
    ("high by repositories", |figures| figures.success_percent_interval_repositories.map(|[_, high]| high), 1),
];

/// Columns of parts of a track.
const OF_PARTS: [Column; 10] = [
    ("Success%", |figures| figures.success_percent, 1),
    ("low", |figures| figures.success_percent_interval.map(|[low, _]| low), 1),
    ("high", |figures| figures.success_percent_interval.map(|[_, high]| high), 1),
    ("HrnsFail%", |figures| figures.hrns_fail_percent, 1),
    ("Coverage", |figures| figures.avg_coverage_pred, 1),
    ("CovOnPass", |figures| figures.cov_on_pass, 1),
    ("CovDelta", |figures| figures.cov_on_pass_delta, 1),
    ("Mutation", |figures| figures.avg_mutation_score_pred, 3),
    ("MutOnPass", |figures| figures.mut_on_pass, 3),
    ("MutDelta", |figures| figures.mut_on_pass_delta, 3),
];

/// Columns of certified tasks.
const OF_CERTIFIED: [Column; 7] = [
    ("Success%", |figures| figures.success_percent, 1),
    ("low", |figures| figures.success_percent_interval.map(|[low, _]| low), 1),
    ("high", |figures| figures.success_percent_interval.map(|[_, high]| high), 1),
    ("Strict%", |figures| figures.strict_success_percent, 1),
    ("Clean%", |figures| figures.clean_success_percent, 1),
    ("Coverage", |figures| figures.avg_coverage_pred, 1),
    ("Mutation", |figures| figures.avg_mutation_score_pred, 3),
];

/// A table beside the one of the figures. Its first three columns name run, model and track.
pub struct Sheet {
    /// Its title.
    pub title: &'static str,
    /// Headings of its columns.
    pub headings: Vec<&'static str>,
    /// How many columns from the left are words.
    pub words: usize,
    /// Its rows, as many cells as headings each.
    pub rows: Vec<Vec<String>>,
}

impl Sheet {
    /// Returns the table without its column of runs, for a report of one run.
    pub fn without_run(mut self) -> Self {
        let Some(column) = self.headings.iter().position(|heading| *heading == "run") else { return self };
        self.headings.remove(column);
        for row in &mut self.rows {
            row.remove(column);
        }
        self.words -= 1;
        self
    }
}

/// Returns the table of the figures: a row for each model and track.
pub fn figures(report: &ScoreReport) -> Sheet {
    Sheet { title: "Figures", headings: headings(), words: 3, rows: rows(report) }
}

/// Returns the tables that are not empty.
pub fn sheets(report: &ScoreReport) -> Vec<Sheet> {
    let sheets = [
        samples(report),
        each_sample(report),
        certified(report),
        published(&report.published),
        further(report, "Intervals of Success%, 95 %", &INTERVALS),
        further(report, "Narrow means and other readings", &MORE),
        caps(report),
        costs(report),
        parts(report, "By half-year", "half-year", |figures| &figures.by_segment),
        parts(report, "By repository", "repository", |figures| &figures.by_repository),
        parts(report, "By Java development kit", "JDK", |figures| &figures.by_jdk),
    ];
    sheets.into_iter().filter(|sheet| !sheet.rows.is_empty()).collect()
}

/// Returns a table of the figures for each track, whose rows are models.
pub fn figure_sheets(report: &ScoreReport) -> Vec<Sheet> {
    let of = |track: Track, title: &'static str| {
        let mut headings = vec!["model", "run", "tasks", "methods", "unscored"];
        headings.extend(COLUMNS.iter().map(|(heading, _, _)| *heading));
        let rows = report.runs.iter().filter_map(|run| {
            let figures = &run.tracks.get(&track)?.all;
            let mut row = vec![run.model.clone(), run.run_id.clone()];
            row.extend([figures.tasks, figures.methods, figures.unscored].map(|number| number.to_string()));
            row.extend(COLUMNS.iter().map(|(_, value, digits)| shown(value(figures), *digits)));
            Some(row)
        });
        Sheet { title, headings, words: 2, rows: rows.collect() }
    };
    let sheets =
        [(Track::TestUpdate, "All figures, test_update"), (Track::TestGeneration, "All figures, test_generation")];
    sheets.map(|(track, title)| of(track, title)).into_iter().filter(|sheet| !sheet.rows.is_empty()).collect()
}

fn further(report: &ScoreReport, title: &'static str, columns: &[Column]) -> Sheet {
    let mut headings = vec!["run", "model", "track"];
    headings.extend(columns.iter().map(|(heading, _, _)| *heading));
    let rows = of_tracks(report).map(|(mut row, figures)| {
        row.extend(columns.iter().map(|(_, value, digits)| shown(value(&figures.all), *digits)));
        row
    });
    Sheet { title, headings, words: 3, rows: rows.collect() }
}

/// Returns the views of cost caps; without rows if no cost is known.
pub fn caps(report: &ScoreReport) -> Sheet {
    let mut headings = vec!["run", "model", "track", "cap in $", "over", "without cost"];
    headings.extend(["Success%", "HrnsFail%", "Success% of methods", "HrnsFail% of methods"]);
    headings.extend(["mean cost in $", "mean tokens"]);
    let rows = of_tracks(report).flat_map(|(row, figures)| {
        figures.all.cost_caps.iter().map(move |cap| {
            let mut row = row.clone();
            row.extend([cap.cap_usd.to_string(), cap.tasks_over.to_string(), cap.tasks_without_cost.to_string()]);
            let by_task = [cap.success_percent, cap.hrns_fail_percent];
            let by_method = [cap.method_success_percent, cap.method_hrns_fail_percent];
            row.extend([by_task, by_method].concat().into_iter().map(|percent| shown(percent, 1)));
            row.extend([cost(cap.mean_cost_usd), shown(cap.mean_tokens, 0)]);
            row
        })
    });
    Sheet { title: "Cost caps: what is over counts as HrnsFail", headings, words: 3, rows: rows.collect() }
}

/// Returns the cumulative share of tasks by cost; without rows if no cost is known.
fn costs(report: &ScoreReport) -> Sheet {
    let mut headings = vec!["run", "model", "track"];
    headings.extend(["10 %", "20 %", "30 %", "40 %", "50 %", "60 %", "70 %", "80 %", "90 %", "100 %"]);
    let known = of_tracks(report).filter(|(_, figures)| !figures.all.cost_deciles_usd.is_empty());
    let rows = known.map(|(mut row, figures)| {
        row.extend(figures.all.cost_deciles_usd.iter().map(|decile| cost(Some(*decile))));
        row
    });
    Sheet { title: "Cost in $ that this share of tasks does not exceed", headings, words: 3, rows: rows.collect() }
}

/// Returns the sheet of pass@k for models with several samples. It has no rows if no model has several.
pub fn samples(report: &ScoreReport) -> Sheet {
    let headings = vec!["model", "track", "samples", "k", "tasks", "pass@k", "low", "high", "pass@k of methods"];
    let of_model = |sampled: &SampledModel, track: Track, pass: &PassAt| {
        let [low, high] = pass.interval.map_or([None; 2], |interval| interval.map(Some));
        let numbers = [sampled.samples.len(), pass.k, pass.tasks].map(|number| number.to_string());
        let percents = [pass.pass_percent, low, high, pass.method_pass_percent].map(|percent| shown(percent, 1));
        [&[sampled.model.clone(), track_name(track).to_owned()][..], &numbers, &percents].concat()
    };
    let tracks = report.samples.iter().flat_map(|sampled| sampled.tracks.iter().map(move |of| (sampled, of)));
    let rows = tracks.flat_map(|(sampled, (track, all))| all.iter().map(move |pass| of_model(sampled, *track, pass)));
    Sheet { title: "Several samples: one of k resolves the task", headings, words: 2, rows: rows.collect() }
}

/// Returns the sheet with the figures of each single sample. It has no rows if no model has several samples.
pub fn each_sample(report: &ScoreReport) -> Sheet {
    let headings = vec!["model", "track", "run", "sample", "tasks", "resolved%", "Success%"];
    let of_sample = |sampled: &SampledModel, track: Track, one: &OneSample| {
        let words = [sampled.model.as_str(), track_name(track), &one.run_id, &one.model].map(str::to_owned);
        let numbers = [one.tasks.to_string(), shown(one.resolved_percent, 1), shown(one.success_percent, 1)];
        [&words[..], &numbers].concat()
    };
    let tracks = report.samples.iter().flat_map(|sampled| sampled.each.iter().map(move |of| (sampled, of)));
    let rows = tracks.flat_map(|(sampled, (track, all))| all.iter().map(move |one| of_sample(sampled, *track, one)));
    Sheet { title: "Each sample alone, over the tasks of all", headings, words: 4, rows: rows.collect() }
}

/// Returns the figures over certified tasks beside those over all; without rows if no validation is given.
pub fn certified(report: &ScoreReport) -> Sheet {
    let mut headings = vec!["run", "model", "track", "tasks", "methods", "Success% of all"];
    headings.extend(OF_CERTIFIED.iter().map(|(heading, _, _)| *heading));
    let certified = report.certified.iter().flat_map(|certified| &certified.runs);
    let rows = certified.zip(&report.runs).flat_map(|(run, of_all)| {
        run.tracks.iter().map(move |(track, figures)| {
            let mut row = vec![run.run_id.clone(), run.model.clone(), track_name(*track).to_owned()];
            row.extend([figures.all.tasks, figures.all.methods].map(|number| number.to_string()));
            let all = of_all.tracks.get(track).and_then(|figures| figures.all.success_percent);
            row.push(shown(all, 1));
            row.extend(OF_CERTIFIED.iter().map(|(_, value, digits)| shown(value(&figures.all), *digits)));
            row
        })
    });
    Sheet { title: "Certified tasks: those whose published labels hold", headings, words: 3, rows: rows.collect() }
}

/// Returns published means as they are, with more digits than measured ones; without rows if there are none.
pub fn published(agents: &[AgentMeans]) -> Sheet {
    let mut headings = vec!["agent", "track", "tasks", "Success%", "Redundant%", "ExecFail%", "CmplFail%", "HrnsFail%"];
    headings.extend(["CovOnPass", "MutOnPass"]);
    let rows = agents.iter().map(|agent| {
        let mut row = vec![agent.name.clone(), track_name(agent.track).to_owned(), agent.tasks.to_string()];
        let outcomes = [agent.success_percent, agent.redundant_percent, agent.exec_fail_percent];
        row.extend(outcomes.map(|percent| shown(percent, 2)));
        row.extend([agent.cmpl_fail_percent, agent.hrns_fail_percent].map(|percent| shown(percent, 2)));
        row.extend([shown(agent.cov_on_pass, 2), shown(agent.mut_on_pass, 4)]);
        row
    });
    Sheet { title: "Published values, not measured here", headings, words: 2, rows: rows.collect() }
}

fn parts(
    report: &ScoreReport,
    title: &'static str,
    part: &'static str,
    of: fn(&TrackFigures) -> &BTreeMap<String, Figures>,
) -> Sheet {
    let mut headings = vec!["run", "model", "track", part, "few", "tasks", "methods"];
    headings.extend(OF_PARTS.iter().map(|(heading, _, _)| *heading));
    let rows = of_tracks(report).flat_map(|(row, figures)| {
        of(figures).iter().map(move |(name, part)| {
            let mut row = row.clone();
            let few = if part.few_methods { "few" } else { "" };
            row.extend([name.clone(), few.to_owned(), part.tasks.to_string(), part.methods.to_string()]);
            row.extend(OF_PARTS.iter().map(|(_, value, digits)| shown(value(part), *digits)));
            row
        })
    });
    Sheet { title, headings, words: 5, rows: rows.collect() }
}

/// Returns the figures of each model and track, with the cells that name them.
fn of_tracks(report: &ScoreReport) -> impl Iterator<Item = (Vec<String>, &TrackFigures)> {
    report.runs.iter().flat_map(|run| {
        run.tracks.iter().map(|(track, figures)| {
            (vec![run.run_id.clone(), run.model.clone(), track_name(*track).to_owned()], figures)
        })
    })
}

/// Returns the headings.
pub fn headings() -> Vec<&'static str> {
    let mut headings = vec!["run", "model", "track", "tasks", "methods", "unscored"];
    headings.extend(COLUMNS.iter().map(|(heading, _, _)| *heading));
    headings
}

/// Returns a row for each model and track.
pub fn rows(report: &ScoreReport) -> Vec<Vec<String>> {
    let rows = of_tracks(report).map(|(mut row, figures)| {
        row.extend([figures.all.tasks, figures.all.methods, figures.all.unscored].map(|number| number.to_string()));
        row.extend(COLUMNS.iter().map(|(_, value, digits)| shown(value(&figures.all), *digits)));
        row
    });
    rows.collect()
}

/// Returns a value with this many digits after its point; `–` for `None`.
pub fn shown(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

/// Returns a cost in dollars with its cents. A cost below ten cents has two digits that are no leading zeros, and at most twelve
/// after the point.
fn cost(dollars: Option<f64>) -> String {
    let digits = match dollars {
        Some(dollars) if dollars > 0.0 && dollars < 0.1 => (1.0 - dollars.log10().floor()).min(12.0) as usize,
        _ => 2,
    };
    shown(dollars, digits)
}

/// Returns the ends of a difference's interval.
pub fn between([low, high]: [f64; 2]) -> String {
    format!("{low:+.1} to {high:+.1}")
}

/// Returns a track's name in tables.
pub fn track_name(track: Track) -> &'static str {
    match track {
        Track::TestUpdate => "test_update",
        Track::TestGeneration => "test_generation",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_costs_keep_two_digits() {
        for (dollars, written) in [
            (Some(0.0), "0.00"),
            (Some(0.0042), "0.0042"),
            (Some(0.000_000_12), "0.00000012"),
            (Some(0.056), "0.056"),
            (Some(0.1), "0.10"),
            (Some(12.345), "12.35"),
            (Some(1e-300), "0.000000000000"),
            (None, "–"),
        ] {
            assert_eq!(cost(dollars), written);
        }
    }

    #[test]
    fn a_table_of_one_run_has_no_column_of_runs() {
        let sheet = |headings: &[&'static str], rows: &[&[&str]]| Sheet {
            title: "",
            headings: headings.to_vec(),
            words: 2,
            rows: rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect(),
        };
        let narrow = sheet(&["model", "run", "n"], &[&["m", "r", "1"], &["n", "r", "2"]]).without_run();
        assert_eq!((narrow.headings, narrow.words), (vec!["model", "n"], 1));
        assert_eq!(narrow.rows, [["m", "1"], ["n", "2"]]);
        let without = sheet(&["model", "track"], &[]).without_run();
        assert_eq!((without.headings.len(), without.words), (2, 2));
    }
}
