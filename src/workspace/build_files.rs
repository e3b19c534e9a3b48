//! The files that Maven reads before any source: a tree's build files, with the module of a file and the repositories
//! that POMs declare.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::WorkspaceError;
use super::pom::{DeclaredRepository, PomError, PomFacts};
use super::reactor::{self, Poms, Reached, join, reached, resolve};
use super::tree::{EntryKind, RevisionTree};
use crate::digest::{Digest, encode_hex};
use crate::task::RepositoryPath;

/// The most Maven repositories inside the tree that POMs of one module declare.
const MOST_IN_TREE: usize = 20;

/// The build files of a tree: `.mvn`, and every `pom.xml` outside of tests and resources.
///
/// Other files that POMs may read (a rule set, a parent under another name) are not part of the set.
#[derive(Clone, Debug)]
pub struct BuildFiles {
    /// Contents by path; `None` if the repository lacks the content.
    files: BTreeMap<String, Option<Vec<u8>>>,
    poms: Poms,
    /// The modules that Maven reaches from the root's POM.
    reactor: Reached,
}

/// The place of a module in a reactor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModuleLocation {
    /// The module's directory, `""` for the root.
    pub directory: String,
    /// The directory of the POM that Maven starts from, `""` for the root. It is the root if the root reaches the
    /// module through `<modules>`, profiles included. Otherwise it is the topmost POM that reaches the module and
    /// another module on which this one depends. Otherwise it is the module itself.
    pub start: String,
    /// Profiles that must be named to reach the module, sorted.
    pub profiles: Vec<String>,
    /// Whether Maven must build everything that the start reaches, because a plugin looks up other projects.
    pub whole: bool,
    /// Whether the module's POM, or one that it inherits from, switches tests off by property.
    pub skips_tests: bool,
    /// The module's `artifactId` in its POM.
    pub artifact_id: Option<String>,
}

impl BuildFiles {
    /// Reads the build files of a tree.
    ///
    /// # Errors
    /// [`WorkspaceError::HostileTree`] for a file that is too large, [`WorkspaceError::Git`].
    pub fn read(tree: &RevisionTree) -> Result<Self, WorkspaceError> {
        let mut files = BTreeMap::new();
        let mut poms = BTreeMap::new();
        for (path, entry) in tree.entries() {
            // Maven never reads a file whose name is not text.
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
        let reactor = reached(&poms, "");
        Ok(Self { files, poms, reactor })
    }

    /// Returns the files' contents by path; `None` if the repository lacks the content.
    pub fn files(&self) -> &BTreeMap<String, Option<Vec<u8>>> {
        &self.files
    }

    /// Returns the facts of every POM by path, or why a POM can't be parsed.
    pub fn poms(&self) -> &BTreeMap<String, Result<PomFacts, PomError>> {
        &self.poms
    }

    /// Returns the set's identity: equal for equal paths and contents.
    pub fn identity(&self) -> Digest {
        let mut listing = String::from("build-files-1\n");
        for (path, content) in &self.files {
            let content = content.as_ref().map_or("missing".to_owned(), |bytes| encode_hex(&Sha256::digest(bytes)));
            // Lengths come first, because a path may contain anything but NUL.
            listing.push_str(&format!("{} {path} {content}\n", path.len()));
        }
        Digest::of(listing.as_bytes())
    }

    /// Returns the module of a test file, or `None` if no build could compile the file. Either no POM is above it, or
    /// the nearest POM packages nothing, or the nearest POM belongs to an enclosing module because the file's own POM
    /// is missing.
    pub fn module_of(&self, test_file: &RepositoryPath) -> Option<ModuleLocation> {
        let path = test_file.as_str();
        let ancestors = path.rmatch_indices('/').map(|(end, _)| &path[..end]).chain([""]);
        let (directory, facts) = ancestors
            .filter_map(|directory| self.poms.get(&join(directory, "pom.xml")).map(|facts| (directory, facts)))
            .next()?;
        // Maven decides about a POM that this program can't parse.
        let facts = facts.as_ref().ok();
        if facts.is_some_and(|facts| facts.packaging.as_deref() == Some("pom")) {
            return None;
        }
        let within = path.strip_prefix(directory).unwrap_or(path).trim_start_matches('/');
        if facts.is_some_and(|facts| self.is_of_another(&join(directory, "pom.xml"), facts, within)) {
            return None;
        }
        let start = reactor::start(&self.poms, &self.reactor, directory);
        Some(ModuleLocation {
            directory: directory.to_owned(),
            start: start.directory,
            profiles: start.profiles.into_iter().collect(),
            whole: start.whole,
            skips_tests: reactor::skips_tests(&self.poms, directory),
            artifact_id: facts.and_then(|facts| facts.artifact_id.clone()),
        })
    }

    /// Tells whether a file below a POM's module certainly belongs to another module without a POM here. That is so if
    /// the file is in the other module's test directory, and nothing shows that this module compiles that directory. In
    /// doubt the file counts as this module's: a wrong answer then only makes Maven not compile it.
    fn is_of_another(&self, pom: &str, facts: &PomFacts, file: &str) -> bool {
        let Some(tests) = test_directory(facts) else { return false };
        let Some((other, _)) = file.split_once("/src/test/java/") else { return false };
        if Path::new(file).starts_with(tests) {
            return false;
        }
        let named = format!("{}/src/test", other.rsplit('/').next().unwrap_or(other));
        let may_add = |(path, content): (&String, &Option<Vec<u8>>)| {
            let Some(content) = content else { return true };
            let text = String::from_utf8_lossy(content);
            // Goals that add test directories, and the phase in which any goal may do so; a parent's test directory.
            text.contains("test-source")
                || text.contains(&named)
                || (path != pom && text.contains("testSourceDirectory"))
        };
        !self.files.iter().any(may_add)
    }

    /// Returns directories of the tree that a module's POM and its parents declare as Maven repositories. Only Maven
    /// can tell the base directory of an address, so each of these POMs' directories is tried. A directory with a POM
    /// is a module and left out.
    pub fn repository_directories(&self, module: &ModuleLocation, tree: &RevisionTree) -> BTreeSet<String> {
        let mut homes = reactor::lineage(&self.poms, &module.directory);
        let declared = homes.iter().filter_map(|home| self.poms.get(&join(home, "pom.xml"))?.as_ref().ok());
        let declared = declared.flat_map(|facts| &facts.repositories).filter_map(DeclaredRepository::path_in_tree);
        let paths: BTreeSet<&str> = declared.take(MOST_IN_TREE).collect();
        homes.push(module.start.clone());
        let found = paths.iter().flat_map(|path| homes.iter().filter_map(|home| resolve(home, path)));
        found
            .filter(|directory| !directory.is_empty() && tree.is_directory(directory))
            .filter(|directory| !self.poms.contains_key(&join(directory, "pom.xml")))
            .collect()
    }

    /// Returns the repositories that the POMs declare, sorted, each once.
    pub fn declared_repositories(&self) -> Vec<DeclaredRepository> {
        let all = self.poms.values().flatten().flat_map(|facts| facts.repositories.iter().cloned());
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Returns a module's test directory, relative to the module; `None` if only Maven knows it.
fn test_directory(facts: &PomFacts) -> Option<&str> {
    let Some(text) = facts.test_source_directory.as_deref() else { return Some("src/test/java") };
    let mut own = ["${basedir}/", "${project.basedir}/", "./"].into_iter().filter_map(|own| text.strip_prefix(own));
    let text = own.next().unwrap_or(text);
    let plain = text.split('/').all(|part| !matches!(part, "" | "." | "..")) && !text.contains(['$', '\\']);
    plain.then_some(text)
}

fn is_pom(path: &str) -> bool {
    let file = path.strip_suffix("pom.xml").is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
    // Plugins under test have whole projects among their resources.
    file && !["src/test/resources/", "src/main/resources/"]
        .iter()
        .any(|resources| path.starts_with(resources) || path.contains(&format!("/{resources}")))
}

fn is_in_mvn(path: &str) -> bool {
    path.starts_with(".mvn/")
}

#[cfg(test)]
mod tests;
