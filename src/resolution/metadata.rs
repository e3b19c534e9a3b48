//! Freezes Maven metadata that changes with time: the version that an unbound plugin or a range stands for is chosen
//! once.
//!
//! If a plugin has no version, Maven takes the newest release, so the same revision builds differently each year. This
//! module chooses in this order. First a version that this program prefers ([`preferred`]). Else the newest release
//! that is no pre-release, runs on the repository's Java, and was published by the cutoff, if the origin knows dates.
//! Else the oldest release. Ranges see the versions up to the chosen one. The caller asks the origin for dates and
//! jars.
//!
//! The cutoff is the day of the newest revision among the tasks of `lock`. The lock keeps chosen versions, so the tasks
//! of the first `lock` decide. A later `lock` for more tasks adds versions, and only `--update` chooses anew.

use std::fmt::Write as _;

use quick_xml::events::Event;

use crate::artifact::origin::printable;

/// The largest metadata file that is read, in bytes.
pub const MAX_METADATA_BYTES: u64 = 16 << 20;

/// The metadata file is malformed.
#[derive(Debug, thiserror::Error)]
#[error("the metadata is not understood: {0}")]
pub struct InvalidMetadata(String);

/// The needed content of a `maven-metadata.xml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// `groupId`.
    pub group: String,
    /// `artifactId`; empty for a group's list of plugin prefixes.
    pub artifact: String,
    /// Present in the metadata of one snapshot version.
    pub version: Option<String>,
    /// `versioning/versions`, in the file's order, which is that of publication.
    pub versions: Vec<String>,
}

/// Parses a metadata file.
///
/// # Errors
/// [`InvalidMetadata`] for malformed XML, another document, document type declarations and nesting deeper than eight.
pub fn parse(text: &str) -> Result<Metadata, InvalidMetadata> {
    let mut reader = quick_xml::Reader::from_str(text);
    let mut metadata = Metadata::default();
    let mut path: Vec<String> = Vec::new();
    let mut is_metadata = false;
    loop {
        match reader.read_event().map_err(|error| InvalidMetadata(error.to_string()))? {
            Event::Start(start) => {
                if path.len() >= 8 {
                    return Err(InvalidMetadata("elements are nested too deeply".to_owned()));
                }
                path.push(start.local_name().as_ref().to_owned());
                // Some proxies answer any request successfully with a page of their own.
                if path.len() == 1 && path[0] != "metadata" {
                    return Err(InvalidMetadata(format!("it is a document `{}`", printable(&path[0]))));
                }
                is_metadata = true;
            }
            Event::Empty(empty) if path.is_empty() => {
                let name = empty.local_name();
                if name.as_ref() != "metadata" {
                    return Err(InvalidMetadata(format!("it is a document `{}`", printable(name.as_ref()))));
                }
                is_metadata = true;
            }
            Event::End(_) => {
                path.pop();
            }
            Event::Text(text) => {
                let text: &str = &text;
                let text = text.trim();
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                match path.as_slice() {
                    _ if text.is_empty() => {}
                    ["metadata", "groupId"] => text.clone_into(&mut metadata.group),
                    ["metadata", "artifactId"] => text.clone_into(&mut metadata.artifact),
                    ["metadata", "version"] => metadata.version = Some(text.to_owned()),
                    ["metadata", "versioning", "versions", "version"] if is_version(text) => {
                        metadata.versions.push(text.to_owned());
                    }
                    _ => {}
                }
            }
            Event::DocType(_) => {
                return Err(InvalidMetadata("it has a document type declaration".to_owned()));
            }
            Event::Eof if is_metadata => return Ok(metadata),
            Event::Eof => return Err(InvalidMetadata("it is empty or no XML".to_owned())),
            _ => {}
        }
    }
}

fn is_version(text: &str) -> bool {
    text.len() <= 200 && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'+'))
}

/// Tells whether a version's name marks a pre-release: `alpha`, `beta`, `rc`, `cr`, `milestone`, `m1`, `ea`, `pre`,
/// `preview`, `snapshot`, `incubating`, each as a word of its own or followed by a number.
pub fn is_prerelease(version: &str) -> bool {
    version.to_ascii_lowercase().split(['.', '-', '_', '+']).any(|part| {
        let word = part.trim_end_matches(|c: char| c.is_ascii_digit());
        // Leading digits belong to the number: `0b3`, `1rc2`.
        let word = word.trim_start_matches(|c: char| c.is_ascii_digit());
        matches!(word, "alpha" | "beta" | "rc" | "cr" | "milestone" | "ea" | "pre" | "preview" | "snapshot" | "dev")
            || (matches!(word, "a" | "b" | "m") && part.len() > word.len())
    })
}

/// Returns the version that is chosen whatever its date; `None` if there is no reason for one.
///
/// Surefire 2.22.2 is the newest version that runs everything from JUnit 3.8 to 5. Later ones refuse old JUnits.
pub fn preferred(metadata: &Metadata) -> Option<&'static str> {
    match (metadata.group.as_str(), metadata.artifact.as_str()) {
        ("org.apache.maven.plugins", "maven-surefire-plugin" | "maven-failsafe-plugin") => Some("2.22.2"),
        _ => None,
    }
    .filter(|version| metadata.versions.iter().any(|known| known == version))
}

/// Returns the Java release that a jar's classes need, from the first class file outside of `META-INF`; `None` without
/// a class file. Class file version 52 is Java 8. Source: Java Virtual Machine Specification §4.1.
///
/// # Errors
/// [`InvalidMetadata`] if it is not a jar.
pub fn java_release_of(jar: impl std::io::Read + std::io::Seek) -> Result<Option<u32>, InvalidMetadata> {
    let invalid = |error: &dyn std::fmt::Display| InvalidMetadata(error.to_string());
    let mut archive = zip::ZipArchive::new(jar).map_err(|error| invalid(&error))?;
    let class = archive
        .file_names()
        .filter_map(Result::ok)
        .find(|name| name.ends_with(".class") && !name.starts_with("META-INF/") && !name.ends_with("module-info.class"))
        .map(std::borrow::Cow::into_owned);
    let Some(class) = class else { return Ok(None) };
    let mut head = [0; 8];
    let mut file = archive.by_name(&class).map_err(|error| invalid(&error))?;
    std::io::Read::read_exact(&mut file, &mut head).map_err(|error| invalid(&error))?;
    match head {
        [0xca, 0xfe, 0xba, 0xbe, _, _, high, low] => {
            Ok(Some(u32::from(u16::from_be_bytes([high, low])).saturating_sub(44)))
        }
        _ => Err(InvalidMetadata("its classes are none".to_owned())),
    }
}

/// Returns the versions that may be chosen, newest first.
pub fn candidates(metadata: &Metadata) -> Vec<&str> {
    let mut finals: Vec<&str> =
        metadata.versions.iter().map(String::as_str).filter(|version| !is_prerelease(version)).collect();
    if finals.is_empty() {
        finals = metadata.versions.iter().map(String::as_str).collect();
    }
    finals.sort_by(|left, right| compare_versions(right, left));
    finals
}

/// Compares two versions as Maven orders plain releases: numbers by value, missing parts as zero, words last by text.
///
/// Qualifiers have an order of their own in Maven. Releases that differ only in these are rare, and keep a stable order
/// here.
pub fn compare_versions(left: &str, right: &str) -> std::cmp::Ordering {
    let parts = |version: &str| -> Vec<Result<u64, String>> {
        version.split(['.', '-', '_', '+']).map(|part| part.parse().map_err(|_| part.to_owned())).collect()
    };
    let (left, right) = (parts(left), parts(right));
    for index in 0..left.len().max(right.len()) {
        let zero = Ok(0);
        let pair = (left.get(index).unwrap_or(&zero), right.get(index).unwrap_or(&zero));
        let ordering = match pair {
            (Ok(left), Ok(right)) => left.cmp(right),
            (Err(left), Err(right)) => left.cmp(right),
            // `1.0.Final` against `1.0`: a word is not smaller than nothing, and smaller than a further number.
            (Ok(number), Err(_)) if *number > 0 => std::cmp::Ordering::Greater,
            (Ok(_), Err(_)) => std::cmp::Ordering::Less,
            (Err(_), Ok(number)) if *number > 0 => std::cmp::Ordering::Less,
            (Err(_), Ok(_)) => std::cmp::Ordering::Greater,
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
    std::cmp::Ordering::Equal
}

/// Returns the metadata file for Maven: the chosen version and all versions up to it.
pub fn render(metadata: &Metadata, chosen: &str) -> String {
    let mut versions: Vec<&str> = metadata
        .versions
        .iter()
        .map(String::as_str)
        .filter(|version| compare_versions(version, chosen).is_le())
        .collect();
    versions.sort_by(|left, right| compare_versions(left, right));
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<metadata>\n");
    // Writing to a String can't fail. Names were validated during parsing, or come from a validated path.
    let _ = writeln!(text, "  <groupId>{}</groupId>", escape(&metadata.group));
    let _ = writeln!(text, "  <artifactId>{}</artifactId>", escape(&metadata.artifact));
    text.push_str("  <versioning>\n");
    let _ = writeln!(text, "    <latest>{}</latest>\n    <release>{}</release>", escape(chosen), escape(chosen));
    text.push_str("    <versions>\n");
    for version in versions {
        let _ = writeln!(text, "      <version>{}</version>", escape(version));
    }
    text.push_str("    </versions>\n  </versioning>\n</metadata>\n");
    text
}

fn escape(text: &str) -> std::borrow::Cow<'_, str> {
    quick_xml::escape::escape(text)
}

#[cfg(test)]
mod tests;
