//! A measurement for people: as text, and as Markdown for documents.

use super::{LEAST_TASKS, Measurement, Spread};
use testevo_sandbox::output::{Table, counted};
use testevo_sandbox::report::markdown::{plain, table};

const RATIO_HEADINGS: [&str; 7] = ["ratio", "over", "number", "median", "lower quartile", "upper quartile", "summed"];
const PART_HEADINGS: [&str; 4] = ["milliseconds a task", "median", "lower quartile", "upper quartile"];

/// Returns the measurement as tables and sentences.
pub(crate) fn text(measurement: &Measurement) -> String {
    let mut ratios = Table::new(RATIO_HEADINGS);
    for row in ratio_rows(measurement) {
        ratios.row(row);
    }
    let mut parts = Table::new(PART_HEADINGS);
    for row in part_rows(measurement) {
        parts.row(row);
    }
    let said = sentences(measurement).join("\n");
    format!("{}\n{}\n{said}\n", ratios.render(), parts.render())
}

/// Returns the measurement as Markdown. Its only untrusted texts are names of tasks and reasons, which are quoted as
/// code.
pub(crate) fn markdown(measurement: &Measurement) -> String {
    let ratios = table(&RATIO_HEADINGS, 2, &ratio_rows(measurement));
    let parts = table(&PART_HEADINGS, 1, &part_rows(measurement));
    let said: Vec<String> = sentences(measurement).iter().map(|sentence| format!("- {}\n", plain(sentence))).collect();
    format!("{ratios}\n{parts}\n{}", said.concat())
}

fn ratio_rows(measurement: &Measurement) -> Vec<[String; 7]> {
    let rows = measurement.ratios.iter().map(|ratio| {
        let [median, lower, upper] = cells(ratio.spread, 2);
        let summed = ratio.summed.map_or_else(none, |summed| format!("{summed:.2}"));
        let name = format!("{} : {}", ratio.above, ratio.below);
        [name, ratio.over.words().to_owned(), ratio.count.to_string(), median, lower, upper, summed]
    });
    rows.collect()
}

fn part_rows(measurement: &Measurement) -> Vec<[String; 4]> {
    let rows = measurement.parts.iter().map(|part| {
        let [median, lower, upper] = cells(part.spread, 0);
        [part.name.clone(), median, lower, upper]
    });
    rows.collect()
}

fn cells(spread: Option<Spread>, digits: usize) -> [String; 3] {
    match spread {
        Some(spread) => {
            [spread.median, spread.lower_quartile, spread.upper_quartile].map(|value| format!("{value:.digits$}"))
        }
        None => [none(), none(), none()],
    }
}

fn none() -> String {
    "–".to_owned()
}

/// Returns what is to be known beside the figures.
fn sentences(measurement: &Measurement) -> Vec<String> {
    let mut lines: Vec<String> = measurement
        .settings
        .iter()
        .map(|setting| {
            let processors = counted(setting.processors, "processor", "processors");
            let (engine, version, seed) = (&setting.engine, &setting.version, setting.seed);
            format!("{engine} on {processors}, version {version}, orders by seed {seed}")
        })
        .collect();
    let [median, lower, upper] = cells(measurement.load, 1);
    lines.push(format!("load {median} (quartiles {lower} and {upper})"));
    let enough = match measurement.enough {
        true => String::new(),
        false => format!(", fewer than the {LEAST_TASKS} that a statement needs"),
    };
    lines.push(format!(
        "{} in the ratios{enough}; {} left out; {} did not fit the direct path",
        counted(measurement.measured, "task", "tasks"),
        measurement.left_out,
        counted(measurement.unfit_cells, "cell", "cells"),
    ));
    for task in &measurement.tasks {
        lines.extend(task.left_out.iter().map(|reason| format!("left out: {}: {reason}", task.task_id)));
        for revision in &task.revisions {
            let (name, short) = (&task.repository, &revision.revision.as_str()[..7]);
            let module = if revision.module.is_empty() { "." } else { revision.module.as_str() };
            let reasons = revision.left_out.iter();
            lines.extend(reasons.map(|reason| format!("left out: {name} {short} {module}: {reason}")));
        }
    }
    lines
}
