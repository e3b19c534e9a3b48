//! Focal methods: from a published name and anchor to lines of the new revision. Source: protocol §4.
//!
//! Each result names the rule that found the method, or why it could not be found. [`store`] keeps results beside the
//! tasks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::java::{MethodDeclaration, Unit};
use crate::task::{Anchor, FocalMethod, MethodId, Side, Task};
use crate::workspace::changes::{Changes, changes};
use crate::workspace::java_source::package_of;
use crate::workspace::{Repository, RevisionTree, WorkspaceError};

pub mod own;
pub mod store;

/// An anchor beside a method belongs to it up to this many lines away.
const MOST_DISTANCE: usize = 10;

/// One focal method of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Focal {
    /// The published name.
    pub method: MethodId,
    /// The method's place, or why it has none.
    #[serde(flatten)]
    pub found: Found,
}

/// The place of a focal method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "found", rename_all = "snake_case")]
pub enum Found {
    /// The method has these lines in the new revision.
    Resolved(FocalLines),
    /// Old code has the method, and new code has no such method.
    Gone {
        /// The rule that found it on old code.
        rule: Rule,
    },
    /// The anchor and the name fit no method.
    Unresolved {
        /// Why the method could not be found.
        reason: Unresolved,
    },
}

/// Lines of a focal method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FocalLines {
    /// The rule that found the method.
    pub rule: Rule,
    /// The file, in the new revision.
    pub path: String,
    /// The file's declared package, parts by `/`.
    pub package: String,
    /// Its first line, counted from 1, annotations included.
    pub first_line: usize,
    /// Its last line.
    pub last_line: usize,
    /// Its lines that the new revision adds, ascending.
    pub added: Vec<usize>,
}

impl FocalLines {
    /// Tells whether these are the same lines of the same file.
    pub fn is_same_extent(&self, other: &Self) -> bool {
        (&self.path, self.first_line, self.last_line) == (&other.path, other.first_line, other.last_line)
    }
}

/// Returns the lines of the found focal methods, each extent once. Own focal methods refer to indexes in this list.
pub fn extents(focal: &[Focal]) -> Vec<&FocalLines> {
    let mut lines: Vec<&FocalLines> = Vec::new();
    for focal in focal {
        if let Found::Resolved(found) = &focal.found
            && !lines.iter().any(|known| known.is_same_extent(found))
        {
            lines.push(found);
        }
    }
    lines
}

/// How a focal method was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The anchor lies within the method.
    Extent,
    /// The anchor lies beside the method, and no other method of the name is nearer.
    Nearest,
    /// The anchor lies within the method on old code, and new code has a method with the same parameters.
    OldExtent,
}

/// Why a focal method can't be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unresolved {
    /// The data has no anchor for the method.
    NoAnchor,
    /// No file's path has the anchor's digest.
    NoFile,
    /// The file has no such class.
    NoClass,
    /// The class has no such method.
    NoMethod,
    /// The anchor is in no method of that name in the class, and not near enough to one.
    FarAway,
}

/// Finds a task's focal methods.
///
/// # Errors
/// [`WorkspaceError`].
pub fn resolve(repository: &Repository, task: &Task) -> Result<Vec<Focal>, WorkspaceError> {
    let (old, new) = (repository.tree(&task.rev1)?, repository.tree(&task.rev2)?);
    let mut sides = Sides { old: Parsed::new(&old), new: Parsed::new(&new), changes: None };
    task.focal_methods
        .iter()
        .map(|focal| Ok(Focal { method: focal.method.clone(), found: sides.find(focal)? }))
        .collect()
}

struct Sides<'a> {
    old: Parsed<'a>,
    new: Parsed<'a>,
    changes: Option<Changes>,
}

/// A tree with its files by digest of their paths, and the sources that were parsed.
struct Parsed<'a> {
    tree: &'a RevisionTree,
    by_digest: BTreeMap<String, &'a [u8]>,
    units: BTreeMap<String, Option<Unit>>,
}

impl<'a> Parsed<'a> {
    fn new(tree: &'a RevisionTree) -> Self {
        let java = tree.entries().keys().filter(|path| path.ends_with(b".java"));
        let by_digest = java.map(|path| (hex(&Sha256::digest(path)), path.as_slice())).collect();
        Self { tree, by_digest, units: BTreeMap::new() }
    }

    fn path(&self, anchor: &Anchor) -> Option<String> {
        let path = self.by_digest.get(&anchor.path_sha256)?;
        Some(String::from_utf8_lossy(path).into_owned())
    }

    fn unit(&mut self, path: &str) -> Result<Option<&Unit>, WorkspaceError> {
        if !self.units.contains_key(path) {
            let unit = self.tree.read(path)?.map(|source| Unit::parse(&source));
            self.units.insert(path.to_owned(), unit);
        }
        Ok(self.units.get(path).and_then(Option::as_ref))
    }
}

impl Sides<'_> {
    fn find(&mut self, focal: &FocalMethod) -> Result<Found, WorkspaceError> {
        let unresolved = |reason| Ok(Found::Unresolved { reason });
        let Some(anchor) = &focal.anchor else { return unresolved(Unresolved::NoAnchor) };
        let (class, method) = (simple(focal.method.class()), focal.method.method());
        let line = anchor.line as usize;
        match anchor.side {
            Side::New => {
                let Some(path) = self.new.path(anchor) else { return unresolved(Unresolved::NoFile) };
                let Some(unit) = self.new.unit(&path)? else { return unresolved(Unresolved::NoFile) };
                match by_anchor(unit, class, method, line, true) {
                    Ok((rule, lines)) => self.lines(rule, path, lines),
                    Err(reason) => unresolved(reason),
                }
            }
            Side::Old => {
                let Some(path) = self.old.path(anchor) else { return unresolved(Unresolved::NoFile) };
                let Some(unit) = self.old.unit(&path)? else { return unresolved(Unresolved::NoFile) };
                let parameters = match overload(unit, class, method, line) {
                    Ok(found) => found.parameters.clone(),
                    Err(reason) => return unresolved(reason),
                };
                let new_path = self.changes()?.renamed.get(&path).cloned().unwrap_or(path);
                let gone = Ok(Found::Gone { rule: Rule::OldExtent });
                let Some(unit) = self.new.unit(&new_path)? else { return gone };
                let class = renamed_class(class, &new_path, unit);
                let same = unit.methods(&class, method).find(|declared| declared.parameters == parameters);
                match same.map(|declared| declared.lines) {
                    Some(lines) => self.lines(Rule::OldExtent, new_path, lines),
                    None => gone,
                }
            }
        }
    }

    fn lines(
        &mut self,
        rule: Rule,
        path: String,
        (first_line, last_line): (usize, usize),
    ) -> Result<Found, WorkspaceError> {
        let source = self.new.tree.read(&path)?.unwrap_or_default();
        let package = package_of(&source).replace('.', "/");
        let added = self.changes()?.added.get(&path).map_or(&[][..], Vec::as_slice);
        let added = added.iter().copied().filter(|line| (first_line..=last_line).contains(line)).collect();
        Ok(Found::Resolved(FocalLines { rule, path, package, first_line, last_line, added }))
    }

    fn changes(&mut self) -> Result<&Changes, WorkspaceError> {
        let changes = match self.changes.take() {
            Some(changes) => changes,
            None => changes(self.old.tree, self.new.tree, &|path| path.ends_with(".java"))?,
        };
        Ok(self.changes.insert(changes))
    }
}

/// Returns the overload that an anchor means, with its lines.
fn by_anchor(
    unit: &Unit,
    class: &str,
    method: &str,
    line: usize,
    nearest: bool,
) -> Result<(Rule, (usize, usize)), Unresolved> {
    match overload(unit, class, method, line) {
        Ok(found) => Ok((Rule::Extent, found.lines)),
        Err(Unresolved::FarAway) if nearest => {
            let distance = |found: &&MethodDeclaration| {
                let (first, last) = found.lines;
                if line < first { first - line } else { line.saturating_sub(last) }
            };
            let found = unit.methods(class, method).min_by_key(distance);
            match found.filter(|found| distance(found) <= MOST_DISTANCE) {
                Some(found) => Ok((Rule::Nearest, found.lines)),
                None => Err(Unresolved::FarAway),
            }
        }
        Err(reason) => Err(reason),
    }
}

/// Returns the overload whose lines hold the anchor.
fn overload<'a>(
    unit: &'a Unit,
    class: &str,
    method: &'a str,
    line: usize,
) -> Result<&'a MethodDeclaration, Unresolved> {
    if unit.type_named(class).is_none() {
        return Err(Unresolved::NoClass);
    }
    let mut overloads = unit.methods(class, method).peekable();
    if overloads.peek().is_none() {
        return Err(Unresolved::NoMethod);
    }
    overloads.find(|found| (found.lines.0..=found.lines.1).contains(&line)).ok_or(Unresolved::FarAway)
}

/// A renamed file may declare its class under the file's new name.
fn renamed_class(class: &str, path: &str, unit: &Unit) -> String {
    if unit.type_named(class).is_some() {
        return class.to_owned();
    }
    let file = path.rsplit('/').next().unwrap_or(path);
    let base = file.strip_suffix(".java").unwrap_or(file);
    match class.split_once('$') {
        Some((_, nested)) => format!("{base}${nested}"),
        None => base.to_owned(),
    }
}

/// Returns a class's binary name without its package.
fn simple(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests;
