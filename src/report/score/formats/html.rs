//! HTML: one file that needs no other file and no network.
//!
//! The page is a template with a table of figures and blocks of JSON. Its script builds the sortable tables, plots and
//! task views from the JSON, as text and never as markup. A content security policy in the page forbids everything
//! else.

use std::io::{self, Write};
use std::path::Path;

use base64::Engine as _;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::junit::escaped;
use super::notes::notes;
use super::table::{headings, rows, sheets, track_name};
use crate::execution::scoring::record::ExecutionRecord;
use crate::metrics::aggregate::segment;
use crate::output::visible_lines;
use crate::report::score::attachments::{Attachment, Attachments, last_shown};
use crate::report::score::{ScoreReport, ScoredMethod, ScoredModel, ScoredTask};

const TEMPLATE: &str = include_str!("page.html");

/// Writes the report as a page. The page is streamed, because a page of many runs is larger than its inputs.
///
/// # Errors
/// I/O errors of writing to `out` and of reading attachments.
pub fn write(out: &mut impl Write, report: &ScoreReport, models: &[ScoredModel]) -> io::Result<()> {
    let mut attachments = Attachments::default();
    let mut rest = TEMPLATE;
    let mut until = |out: &mut dyn Write, mark: &str| -> io::Result<()> {
        let (before, after) =
            rest.split_once(mark).ok_or_else(|| io::Error::other(format!("no {mark} in the page")))?;
        rest = after;
        out.write_all(before.as_bytes())
    };
    until(out, "@policy@")?;
    out.write_all(policy().as_bytes())?;
    until(out, "<!--figures-->")?;
    out.write_all(table(&headings(), &rows(report)).as_bytes())?;
    until(out, "<!--notes-->")?;
    for note in notes(report, models) {
        write!(out, "<li>{}</li>", escaped(&note))?;
    }
    until(out, "<!--sheets-->")?;
    for sheet in sheets(report) {
        let table = table(&sheet.headings, &sheet.rows);
        let title = escaped(sheet.title);
        write!(
            out,
            "<details><summary>{title}</summary><div class=\"scroll\"><table class=\"sheet\">{table}</table></div></details>"
        )?;
    }
    until(out, "@data@")?;
    let incomplete = report.runs.iter().filter(|run| !run.complete);
    let incomplete: Vec<String> = incomplete.map(|run| format!("{} {}", run.run_id, run.model)).collect();
    out.write_all(b"{\"incomplete\":")?;
    script_json(out, &incomplete)?;
    out.write_all(b",\"segments\":")?;
    script_json(out, &segments(report))?;
    out.write_all(b",\"tasks\":[")?;
    let mut between: &[u8] = b"";
    for model in models {
        for scored in &model.tasks {
            out.write_all(between)?;
            script_json(out, &task(model, scored, &mut attachments))?;
            between = b",\n";
        }
    }
    out.write_all(b"]}")?;
    until(out, "@attachments@")?;
    attachments.read(|number, attached| {
        write!(out, "<script type=\"application/json\" id=\"a{number}\">")?;
        script_json(out, attached)?;
        out.write_all(b"</script>\n")
    })?;
    out.write_all(rest.as_bytes())
}

/// Returns the page's policy: only its own style and script run, which their digests identify.
fn policy() -> String {
    let digest = |begin: &str, end: &str| {
        let text = TEMPLATE.split_once(begin).and_then(|(_, rest)| rest.split_once(end)).map_or("", |(text, _)| text);
        base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text))
    };
    let (style, script) = (digest("<style>", "</style>"), digest("<script>", "</script>"));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'"
    )
}

fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let mut table = String::from("<thead><tr>");
    for heading in headings {
        table.push_str(&format!("<th scope=\"col\">{}</th>", escaped(heading)));
    }
    table.push_str("</tr></thead><tbody>");
    for row in rows {
        table.push_str("<tr>");
        for cell in row {
            table.push_str(&format!("<td>{}</td>", escaped(cell)));
        }
        table.push_str("</tr>");
    }
    table.push_str("</tbody>");
    table
}

fn segments(report: &ScoreReport) -> Vec<Value> {
    let mut found = Vec::new();
    for run in &report.runs {
        for (track, figures) in &run.tracks {
            for (name, part) in &figures.by_segment {
                found.push(json!({
                    "run": format!("{} {}", run.run_id, run.model),
                    "track": track_name(*track),
                    "segment": name,
                    "methods": part.methods,
                    "few": part.few_methods,
                    "success": part.success_percent,
                    "coverage": part.cov_on_pass,
                    "mutation": part.mut_on_pass,
                }));
            }
        }
    }
    found
}

fn task<'a>(model: &'a ScoredModel, scored: &'a ScoredTask, attachments: &mut Attachments<'a>) -> Value {
    let submission = scored.submission.as_ref();
    let run: &Path = &model.path;
    let focal = scored.focal.as_ref().map(|focal| {
        let lines = focal.lines().into_iter().map(|lines| {
            let source = attachments.number(Attachment::focal(run, &scored.task, lines));
            json!({ "path": lines.path, "first": lines.first_line, "last": last_shown(lines), "source": source })
        });
        lines.collect::<Vec<_>>()
    });
    let start = scored.start.as_ref().and_then(|start| {
        let compiles = start.start_compiles?;
        Some(json!({ "compiles": compiles, "detail": start.detail }))
    });
    let test = submission.and_then(|one| Some(Attachment::Test { run, start: one.start, file: one.post_image? }));
    let mut logs = |records: fn(&ScoredMethod) -> &[ExecutionRecord]| {
        let found = scored.methods.iter().flat_map(records).find_map(|record| Attachment::logs(run, record));
        found.map(|logs| attachments.number(logs))
    };
    let logs = json!({ "new": logs(|method| &method.new), "old": logs(|method| &method.old) });
    json!({
        "run": model.run_id,
        "model": model.model,
        "track": track_name(scored.task.track),
        "repository": scored.task.repository,
        "task": scored.task.id,
        "segment": segment(&scored.task.rev2_date),
        "file": scored.task.test_file,
        "start": start,
        "test": test.map(|test| attachments.number(test)),
        "fault": submission.and_then(|one| one.fault.as_ref()).map(|fault| fault.detail.as_str()),
        "dropped": submission.map(|one| one.dropped.iter().map(|dropped| dropped.path.as_str()).collect::<Vec<_>>()),
        "focal": focal,
        "logs": logs,
        "methods": scored.methods.iter().map(|one| method(scored, one)).collect::<Vec<_>>(),
    })
}

fn method(scored: &ScoredTask, method: &ScoredMethod) -> Value {
    let cells = |records: &[ExecutionRecord]| -> Vec<Value> {
        let cell = |record: &ExecutionRecord| {
            json!({
                "outcome": record.outcome.to_string(),
                "detail": record.detail,
                "ms": record.measured.launch_ms,
                "cached": record.cached,
            })
        };
        records.iter().map(cell).collect()
    };
    let covered = method.coverage.as_ref().map(|one| {
        one.focal.iter().map(|focal| json!({ "lines": focal.lines, "covered": focal.covered })).collect::<Vec<_>>()
    });
    let killed = method.mutation.as_ref().and_then(|record| {
        let kills = record.kills.as_ref()?;
        let elsewhere = if record.elsewhere > 0 { format!(", {} elsewhere", record.elsewhere) } else { String::new() };
        Some(format!("{} of {}{elsewhere}", kills.killed, kills.count))
    });
    let own = scored.own.as_ref().and_then(|own| own.of(&method.method));
    json!({
        "method": method.method.method(),
        "category": method.verdict.paper_verdict.map(|category| category.name()),
        "strict": method.verdict.strict_success,
        "integrity": method.verdict.integrity,
        "reasons": method.verdict.reasons.iter().map(|reason| reason.sentence()).collect::<Vec<_>>(),
        "coverage": method.score.pred.coverage,
        "gold": method.score.gold.coverage,
        "killed": killed,
        "own": own.map(|own| own.places().collect::<Vec<_>>()),
        "covered": covered,
        "new": cells(&method.new),
        "old": cells(&method.old),
    })
}

/// Writes JSON for use inside a script. No text in it can end the script, begin a comment, or reorder or hide what the
/// page shows.
fn script_json(out: &mut (impl Write + ?Sized), value: &impl Serialize) -> io::Result<()> {
    let mut formatter = serde_json::Serializer::with_formatter(Script(out), Visible);
    value.serialize(&mut formatter).map_err(io::Error::from)
}

/// Writes texts with unsafe characters replaced.
struct Visible;

impl serde_json::ser::Formatter for Visible {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        // JSON escapes line breaks and tabs, so no fragment contains any.
        writer.write_all(visible_lines(fragment).as_bytes())
    }
}

/// Escapes characters with a meaning in HTML. They occur only within JSON's texts.
struct Script<W>(W);

impl<W: Write> Write for Script<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'<' | b'>' | b'&')) {
            self.0.write_all(&rest[..at])?;
            write!(self.0, "\\u{:04x}", rest[at])?;
            rest = &rest[at + 1..];
        }
        self.0.write_all(rest)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_can_not_leave_the_script() {
        let hostile = "</script><script>alert(1)</script><!--&\n";
        let mut text = Vec::new();
        script_json(&mut text, &hostile).unwrap();
        assert!(!text.iter().any(|byte| b"<>&".contains(byte)));
        assert_eq!(serde_json::from_slice::<String>(&text).unwrap(), hostile);
    }

    #[test]
    fn no_text_reorders_what_the_page_shows() {
        let mut text = Vec::new();
        script_json(&mut text, &["a\u{202e}b\u{2066}\tü", "\u{2028}\u{61c}"]).unwrap();
        let shown: Vec<String> = serde_json::from_slice(&text).unwrap();
        assert_eq!(shown, ["a\u{fffd}b\u{fffd}\tü", "\u{fffd}\u{fffd}"]);
    }

    #[test]
    fn the_page_asks_nobody_for_anything() {
        for word in ["http:", "https:", "src=", "@import", "url(", "innerHTML", "<link"] {
            assert!(!TEMPLATE.contains(word), "{word}");
        }
        let policy = policy();
        assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
    }
}
