//! Changed lines of a test file: what a patch of the file shows, even where the patch holds no method in full.

use git2::{DiffOptions, Patch};

use super::normal::normal;

/// The shortest changed text that is searched for together with lines around it, in bytes of its normal form.
const LEAST_BYTES: usize = 48;
/// The shortest changed text that is searched for alone. Shorter ones stand in other tests, too.
const LEAST_ALONE_BYTES: usize = 80;

/// A changed part of a file.
pub(super) struct Changed {
    /// The first line, counted from 1.
    pub(super) line: u32,
    /// The normal form of its lines.
    pub(super) text: Vec<u8>,
}

/// Returns the parts of `after` that `before` lacks: as patches show them with three lines and one line around, and alone.
pub(super) fn changes(before: &[u8], after: &[u8]) -> Result<Vec<Changed>, git2::Error> {
    let known = normal(before);
    let is_known = |text: &[u8]| known.windows(text.len().max(1)).any(|window| window == text);
    let mut changes: Vec<Changed> = Vec::new();
    for (around, least) in [(3, LEAST_BYTES), (1, LEAST_BYTES), (0, LEAST_ALONE_BYTES)] {
        let mut options = DiffOptions::new();
        options.context_lines(around).indent_heuristic(true);
        let patch = Patch::from_buffers(before, None, after, None, Some(&mut options))?;
        for hunk in 0..patch.num_hunks() {
            let (mut line, mut lines, mut tells) = (0, Vec::new(), false);
            for index in 0..patch.num_lines_in_hunk(hunk)? {
                let found = patch.line_in_hunk(hunk, index)?;
                let origin = found.origin();
                // What is left around a removed line tells something as well.
                tells |= (origin == '+' || (origin == '-' && around > 0)) && is_code(found.content());
                if let ('+' | ' ', Some(number)) = (origin, found.new_lineno()) {
                    line = if line == 0 { number } else { line };
                    lines.extend_from_slice(found.content());
                }
            }
            let text = normal(&lines);
            if tells && text.len() >= least && !is_known(&text) && !changes.iter().any(|known| known.text == text) {
                changes.push(Changed { line, text });
            }
        }
    }
    Ok(changes)
}

/// Tells whether a line is of a test's own: imports and comments are alike in many files.
fn is_code(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let others: [&[u8]; 6] = [b"import ", b"package ", b"//", b"/*", b"*", b"@"];
    line.len() > 2 && !others.iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_code_is_returned_with_and_without_its_neighbours() {
        let before = "import a.A;\nclass ATest {\n  void one() {\n    first();\n    second();\n  }\n}\n";
        let long = "assertEquals(new Expectation(1, 2, 3).withAnotherValue(4).andOneMore(6), new Subject().answer(5));";
        let after = before
            .replace("import a.A;\n", "import a.A;\nimport org.own.project.some.quite.deep.package.WithAnAnswer;\n")
            .replace("second();", long);
        let found = changes(before.as_bytes(), after.as_bytes()).unwrap();
        let texts: Vec<(u32, &str)> =
            found.iter().map(|found| (found.line, std::str::from_utf8(&found.text).unwrap())).collect();
        let long = long.replace(' ', "");
        let [(1, whole), (5, near), (6, alone)] = texts.as_slice() else { panic!("{texts:?}") };
        assert!(whole.starts_with("importa.A;importorg.own.") && whole.ends_with("}}"));
        assert_eq!((*near, *alone), (format!("first();{long}}}").as_str(), long.as_str()));
        assert!(
            changes(b"", b"import a.A;\n// a long comment that says nothing of any answer in this file at all\n")
                .unwrap()
                .is_empty()
        );
        assert!(changes(before.as_bytes(), before.as_bytes()).unwrap().is_empty());
        let shorter = before.replace("    second();\n", "").replace("one()", "oneOfTheMethods()");
        let longer = shorter.replace("first", "    third();\n    first");
        let found = changes(longer.as_bytes(), shorter.as_bytes()).unwrap();
        let [whole] = found.as_slice() else { panic!("{} changes", found.len()) };
        assert!(whole.line == 1 && whole.text.ends_with(b"first();}}"));
    }
}
