//! A task's module as Maven is told it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::execution::container::places::PROJECT;
use crate::task::{Side, Task, TaskId};
use crate::workspace::ModuleLocation;

/// The tasks and sides for which Maven builds all modules because the lock says so.
#[derive(Clone, Debug, Default)]
pub struct WholeBuilds(BTreeSet<(TaskId, Side)>);

impl WholeBuilds {
    /// Adds a task's side.
    pub fn insert(&mut self, task: TaskId, side: Side) {
        self.0.insert((task, side));
    }

    /// Adds all of `others`.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Returns Maven's arguments for the module of a task's side.
    pub fn module(&self, task: &Task, side: Side, location: &ModuleLocation) -> ModuleArguments {
        let module = ModuleArguments::of(location);
        ModuleArguments { whole: module.whole || self.0.contains(&(task.id.clone(), side)), ..module }
    }
}

/// The arguments that tell Maven the task's module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleArguments {
    /// The module's directory relative to the tree, empty for the root.
    pub directory: String,
    /// The directory of the POM that Maven starts from, empty for the root.
    pub start: String,
    /// Profiles that must be named for the module to be part of the build.
    pub profiles: Vec<String>,
    /// Whether Maven builds all modules that the start POM reaches, instead of the module and its dependencies.
    pub whole: bool,
    /// Whether the project switches its tests off by property.
    pub skips_tests: bool,
}

/// Compiles the tests of a project that switches them off. Elsewhere the property stays unset: profiles may depend on it.
const TESTS_ON: &str = "-Dmaven.test.skip=false";

impl ModuleArguments {
    /// Returns Maven's arguments for a module.
    pub fn of(location: &ModuleLocation) -> Self {
        let ModuleLocation { directory, start, profiles, whole, skips_tests, artifact_id: _ } = location.clone();
        Self { directory, start, profiles, whole, skips_tests }
    }

    /// Returns the argument that other ones may override.
    pub(in crate::execution) fn default_argument(&self) -> Option<&'static str> {
        self.skips_tests.then_some(TESTS_ON)
    }

    pub(in crate::execution) fn maven(&self) -> Vec<String> {
        let mut arguments: Vec<String> = Vec::new();
        if !self.start.is_empty() {
            arguments.extend(["-f".into(), format!("{}/pom.xml", self.start)]);
        }
        if !self.profiles.is_empty() {
            arguments.extend(["-P".into(), self.profiles.join(",")]);
        }
        let below = Path::new(&self.directory).strip_prefix(&self.start).ok().and_then(Path::to_str);
        let selected = match below {
            // For the root Maven would build only the aggregator's module anyway. `-pl . -am` keeps it from building
            // the root's siblings.
            Some("") => self.start.is_empty().then_some("."),
            below => below,
        };
        if let Some(selected) = selected.filter(|_| !self.whole) {
            arguments.extend(["-pl".into(), selected.into(), "-am".into()]);
        }
        arguments
    }

    /// Returns what distinguishes this module's build from others': the directory and the arguments. Locks name build
    /// sets in this form.
    pub fn identity(&self) -> String {
        // Identities name only whether the root's POM reaches the module.
        let mut identity = format!("{}\n{}", self.directory, self.start.is_empty());
        let own = self.start.is_empty() || self.start == self.directory;
        if !own || self.whole || !self.profiles.is_empty() {
            identity.push_str(&format!("\n{}", self.maven().join(" ")));
        }
        if let Some(argument) = self.default_argument() {
            identity.push_str(&format!("\n{argument}"));
        }
        identity
    }

    /// Returns the module's directory in the container.
    pub fn path(&self) -> String {
        match self.directory.as_str() {
            "" => PROJECT.to_owned(),
            directory => format!("{PROJECT}/{directory}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_are_switched_off_have_an_identity_of_their_own() {
        let module = ModuleArguments { skips_tests: true, ..ModuleArguments::default() };
        assert_eq!(module.default_argument(), Some("-Dmaven.test.skip=false"));
        assert_eq!(module.identity(), "\ntrue\n-Dmaven.test.skip=false");
        assert_eq!(ModuleArguments::default().default_argument(), None);
    }

    #[test]
    fn maven_is_told_of_a_module() {
        let told = |directory: &str, start: &str, profiles: &[&str], whole| {
            let profiles = profiles.iter().map(|profile| (*profile).to_owned()).collect();
            let module = ModuleArguments {
                directory: directory.into(),
                start: start.into(),
                profiles,
                whole,
                skips_tests: false,
            };
            (module.maven().join(" "), module.identity())
        };
        // Locks that exist name sets by what was all there was to tell.
        for (directory, start, arguments, identity) in [
            ("", "", "-pl . -am", "\ntrue"),
            ("a/b", "", "-pl a/b -am", "a/b\ntrue"),
            ("a/b", "a/b", "-f a/b/pom.xml", "a/b\nfalse"),
        ] {
            assert_eq!(told(directory, start, &[], false), (arguments.to_owned(), identity.to_owned()));
        }
        for (start, profiles, whole, arguments) in [
            ("a", &[][..], false, "-f a/pom.xml -pl b -am"),
            ("a", &["x"], true, "-f a/pom.xml -P x"),
            ("", &["x", "y"], false, "-P x,y -pl a/b -am"),
            ("", &[], true, ""),
        ] {
            let identity = format!("a/b\n{}\n{arguments}", start.is_empty());
            assert_eq!(told("a/b", start, profiles, whole), (arguments.to_owned(), identity));
        }
    }
}
