//! Reads a suite's packages: `Packages`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

use debversion::Version;

use super::relation::{InvalidRelation, Relation, parse_relations};
use crate::artifact::control::{Paragraph, paragraphs};
use crate::digest::Digest;
use crate::lock::ARCHITECTURE;

const MAX_PACKAGES: usize = 400_000;
const MAX_VERSION: usize = 200;

/// Errors of an index of packages.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// A package's field is missing or malformed.
    #[error("the field `{field}` of the package `{package}` is missing or malformed")]
    Field {
        /// The package.
        package: String,
        /// The field.
        field: &'static str,
    },
    /// A package's relation is malformed.
    #[error("the package `{package}`: {reason}")]
    Relation {
        /// The package.
        package: String,
        /// The problem.
        #[source]
        reason: InvalidRelation,
    },
    /// The index has more packages than any real one.
    #[error("it has more than {MAX_PACKAGES} packages")]
    TooMany,
}

/// A package of a suite.
#[derive(Debug)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// The version as written.
    pub version_text: String,
    /// `amd64` or `all`.
    pub architecture: String,
    /// Path below the archive's root.
    pub path: String,
    /// Digest of the `.deb`.
    pub sha256: Digest,
    /// Size of the `.deb` in bytes.
    pub size: u64,
    /// The suite that has it.
    pub suite: String,
    /// Its priority in the archive: 0 for `required` to 4 for `extra`.
    pub priority: u8,
    /// Its dependencies, `Pre-Depends` first. One relation of each group must hold.
    pub depends: Vec<Vec<Relation>>,
    /// Packages that it can't be installed with.
    pub breaks: Vec<Relation>,
    /// The virtual packages that it provides, with their versions if they have any.
    pub provides: Vec<(String, Option<Version>)>,
}

/// The packages of a suite for amd64. A package is parsed when it is requested, because most never are.
#[derive(Debug, Default)]
pub struct PackageIndex {
    suite: String,
    text: String,
    entries: Vec<Entry>,
    by_name: BTreeMap<String, Vec<usize>>,
    by_provided: BTreeMap<String, Vec<usize>>,
}

#[derive(Debug)]
struct Entry {
    place: Range<usize>,
    package: OnceLock<Option<Package>>,
}

impl PackageIndex {
    /// Reads the text of `Packages`, but of each package only its name and what it provides.
    ///
    /// # Errors
    /// [`IndexError::TooMany`].
    pub fn parse(text: String, suite: &str) -> Result<Self, IndexError> {
        let mut index = Self { suite: suite.to_owned(), ..Self::default() };
        for paragraph in paragraphs(&text) {
            if index.entries.len() == MAX_PACKAGES {
                return Err(IndexError::TooMany);
            }
            let number = index.entries.len();
            for line in paragraph.text().lines() {
                if let Some(name) = line.strip_prefix("Package:") {
                    index.by_name.entry(name.trim().to_owned()).or_default().push(number);
                } else if let Some(provided) = line.strip_prefix("Provides:") {
                    for relation in provided.split(',') {
                        let name = relation.trim().split([' ', '(', ':']).next().unwrap_or_default();
                        index.by_provided.entry(name.to_owned()).or_default().push(number);
                    }
                }
            }
            // A paragraph is a slice of the text, so the difference of addresses is its position.
            let start = paragraph.text().as_ptr() as usize - text.as_ptr() as usize;
            let place = start..start + paragraph.text().len();
            index.entries.push(Entry { place, package: OnceLock::new() });
        }
        index.text = text;
        Ok(index)
    }

    /// Returns the packages of that name, the newest first.
    ///
    /// # Errors
    /// [`IndexError::Field`], [`IndexError::Relation`].
    pub fn named(&self, name: &str) -> Result<Vec<&Package>, IndexError> {
        let mut packages = self.read(self.by_name.get(name))?;
        // A paragraph with two `Package` fields is listed under both names, and the parser takes one of them.
        packages.retain(|package| package.name == name);
        // An index may contain several versions of one name.
        packages.sort_by(|a, b| b.version.cmp(&a.version));
        Ok(packages)
    }

    /// Returns the packages that provide that name, in the index's order.
    ///
    /// # Errors
    /// [`IndexError::Field`], [`IndexError::Relation`].
    pub fn providing(&self, name: &str) -> Result<Vec<&Package>, IndexError> {
        self.read(self.by_provided.get(name))
    }

    fn read(&self, numbers: Option<&Vec<usize>>) -> Result<Vec<&Package>, IndexError> {
        let mut packages = Vec::new();
        for number in numbers.into_iter().flatten() {
            let entry = &self.entries[*number];
            let package = match entry.package.get() {
                Some(package) => package,
                None => {
                    let paragraph = paragraphs(&self.text[entry.place.clone()]).next();
                    let package = paragraph.map(|paragraph| parse_package(paragraph, &self.suite)).transpose()?;
                    entry.package.get_or_init(|| package.flatten())
                }
            };
            packages.extend(package);
        }
        Ok(packages)
    }
}

/// Returns `None` for a package of another architecture.
fn parse_package(paragraph: Paragraph<'_>, suite: &str) -> Result<Option<Package>, IndexError> {
    let mut fields = BTreeMap::new();
    for (name, value) in paragraph.fields() {
        fields.insert(name, value);
    }
    let mut take = |name: &str| fields.remove(name).map(std::borrow::Cow::into_owned);
    let name = take("Package").unwrap_or_default();
    let error = |field: &'static str| IndexError::Field { package: super::printable(&name), field };
    if !super::is_package_name(&name) {
        return Err(error("Package"));
    }
    let architecture = take("Architecture").unwrap_or_default();
    if ![ARCHITECTURE, "all"].contains(&architecture.as_str()) {
        return Ok(None);
    }
    let version_text = take("Version").unwrap_or_default();
    let version = Some(&version_text).filter(|text| text.len() <= MAX_VERSION).and_then(|text| text.parse().ok());
    let version = version.ok_or_else(|| error("Version"))?;
    let path = take("Filename").filter(|path| is_pool_path(path)).ok_or_else(|| error("Filename"))?;
    let size = take("Size").and_then(|size| size.parse().ok()).ok_or_else(|| error("Size"))?;
    let sha256 = take("SHA256").and_then(|hex| Digest::from_hex(&hex).ok()).ok_or_else(|| error("SHA256"))?;
    let priority = match take("Priority").as_deref() {
        Some("required") => 0,
        Some("important") => 1,
        Some("standard") => 2,
        Some("extra") => 4,
        _ => 3,
    };
    let mut relations = |names: &[&str]| {
        let fields: Vec<String> = names.iter().filter_map(|name| take(name)).collect();
        let relations = parse_relations(&fields.join(", "));
        relations.map_err(|reason| IndexError::Relation { package: name.clone(), reason })
    };
    let depends = relations(&["Pre-Depends", "Depends"])?;
    let breaks = relations(&["Conflicts", "Breaks"])?.concat();
    let provides = relations(&["Provides"])?.concat().into_iter();
    let provides = provides.map(|relation| (relation.name, relation.version.map(|(_, version)| version))).collect();
    let suite = suite.to_owned();
    Ok(Some(Package {
        name,
        version,
        version_text,
        architecture,
        path,
        sha256,
        size,
        suite,
        priority,
        depends,
        breaks,
        provides,
    }))
}

fn is_pool_path(path: &str) -> bool {
    path.starts_with("pool/")
        && path.ends_with(".deb")
        && path.len() < 500
        && path.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
        && path.chars().all(|c| c.is_ascii_graphic() && !"\\?#%\"'`<>".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "Package: a\nVersion: 1:2-3\nArchitecture: amd64\nFilename: pool/main/a/a/a_2-3_amd64.deb\n\
        Size: 12\nSHA256: ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\nDepends: b (>= 1)\n\
        Pre-Depends: c\nProvides: v (= 7), w\n";

    #[test]
    fn packages_are_read_newest_first_and_hostile_ones_refused() {
        let older = GOOD.replace("1:2-3", "5").replace("v (= 7), w", "w");
        let foreign = GOOD.replace("amd64\nF", "arm64\nF");
        let index = PackageIndex::parse(format!("{older}\n{GOOD}\n{foreign}"), "trixie").unwrap();
        let versions: Vec<&str> =
            index.named("a").unwrap().iter().map(|package| package.version_text.as_str()).collect();
        assert_eq!(versions, ["1:2-3", "5"]);
        assert_eq!((index.providing("v").unwrap().len(), index.providing("w").unwrap().len()), (1, 2));
        let package = index.named("a").unwrap()[0];
        let names: Vec<String> = package.depends.concat().into_iter().map(|r| r.name).collect();
        assert_eq!(names, ["c", "b"]);
        for (from, to) in [
            ("pool/main/a", "pool/../a"),
            ("pool/main/a/a/", "http://host/"),
            ("Size: 12", "Size: -1"),
            ("SHA256: ba", "SHA256: zz"),
            ("Version: 1:2-3", "Version: "),
        ] {
            let index = PackageIndex::parse(GOOD.replace(from, to), "s").unwrap();
            assert!(matches!(index.named("a"), Err(IndexError::Field { .. })), "{to}");
        }
    }
}
