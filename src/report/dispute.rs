//! A dispute: what shows that the published labels of a task do not hold here, as Markdown that can stand in an issue.
//!
//! Details come from containers and diffs from repositories, so neither can end a block of code or steer a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::markdown::{plain, table};
use crate::digest::Digest;
use crate::execution::run::record::{CellRecord, ExecutionPath};
use crate::outcome::label::{TaskClass, cells_of, expectation};
use crate::output::visible_lines;
use crate::task::{Cell, MethodId, Task, Track};

/// The most bytes of each diff, and the most lines of a detail.
const MOST_DIFF_BYTES: usize = 24 << 10;
const MOST_DETAIL_LINES: usize = 12;

/// A dispute of one task.
#[derive(Clone, Debug)]
pub struct Dispute<'a> {
    /// The task.
    pub task: &'a Task,
    /// Its class, which is neither reproduced nor infrastructure.
    pub class: TaskClass,
    /// Its executions on both paths, as far as there are any.
    pub records: &'a [CellRecord],
    /// The image's config digest.
    pub image: Digest,
    /// Major version of its development kit.
    pub jdk: u32,
    /// The diff of the target file from the old to the new revision; empty if it is equal in both.
    pub test_diff: &'a str,
    /// The diff of production files.
    pub code_diff: &'a str,
    /// Production files that changed and are in no diff.
    pub only_named: &'a [String],
}

impl Dispute<'_> {
    /// Returns the dispute as Markdown.
    pub fn markdown(&self) -> String {
        let task = self.task;
        let mut text = format!("# {}: `{}`\n\n", self.title(), task.id);
        let _ = writeln!(text, "- repository: `{}`", task.repository);
        let _ = writeln!(text, "- track: `{}`", track(task.track));
        let _ = writeln!(text, "- old revision: `{}`, new revision: `{}`", task.rev1, task.rev2);
        let _ = writeln!(text, "- target file: `{}`", task.test_file);
        let _ = writeln!(
            text,
            "- executed with JDK {}, image `{}`, testevo-sandbox {}; every launch in a fresh container without a network\n",
            self.jdk,
            self.image,
            env!("CARGO_PKG_VERSION")
        );
        text.push_str("## What the label says, and what happened\n\n");
        text.push_str("A cell is test file at code: the developers' old or new test file, on old or new code.\n\n");
        text.push_str(&self.outcomes());
        self.details(&mut text);
        text.push_str("\n## The target file, from old to new\n\n");
        block(&mut text, "diff", self.test_diff, "It is equal in both revisions.");
        text.push_str("\n## Production files, from old to new\n\n");
        block(&mut text, "diff", self.code_diff, "None has a diff.");
        if !self.only_named.is_empty() {
            let names: Vec<String> = self.only_named.iter().take(20).map(|name| plain(name)).collect();
            let _ = writeln!(text, "\nChanged too, but too large or no text: {}.", names.join(", "));
        }
        let _ = write!(
            text,
            "\n## To repeat it\n\n```\ntestevo-sandbox validate {} --paths both --repeat {}\n```\n",
            task.id,
            self.records.iter().map(|record| record.repeat).max().unwrap_or(1)
        );
        text
    }

    fn title(&self) -> &'static str {
        match self.class {
            TaskClass::NeedsNetwork => "A label that needs a network",
            TaskClass::Flaky => "A label that holds only at times",
            TaskClass::Differing | TaskClass::Infrastructure | TaskClass::Reproduced => "A label that does not hold",
        }
    }

    /// Returns a row for each method and cell.
    fn outcomes(&self) -> String {
        let mut rows = Vec::new();
        for method in &self.task.test_methods {
            for &cell in cells_of(self.task.track) {
                let asked = expectation(self.task.track, cell).names();
                let asked = if asked.is_empty() { "nothing".to_owned() } else { asked.join(" or ") };
                let on = |path| self.counts(method, cell, path);
                let missed = if self.missed(method, cell) { "**no**" } else { "yes" };
                rows.push([
                    plain(method.as_str()),
                    in_words(cell).to_owned(),
                    plain(&asked),
                    plain(&on(ExecutionPath::Maven)),
                    plain(&on(ExecutionPath::Direct)),
                    missed.to_owned(),
                ]);
            }
        }
        let headings = ["method", "cell", "label asks for", "Maven", "direct path", "met"];
        table(&headings, headings.len(), &rows)
    }

    fn of<'s>(&'s self, method: &'s MethodId, cell: Cell) -> impl Iterator<Item = &'s CellRecord> {
        self.records.iter().filter(move |record| record.method == *method && record.cell == cell)
    }

    fn missed(&self, method: &MethodId, cell: Cell) -> bool {
        let expectation = expectation(self.task.track, cell);
        self.of(method, cell).any(|record| !expectation.is_met_by(record.outcome))
    }

    /// Returns the number of each outcome, in words.
    fn counts(&self, method: &MethodId, cell: Cell, path: ExecutionPath) -> String {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for record in self.of(method, cell).filter(|record| record.path == path) {
            *counts.entry(record.outcome.to_string()).or_default() += 1;
        }
        match counts.is_empty() {
            true => "not executed".to_owned(),
            false => {
                counts.iter().map(|(outcome, count)| format!("{count} × {outcome}")).collect::<Vec<_>>().join(", ")
            }
        }
    }

    /// Writes what executions said of each label that was missed, each text once.
    fn details(&self, text: &mut String) {
        let mut seen: Vec<&str> = Vec::new();
        for method in &self.task.test_methods {
            for &cell in cells_of(self.task.track).iter().filter(|cell| self.missed(method, **cell)) {
                for record in self.of(method, cell) {
                    let detail = record.detail.trim();
                    if detail.is_empty() || seen.contains(&detail) {
                        continue;
                    }
                    seen.push(detail);
                    let _ = writeln!(text, "\n{}, {}:\n", plain(method.as_str()), in_words(cell));
                    let lines: Vec<&str> = detail.lines().take(MOST_DETAIL_LINES).collect();
                    block(text, "", &lines.join("\n"), "");
                }
            }
        }
    }
}

fn track(track: Track) -> &'static str {
    match track {
        Track::TestUpdate => "test_update",
        Track::TestGeneration => "test_generation",
    }
}

/// Returns a cell in words.
fn in_words(cell: Cell) -> &'static str {
    match cell {
        Cell::Oo => "old test, old code",
        Cell::Nn => "new test, new code",
        Cell::On => "old test, new code",
        Cell::No => "new test, old code",
    }
}

/// Writes a block of code, or `nothing` for an empty one. Its fence is longer than any in the text.
fn block(text: &mut String, language: &str, content: &str, nothing: &str) {
    if content.is_empty() {
        let _ = writeln!(text, "{nothing}");
        return;
    }
    let end = content.floor_char_boundary(MOST_DIFF_BYTES);
    let shown = visible_lines(&content[..end]);
    let longest = shown.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = writeln!(text, "{fence}{language}\n{}\n{fence}", shown.trim_end_matches('\n'));
    if end < content.len() {
        let _ = writeln!(text, "\nThe first {} of {} bytes are shown.", end, content.len());
    }
}

#[cfg(test)]
mod tests;
