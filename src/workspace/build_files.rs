//! What Maven reads of a tree before any source: the set of build files, which module a file lies in, and which
//! repositories the POMs declare.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::WorkspaceError;
use super::pom::{DeclaredRepository, PomError, PomFacts};
use super::tree::{EntryKind, RevisionTree};
use crate::digest::{Digest, encode_hex};
use crate::task::RepositoryPath;

type Poms = BTreeMap<String, Result<PomFacts, PomError>>;

/// The goal of `directory-maven-plugin` that looks another project of the tree up, which must be part of the build then,
/// whether the module needs it or not.
const LOOKS_PROJECTS_UP: &str = "directory-of";

/// The build files of a tree: every `pom.xml` but those that tests or resources carry, and `.mvn`.
///
/// Other files that POMs may read (a rule set, a parent under another name) are no part of the set.
#[derive(Clone, Debug)]
pub struct BuildFiles {
    /// Contents by path; `None` where the repository lacks the content.
    files: BTreeMap<String, Option<Vec<u8>>>,
    poms: Poms,
    /// Directories that the root's reactor reaches, `""` for the root itself, and the profiles that must be named for each.
    reactor: BTreeMap<String, BTreeSet<String>>,
}

/// Where in a reactor a file lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModuleLocation {
    /// The module's directory, `""` for the root.
    pub directory: String,
    /// The directory of the POM that Maven starts from, `""` for the root: the root's where that reaches the module through
    /// `<modules>`, profiles included; else the topmost one that does and has another module that this one depends on; else
    /// the module's own.
    pub start: String,
    /// Profiles that must be named for that, sorted.
    pub profiles: Vec<String>,
    /// Whether everything that the start reaches must be built, as a plugin looks other projects up.
    pub whole: bool,
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
        let reactor = reached(&poms, "");
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
    /// no POM above it, only one that packages nothing, or one of a module around the one whose POM is missing.
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
        let within = path.strip_prefix(directory).unwrap_or(path).trim_start_matches('/');
        if facts.is_some_and(|facts| self.is_of_another(&join(directory, "pom.xml"), facts, within)) {
            return None;
        }
        let (start, profiles) = self.start_of(directory);
        let whole =
            start != directory && self.poms.values().flatten().any(|facts| facts.goals.contains(LOOKS_PROJECTS_UP));
        Some(ModuleLocation {
            directory: directory.to_owned(),
            start,
            profiles: profiles.into_iter().collect(),
            whole,
            artifact_id: facts.and_then(|facts| facts.artifact_id.clone()),
        })
    }

    /// Returns the directory of the POM that Maven starts from to build a module, and the profiles that must be named.
    fn start_of(&self, module: &str) -> (String, BTreeSet<String>) {
        if let Some(profiles) = self.reactor.get(module) {
            return (String::new(), profiles.clone());
        }
        let ancestors = module.match_indices('/').map(|(end, _)| &module[..end]);
        for ancestor in ancestors.filter(|ancestor| self.poms.contains_key(&join(ancestor, "pom.xml"))) {
            let mut reached = reached(&self.poms, ancestor);
            let Some(profiles) = reached.remove(module) else { continue };
            if reached.keys().any(|sibling| self.depends_on(module, sibling)) {
                return (ancestor.to_owned(), profiles);
            }
        }
        (module.to_owned(), BTreeSet::new())
    }

    /// Tells whether a module's POM names another one's artifact among its dependencies.
    fn depends_on(&self, module: &str, other: &str) -> bool {
        let facts = |directory| self.poms.get(&join(directory, "pom.xml")).and_then(|facts| facts.as_ref().ok());
        let artifact = facts(other).and_then(|facts| facts.artifact_id.as_ref());
        artifact.is_some_and(|artifact| facts(module).is_some_and(|facts| facts.dependencies.contains(artifact)))
    }

    /// Tells whether a file below the module of a POM certainly is one of another module, which has no POM here: it lies in
    /// that one's directory of tests, and nothing says that this module compiles that. A file that is wrongly said to lie in
    /// no module is worse than one that Maven then does not compile, so whatever may add sources leaves it to Maven.
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
            // Goals that add directories of tests, and the phase in which any goal may; a parent's directory of tests.
            text.contains("test-source")
                || text.contains(&named)
                || (path != pom && text.contains("testSourceDirectory"))
        };
        !self.files.iter().any(may_add)
    }

    /// Returns directories of the tree that POMs declare as Maven repositories. From which directory an address counts is for
    /// Maven to tell, so that of every POM is tried.
    pub fn repository_directories(&self, tree: &RevisionTree) -> BTreeSet<String> {
        let declared = self.poms.values().flatten().flat_map(|facts| &facts.repositories);
        let paths: BTreeSet<&str> = declared.filter_map(DeclaredRepository::path_in_tree).collect();
        let homes: BTreeSet<&str> =
            self.poms.keys().map(|pom| pom.rsplit_once('/').map_or("", |(home, _)| home)).collect();
        let found = paths.iter().flat_map(|path| homes.iter().filter_map(|home| resolve(home, path)));
        found.filter(|directory| !directory.is_empty() && tree.is_directory(directory)).collect()
    }

    /// Returns the repositories that the POMs declare, sorted, each once.
    pub fn declared_repositories(&self) -> Vec<DeclaredRepository> {
        let all = self.poms.values().flatten().flat_map(|facts| facts.repositories.iter().cloned());
        all.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// Returns a module's directory of tests, relative to the module; `None` where only Maven can tell.
fn test_directory(facts: &PomFacts) -> Option<&str> {
    let Some(text) = facts.test_source_directory.as_deref() else { return Some("src/test/java") };
    let mut own = ["${basedir}/", "${project.basedir}/", "./"].into_iter().filter_map(|own| text.strip_prefix(own));
    let text = own.next().unwrap_or(text);
    let plain = text.split('/').all(|part| !matches!(part, "" | "." | "..")) && !text.contains(['$', '\\']);
    plain.then_some(text)
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

/// Returns the directories of the modules that Maven reaches from a directory's POM, with the profiles that must be named
/// for it: as few as there is a way with, sorted.
fn reached(poms: &Poms, from: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut reached: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    // Fewest profiles first, so that the first way to a POM is the best.
    let mut queue = BTreeSet::from([(0, BTreeSet::new(), join(from, "pom.xml"))]);
    while let Some((_, profiles, path)) = queue.pop_first() {
        let Some(Ok(facts)) = poms.get(&path).filter(|_| seen.insert(path.clone())) else { continue };
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        reached.entry(directory.to_owned()).or_insert_with(|| profiles.clone());
        for module in &facts.modules {
            // A module is a directory, or a POM by its file name.
            let Some(path) = resolve(directory, &module.path) else { continue };
            let profile = module.profile.and_then(|index| facts.profiles.get(index));
            let named = profile.filter(|profile| !profile.by_default && is_plain(&profile.id));
            let profiles: BTreeSet<String> =
                profiles.iter().cloned().chain(named.map(|profile| profile.id.clone())).collect();
            queue.insert((profiles.len(), profiles.clone(), join(&path, "pom.xml")));
            if path.ends_with(".xml") {
                queue.insert((profiles.len(), profiles, path));
            }
        }
    }
    reached
}

/// Tells whether a profile's id can stand in a list of Maven's `-P`, where `!`, `-`, `+` and `?` in front mean something.
fn is_plain(id: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let rest = |byte: u8| letter(byte) || matches!(byte, b'-' | b'.');
    id.bytes().next().is_some_and(letter) && id.bytes().all(rest)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the directory of a file's module in a tree with these POMs.
    fn module(poms: &[(&str, &str)], file: &str) -> Option<String> {
        Some(location(poms, file)?.directory)
    }

    fn location(poms: &[(&str, &str)], file: &str) -> Option<ModuleLocation> {
        let texts = poms.iter().map(|(path, text)| ((*path).to_owned(), format!("<project>{text}</project>")));
        let files: BTreeMap<String, Option<Vec<u8>>> = texts.map(|(path, text)| (path, Some(text.into()))).collect();
        let parsed = |content: &Option<Vec<u8>>| PomFacts::parse(content.as_deref().unwrap());
        let poms: BTreeMap<_, _> = files.iter().map(|(path, content)| (path.clone(), parsed(content))).collect();
        let reactor = reached(&poms, "");
        BuildFiles { files, poms, reactor }.module_of(&file.parse().unwrap())
    }

    /// Returns where Maven starts for a file of `a/app`, with which profiles, and whether everything is built.
    fn start(poms: &[(&str, &str)]) -> (String, String, bool) {
        let found = location(poms, "a/app/src/test/java/T.java").unwrap();
        assert_eq!(found.directory, "a/app");
        (found.start, found.profiles.join(","), found.whole)
    }

    #[test]
    fn maven_starts_where_the_module_is_reached() {
        let modules = |names: &[&str]| {
            let modules: String = names.iter().map(|name| format!("<module>{name}</module>")).collect();
            format!("<packaging>pom</packaging><modules>{modules}</modules>")
        };
        let profile = |id: &str, more: &str, names: &[&str]| {
            let modules: String = names.iter().map(|name| format!("<module>{name}</module>")).collect();
            let id = format!("<id>{id}</id>");
            format!("<profiles><profile>{id}{more}<modules>{modules}</modules></profile></profiles>")
        };
        let is = |poms: &[(&str, &str)], place: &str, profiles: &str, whole: bool| {
            assert_eq!(start(poms), (place.to_owned(), profiles.to_owned(), whole), "{poms:?}");
        };
        let lib = "<artifactId>lib</artifactId>";
        let app = "<dependencies><dependency><artifactId>lib</artifactId></dependency></dependencies>";
        is(&[("pom.xml", &modules(&["a/app"])), ("a/app/pom.xml", "")], "", "", false);
        is(&[("pom.xml", &modules(&["a"])), ("a/pom.xml", &modules(&["app"])), ("a/app/pom.xml", "")], "", "", false);
        // Another POM than the root's is started from where it brings what the module depends on.
        let nested = modules(&["app", "lib"]);
        let tree = [("pom.xml", ""), ("a/pom.xml", nested.as_str()), ("a/lib/pom.xml", lib), ("a/app/pom.xml", app)];
        is(&tree, "a", "", false);
        is(&tree[1..], "a", "", false);
        is(&[("a/pom.xml", &nested), ("a/lib/pom.xml", lib), ("a/app/pom.xml", "")], "a/app", "", false);
        is(&[("pom.xml", ""), ("a/app/pom.xml", app)], "a/app", "", false);
        // Profiles are named where there is no way without.
        let inactive = profile("more", "", &["a/app"]);
        is(&[("pom.xml", &inactive), ("a/app/pom.xml", "")], "", "more", false);
        let default = "<activation><activeByDefault>true</activeByDefault></activation>";
        is(&[("pom.xml", &profile("more", default, &["a/app"])), ("a/app/pom.xml", "")], "", "", false);
        is(&[("pom.xml", &profile("!x", "", &["a/app"])), ("a/app/pom.xml", "")], "", "", false);
        let both = inactive.clone() + &modules(&["a"]);
        is(&[("pom.xml", &both), ("a/pom.xml", &modules(&["app"])), ("a/app/pom.xml", "")], "", "", false);
        // A goal that wants other projects of the tree.
        let goals = "<goals><goal>directory-of</goal></goals>";
        let looks = format!(
            "<build><plugins><plugin><executions><execution>{goals}</execution></executions></plugin></plugins></build>"
        );
        is(&[("pom.xml", &modules(&["a/app"])), ("a/app/pom.xml", &looks)], "", "", true);
        is(&[("pom.xml", ""), ("a/app/pom.xml", &looks)], "a/app", "", false);
    }

    #[test]
    fn a_file_of_a_module_without_a_pom_lies_in_none() {
        let file = "core/src/test/java/p/ATest.java";
        assert_eq!(module(&[("pom.xml", "")], file), None);
        assert_eq!(module(&[("pom.xml", "<packaging>jar</packaging>")], file), None);
        assert_eq!(module(&[("pom.xml", ""), ("core/pom.xml", "")], file).as_deref(), Some("core"));
        assert_eq!(module(&[("app/pom.xml", "")], "app/a/b/src/test/java/ATest.java"), None);
        let own = "<build><testSourceDirectory>${project.basedir}/test</testSourceDirectory></build>";
        assert_eq!(module(&[("pom.xml", own)], file), None);
    }

    #[test]
    fn what_a_module_may_compile_lies_in_it() {
        let with = |directory: &str| format!("<build><testSourceDirectory>{directory}</testSourceDirectory></build>");
        let root = |pom: &str, file: &str| assert_eq!(module(&[("pom.xml", pom)], file).as_deref(), Some(""), "{pom}");
        let file = "core/src/test/java/p/ATest.java";
        for own in ["src/test/java/ATest.java", "src/test/java/p/src/test/java/ATest.java", "test/ATest.java"] {
            root("", own);
        }
        for directory in
            ["core/src/test/java", "./core/src/test", "${basedir}/core", "${tests}", "../core", "core//src", ".", ""]
        {
            root(&with(directory), file);
        }
        // Goals that add sources, and a phase that is for goals that do.
        root("<build><plugins><plugin><goal>add-test-source</goal></plugin></plugins></build>", file);
        root("<profiles><profile><phase>generate-test-sources</phase></profile></profiles>", file);
        root("<properties><more>${basedir}/core/src/test/java</more></properties>", file);
        let inherited = with("core/src/test/java");
        let parent = [("pom.xml", ""), ("parent/pom.xml", inherited.as_str())];
        assert_eq!(module(&parent, file).as_deref(), Some(""), "it may be inherited");
        assert_eq!(module(&[("pom.xml", "<broken>")], file).as_deref(), Some(""), "Maven has the last word");
    }
}
