//! `tasks`: lists and shows imported tasks.

pub(super) mod focal;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;

use super::completions;
use super::selector::SelectorArguments;
use super::stdout;
use crate::application::{Context, selection};
use crate::error::CommandError;
use crate::outcome::label::{cells_of, expectation};
use crate::output::{OutputFormat, Table, counted};
use crate::task::selector::Selector;
use crate::task::{Anchor, Cell, Side, Task, Track};

/// Arguments of `tasks`.
#[derive(Debug, Args)]
pub(super) struct TasksArguments {
    #[command(subcommand)]
    command: TasksCommand,
}

#[derive(Debug, Subcommand)]
enum TasksCommand {
    /// List tasks
    List {
        #[command(flatten)]
        selector: SelectorArguments,
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
    /// Find the methods under test in the sources, and say how each was found
    Focal {
        #[command(flatten)]
        selector: SelectorArguments,
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
    /// Show everything that is known of a task
    Show {
        /// The task's id
        #[arg(add = completions::tasks())]
        task: String,
        /// How results are written
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: OutputFormat,
    },
}

pub(super) fn run(arguments: &TasksArguments, context: &Context) -> Result<(), CommandError> {
    match &arguments.command {
        TasksCommand::List { selector, format } => list(&tasks_of(selector, context)?, *format),
        TasksCommand::Focal { selector, format } => focal::run(&tasks_of(selector, context)?, *format, context),
        TasksCommand::Show { task, format } => show(task, *format, context),
    }
}

fn tasks_of(selector: &SelectorArguments, context: &Context) -> Result<Vec<Task>, CommandError> {
    selection::tasks(&selector.resolve()?, context)
}

fn list(tasks: &[Task], format: OutputFormat) -> Result<(), CommandError> {
    let of_track = |track| tasks.iter().filter(|task| task.track == track).count();
    let (update, generation) = (of_track(Track::TestUpdate), of_track(Track::TestGeneration));
    match format {
        OutputFormat::Json => {
            tasks.iter().try_for_each(stdout::json)?;
            stdout::json(&json!({
                "schema": 1, "tasks": tasks.len(), "test_update": update, "test_generation": generation,
            }))
        }
        OutputFormat::Text => {
            let mut table = Table::new(["repository", "track", "date", "methods", "task"]);
            for task in tasks {
                let methods = task.test_methods.len().to_string();
                let id = task.id.as_str();
                table.row([task.repository.as_str(), track_name(task.track), &task.rev2_date, &methods, id]);
            }
            stdout::table(&table)?;
            let tasks = counted(tasks.len(), "task", "tasks");
            stdout::line(&format!("{tasks} ({update} update, {generation} generation)"))
        }
    }
}

fn show(id: &str, format: OutputFormat, context: &Context) -> Result<(), CommandError> {
    let selector = Selector::of_task(id);
    selection::tasks(&selector, context)?.iter().try_for_each(|task| match format {
        OutputFormat::Json => stdout::json(&Labelled { task, labels: labels(task) }),
        OutputFormat::Text => stdout::lines(&description(task)),
    })
}

fn description(task: &Task) -> String {
    let mut text = format!(
        "task        {}\nrepository  {}\ntrack       {}\nold         {}  {}\nnew         {}  {}\ntest file   {}\n",
        task.id,
        task.repository,
        track_name(task.track),
        task.rev1,
        task.rev1_date,
        task.rev2,
        task.rev2_date,
        task.test_file
    );
    for method in &task.test_methods {
        text.push_str(&format!("test        {method}\n"));
    }
    for Label { cell, expected } in labels(task) {
        let expected = if expected.is_empty() { "any outcome".to_owned() } else { expected.join(" or ") };
        text.push_str(&format!("label       {cell}: {expected}\n"));
    }
    for focal in &task.focal_methods {
        text.push_str(&format!("focal       {}", focal.method));
        if let Some(Anchor { side, line, .. }) = &focal.anchor {
            let side = match side {
                Side::Old => "old",
                Side::New => "new",
            };
            text.push_str(&format!("  (line {line} of the {side} file)"));
        }
        text.push('\n');
    }
    text
}

/// A task with what the published data promises of it.
#[derive(Serialize)]
struct Labelled<'a> {
    #[serde(flatten)]
    task: &'a Task,
    labels: Vec<Label>,
}

/// The outcomes that the published data promises of the developers' tests in a cell; none if it promises nothing.
#[derive(Serialize)]
struct Label {
    cell: &'static str,
    expected: &'static [&'static str],
}

fn labels(task: &Task) -> Vec<Label> {
    let label = |cell: &Cell| Label { cell: cell.name(), expected: expectation(task.track, *cell).names() };
    cells_of(task.track).iter().map(label).collect()
}

fn track_name(track: Track) -> &'static str {
    match track {
        Track::TestUpdate => "update",
        Track::TestGeneration => "generation",
    }
}
