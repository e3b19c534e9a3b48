//! `report`: what scoring runs add up to, in the form that is wanted.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::completions;
use super::stdout;
use crate::application::Context;
use crate::application::report::ScoringRuns;
use crate::error::CommandError;
use crate::output::{OutputFormat, Table, counted};
use crate::report::leaderboard::calibration::Calibration;
use crate::report::leaderboard::formats;
use crate::report::score::formats::{csv, html, junit, markdown, notes, table};
use crate::report::score::{Period, ScoreReport, ScoredModel};

/// Arguments of `report`.
#[derive(Debug, Args)]
pub(super) struct ReportArguments {
    /// Scoring runs: ids, `latest`, or directories; several stand side by side
    #[arg(value_name = "RUN", required = true, add = completions::runs())]
    runs: Vec<String>,
    /// How the report is written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: ReportFormat,
    /// A published leaderboard. `--format html` shows its agents beside the models. As text, json or markdown, the developers'
    /// tests of runs of `gold` are held against it instead, by task where dates tell tasks apart
    #[arg(long, value_name = "FILE")]
    published: Option<PathBuf>,
    /// Only tasks whose new revision is of this day or later
    #[arg(long, value_name = "YYYY-MM-DD")]
    since: Option<jiff::civil::Date>,
    /// Only tasks whose new revision is of this day or earlier
    #[arg(long, value_name = "YYYY-MM-DD")]
    until: Option<jiff::civil::Date>,
    /// Add the figures over certified tasks: those whose published labels hold in this run of `validate`
    #[arg(long, value_name = "RUN", add = completions::runs())]
    certified_by: Option<String>,
    /// Count runs of models of one name as samples of that model: the report has pass@k
    #[arg(long)]
    samples: bool,
    /// A new or empty directory: for `--format html` of `index.html` and a page for each task, for `--format instances` of
    /// its files
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// The forms of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// A table and sentences for people
    #[default]
    Text,
    /// One JSON value
    Json,
    /// Tables in Markdown
    Markdown,
    /// A row for each target method, as RFC 4180 has it
    Csv,
    /// JUnit XML, for continuous integration
    Junit,
    /// One page that needs nothing else
    Html,
    /// A `report.json` for each completed task, as SWE-bench's harness leaves them, and a summary of each model; with
    /// `--output`
    Instances,
    /// JSON in the shape of the published leaderboard: a row for each task, told by its date
    Leaderboard,
}

pub(super) fn run(arguments: &ReportArguments, context: &Context) -> Result<(), CommandError> {
    let period = Period { since: arguments.since, until: arguments.until };
    let certified_by = arguments.certified_by.as_deref();
    let is_page = arguments.format == ReportFormat::Html;
    let has_more = arguments.output.is_some() || certified_by.is_some() || arguments.samples;
    if arguments.published.is_some() && has_more && !is_page {
        return Err(CommandError::Usage {
            message: "`--published` goes with `--output`, `--certified-by` and `--samples` as html only".to_owned(),
            hint: "add `--format html`, or leave these options out".to_owned(),
        });
    }
    let mut runs = ScoringRuns::read(&arguments.runs, period, certified_by, arguments.samples, context)?;
    match &arguments.published {
        Some(file) if is_page => runs = runs.beside(file)?,
        Some(file) => return write_calibration(&runs.calibrate(file, context)?, arguments.format),
        None => {}
    }
    let models = &runs.models;
    if let Some(directory) = &arguments.output {
        let stage = context.events.stage("write report", None, 0);
        let written = match arguments.format {
            ReportFormat::Html => runs.write_pages(directory).map(|()| directory.join("index.html")),
            ReportFormat::Instances => runs.write_instances(directory).map(|()| directory.clone()),
            _ => Err(CommandError::Usage {
                message: "`--output` takes the files of `--format html` and `--format instances`".to_owned(),
                hint: "choose one of these with `--format`, or redirect stdout to a file".to_owned(),
            }),
        };
        drop(stage);
        return stdout::line(&written?.display().to_string());
    }
    match arguments.format {
        ReportFormat::Text => print_text(&runs.figures(), models),
        ReportFormat::Json => stdout::json(&runs.figures()),
        ReportFormat::Markdown => stdout::bytes(markdown::render(&runs.figures(), models).as_bytes()),
        ReportFormat::Csv => {
            let certified = certified_by.and_then(|_| runs.figures().certified);
            stdout::written(|out| csv::write(out, models, certified.as_ref()))
        }
        ReportFormat::Junit => stdout::written(|out| junit::write(out, &runs.figures(), models)),
        ReportFormat::Html => stdout::written(|out| html::write(out, &runs.figures(), models)),
        ReportFormat::Leaderboard => stdout::json(&runs.leaderboard()?),
        ReportFormat::Instances => Err(CommandError::Usage {
            message: "`--format instances` writes several files".to_owned(),
            hint: "name a new or empty directory with `--output`".to_owned(),
        }),
    }
}

fn write_calibration(calibration: &Calibration, format: ReportFormat) -> Result<(), CommandError> {
    match format {
        ReportFormat::Json => stdout::json(calibration),
        ReportFormat::Markdown => stdout::bytes(formats::markdown(calibration).as_bytes()),
        ReportFormat::Text => {
            table_of(&formats::AGREEMENT, formats::agreement(calibration))?;
            stdout::lines("\nAgents, over the file:\n")?;
            print_sheet(&table::published(&calibration.agents))?;
            stdout::lines("\nDifferences:\n")?;
            table_of(&formats::DIFFERENCES, formats::differences(calibration))
        }
        ReportFormat::Csv
        | ReportFormat::Junit
        | ReportFormat::Html
        | ReportFormat::Leaderboard
        | ReportFormat::Instances => Err(CommandError::Usage {
            message: "`--published` is written as text, json, markdown or html".to_owned(),
            hint: "choose one of these with `--format`".to_owned(),
        }),
    }
}

fn table_of<const COLUMNS: usize>(
    headings: &[&str; COLUMNS],
    rows: Vec<[String; COLUMNS]>,
) -> Result<(), CommandError> {
    let mut table = Table::with_headings(headings);
    rows.into_iter().for_each(|row| table.row(row));
    stdout::table(&table)
}

fn print_sheet(sheet: &table::Sheet) -> Result<(), CommandError> {
    let mut out = Table::with_headings(&sheet.headings);
    sheet.rows.iter().for_each(|row| out.row(row));
    stdout::table(&out)
}

/// Writes what scoring runs add up to.
pub(super) fn write(runs: &ScoringRuns, format: OutputFormat) -> Result<(), CommandError> {
    match format {
        OutputFormat::Text => print_text(&runs.figures(), &runs.models),
        OutputFormat::Json => stdout::json(&runs.figures()),
    }
}

/// Writes a report for people.
pub(super) fn print_text(report: &ScoreReport, models: &[ScoredModel]) -> Result<(), CommandError> {
    for (model, lacks) in models.iter().filter_map(|model| Some((model, notes::lacks(model)?))) {
        stdout::line(&format!("incomplete: run {} of {}: {lacks}", model.run_id, model.model))?;
    }
    let mut out = Table::with_headings(&table::headings());
    for row in table::rows(report) {
        out.row(row);
    }
    stdout::table(&out)?;
    let sheets = [table::samples(report), table::each_sample(report), table::certified(report), table::caps(report)];
    for sheet in sheets.into_iter().filter(|sheet| !sheet.rows.is_empty()) {
        stdout::lines(&format!("\n{}\n", sheet.title))?;
        print_sheet(&sheet)?;
    }
    let mut lines = String::new();
    for comparison in &report.comparisons {
        let by_repositories = comparison.interval_repositories.map(table::between);
        lines.push_str(&format!(
            "{} {} beside {} {}, {}: {:+.1} points of success, {}, 95 % interval {}{}, {}\n",
            comparison.run.0,
            comparison.run.1,
            comparison.base.0,
            comparison.base.1,
            table::track_name(comparison.track),
            comparison.success_percent_difference,
            if comparison.significant { "significant" } else { "not significant" },
            table::between(comparison.interval),
            by_repositories.map(|interval| format!(", by repositories {interval}")).unwrap_or_default(),
            counted(comparison.tasks, "task", "tasks"),
        ));
    }
    for note in notes::notes(report, models) {
        lines.push_str(&format!("{note}\n"));
    }
    stdout::lines(&lines)
}
