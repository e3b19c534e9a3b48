//! Markdown for documents: tables, and escaping of untrusted text.

use crate::output::visible;

/// Returns a table whose first `left` columns are aligned left, and the others right.
pub fn table<const COLUMNS: usize>(headings: &[&str; COLUMNS], left: usize, rows: &[[String; COLUMNS]]) -> String {
    let rule = (0..COLUMNS).map(|column| if column < left { "---" } else { "--:" });
    let mut text = format!("| {} |\n|{}|\n", headings.join(" | "), rule.collect::<Vec<_>>().join("|"));
    for row in rows {
        text.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    text
}

/// Returns a text escaped to one line of literal Markdown text.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '[' | ']' | '<' | '>' | '\\' | '!' | '#' | '~' | '&' => plain.extend(['\\', c]),
            c if c.is_control() => plain.push(' '),
            c => plain.push(visible(c)),
        }
    }
    plain
}
