//! Reads the few facts of a POM that are needed before Maven runs. Nothing is inherited or interpolated here, because
//! only Maven can do that.
//!
//! POMs are untrusted: document types are refused, so there are no entities to expand, and sizes are bounded.

use std::collections::BTreeSet;

use quick_xml::Reader;
use quick_xml::events::Event;
use serde::Serialize;

/// The largest POM that is read, in bytes.
const MOST_BYTES: usize = 4 << 20;
/// The deepest element.
const MOST_DEPTH: usize = 100;
/// The most modules, repositories, profiles, dependencies, licences or goals of one POM.
const MOST_ITEMS: usize = 10_000;

/// Why a POM can't be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PomError(String);

impl PomError {
    pub(super) fn new(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

/// The facts in a POM's own text. Texts are trimmed and may contain `${…}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PomFacts {
    /// `groupId`; Maven's default is the parent's.
    pub group_id: Option<String>,
    /// `artifactId`.
    pub artifact_id: Option<String>,
    /// `packaging`; Maven's default is `jar`.
    pub packaging: Option<String>,
    /// The parent; `None` if the POM has none.
    pub parent: Option<Parent>,
    /// `build/testSourceDirectory`.
    pub test_source_directory: Option<String>,
    /// The property `maven.test.skip` outside of profiles: tests are not even compiled where it is true.
    pub skips_tests: Option<bool>,
    /// Modules, those of profiles included, in order.
    pub modules: Vec<DeclaredModule>,
    /// Profiles, in order.
    pub profiles: Vec<Profile>,
    /// Dependencies, those of profiles included, in order.
    pub dependencies: Vec<Dependency>,
    /// Goals of the build's plugins, managed ones and those of profiles included.
    pub goals: BTreeSet<String>,
    /// Repositories and plugin repositories, those of profiles included, in order.
    pub repositories: Vec<DeclaredRepository>,
    /// Licences, in order. A POM without any has its parent's.
    pub licenses: Vec<DeclaredLicense>,
}

/// A POM's parent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parent {
    /// `groupId`.
    pub group_id: Option<String>,
    /// `artifactId`.
    pub artifact_id: Option<String>,
    /// `version`.
    pub version: Option<String>,
    /// `relativePath`; Maven's default is `../pom.xml`, and an empty value means no directory.
    pub relative_path: Option<String>,
}

/// A module that a POM names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredModule {
    /// A directory, or a POM by its file name, relative to the naming POM.
    pub path: String,
    /// The profile that names it, as an index into [`PomFacts::profiles`].
    pub profile: Option<usize>,
}

/// A profile of a POM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The profile's id, empty if it has none.
    pub id: String,
    /// The condition under which Maven activates the profile by itself.
    pub activation: Activation,
}

/// The condition under which Maven activates a profile by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// Never.
    #[default]
    None,
    /// Active unless another profile of its POM is.
    ByDefault,
    /// On conditions: a Java version, a property, a file, a system.
    Conditional,
}

/// A dependency as a POM names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dependency {
    /// `groupId`.
    pub group_id: String,
    /// `artifactId`.
    pub artifact_id: String,
}

/// A licence that a POM names. Each text may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeclaredLicense {
    /// Its name.
    pub name: String,
    /// The address of its text.
    pub url: String,
}

/// A repository that a POM declares.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct DeclaredRepository {
    /// Its id, empty if it has none.
    pub id: String,
    /// Its address.
    pub url: String,
    /// Whether it is a repository of plugins.
    pub plugins: bool,
}

impl DeclaredRepository {
    /// Returns the path of a repository inside the project's tree. Only Maven can tell its base directory: that of the
    /// POM, of an inheriting POM, or of the root's POM.
    pub fn path_in_tree(&self) -> Option<&str> {
        const DIRECTORIES: [&str; 7] = [
            "basedir",
            "maven.multiModuleProjectDirectory",
            "pom.basedir",
            "project.basedir",
            "project.parent.basedir",
            "session.executionRootDirectory",
            "user.dir",
        ];
        let rest = self.url.strip_prefix("file:")?.trim_start_matches('/').strip_prefix("${")?;
        let (directory, path) = rest.split_once('}')?;
        DIRECTORIES.contains(&directory).then(|| path.trim_start_matches('/'))
    }
}

impl PomFacts {
    /// Returns the group, which may be the parent's.
    pub fn group(&self) -> Option<&str> {
        let parent = self.parent.as_ref().and_then(|parent| parent.group_id.as_deref());
        self.group_id.as_deref().or(parent)
    }

    /// Returns the artifact's directory in a Maven repository, `group/as/path/artifact`; `None` unless both names are
    /// plain.
    pub fn artifact_directory(&self) -> Option<String> {
        let directory = format!("{}/{}", self.group()?.replace('.', "/"), self.artifact_id.as_ref()?);
        (!directory.contains("${")).then_some(directory)
    }

    /// Returns the number of items of the most frequent kind.
    fn most_items(&self) -> usize {
        let Self { modules, repositories, profiles, dependencies, goals, licenses, .. } = self;
        let lists = [modules.len(), repositories.len(), profiles.len(), licenses.len()];
        lists.into_iter().chain([dependencies.len(), goals.len()]).max().unwrap_or_default()
    }

    /// Parses a POM. Bytes that are not UTF-8 are replaced, because the needed names are plain text in every encoding
    /// of POMs.
    ///
    /// # Errors
    /// [`PomError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, PomError> {
        if bytes.len() > MOST_BYTES {
            return Err(PomError("it is too large".into()));
        }
        let text = String::from_utf8_lossy(bytes);
        let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
        reader.config_mut().expand_empty_elements = true;
        let mut parser = Parser::default();
        loop {
            let at = reader.buffer_position();
            let malformed = |reason: String| PomError(format!("{reason} (at byte {at})"));
            match reader.read_event().map_err(|error| malformed(error.to_string()))? {
                Event::Start(element) => {
                    if parser.path.len() >= MOST_DEPTH {
                        return Err(malformed("elements are nested too deep".into()));
                    }
                    parser.start(element.local_name().as_ref());
                }
                Event::End(_) => parser.end(),
                Event::Text(text) => parser.text.push_str(&text.xml10_content()),
                Event::CData(text) => parser.text.push_str(&text.xml10_content()),
                Event::GeneralRef(reference) => match reference.resolve_char_ref() {
                    Ok(Some(c)) => parser.text.push(c),
                    _ => parser.text.push_str(match &*reference.xml10_content() {
                        "amp" => "&",
                        "lt" => "<",
                        "gt" => ">",
                        "quot" => "\"",
                        "apos" => "'",
                        // Descriptions may contain entities of HTML, which Maven knows. The needed elements have none.
                        _ => "\u{fffd}",
                    }),
                },
                Event::DocType(_) => return Err(malformed("it has a document type".into())),
                Event::Eof => break,
                Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            }
            if parser.facts.most_items() > MOST_ITEMS {
                return Err(malformed(
                    "it has too many modules, repositories, profiles, dependencies, licences or goals".into(),
                ));
            }
        }
        match (parser.path.is_empty(), parser.is_project) {
            (true, true) => Ok(parser.facts),
            (true, false) => Err(PomError("it has no element `project`".into())),
            (false, _) => Err(PomError("it ends early".into())),
        }
    }
}

#[derive(Default)]
struct Parser {
    facts: PomFacts,
    path: Vec<String>,
    /// Text since the last tag.
    text: String,
    is_project: bool,
}

impl Parser {
    fn start(&mut self, name: &str) {
        self.path.push(name.to_owned());
        self.text.clear();
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        match path.as_slice() {
            ["project"] => self.is_project = true,
            ["project", "parent"] => self.facts.parent = Some(Parent::default()),
            ["project", "profiles", "profile"] => self.facts.profiles.push(Profile::default()),
            ["project", "licenses", "license"] => self.facts.licenses.push(DeclaredLicense::default()),
            path => {
                if within_profile(path) == ["dependencies", "dependency"] {
                    self.facts.dependencies.push(Dependency::default());
                }
                let plugins = matches!(within_profile(path), ["pluginRepositories", "pluginRepository"]);
                if plugins || matches!(within_profile(path), ["repositories", "repository"]) {
                    self.facts.repositories.push(DeclaredRepository { plugins, ..DeclaredRepository::default() });
                }
            }
        }
    }

    fn end(&mut self) {
        let text = std::mem::take(&mut self.text).trim().to_owned();
        let path: Vec<String> = std::mem::take(&mut self.path);
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        let facts = &mut self.facts;
        match names.as_slice() {
            ["project", "groupId"] => facts.group_id = Some(text),
            ["project", "artifactId"] => facts.artifact_id = Some(text),
            ["project", "packaging"] => facts.packaging = Some(text),
            ["project", "parent", "groupId"] => facts.parent.get_or_insert_default().group_id = Some(text),
            ["project", "parent", "artifactId"] => facts.parent.get_or_insert_default().artifact_id = Some(text),
            ["project", "parent", "version"] => facts.parent.get_or_insert_default().version = Some(text),
            ["project", "parent", "relativePath"] => facts.parent.get_or_insert_default().relative_path = Some(text),
            ["project", "properties", "maven.test.skip"] => {
                facts.skips_tests = Some(text.eq_ignore_ascii_case("true"));
            }
            ["project", "build", "testSourceDirectory"] => facts.test_source_directory = Some(text),
            ["project", "licenses", "license", part @ ("name" | "url")] => {
                let Some(last) = facts.licenses.last_mut() else { unreachable!("it was pushed as it began") };
                *(if *part == "name" { &mut last.name } else { &mut last.url }) = text;
            }
            ["project", "profiles", "profile", "id"] => {
                facts.profiles.last_mut().into_iter().for_each(|profile| profile.id.clone_from(&text));
            }
            ["project", "profiles", "profile", "activation", condition] => {
                let Some(profile) = facts.profiles.last_mut() else { unreachable!("it was pushed as it began") };
                match (*condition, profile.activation) {
                    ("activeByDefault", Activation::None) if text == "true" => {
                        profile.activation = Activation::ByDefault
                    }
                    ("activeByDefault", _) => {}
                    _ => profile.activation = Activation::Conditional,
                }
            }
            names => match (within_profile(names), facts.repositories.last_mut()) {
                (["modules", "module"], _) if !text.is_empty() => {
                    let profile = (names.get(1) == Some(&"profiles")).then(|| facts.profiles.len().saturating_sub(1));
                    facts.modules.push(DeclaredModule { path: text, profile });
                }
                (["dependencies", "dependency", part @ ("groupId" | "artifactId")], _) => {
                    let Some(last) = facts.dependencies.last_mut() else { unreachable!("it was pushed as it began") };
                    *(if *part == "groupId" { &mut last.group_id } else { &mut last.artifact_id }) = text;
                }
                (["build", rest @ ..], _) => {
                    let managed = rest.strip_prefix(&["pluginManagement"]).unwrap_or(rest);
                    if managed == ["plugins", "plugin", "executions", "execution", "goals", "goal"] {
                        facts.goals.insert(text);
                    }
                }
                (
                    ["repositories", "repository", "id"] | ["pluginRepositories", "pluginRepository", "id"],
                    Some(last),
                ) => {
                    last.id = text;
                }
                (
                    ["repositories", "repository", "url"] | ["pluginRepositories", "pluginRepository", "url"],
                    Some(last),
                ) => last.url = text,
                _ => {}
            },
        }
        self.path = path;
        self.path.pop();
    }
}

/// Returns the rest of a path inside the project or one of its profiles; empty outside of both.
fn within_profile<'a, 'b>(path: &'a [&'b str]) -> &'a [&'b str] {
    match path {
        ["project", "profiles", "profile", rest @ ..] | ["project", rest @ ..] => rest,
        _ => &[],
    }
}

#[cfg(test)]
mod tests;
