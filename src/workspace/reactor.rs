//! Finds the modules that Maven reaches from a POM, and the POM from which it builds a module, as far as POMs alone
//! decide it.

use std::collections::{BTreeMap, BTreeSet};

use super::pom::{Activation, PomError, PomFacts};

/// Goals of `directory-maven-plugin` that look at all projects of the build: one looks up another project of the tree,
/// the other one looks for the directory above all projects. The whole tree must then be built, even if the module does
/// not need it.
const LOOKS_PROJECTS_UP: [&str; 2] = ["directory-of", "highest-basedir"];
/// The most profiles that are named to reach a module.
const MOST_PROFILES: usize = 8;
/// The most profiles that are named because others would deactivate them.
const MOST_DEFAULTS: usize = 32;
/// The longest id of a profile that is named, in bytes.
const MOST_ID_BYTES: usize = 100;
/// The most parents of a POM.
const MOST_PARENTS: usize = 100;

/// The POMs of a tree by path, or why one can't be parsed.
pub(super) type Poms = BTreeMap<String, Result<PomFacts, PomError>>;

/// Directories of modules, `""` for the root's, and the profiles that must be named to reach each.
pub(super) type Reached = BTreeMap<String, BTreeSet<String>>;

/// How Maven builds a module.
pub(super) struct Start {
    /// The directory of the POM that it starts from.
    pub(super) directory: String,
    /// Profiles that must be named.
    pub(super) profiles: BTreeSet<String>,
    /// Whether all reached modules must be built.
    pub(super) whole: bool,
}

/// Returns the modules that Maven reaches from a directory's POM, each with the smallest set of profiles.
pub(super) fn reached(poms: &Poms, from: &str) -> Reached {
    let mut reached = Reached::new();
    let mut seen = BTreeSet::new();
    // The fewest profiles come first, so the first way to a POM is the best. Only better ways to a POM than the last
    // are queued.
    let mut queue = BTreeSet::from([(0, BTreeSet::new(), join(from, "pom.xml"))]);
    let mut best: BTreeMap<String, usize> = BTreeMap::new();
    while let Some((_, profiles, path)) = queue.pop_first() {
        let Some(Ok(facts)) = poms.get(&path).filter(|_| seen.insert(path.clone())) else { continue };
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        reached.entry(directory.to_owned()).or_insert_with(|| profiles.clone());
        for module in &facts.modules {
            // A module is a directory, or a POM by its file name.
            let Some(place) = resolve(directory, &module.path) else { continue };
            let named = module.profile.and_then(|index| facts.profiles.get(index));
            // Maven alone activates a profile with conditions.
            let named = named.filter(|profile| profile.activation == Activation::None && is_plain(&profile.id));
            let added = named.filter(|profile| !profiles.contains(&profile.id));
            let count = profiles.len() + usize::from(added.is_some());
            for path in [join(&place, "pom.xml"), place] {
                let better = best.get(&path).is_none_or(|known| count < *known);
                if count > MOST_PROFILES || !better || seen.contains(&path) || !poms.contains_key(&path) {
                    continue;
                }
                best.insert(path.clone(), count);
                let profiles = profiles.iter().cloned().chain(added.map(|profile| profile.id.clone())).collect();
                queue.insert((count, profiles, path));
            }
        }
    }
    reached
}

/// Returns how Maven builds a module, given the modules that the root's POM reaches. It starts from the root if that
/// reaches the module. Else it starts from the topmost POM that reaches the module and another one on which this one
/// depends; else from the module itself.
pub(super) fn start(poms: &Poms, root: &Reached, module: &str) -> Start {
    if let Some(profiles) = root.get(module) {
        return started(poms, "", root, module, profiles);
    }
    let ancestors = module.match_indices('/').map(|(end, _)| &module[..end]);
    for ancestor in ancestors.filter(|ancestor| poms.contains_key(&join(ancestor, "pom.xml"))) {
        let reached = reached(poms, ancestor);
        let Some(profiles) = reached.get(module) else { continue };
        let needs_another = reached.keys().any(|sibling| sibling != module && depends_on(poms, module, sibling));
        if needs_another && is_complete(poms, &reached) {
            return started(poms, ancestor, &reached, module, profiles);
        }
    }
    Start { directory: module.to_owned(), profiles: BTreeSet::new(), whole: false }
}

fn started(poms: &Poms, directory: &str, reached: &Reached, module: &str, named: &BTreeSet<String>) -> Start {
    let mut profiles = named.clone();
    // Naming a profile deactivates those that are active by default in its POM.
    let here = reached.keys().filter_map(|directory| facts_of(poms, directory));
    let switched = here.filter(|facts| facts.profiles.iter().any(|profile| named.contains(&profile.id)));
    let defaults =
        switched.flat_map(|facts| &facts.profiles).filter(|profile| profile.activation == Activation::ByDefault);
    profiles.extend(defaults.map(|profile| profile.id.clone()).filter(|id| is_plain(id)).take(MOST_DEFAULTS));
    let needed = reached.keys().filter(|sibling| depends_on(poms, module, sibling)).map(String::as_str);
    let of_build = lineage(poms, module).into_iter().chain(needed.map(str::to_owned));
    let looks = |directory: &String| {
        facts_of(poms, directory).is_some_and(|facts| LOOKS_PROJECTS_UP.iter().any(|goal| facts.goals.contains(*goal)))
    };
    let whole = directory != module && of_build.into_iter().any(|directory| looks(&directory));
    Start { directory: directory.to_owned(), profiles, whole }
}

/// Returns a module's directory and those of its parents inside the tree, nearest first.
pub(super) fn lineage(poms: &Poms, module: &str) -> Vec<String> {
    let mut lineage = vec![module.to_owned()];
    while let Some(parent) = lineage.last().and_then(|directory| parent_of(poms, directory)) {
        if lineage.contains(&parent) || lineage.len() > MOST_PARENTS {
            break;
        }
        lineage.push(parent);
    }
    lineage
}

fn parent_of(poms: &Poms, directory: &str) -> Option<String> {
    let parent = facts_of(poms, directory)?.parent.as_ref()?;
    let path = parent.relative_path.as_deref().unwrap_or("../pom.xml");
    let place = (!path.is_empty()).then(|| resolve(directory, path))??;
    let place = if poms.contains_key(&place) { place } else { join(&place, "pom.xml") };
    poms.contains_key(&place).then(|| place.rsplit_once('/').map_or("", |(directory, _)| directory).to_owned())
}

/// Tells whether a module's POM, or one that it inherits from inside the tree, switches tests off by property. As in Maven, the
/// nearest POM with the property decides.
pub(super) fn skips_tests(poms: &Poms, module: &str) -> bool {
    let of = |directory: &String| facts_of(poms, directory)?.skips_tests;
    lineage(poms, module).iter().find_map(of).unwrap_or(false)
}

fn facts_of<'a>(poms: &'a Poms, directory: &str) -> Option<&'a PomFacts> {
    poms.get(&join(directory, "pom.xml"))?.as_ref().ok()
}

/// Tells whether a module's POM names another one's artifact among its dependencies.
fn depends_on(poms: &Poms, module: &str, other: &str) -> bool {
    let (Some(module), Some(other)) = (facts_of(poms, module), facts_of(poms, other)) else { return false };
    let (Some(artifact), Some(group)) = (&other.artifact_id, other.group()) else { return false };
    module.dependencies.iter().any(|dependency| {
        let same_group = match dependency.group_id.as_str() {
            "${project.groupId}" | "${project.parent.groupId}" | "${pom.groupId}" | "${groupId}" => {
                module.group() == Some(group)
            }
            literal => literal == group,
        };
        same_group && dependency.artifact_id == *artifact
    })
}

/// Tells whether every module that these POMs name without a profile exists. If one is missing, Maven builds nothing.
fn is_complete(poms: &Poms, reached: &Reached) -> bool {
    reached.keys().all(|directory| {
        let modules = facts_of(poms, directory).into_iter().flat_map(|facts| &facts.modules);
        modules.filter(|module| module.profile.is_none()).all(|module| {
            let place = resolve(directory, &module.path);
            place.is_some_and(|place| poms.contains_key(&join(&place, "pom.xml")) || poms.contains_key(&place))
        })
    })
}

/// Tells whether a profile's id is safe in Maven's list `-P`, in which a leading `!`, `-`, `+` or `?` has a meaning.
fn is_plain(id: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let rest = |byte: u8| letter(byte) || matches!(byte, b'-' | b'.');
    id.len() <= MOST_ID_BYTES && id.bytes().next().is_some_and(letter) && id.bytes().all(rest)
}

/// Returns `relative` as seen from `directory`, without `.` and `..`; `None` if it leaves the tree.
pub(super) fn resolve(directory: &str, relative: &str) -> Option<String> {
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

pub(super) fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

#[cfg(test)]
mod tests;
