//! JUnit XML for continuous integration: a suite for each model and task, a case for each target method. Each model
//! begins with a suite without cases, whose properties and output list missing, unknown and uncertain results.
//!
//! A method other than [`Category::Success`] is a failure; one that could not be judged is an error.

use std::io::{self, Write};

use super::notes::{of_model, of_run};
use crate::metrics::category::Category;
use crate::output::visible;
use crate::report::score::{Period, RunFigures, ScoreReport, ScoredMethod, ScoredModel, ScoredTask};

/// Writes the scored methods as JUnit XML.
///
/// # Errors
/// I/O errors of writing to `out`.
pub fn write(out: &mut impl Write, report: &ScoreReport, models: &[ScoredModel]) -> io::Result<()> {
    out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n")?;
    for (run, model) in report.runs.iter().zip(models) {
        out.write_all(about(run, model, &report.period).as_bytes())?;
        for task in &model.tasks {
            let mut text = String::new();
            suite(&mut text, model, task);
            out.write_all(text.as_bytes())?;
        }
    }
    out.write_all(b"</testsuites>\n")
}

fn about(run: &RunFigures, model: &ScoredModel, period: &Period) -> String {
    let (run_id, name) = (escaped(&run.run_id), escaped(&run.model));
    let mut text = format!(
        "  <testsuite name=\"{run_id} {name}\" tests=\"0\" failures=\"0\" errors=\"0\" skipped=\"0\">\n    <properties>\n"
    );
    for (property, value) in [
        ("complete", run.complete.to_string()),
        ("gold_incomplete", run.gold_incomplete.to_string()),
        ("missing", run.missing_count.to_string()),
        ("unknown", run.unknown_count.to_string()),
        ("not_selected", run.not_selected.to_string()),
        ("repeated", run.repeated.to_string()),
        ("flaky", run.flaky.len().to_string()),
    ] {
        text.push_str(&format!("      <property name=\"{property}\" value=\"{value}\"/>\n"));
    }
    if !period.is_unbounded() {
        text.push_str(&format!("      <property name=\"period\" value=\"{period}\"/>\n"));
    }
    text.push_str("    </properties>\n");
    let notes = [of_model(run, model), of_run(run, model)].concat();
    if !notes.is_empty() {
        text.push_str(&format!("    <system-out>{}</system-out>\n", escaped(&notes.join("\n"))));
    }
    text.push_str("  </testsuite>\n");
    text
}

fn suite(text: &mut String, model: &ScoredModel, scored: &ScoredTask) {
    let count = |fits: &dyn Fn(Option<Category>) -> bool| {
        scored.methods.iter().filter(|method| fits(method.verdict.paper_verdict)).count()
    };
    text.push_str(&format!(
        "  <testsuite name=\"{} {} {}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"0\">\n",
        escaped(&model.run_id),
        escaped(&model.model),
        escaped(scored.task.id.as_str()),
        scored.methods.len(),
        count(&|category| category.is_some_and(|category| category != Category::Success)),
        count(&|category| category.is_none()),
    ));
    for method in &scored.methods {
        case(text, method);
    }
    text.push_str("  </testsuite>\n");
}

fn case(text: &mut String, method: &ScoredMethod) {
    let milliseconds: u64 = method.new.iter().filter_map(|record| record.measured.launch_ms).sum();
    text.push_str(&format!(
        "    <testcase classname=\"{}\" name=\"{}\" time=\"{}.{:03}\"",
        escaped(method.method.class()),
        escaped(method.method.method()),
        milliseconds / 1000,
        milliseconds % 1000
    ));
    let records = || method.new.iter().chain(&method.old);
    let detail: Vec<String> = records()
        .filter(|record| !record.detail.is_empty())
        .map(|record| format!("{}: {}", record.outcome, record.detail))
        .collect();
    let detail = escaped(&detail.join("\n"));
    match method.verdict.paper_verdict {
        Some(Category::Success) => text.push_str("/>\n"),
        Some(category) => {
            let name = category.name();
            text.push_str(&format!(
                ">\n      <failure type=\"{name}\" message=\"{name}\">{detail}</failure>\n    </testcase>\n"
            ));
        }
        None => text.push_str(&format!(
            ">\n      <error type=\"unscored\" message=\"could not be judged\">{detail}</error>\n    </testcase>\n"
        )),
    }
}

/// Returns a text escaped for attributes and content of XML 1.0.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(c),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(visible(c)),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        assert_eq!(escaped("<a b=\"c\">&'\u{1b}\u{ffff}"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;\u{fffd}\u{fffd}");
        assert_eq!(escaped("a\u{202e}b\u{2066}\u{61c}"), "a\u{fffd}b\u{fffd}\u{fffd}");
    }
}
