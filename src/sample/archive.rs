//! Text archives: many small text files in one, for people to read and edit.
//!
//! The format is Go's `txtar`: a comment, then for each file a line `-- path --` and its text up to the next such line.
//! There are no escapes, so no file can contain such a line or lack its final line end.

/// A text archive, borrowed from its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Archive<'a> {
    /// The text before the first file.
    pub comment: &'a str,
    /// Paths and texts in the order of the archive.
    pub files: Vec<(&'a str, &'a str)>,
}

/// Reads a text archive. Every text is a valid one.
pub fn parse(text: &str) -> Archive<'_> {
    let mut archive = Archive::default();
    let (mut path, mut start, mut position) = (None, 0, 0);
    for line in text.split_inclusive('\n') {
        if let Some(next) = file_name(line) {
            finish(&mut archive, path, &text[start..position]);
            path = Some(next);
            start = position + line.len();
        }
        position += line.len();
    }
    finish(&mut archive, path, &text[start..]);
    archive
}

fn finish<'a>(archive: &mut Archive<'a>, path: Option<&'a str>, content: &'a str) {
    match path {
        Some(path) => archive.files.push((path, content)),
        None => archive.comment = content,
    }
}

fn file_name(line: &str) -> Option<&str> {
    let name = line.trim_end().strip_prefix("-- ")?.strip_suffix(" --")?;
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_follow_the_comment() {
        let archive = parse("a = 1\n-- x/y --\none\n\ntwo\n-- empty --\n-- z --\n--x --\n");
        assert_eq!(archive.comment, "a = 1\n");
        assert_eq!(archive.files, [("x/y", "one\n\ntwo\n"), ("empty", ""), ("z", "--x --\n")]);
        assert_eq!(parse(""), Archive::default());
    }
}
