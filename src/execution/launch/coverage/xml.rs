//! Reads the lines of a few source files from JaCoCo's XML. The document type is skipped, so no entity is ever
//! resolved.

use std::collections::{BTreeMap, BTreeSet};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::{Lines, SourceFile};

/// The most lines to read of all files together.
const MOST_LINES: usize = 2_000_000;

/// Why XML is not JaCoCo's.
#[derive(Debug, thiserror::Error)]
pub enum XmlError {
    /// The XML is not well-formed.
    #[error("JaCoCo's XML can't be read: {0}")]
    Malformed(#[from] quick_xml::Error),
    /// A line's attributes are not numbers.
    #[error("JaCoCo's XML has a line without numbers")]
    Line,
    /// The XML has more lines than any project.
    #[error("JaCoCo's XML has too many lines")]
    TooMany,
}

/// Returns the lines of the wanted files. A line counts as covered if one of its instructions was executed.
///
/// # Errors
/// [`XmlError`].
pub fn read_xml(xml: &[u8], wanted: &[SourceFile]) -> Result<BTreeMap<SourceFile, Lines>, XmlError> {
    let wanted: BTreeSet<&SourceFile> = wanted.iter().collect();
    let text = String::from_utf8_lossy(xml);
    let mut reader = Reader::from_str(&text);
    let mut found: BTreeMap<SourceFile, Lines> = BTreeMap::new();
    let mut package = String::new();
    let mut file: Option<SourceFile> = None;
    let mut lines = 0usize;
    loop {
        let (event, has_end) = match reader.read_event()? {
            Event::Start(event) => (event, true),
            Event::Empty(event) => (event, false),
            Event::End(event) => {
                if event.name().as_ref() == "sourcefile" {
                    file = None;
                }
                continue;
            }
            Event::Eof => return Ok(found),
            _ => continue,
        };
        match event.name().as_ref() {
            "package" => package = attribute(&event, "name").unwrap_or_default(),
            "sourcefile" => {
                let name = attribute(&event, "name").unwrap_or_default();
                let one = SourceFile { package: package.clone(), name };
                file = Some(one).filter(|one| wanted.contains(one));
                if let Some(file) = &file {
                    found.entry(file.clone()).or_default();
                }
                file = file.filter(|_| has_end);
            }
            "line" => {
                let Some(file) = &file else { continue };
                let number = |name: &str| attribute(&event, name).and_then(|text| text.parse::<usize>().ok());
                let (Some(line), Some(covered)) = (number("nr"), number("ci")) else { return Err(XmlError::Line) };
                lines += 1;
                if lines > MOST_LINES {
                    return Err(XmlError::TooMany);
                }
                *found.entry(file.clone()).or_default().entry(line).or_default() |= covered > 0;
            }
            _ => {}
        }
    }
}

/// Returns an attribute of an element, unescaped.
pub fn attribute(event: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = event.try_get_attribute(name).ok().flatten()?;
    // Only names and numbers are read. Names in Java need no other escapes in XML.
    Some(found.value.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_wanted_files_are_taken() {
        let xml = br#"<?xml version="1.0"?><!DOCTYPE report PUBLIC "-//JACOCO//DTD Report 1.1//EN" "report.dtd">
<report name="x"><sessioninfo id="a" start="1" dump="2"/><package name="p/q"><class name="p/q/A" sourcefilename="A.java">
<method name="m" desc="()V" line="3"><counter type="LINE" missed="1" covered="1"/></method></class>
<sourcefile name="A.java"><line nr="3" mi="0" ci="2" mb="0" cb="0"/><line nr="4" mi="2" ci="0" mb="0" cb="0"/></sourcefile>
<sourcefile name="B.java"><line nr="9" mi="0" ci="2" mb="0" cb="0"/></sourcefile></package>
<package name="r"><sourcefile name="A.java"><line nr="7" mi="0" ci="1" mb="0" cb="0"/></sourcefile></package></report>"#;
        let file = SourceFile { package: "p/q".to_owned(), name: "A.java".to_owned() };
        let found = read_xml(xml, std::slice::from_ref(&file)).unwrap();
        assert_eq!(found, BTreeMap::from([(file.clone(), BTreeMap::from([(3, true), (4, false)]))]));
        for bad in
            ["<report><line", "<a></b>", "<package name=\"p/q\"><sourcefile name=\"A.java\"><line nr=\"x\" ci=\"1\"/>"]
        {
            assert!(read_xml(bad.as_bytes(), std::slice::from_ref(&file)).is_err(), "{bad}");
        }
    }
}
