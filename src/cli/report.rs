//! `report`: what scoring runs add up to, in the form that is wanted.

use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::completions;
use super::stdout;
use crate::application::Context;
use crate::application::io_failure::IoFailure;
use crate::application::report::ScoringRuns;
use crate::data_dir::write_for_caller;
use crate::error::CommandError;
use crate::output::{OutputFormat, Table, counted, escape, escape_lines, json_line, terminal_width};
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
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = super::options::date)]
    since: Option<jiff::civil::Date>,
    /// Only tasks whose new revision is of this day or earlier
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = super::options::date)]
    until: Option<jiff::civil::Date>,
    /// Add the figures over certified tasks: those whose published labels hold in this run of `validate`
    #[arg(long, value_name = "RUN", add = completions::runs())]
    certified_by: Option<String>,
    /// Count runs of models of one name as samples of that model: the report has pass@k
    #[arg(long)]
    samples: bool,
    /// A file for the report, `-` for stdout. `--format html` writes `index.html` and a page for each task into a new or empty
    /// directory instead, or one page to stdout for `-`. `--format instances` always takes a directory
    #[arg(long, short, value_name = "PATH")]
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
    let format = arguments.format;
    let is_page = format == ReportFormat::Html;
    let has_more = certified_by.is_some() || arguments.samples;
    if arguments.published.is_some() && has_more && !is_page {
        return Err(CommandError::Usage {
            message: "`--published` goes with `--certified-by` and `--samples` as html only".to_owned(),
            hint: "add `--format html`, or leave these options out".to_owned(),
        });
    }
    let output = arguments.output.as_deref().filter(|output| *output != Path::new("-"));
    let mut runs = ScoringRuns::read(&arguments.runs, period, certified_by, arguments.samples, context)?;
    match &arguments.published {
        Some(file) if is_page => runs = runs.beside(file)?,
        Some(file) => {
            let calibration = written_calibration(&runs.calibrate(file, context)?, format, layout(output))?;
            return write_to(output, |out| out.write_all(calibration.as_bytes()), context);
        }
        None => {}
    }
    // Only these formats show logs.
    if matches!(format, ReportFormat::Html | ReportFormat::Instances) {
        runs = runs.with_kept_logs(context)?;
    }
    let whole = match (format, output) {
        (ReportFormat::Html | ReportFormat::Instances, Some(directory)) => {
            return write_directory(&runs, format, directory, context);
        }
        (ReportFormat::Instances, None) => {
            return Err(CommandError::Usage {
                message: "`--format instances` writes several files".to_owned(),
                hint: "name a new or empty directory with `--output`".to_owned(),
            });
        }
        (ReportFormat::Text, _) => text(&runs.figures(), &runs.models, layout(output)),
        (ReportFormat::Json, _) => json_line(&runs.figures()).map_err(CommandError::defect)?,
        (ReportFormat::Leaderboard, _) => json_line(&runs.leaderboard()?).map_err(CommandError::defect)?,
        (ReportFormat::Markdown, _) => markdown::render(&runs.figures(), &runs.models),
        (ReportFormat::Csv | ReportFormat::Junit | ReportFormat::Html, _) => String::new(),
    };
    let models = &runs.models;
    let write = |mut out: &mut dyn Write| match format {
        ReportFormat::Csv => {
            let certified = certified_by.and_then(|_| runs.figures().certified);
            csv::write(&mut out, models, certified.as_ref())
        }
        ReportFormat::Junit => junit::write(&mut out, &runs.figures(), models),
        ReportFormat::Html => html::write(&mut out, &runs.figures(), models),
        _ => out.write_all(whole.as_bytes()),
    };
    write_to(output, write, context)
}

/// Writes the formats of several files into a new or empty directory.
fn write_directory(
    runs: &ScoringRuns,
    format: ReportFormat,
    directory: &Path,
    context: &Context,
) -> Result<(), CommandError> {
    let stage = context.events.stage("write report", None, 0);
    let written = match format {
        ReportFormat::Instances => runs.write_instances(directory).map(|()| directory.to_owned()),
        _ => runs.write_pages(directory).map(|()| directory.join("index.html")),
    };
    drop(stage);
    stdout::line(&written?.display().to_string())
}

/// Writes a report to stdout, or to a file, which appears or changes when the report is complete. The file's name is written to
/// stdout, but not that of a pipe or device, which may be stdout itself.
fn write_to(
    output: Option<&Path>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    context: &Context,
) -> Result<(), CommandError> {
    let Some(file) = output else {
        return stdout::written(|out| write(out));
    };
    if file.is_dir() || file.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(CommandError::Usage {
            message: format!("`{}` is a directory, and a report in this format is a file", file.display()),
            hint: "name a file, or choose `--format html` or `--format instances`".to_owned(),
        });
    }
    let failed = |error| IoFailure::of(format!("writing the report `{}`", file.display()))(error);
    let mut bytes = Vec::new();
    write(&mut bytes).map_err(failed)?;
    write_for_caller(file, &bytes, context.umask).map_err(failed)?;
    if file.is_file() { stdout::line(&file.display().to_string()) } else { Ok(()) }
}

/// How a report for people is laid out.
#[derive(Clone, Copy)]
struct Layout {
    /// The most columns of a table.
    width: usize,
    /// Whether sentences wrap at that width. Only a terminal's do, as programs read lines.
    wraps: bool,
}

/// Returns the layout for stdout, or for a file, whose tables are as wide as their content.
fn layout(output: Option<&Path>) -> Layout {
    match output {
        Some(_) => Layout { width: usize::MAX, wraps: false },
        None => Layout { width: terminal_width(io::stdout()), wraps: io::stdout().is_terminal() },
    }
}

fn written_calibration(
    calibration: &Calibration,
    format: ReportFormat,
    layout: Layout,
) -> Result<String, CommandError> {
    match format {
        ReportFormat::Json => json_line(calibration).map_err(CommandError::defect),
        ReportFormat::Markdown => Ok(formats::markdown(calibration)),
        ReportFormat::Text => Ok(format!(
            "{}\nAgents, over the file:\n{}\nDifferences:\n{}",
            table_of(&formats::AGREEMENT, formats::agreement(calibration), layout),
            of_sheet(&table::published(&calibration.agents), layout),
            table_of(&formats::DIFFERENCES, formats::differences(calibration), layout),
        )),
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

fn table_of<const COLUMNS: usize>(headings: &[&str; COLUMNS], rows: Vec<[String; COLUMNS]>, layout: Layout) -> String {
    let mut table = Table::with_headings(headings);
    rows.into_iter().for_each(|row| table.row(row));
    table.fitted(layout.width)
}

fn of_sheet(sheet: &table::Sheet, layout: Layout) -> String {
    let mut out = Table::with_headings(&sheet.headings);
    sheet.rows.iter().for_each(|row| out.row(row));
    out.fitted(layout.width)
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
    stdout::bytes(text(report, models, layout(None)).as_bytes())
}

/// Returns a report for people, escaped.
fn text(report: &ScoreReport, models: &[ScoredModel], layout: Layout) -> String {
    let sentences = |lines: &str| {
        let escaped = escape_lines(lines);
        if layout.wraps { stdout::wrapped(&escaped, layout.width) } else { escaped.into_owned() }
    };
    // Line breaks in names would make lines of their own.
    let named = |(run, model): &(String, String)| format!("{} {}", escape(run), escape(model));
    let mut lines = String::new();
    // The one run of all rows is named once, so that its column takes no room in the tables.
    let run = report.runs.first().map(|first| &first.run_id);
    let run = run.filter(|run| report.runs.iter().all(|other| other.run_id == **run));
    lines.extend(run.map(|run| format!("run {}\n", escape(run))));
    for (model, lacks) in models.iter().filter_map(|model| Some((model, notes::lacks(model)?))) {
        let (run, name) = (escape(&model.run_id), escape(&model.model));
        lines.push_str(&format!("incomplete: run {run} of {name}: {lacks}\n"));
    }
    let mut text = sentences(&lines);
    let shown = |sheet: table::Sheet| of_sheet(&if run.is_some() { sheet.without_run() } else { sheet }, layout);
    text.push_str(&shown(table::figures(report)));
    let sheets = [table::samples(report), table::each_sample(report), table::certified(report), table::caps(report)];
    for sheet in sheets.into_iter().filter(|sheet| !sheet.rows.is_empty()) {
        text.push_str(&format!("\n{}\n", sheet.title));
        text.push_str(&shown(sheet));
    }
    let mut lines = String::new();
    for comparison in &report.comparisons {
        let by_repositories = comparison.interval_repositories.map(table::between);
        lines.push_str(&format!(
            "{} beside {}, {}: {:+.1} points of success, {}, 95 % interval {}{}, {}\n",
            named(&comparison.run),
            named(&comparison.base),
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
    text.push_str(&sentences(&lines));
    text
}
