//! What Maven reads of a tree before any source: the set of build files, which module a file lies in, and which
//! repositories the POMs declare.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::WorkspaceError;
use super::pom::{DeclaredRepository, PomError, PomFacts};
use super::tree::{EntryKind, RevisionTree};
use crate::digest::{Digest, encode_hex};
use crate::task::RepositoryPath;

/// The build files of a tree: every `pom.xml` but those that tests or resources carry, and `.mvn`.
///
/// Other files that POMs may read (a rule set, a parent under another name) are no part of the set.
#[derive(Clone, Debug)]
pub struct BuildFiles {
    /// Contents by path; `None` where the repository lacks the content.
    files: BTreeMap<String, Option<Vec<u8>>>,
    poms: BTreeMap<String, Result<PomFacts, PomError>>,
    /// Directories that the root's reactor reaches, `""` for the root itself.
    reactor: BTreeSet<String>,
}

/// Where in a reactor a file lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModuleLocation {
    /// The module's directory, `""` for the root.
    pub directory: String,
    /// Whether the root's POM reaches it through `<modules>`, profiles included; else its own POM must be named.
    pub listed_in_root: bool,
    /// Its `artifactId`, as the POM has it.
    pub artifact_id: Option<String>,
}

impl BuildFiles {
    /// Reads the build files of a tree.
    ///
    /// # Errors
    /// [`WorkspaceError::HostileTree`] for a file too large, [`WorkspaceError::Git`].
    pub fn read(tree: &RevisionTree) -> Result<Self, WorkspaceError> {
        let mut files = BTreeMap::new();
        let mut poms = BTreeMap::new();
        for (path, entry) in tree.entries() {
            // Maven is not asked for a file whose name is no text.
            let Ok(name) = std::str::from_utf8(path) else { continue };
            let is_pom = is_pom(name);
            if !is_pom && !is_in_mvn(name) {
                continue;
            }
            let content = tree.content(path, entry)?;
            if is_pom {
                let facts = match (&content, entry.kind) {
                    (Some(content), EntryKind::File | EntryKind::Executable) => PomFacts::parse(content),
                    (Some(_), _) => Err(PomError::new("it is a link")),
                    (None, _) => Err(PomError::new("its content is missing")),
                };
                poms.insert(name.to_owned(), facts);
            }
            files.insert(name.to_owned(), content);
        }
        let reactor = reactor(&poms);
        Ok(Self { files, poms, reactor })
    }

    /// Returns the files' contents by path; `None` where the repository lacks the content.
    pub fn files(&self) -> &BTreeMap<String, Option<Vec<u8>>> {
        &self.files
    }

    /// Returns the facts of every POM by path, or why it can't be understood.
    pub fn poms(&self) -> &BTreeMap<String, Result<PomFacts, PomError>> {
        &self.poms
    }

    /// Returns the set's identity: equal for equal paths and contents.
    pub fn identity(&self) -> Digest {
        let mut listing = String::from("build-files-1\n");
        for (path, content) in &self.files {
            let content = content.as_ref().map_or("missing".to_owned(), |bytes| encode_hex(&Sha256::digest(bytes)));
            // Lengths first, as a path may hold anything but NUL.
            listing.push_str(&format!("{} {path} {content}\n", path.len()));
        }
        Digest::of(listing.as_bytes())
    }

    /// Returns the module that a test file lies in; `None` where it lies in none, so that no build could compile it:
    /// no POM above it, or only one that packages nothing.
    pub fn module_of(&self, test_file: &RepositoryPath) -> Option<ModuleLocation> {
        let path = test_file.as_str();
        let ancestors = path.rmatch_indices('/').map(|(end, _)| &path[..end]).chain([""]);
        let (directory, facts) = ancestors
            .filter_map(|directory| self.poms.get(&join(directory, "pom.xml")).map(|facts| (directory, facts)))
            .next()?;
        // Maven has the last word on a POM that is not understood here.
        let facts = facts.as_ref().ok();
        if facts.is_some_and(|facts| facts.packaging.as_deref() == Some("pom")) {
            return None;
        }
        Some(ModuleLocation {
            directory: directory.to_owned(),
            listed_in_root: self.reactor.contains(directory),
            artifact_id: facts.and_then(|facts| facts.artifact_id.clone()),
        })
    }

    /// Returns the repositories that the POMs declare, sorted, each once.
    pub fn declared_repositories(&self) -> Vec<DeclaredRepository> {
        let all = self.poms.values().flatten().flat_map(|facts| facts.repositories.iter().cloned());
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

fn is_pom(path: &str) -> bool {
    let file = path.strip_suffix("pom.xml").is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
    // Plugins under test carry whole projects among their resources.
    file && !["src/test/resources/", "src/main/resources/"]
        .iter()
        .any(|resources| path.starts_with(resources) || path.contains(&format!("/{resources}")))
}

fn is_in_mvn(path: &str) -> bool {
    path.starts_with(".mvn/")
}

/// Returns the directories of the modules that the root's POM reaches.
fn reactor(poms: &BTreeMap<String, Result<PomFacts, PomError>>) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut queue = VecDeque::from(["pom.xml".to_owned()]);
    while let Some(path) = queue.pop_front() {
        let Some(Ok(facts)) = poms.get(&path).filter(|_| seen.insert(path.clone())) else { continue };
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        reached.insert(directory.to_owned());
        for module in &facts.modules {
            // A module is a directory, or a POM by its file name.
            let Some(module) = resolve(directory, module) else { continue };
            queue.push_back(join(&module, "pom.xml"));
            if module.ends_with(".xml") {
                queue.push_back(module);
            }
        }
    }
    reached
}

/// Returns `relative` as seen from `directory`, without `.` and `..`; `None` where it leaves the tree.
fn resolve(directory: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    if relative.starts_with('/') {
        return None;
    }
    for part in relative.split(['/', '\\']) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}
