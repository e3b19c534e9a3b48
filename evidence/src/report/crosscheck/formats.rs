//! A crosscheck for people: as text, and as Markdown for documents.

use super::{Count, Crosscheck, LEAST_TASKS};
use testevo_sandbox::output::{Table, counted};
use testevo_sandbox::report::markdown::{plain, table};

const HEADINGS: [&str; 7] = ["what", "tasks", "all equal", "compared", "equal", "different", "left out"];

/// Returns the crosscheck as a table and sentences.
pub(crate) fn text(crosscheck: &Crosscheck) -> String {
    let mut counts = Table::new(HEADINGS);
    for row in rows(crosscheck) {
        counts.row(row);
    }
    format!("{}\n{}\n", counts.render(), sentences(crosscheck).join("\n"))
}

/// Returns the crosscheck as Markdown, with untrusted names and reasons escaped.
pub(crate) fn markdown(crosscheck: &Crosscheck) -> String {
    let said: Vec<String> = sentences(crosscheck).iter().map(|sentence| format!("- {}\n", plain(sentence))).collect();
    format!("{}\n{}", table(&HEADINGS, 1, &rows(crosscheck)), said.concat())
}

fn rows(crosscheck: &Crosscheck) -> [[String; 7]; 3] {
    let row = |name: &str, count: &Count| {
        let different = count.compared - count.equal;
        let numbers = [count.tasks, count.tasks_equal, count.compared, count.equal, different, count.left_out];
        let [tasks, all, compared, equal, different, left_out] = numbers.map(|number| number.to_string());
        [name.to_owned(), tasks, all, compared, equal, different, left_out]
    };
    [
        row("coverage, methods", &crosscheck.coverage),
        row("mutants, files", &crosscheck.mutants),
        row("what becomes of mutants, files", &crosscheck.ends),
    ]
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
    if let Some(speed) = crosscheck.speed {
        let [invalid, killed, survived] = crosscheck.ends_compared;
        let (mutants, took) = (counted(invalid + killed + survived, "mutant", "mutants"), crosscheck.took_ms);
        lines.push(format!(
            "{mutants} compiled and run ({invalid} invalid, {killed} killed, {survived} survived): Maven takes {:.1} times as \
             long over files in the median (quartiles {:.1} and {:.1}), {:.0} s and {:.0} s in all",
            speed.median,
            speed.lower_quartile,
            speed.upper_quartile,
            took.theirs / 1000.0,
            took.ours / 1000.0
        ));
    }
    let counts = [("coverage", &crosscheck.coverage), ("mutants", &crosscheck.mutants)];
    let ends = crosscheck.speed.map(|_| ("what becomes of mutants", &crosscheck.ends));
    for (name, count) in counts.into_iter().chain(ends) {
        if !count.enough {
            lines.push(format!("{name}: fewer than the {LEAST_TASKS} tasks that a statement needs"));
        }
    }
    lines.extend(crosscheck.differences.iter().map(|difference| format!("different: {difference}")));
    lines.extend(crosscheck.left_out.iter().map(|reason| format!("left out: {reason}")));
    lines
}
