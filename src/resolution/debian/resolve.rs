//! Resolves the packages that a set of roots needs: dependencies without recommendations, deterministic for equal
//! indexes.
//!
//! Alternatives are tried in this order: as written, real packages before those that provide a name, preferred suites
//! before others, newer versions before older ones. Essential packages are not implied, because images list all their
//! packages.

use std::collections::{BTreeMap, BTreeSet};

use debversion::Version;

use super::index::{IndexError, Package, PackageIndex};
use super::relation::{Relation, accepts};

/// The most attempts for a set of packages. Real sets need some hundreds.
const MAX_STEPS: usize = 100_000;

/// Why no set of packages was found.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// No package satisfies a relation.
    #[error("`{relation}`, needed by {needed_by}, can't be had{}", .reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Unsatisfiable {
        /// The relation.
        relation: String,
        /// The package that needs it.
        needed_by: String,
        /// Why the last candidate failed; `None` without a candidate.
        reason: Option<Box<ResolveError>>,
    },
    /// Two versions of one package are needed.
    #[error("`{package}` is needed in version {wanted}, but {present} is there already")]
    OtherVersion {
        /// The package.
        package: String,
        /// The version needed now.
        wanted: String,
        /// The version chosen before, or that of a layer below.
        present: String,
    },
    /// Two packages exclude each other.
    #[error("`{package}` can't be together with `{other}`")]
    Conflict {
        /// The package that declares the conflict.
        package: String,
        /// The other.
        other: String,
    },
    /// The index is malformed.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The search reached its limit.
    #[error("the packages depend on each other in too many ways")]
    TooHard,
}

/// A package that is requested by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root<'a> {
    /// Its name.
    pub name: &'a str,
    /// The suite that it must come from; `None` for the most preferred suite that has it.
    pub suite: Option<&'a str>,
}

/// A package in a lower layer.
#[derive(Clone, Debug)]
pub struct Installed {
    /// Its version.
    pub version: Version,
    /// The virtual packages that it provides.
    pub provides: Vec<(String, Option<Version>)>,
}

/// The packages to resolve.
#[derive(Debug)]
pub struct Request<'a> {
    /// The requested packages.
    pub roots: Vec<Root<'a>>,
    /// Packages in lower layers, by name.
    pub installed: &'a BTreeMap<String, Installed>,
    /// Packages that count as installed but never are.
    pub dropped: &'a BTreeSet<String>,
}

/// Returns the packages that must be added, sorted by name. `suites` are in order of preference.
///
/// # Errors
/// [`ResolveError`].
pub fn resolve<'a>(suites: &[&'a PackageIndex], request: &Request<'_>) -> Result<Vec<&'a Package>, ResolveError> {
    let mut search = Search { suites, request, selected: BTreeMap::new(), steps: 0 };
    for root in &request.roots {
        if root.suite.is_none() && request.installed.contains_key(root.name) {
            continue;
        }
        let of_suite = |package: &&'a Package| root.suite.is_none_or(|suite| package.suite == suite);
        let package = named(suites, root.name)?.into_iter().find(of_suite);
        let package = package.ok_or_else(|| ResolveError::Unsatisfiable {
            relation: root.name.to_owned(),
            needed_by: root.suite.map_or("the policy".to_owned(), |suite| format!("the policy (from `{suite}`)")),
            reason: None,
        })?;
        search.add(package)?;
    }
    search.check_conflicts()?;
    Ok(search.selected.into_values().collect())
}

/// Returns the packages with that name, those of preferred suites first.
pub(crate) fn named<'a>(suites: &[&'a PackageIndex], name: &str) -> Result<Vec<&'a Package>, IndexError> {
    let mut packages = Vec::new();
    for index in suites {
        packages.extend(index.named(name)?);
    }
    Ok(packages)
}

struct Search<'s, 'a> {
    suites: &'s [&'a PackageIndex],
    request: &'s Request<'s>,
    selected: BTreeMap<&'a str, &'a Package>,
    steps: usize,
}

impl<'a> Search<'_, 'a> {
    fn add(&mut self, package: &'a Package) -> Result<(), ResolveError> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(ResolveError::TooHard);
        }
        let other = |present: String| ResolveError::OtherVersion {
            package: package.name.clone(),
            wanted: package.version_text.clone(),
            present,
        };
        if let Some(selected) = self.selected.get(package.name.as_str()) {
            if selected.version == package.version {
                return Ok(());
            }
            return Err(other(selected.version_text.clone()));
        }
        if let Some(installed) = self.request.installed.get(&package.name) {
            if installed.version == package.version {
                return Ok(());
            }
            return Err(other(installed.version.to_string()));
        }
        self.selected.insert(&package.name, package);
        for group in &package.depends {
            self.satisfy(group, package)?;
        }
        Ok(())
    }

    fn satisfy(&mut self, group: &[Relation], needed_by: &Package) -> Result<(), ResolveError> {
        for relation in group {
            if self.is_satisfied(relation) {
                return Ok(());
            }
        }
        let mut reason = None;
        for relation in group {
            for candidate in self.candidates(relation)? {
                let before = self.selected.clone();
                match self.add(candidate) {
                    Ok(()) => return Ok(()),
                    Err(error @ (ResolveError::TooHard | ResolveError::Index(_))) => return Err(error),
                    Err(error) => {
                        self.selected = before;
                        reason = Some(Box::new(error));
                    }
                }
            }
        }
        let relation: Vec<String> = group.iter().map(ToString::to_string).collect();
        let needed_by = format!("`{}` {}", needed_by.name, needed_by.version_text);
        Err(ResolveError::Unsatisfiable { relation: relation.join(" | "), needed_by, reason })
    }

    fn is_satisfied(&self, relation: &Relation) -> bool {
        let (name, installed) = (relation.name.as_str(), self.request.installed);
        self.request.dropped.contains(name)
            || installed.get(name).is_some_and(|package| accepts(relation, &package.version))
            || self.selected.get(name).is_some_and(|package| accepts(relation, &package.version))
            || installed.values().any(|package| stands_for(&package.provides, relation))
            || self.selected.values().any(|package| stands_for(&package.provides, relation))
    }

    /// Returns the packages that would satisfy the relation, the best first.
    fn candidates(&self, relation: &Relation) -> Result<Vec<&'a Package>, ResolveError> {
        let mut found = named(self.suites, &relation.name)?;
        found.retain(|package| accepts(relation, &package.version));
        for index in self.suites {
            let mut providers = index.providing(&relation.name)?;
            providers.retain(|package| stands_for(&package.provides, relation));
            providers.sort_by(|a, b| {
                (a.priority, &a.name).cmp(&(b.priority, &b.name)).then_with(|| b.version.cmp(&a.version))
            });
            found.extend(providers);
        }
        Ok(found)
    }

    fn check_conflicts(&self) -> Result<(), ResolveError> {
        for package in self.selected.values() {
            for relation in &package.breaks {
                if let Some(other) = self.broken_by(package, relation) {
                    return Err(ResolveError::Conflict { package: package.name.clone(), other });
                }
            }
        }
        Ok(())
    }

    fn broken_by(&self, package: &Package, relation: &Relation) -> Option<String> {
        let breaks = |name: &str, version: &Version, provides: &[(String, Option<Version>)]| {
            name != package.name
                && ((name == relation.name && accepts(relation, version)) || stands_for(provides, relation))
        };
        let selected = self.selected.values().find(|other| breaks(&other.name, &other.version, &other.provides));
        if let Some(other) = selected {
            return Some(other.name.clone());
        }
        let mut installed = self.request.installed.iter();
        installed.find(|(name, other)| breaks(name, &other.version, &other.provides)).map(|(name, _)| name.clone())
    }
}

/// Returns whether a provided name satisfies the relation. A version in the relation requires a provided version.
fn stands_for(provides: &[(String, Option<Version>)], relation: &Relation) -> bool {
    provides.iter().any(|(name, version)| {
        *name == relation.name
            && (relation.version.is_none() || version.as_ref().is_some_and(|version| accepts(relation, version)))
    })
}

#[cfg(test)]
mod tests;
