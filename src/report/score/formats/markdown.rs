//! Markdown: the table of figures, then comparisons, the other tables, and incomplete, missing, unknown and uncertain
//! results.

use super::notes::{lacks, notes};
use super::table::{Sheet, between, headings, rows, sheets, track_name};
use crate::output::visible;
use crate::report::score::{ScoreReport, ScoredModel};

/// Returns the report as Markdown.
pub fn render(report: &ScoreReport, models: &[ScoredModel]) -> String {
    let mut text = String::new();
    for (model, lacks) in models.iter().filter_map(|model| Some((model, lacks(model)?))) {
        text.push_str(&format!("**incomplete**: run {} of {}: {lacks}\n\n", cell(&model.run_id), cell(&model.model)));
    }
    text.push_str(&table(&headings(), 3, &rows(report)));
    if !report.comparisons.is_empty() {
        text.push_str("\n| run | beside | track | tasks | Success% difference | 95 % interval | by repositories | significant |\n");
        text.push_str("|---|---|---|--:|--:|--:|--:|---|\n");
    }
    for comparison in &report.comparisons {
        let named = |(run, model): &(String, String)| cell(&format!("{run} {model}"));
        text.push_str(&line(
            [
                named(&comparison.run),
                named(&comparison.base),
                track_name(comparison.track).to_owned(),
                comparison.tasks.to_string(),
                format!("{:+.1}", comparison.success_percent_difference),
                between(comparison.interval),
                comparison.interval_repositories.map_or_else(|| "–".to_owned(), between),
                if comparison.significant { "yes" } else { "no" }.to_owned(),
            ]
            .into_iter(),
        ));
    }
    let notes = notes(report, models);
    if !notes.is_empty() {
        text.push('\n');
    }
    for note in notes {
        text.push_str(&format!("- {}\n", cell(&note)));
    }
    for sheet in sheets(report) {
        text.push_str(&format!("\n## {}\n\n", sheet.title));
        text.push_str(&sheet_table(&sheet));
    }
    text
}

/// Returns a sheet's table.
pub fn sheet_table(sheet: &Sheet) -> String {
    table(&sheet.headings, sheet.words, &sheet.rows)
}

/// Returns a table whose first columns are words and whose others are numbers.
fn table(headings: &[&str], words: usize, rows: &[Vec<String>]) -> String {
    let mut text = line(headings.iter().map(|heading| (*heading).to_owned()));
    text.push_str(&line((0..headings.len()).map(|index| if index < words { "---" } else { "--:" }.to_owned())));
    for row in rows {
        text.push_str(&line(row.iter().map(|text| cell(text))));
    }
    text
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Returns a text escaped for a line or cell.
fn cell(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '[' | ']' | '<' | '>' | '\\' | '!' | '#' | '~' | '&' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(visible(c)),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_name_is_only_a_name() {
        assert_eq!(cell("a|b<c>[x](y)\n"), "a\\|b\\<c\\>\\[x\\](y)\u{fffd}");
        assert_eq!(cell("a\u{202e}b\u{200f}"), "a\u{fffd}b\u{fffd}");
    }
}
