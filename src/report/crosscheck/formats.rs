//! A crosscheck for people: as text, and as Markdown for documents.

use super::{Count, Crosscheck, LEAST_TASKS};
use crate::output::{Table, counted};
use crate::report::markdown::{plain, table};

const HEADINGS: [&str; 7] = ["what", "tasks", "all equal", "compared", "equal", "different", "left out"];

/// Returns the crosscheck as a table and sentences.
pub fn text(crosscheck: &Crosscheck) -> String {
    let mut counts = Table::new(HEADINGS);
    for row in rows(crosscheck) {
        counts.row(row);
    }
    format!("{}\n{}\n", counts.render(), sentences(crosscheck).join("\n"))
}

/// Returns the crosscheck as Markdown, in which names and reasons of strangers are text alone.
pub fn markdown(crosscheck: &Crosscheck) -> String {
    let said: Vec<String> = sentences(crosscheck).iter().map(|sentence| format!("- {}\n", plain(sentence))).collect();
    format!("{}\n{}", table(&HEADINGS, 1, &rows(crosscheck)), said.concat())
}

fn rows(crosscheck: &Crosscheck) -> [[String; 7]; 2] {
    let row = |name: &str, count: &Count| {
        let different = count.compared - count.equal;
        let numbers = [count.tasks, count.tasks_equal, count.compared, count.equal, different, count.left_out];
        let [tasks, all, compared, equal, different, left_out] = numbers.map(|number| number.to_string());
        [name.to_owned(), tasks, all, compared, equal, different, left_out]
    };
    [row("coverage, methods", &crosscheck.coverage), row("mutants, files", &crosscheck.mutants)]
}

/// Returns what is to be known beside the counts.
fn sentences(crosscheck: &Crosscheck) -> Vec<String> {
    let settings = crosscheck.settings.iter();
    let mut lines: Vec<String> =
        settings.map(|setting| format!("{}, version {}", setting.engine, setting.version)).collect();
    let (listed, covered) = crosscheck.lines;
    lines.push(format!("{} listed, {covered} of them covered", counted(listed, "line", "lines")));
    let [made, emitted, valid, invalid] = crosscheck.mutants_compared;
    lines.push(format!(
        "{} made, {emitted} on living lines, {valid} distinct that compile and {invalid} that do not",
        counted(made, "mutant", "mutants")
    ));
    for (name, count) in [("coverage", &crosscheck.coverage), ("mutants", &crosscheck.mutants)] {
        if !count.enough {
            lines.push(format!("{name}: fewer than the {LEAST_TASKS} tasks that a statement needs"));
        }
    }
    lines.extend(crosscheck.differences.iter().map(|difference| format!("different: {difference}")));
    lines.extend(crosscheck.left_out.iter().map(|reason| format!("left out: {reason}")));
    lines
}
