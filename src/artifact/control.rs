//! Debian's control syntax: paragraphs of `Name: value` with continuation lines, as in indexes and apt's sources.

use std::borrow::Cow;

/// One paragraph of a text, unchanged.
#[derive(Clone, Copy, Debug)]
pub struct Paragraph<'a>(&'a str);

/// Returns the text's paragraphs. Lines that contain only blanks separate them.
pub fn paragraphs(text: &str) -> impl Iterator<Item = Paragraph<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            if rest.is_empty() {
                return None;
            }
            let mut end = 0;
            let mut after = rest.len();
            while end < rest.len() {
                let line_end = rest[end..].find('\n').map_or(rest.len(), |length| end + length + 1);
                if rest[end..line_end].trim().is_empty() {
                    after = line_end;
                    break;
                }
                end = line_end;
            }
            let paragraph = &rest[..end];
            rest = &rest[after..];
            if !paragraph.is_empty() {
                return Some(Paragraph(paragraph));
            }
        }
    })
}

impl<'a> Paragraph<'a> {
    /// Returns the paragraph's text, unchanged.
    pub fn text(&self) -> &'a str {
        self.0
    }

    /// Returns the fields in order. Values are trimmed; continuation lines follow after `\n`, trimmed too. Comment
    /// lines and malformed lines are left out.
    pub fn fields(&self) -> impl Iterator<Item = (&'a str, Cow<'a, str>)> + use<'a> {
        let mut lines = self.0.lines().filter(|line| !line.starts_with('#')).peekable();
        std::iter::from_fn(move || {
            loop {
                let line = lines.next()?;
                if line.starts_with([' ', '\t']) {
                    continue;
                }
                let Some((name, value)) = line.split_once(':') else { continue };
                let mut value = Cow::Borrowed(value.trim());
                while let Some(more) = lines.next_if(|line| line.starts_with([' ', '\t'])) {
                    let value = value.to_mut();
                    value.push('\n');
                    value.push_str(more.trim());
                }
                return Some((name.trim_end(), value));
            }
        })
    }

    /// Returns the value of the first field of that name, ignoring case.
    pub fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        self.fields().find(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_have_fields_comments_and_continuations() {
        let text = "\n# a comment\nTypes: deb\nURIs: one\n two\n# within\n\tthree\n \nX:y\nnonsense\n\n\n";
        let found: Vec<Vec<(String, String)>> = paragraphs(text)
            .map(|p| p.fields().map(|(name, value)| (name.to_owned(), value.into_owned())).collect())
            .collect();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(found, vec![vec![pair("Types", "deb"), pair("URIs", "one\ntwo\nthree")], vec![pair("X", "y")]]);
        assert_eq!(paragraphs("a: 1\nB: 2").next().unwrap().get("b").unwrap(), "2");
    }
}
