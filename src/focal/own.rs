//! A test method's own focal methods: the production methods that the developers' test method calls on new code,
//! whether or not the commit changed them. Source: protocol §4; docs/scoring.md has the evidence.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::FocalLines;
use crate::task::MethodId;

/// The most own methods of a test method, because a trace is untrusted.
const MOST_OWN: usize = 1_000;
/// The most lines of own methods.
const MOST_LINES: usize = 20_000;

/// A method of the project's main classes that a launch entered, as in its class file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entered {
    /// Binary name of its class, parts by `/`.
    pub class: String,
    /// Package of its source file, parts by `/`; empty for the unnamed one.
    pub package: String,
    /// Name of its source file.
    pub file: String,
    /// Its name; `<init>` for a constructor, `<clinit>` for a class's initializer.
    pub method: String,
    /// Its descriptor, which tells overloads apart.
    pub descriptor: String,
    /// Lines with instructions of its code, counted from 1.
    pub lines: BTreeSet<usize>,
    /// Methods of test classes that call it directly, without other project code in between: `class#method`.
    pub callers: BTreeSet<String>,
}

/// A test method's own focal methods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OwnFocal {
    /// The test method.
    pub method: MethodId,
    /// The rule by which the test method has these focal methods.
    pub basis: Basis,
    /// The methods, sorted.
    pub own: Vec<OwnMethod>,
    /// Why the trace is incomplete or missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// One of a test method's own focal methods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OwnMethod {
    /// Package of its source file, parts by `/`.
    pub package: String,
    /// Name of its source file.
    pub file: String,
    /// Its first line: of its declaration if the task lists it, else of its code.
    pub first_line: usize,
    /// Its last line, likewise.
    pub last_line: usize,
    /// `Class#method`, the class without its package.
    pub name: String,
    /// Lines of its code, ascending, without lambdas and local classes in it. If the developers' test does not call it,
    /// all lines of its declaration.
    pub lines: Vec<usize>,
    /// Its index among the task's found focal methods, each extent once; `None` if the task does not list it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<usize>,
}

/// Why a test method has these focal methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The developers' test method calls them, directly or from a lambda in it.
    Called,
    /// The test method calls none itself; these are the listed ones that it enters.
    Entered,
    /// The test method enters none of the listed ones, so the task's whole list counts.
    NoneEntered,
    /// Its calls could not be traced, so the task's whole list counts.
    NotTraced,
}

impl Basis {
    /// Returns the reason in words.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Called => "the developers' test calls them",
            Self::Entered => "the developers' test enters them and calls none itself",
            Self::NoneEntered => "all that the task lists: the developers' test enters none",
            Self::NotTraced => "all that the task lists: it is not known what the developers' test calls",
        }
    }
}

impl OwnFocal {
    /// Returns the own focal methods of a test method from the methods that it entered and those that its task lists.
    /// The test method is declared in one of `classes`: the launched class and all types that it inherits
    /// from.
    pub fn of(method: MethodId, classes: &BTreeSet<String>, listed: &[FocalLines], entered: &[Entered]) -> Self {
        let is_called = |one: &&Entered| !one.method.starts_with('<') && one.is_called_by(&method, classes);
        let called: BTreeSet<OwnMethod> =
            entered.iter().filter(is_called).map(|one| OwnMethod::entered(one, listed)).collect();
        let lines: usize = called.iter().map(|one| one.lines.len()).sum();
        if called.len() > MOST_OWN || lines > MOST_LINES {
            let cause = format!("it calls {} methods of {lines} lines, which no test does", called.len());
            return Self::whole(method, listed, Basis::NotTraced, Some(cause));
        }
        if !called.is_empty() {
            return Self { method, basis: Basis::Called, own: called.into_iter().collect(), cause: None };
        }
        let places = (0..listed.len()).filter(|place| entered.iter().any(|one| one.is(&listed[*place])));
        let own: BTreeSet<OwnMethod> = places.map(|place| OwnMethod::listed(listed, place)).collect();
        match own.is_empty() {
            true => Self::whole(method, listed, Basis::NoneEntered, None),
            false => Self { method, basis: Basis::Entered, own: own.into_iter().collect(), cause: None },
        }
    }

    /// Returns the whole list.
    pub fn whole(method: MethodId, listed: &[FocalLines], basis: Basis, cause: Option<String>) -> Self {
        let own: BTreeSet<OwnMethod> = (0..listed.len()).map(|place| OwnMethod::listed(listed, place)).collect();
        Self { method, basis, own: own.into_iter().collect(), cause }
    }

    /// Returns the indexes of own focal methods that the task lists, each once.
    pub fn places(&self) -> impl Iterator<Item = usize> {
        let places: BTreeSet<usize> = self.own.iter().filter_map(|own| own.listed).collect();
        places.into_iter()
    }
}

impl OwnMethod {
    fn entered(one: &Entered, listed: &[FocalLines]) -> Self {
        let place = listed.iter().position(|listed| one.is(listed));
        let declared = place.and_then(|place| listed.get(place));
        let class = one.class.rsplit('/').next().unwrap_or(&one.class);
        Self {
            package: one.package.clone(),
            file: one.file.clone(),
            first_line: declared.map_or_else(|| one.lines.first().copied().unwrap_or_default(), |one| one.first_line),
            last_line: declared.map_or_else(|| one.lines.last().copied().unwrap_or_default(), |one| one.last_line),
            name: format!("{class}#{}", one.method),
            lines: one.lines.iter().copied().collect(),
            listed: place,
        }
    }

    fn listed(listed: &[FocalLines], place: usize) -> Self {
        let FocalLines { path, package, first_line, last_line, .. } = &listed[place];
        let file = file_name(path);
        Self {
            package: package.clone(),
            file: file.to_owned(),
            first_line: *first_line,
            last_line: *last_line,
            name: format!("{file}:{first_line}"),
            lines: (*first_line..=*last_line).collect(),
            listed: Some(place),
        }
    }
}

impl Entered {
    /// Tells whether a test method of these classes calls it, itself or from a lambda in it. Java 8's compiler gives a lambda
    /// within a lambda no method's name.
    fn is_called_by(&self, test: &MethodId, classes: &BTreeSet<String>) -> bool {
        let lambda = format!("lambda${}$", test.method());
        let is_test =
            |name: &str| name == test.method() || name.starts_with(&lambda) || name.starts_with("lambda$null$");
        let mut callers = self.callers.iter().filter_map(|caller| caller.rsplit_once('#'));
        callers.any(|(class, name)| classes.contains(class) && is_test(name))
    }

    /// Tells whether it is this focal method, or lies within it as a local class's method does. Code of field initializers is
    /// part of every constructor, so lines decide, and no range of them.
    fn is(&self, focal: &FocalLines) -> bool {
        self.package == focal.package
            && self.file == file_name(&focal.path)
            && self.lines.range(focal.first_line..=focal.last_line.max(focal.first_line)).next().is_some()
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests;
