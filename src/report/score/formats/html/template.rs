//! The two templates, with the style and scripts that they contain, and the policy that lets only these run.

use std::io::{self, Write};

use base64::Engine as _;
use sha2::{Digest as _, Sha256};

const STYLE: &str = include_str!("style.css");
const DARK: &str = include_str!("colours.css");
/// The script of the index, which also shows tasks where it has their data.
const INDEX_SCRIPT: &str = concat!(
    include_str!("common.js"),
    include_str!("task.js"),
    include_str!("charts.js"),
    include_str!("ranking.js"),
    include_str!("explorer.js")
);
/// The script of a task's page.
const TASK_SCRIPT: &str = concat!(include_str!("common.js"), include_str!("task.js"), include_str!("alone.js"));

/// A template, of which less and less is left.
pub(super) struct Template {
    rest: &'static str,
    script: &'static str,
}

/// Returns the template of the index.
pub(super) fn index_template() -> Template {
    Template { rest: include_str!("index.html"), script: INDEX_SCRIPT }
}

/// Returns the template of a task's page.
pub(super) fn task_template() -> Template {
    Template { rest: include_str!("task.html"), script: TASK_SCRIPT }
}

impl Template {
    /// Writes the template up to a mark, and leaves the mark out.
    ///
    /// # Errors
    /// I/O errors of writing to `out`.
    pub(super) fn until(&mut self, out: &mut impl Write, mark: &str) -> io::Result<()> {
        let (before, after) =
            self.rest.split_once(mark).ok_or_else(|| io::Error::other(format!("no {mark} in the page")))?;
        self.rest = after;
        out.write_all(before.as_bytes())
    }

    /// Writes policy and style.
    ///
    /// # Errors
    /// I/O errors of writing to `out`.
    pub(super) fn head(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.until(out, "@policy@")?;
        out.write_all(policy(self.script).as_bytes())?;
        self.until(out, "@style@")?;
        out.write_all(style().as_bytes())
    }

    /// Writes what is left, with the script.
    ///
    /// # Errors
    /// I/O errors of writing to `out`.
    pub(super) fn rest(mut self, out: &mut impl Write) -> io::Result<()> {
        self.until(out, "@script@")?;
        out.write_all(self.script.as_bytes())?;
        out.write_all(self.rest.as_bytes())
    }
}

fn style() -> String {
    format!("{DARK}{STYLE}")
}

/// Returns the policy of a page with this script: only its own style and script run, which their digests identify.
fn policy(script: &str) -> String {
    let digest = |text: &str| base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text));
    let (style, script) = (digest(&style()), digest(script));
    format!(
        "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'"
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::metrics::category::Category;
    use crate::report::score::formats::table::COLUMNS;

    #[test]
    fn the_pages_ask_nobody_for_anything() {
        for text in [index_template().rest, task_template().rest, INDEX_SCRIPT, TASK_SCRIPT, STYLE, DARK] {
            for word in ["http:", "https:", "src=", "@import", "url(", "innerHTML", "outerHTML", "<link", "eval("] {
                assert!(!text.contains(word), "{word}");
            }
        }
        let policy = policy(INDEX_SCRIPT);
        assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
    }

    /// The page shows a category by its first letter, and takes order, names and meanings from its script.
    #[test]
    fn the_page_and_the_tables_have_every_category() {
        let mut names = Category::ALL.map(Category::name).to_vec();
        for ((heading, ..), name) in COLUMNS.iter().zip(&names) {
            assert_eq!(*heading, format!("{name}%"));
        }
        names.push("unscored");
        assert!(INDEX_SCRIPT.contains(&format!("const categories = {names:?};")), "common.js lacks {names:?}");
        for name in &names {
            assert!(INDEX_SCRIPT.contains(&format!("{name}: \"")), "common.js lacks the meaning of {name}");
            assert!(STYLE.contains(&format!(".{name} {{")), "style.css lacks {name}");
        }
        let letters: BTreeSet<_> = names.iter().map(|name| name.to_uppercase().chars().next()).collect();
        assert_eq!(letters.len(), names.len(), "two of {names:?} begin with one letter");
    }

    #[test]
    fn focus_is_seen_and_both_schemes_have_every_colour() {
        assert!(!STYLE.contains("outline: none") && !STYLE.contains("outline: 0") && STYLE.contains(":focus-visible"));
        let names = |text: &str| -> Vec<String> {
            let declared = text.split("--").skip(1).filter_map(|rest| Some(rest.split_once(':')?.0.to_owned()));
            declared.collect()
        };
        let (light, dark) = DARK.split_once("prefers-color-scheme: dark").unwrap();
        assert_eq!(names(light), names(dark));
    }
}
