//! HTML that needs no other file and no network: one page of everything, or an index with a page for each task.
//!
//! A page is a template with its style, its script and blocks of JSON. The script builds charts, tables and task views
//! from the JSON, as text and never as markup. A content security policy in the page forbids everything else.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use fs_err as fs;

use self::script::script_json;
use self::template::{Template, index_template, task_template};
use super::junit::escaped;
use super::notes::notes;
use super::table::{Sheet, figure_sheets, sheets, track_name as table_name};
use crate::report::score::attachments::Attachments;
use crate::report::score::{ScoreReport, ScoredModel, ScoredTask};
use crate::task::TaskId;

mod index;
mod script;
pub(super) mod standing;
mod task;
mod template;
#[cfg(test)]
mod tests;

/// The directory of the tasks' pages, beside the index.
const TASKS: &str = "tasks";

/// The scored tasks of all models by task, each with its model's place.
type ByTask<'a> = BTreeMap<&'a TaskId, Vec<(usize, &'a ScoredTask)>>;

/// Writes the report as one page. The page is streamed, because a page of many runs is larger than its inputs.
///
/// # Errors
/// I/O errors of writing to `out` and of reading attachments.
pub fn write(out: &mut impl Write, report: &ScoreReport, models: &[ScoredModel]) -> io::Result<()> {
    let tasks = by_task(models);
    let mut attachments = Attachments::default();
    let mut template = write_index(out, report, models, &tasks, true)?;
    template.until(out, "@tasks@")?;
    for (number, scored) in tasks.values().enumerate() {
        write!(out, "<script type=\"application/json\" id=\"t{number}\">")?;
        script_json(out, &task::task(models, scored, &mut attachments))?;
        out.write_all(b"</script>\n")?;
    }
    write_attachments(out, attachments)?;
    template.rest(out)
}

/// Writes the report as `index.html` and a page for each task into a directory, which must exist. The index is written
/// last, so that a directory with an index is whole.
///
/// # Errors
/// I/O errors of writing the files and of reading attachments.
pub fn write_directory(directory: &Path, report: &ScoreReport, models: &[ScoredModel]) -> io::Result<()> {
    let tasks = by_task(models);
    let folder = directory.join(TASKS);
    fs::create_dir_all(&folder)?;
    let ids: Vec<&TaskId> = tasks.keys().copied().collect();
    for (place, (id, scored)) in tasks.iter().enumerate() {
        let before = place.checked_sub(1).and_then(|place| ids.get(place));
        let mut out = io::BufWriter::new(fs::File::create(folder.join(format!("{id}.html")))?);
        write_task(&mut out, models, scored, (before.copied(), ids.get(place + 1).copied()))?;
        out.flush()?;
    }
    let mut out = io::BufWriter::new(fs::File::create(directory.join("index.html"))?);
    let mut template = write_index(&mut out, report, models, &tasks, false)?;
    template.until(&mut out, "@tasks@")?;
    template.rest(&mut out)?;
    out.flush()
}

fn by_task(models: &[ScoredModel]) -> ByTask<'_> {
    let mut tasks = ByTask::new();
    for (place, model) in models.iter().enumerate() {
        for scored in &model.tasks {
            tasks.entry(&scored.task.id).or_default().push((place, scored));
        }
    }
    tasks
}

/// Writes the index up to the place of the tasks' own data.
fn write_index(
    out: &mut impl Write,
    report: &ScoreReport,
    models: &[ScoredModel],
    tasks: &ByTask<'_>,
    inline: bool,
) -> io::Result<Template> {
    let mut template = index_template();
    template.head(out)?;
    template.until(out, "<!--sheets-->")?;
    for sheet in figure_sheets(report).iter().chain(&sheets(report)) {
        write_sheet(out, sheet)?;
    }
    template.until(out, "<!--notes-->")?;
    for note in notes(report, models) {
        write!(out, "<li>{}</li>", escaped(&note))?;
    }
    template.until(out, "@data@")?;
    index::write(out, report, models, tasks, inline)?;
    Ok(template)
}

fn write_task(
    out: &mut impl Write,
    models: &[ScoredModel],
    scored: &[(usize, &ScoredTask)],
    (before, after): (Option<&TaskId>, Option<&TaskId>),
) -> io::Result<()> {
    let mut attachments = Attachments::default();
    let mut template = task_template();
    template.head(out)?;
    template.until(out, "@data@")?;
    let around = serde_json::json!({ "runs": index::runs(models), "before": before, "after": after });
    script_json(out, &around)?;
    template.until(out, "@tasks@")?;
    out.write_all(b"<script type=\"application/json\" id=\"t0\">")?;
    script_json(out, &task::task(models, scored, &mut attachments))?;
    out.write_all(b"</script>\n")?;
    write_attachments(out, attachments)?;
    template.rest(out)
}

fn write_attachments(out: &mut impl Write, attachments: Attachments<'_>) -> io::Result<()> {
    attachments.read(|number, attached| {
        write!(out, "<script type=\"application/json\" id=\"a{number}\">")?;
        script_json(out, attached)?;
        out.write_all(b"</script>\n")
    })
}

/// Writes a table that unfolds. On a narrow screen each row becomes a card, whose cells repeat their headings.
fn write_sheet(out: &mut impl Write, sheet: &Sheet) -> io::Result<()> {
    let title = escaped(sheet.title);
    write!(
        out,
        "<details class=\"sheet\"><summary>{title}</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" "
    )?;
    write!(out, "aria-label=\"{title}\"><table class=\"sheet cards\"><thead><tr>")?;
    let class = |column: usize| if column < sheet.words { "word" } else { "number" };
    for (column, heading) in sheet.headings.iter().enumerate() {
        write!(out, "<th scope=\"col\" class=\"{}\">{}</th>", class(column), breakable(heading))?;
    }
    out.write_all(b"</tr></thead><tbody>")?;
    for row in &sheet.rows {
        out.write_all(b"<tr>")?;
        for (column, (cell, heading)) in row.iter().zip(&sheet.headings).enumerate() {
            let (class, heading) = (class(column), escaped(heading));
            write!(out, "<td class=\"{class}\" data-label=\"{heading}\">{}</td>", escaped(cell))?;
        }
        out.write_all(b"</tr>")?;
    }
    out.write_all(b"</tbody></table></div></details>")
}

/// Returns a heading that may break before capitals, so that columns of short numbers stay narrow.
fn breakable(heading: &str) -> String {
    let mut text = String::new();
    let mut before = None;
    for c in heading.chars() {
        if c.is_ascii_uppercase() && before.is_some_and(|before: char| before.is_ascii_lowercase()) {
            text.push_str("<wbr>");
        }
        text.push_str(&escaped(c.encode_utf8(&mut [0; 4])));
        before = Some(c);
    }
    text
}
