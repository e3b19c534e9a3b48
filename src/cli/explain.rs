//! `explain`: what ran in one task of a run, with which commands, why it came to its outcomes, and where the logs are.

mod scores;

use clap::Args;
use serde_json::json;

use super::completions;
use super::stdout;
use crate::application::Context;
use crate::application::runs::{ExplainedTask, Explanation, explain};
use crate::error::CommandError;
use crate::execution::run::explain::{Explained, shell_line};
use crate::output::OutputFormat;
use crate::task::{Cell, Task};

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub(super) struct ExplainArguments {
    /// The run's id; `latest` is the one that began last
    #[arg(value_name = "RUN", add = completions::runs())]
    run: String,
    /// The task's id
    #[arg(value_name = "TASK", add = completions::tasks())]
    task: String,
    /// Only the submission of this model, in a run of `score`
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// How results are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: OutputFormat,
}

pub(super) fn run(arguments: &ExplainArguments, context: &Context) -> Result<(), CommandError> {
    match explain(&arguments.run, &arguments.task, arguments.model.as_deref(), context)? {
        Explanation::Scoring(models) => scores::write(&models, arguments.format),
        Explanation::Validation(tasks) => tasks.iter().try_for_each(|task| write(task, arguments.format)),
    }
}

fn write(explained: &ExplainedTask, format: OutputFormat) -> Result<(), CommandError> {
    let ExplainedTask { run_id, task, class, executions } = explained;
    match format {
        OutputFormat::Json => {
            executions.iter().try_for_each(stdout::json)?;
            stdout::json(&json!({
                "schema": 1, "run_id": run_id, "task": task, "class": class, "executions": executions.len(),
            }))
        }
        OutputFormat::Text => {
            let class = class.map_or("not all of it was executed", |class| class.name());
            stdout::lines(&text(run_id, task, class, executions))
        }
    }
}

fn text(run_id: &str, task: &Task, class: &str, explained: &[Explained]) -> String {
    let mut text = format!(
        "task        {}\nrepository  {}\ntest file   {}\nold         {}\nnew         {}\nrun         {run_id}\n\
         class       {class}\n",
        task.id, task.repository, task.test_file, task.rev1, task.rev2
    );
    let mut cell: Option<Cell> = None;
    for one in explained {
        let record = &one.record;
        if cell != Some(record.cell) {
            cell = Some(record.cell);
            text.push_str(&format!("\n{}: {}\n", record.cell.name(), tree(record.cell)));
            if let Some(logs) = &one.logs {
                text.push_str(&format!("  logs      {}\n", logs.display()));
            }
            if record.measured.whole_build {
                text.push_str(&format!("  modules   {WHOLE_BUILD}\n"));
            }
            if let Some(command) = &one.compile {
                let took = seconds(record.measured.compile_ms);
                text.push_str(&format!("  compile   {took}\n    $ {}\n", shell_line(command)));
            }
        }
        text.push_str(&execution(one));
    }
    text
}

/// Says that a build was not limited to the task's module.
const WHOLE_BUILD: &str =
    "Maven builds all modules, because it can't build the task's module and its dependencies alone";

/// Returns a description of the cell's tree.
fn tree(cell: Cell) -> &'static str {
    match cell {
        Cell::Oo => "the old test on the old code",
        Cell::Nn => "the new test on the new code",
        Cell::On => "the old test on the new code",
        Cell::No => "the new test on the old code",
    }
}

fn execution(one: &Explained) -> String {
    let record = &one.record;
    let expected = match (one.expected.is_empty(), one.met) {
        (true, _) => "no label asks for anything here".to_owned(),
        (false, true) => "as the label asks".to_owned(),
        (false, false) => format!("the label asks for {}", one.expected.join(" or ")),
    };
    let mut text = format!("  {}, repeat {}: {}; {expected}\n", record.method, record.repeat, record.outcome);
    for line in record.detail.lines() {
        text.push_str(&format!("    {line}\n"));
    }
    if !record.missing.is_empty() {
        text.push_str(&format!("    {}\n", lacks(&record.missing)));
    }
    let containers = match record.attempts {
        0 => "nothing was executed".to_owned(),
        1 => "at the first attempt".to_owned(),
        attempts => format!("at attempt {attempts}"),
    };
    let mut facts = vec![containers];
    if !record.measured.subclasses.is_empty() {
        let left_out = match record.measured.subclasses_left_out {
            0 => String::new(),
            number => format!(", and not in {number} more"),
        };
        facts.push(format!("in the subclasses {}{left_out}", record.measured.subclasses.join(", ")));
    }
    if record.measured.oom_killed {
        facts.push("the memory limit was met".to_owned());
    }
    if record.measured.dropped_bytes > 0 {
        facts.push(format!("{} bytes of output were dropped", record.measured.dropped_bytes));
    }
    if !record.measured.isolation_missing.is_empty() {
        facts.push(format!("not enforced: {}", record.measured.isolation_missing.join(", ")));
    }
    text.push_str(&format!("    {}\n", facts.join("; ")));
    if let Some(command) = &one.launch {
        text.push_str(&format!(
            "    launch    {}\n    $ {}\n",
            seconds(record.measured.launch_ms),
            shell_line(command)
        ));
    }
    text
}

/// Names the paths that a record's tree lacks.
pub(super) fn lacks(missing: &[String]) -> String {
    format!("the tree lacks {}", missing.join(", "))
}

pub(super) fn seconds(milliseconds: Option<u64>) -> String {
    milliseconds.map_or_else(|| "not timed".to_owned(), |ms| format!("{:.1} s", ms as f64 / 1000.0))
}
