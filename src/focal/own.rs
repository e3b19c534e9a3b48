//! A test method's own focal methods: those of its task's that the developers' test method enters on new code. Source:
//! protocol §4.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::FocalLines;
use crate::task::MethodId;

/// A method that a launch entered, as its class file has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entered {
    /// Package of its source file, parts by `/`; empty for the unnamed one.
    pub package: String,
    /// Name of its source file.
    pub file: String,
    /// Its name; `<init>` for a constructor.
    pub method: String,
    /// Lines that its code has instructions of, counted from 1.
    pub lines: BTreeSet<usize>,
}

/// Which of a task's focal methods are a test method's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnFocal {
    /// The test method.
    pub method: MethodId,
    /// Why these.
    pub basis: Basis,
    /// Places in the task's focal methods that were found, each extent once, ascending.
    pub own: Vec<usize>,
    /// What the basis rests on where that is not the launch itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// Why a test method has these focal methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The developers' test method enters them.
    Entered,
    /// The task has no other; no launch was needed.
    Only,
    /// The developers' test method enters none, so the task's whole list counts.
    NoneEntered,
    /// It could not be seen what the developers' test method enters, so the task's whole list counts.
    NotTraced,
}

impl Basis {
    /// Returns the reason in words.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Entered => "the developers' test enters them",
            Self::Only => "the task has no other",
            Self::NoneEntered => "all: the developers' test enters none",
            Self::NotTraced => "all: it is not known what the developers' test enters",
        }
    }
}

impl OwnFocal {
    /// Returns the own ones of `focal` of a test method that entered these methods.
    pub fn entered(method: MethodId, focal: &[FocalLines], entered: &[Entered]) -> Self {
        let is_entered = |one: &&FocalLines| entered.iter().any(|method| enters(method, one));
        let own: Vec<usize> = (0..focal.len()).filter(|place| is_entered(&&focal[*place])).collect();
        match own.is_empty() {
            true => Self::whole(method, focal, Basis::NoneEntered, None),
            false => Self { method, basis: Basis::Entered, own, cause: None },
        }
    }

    /// Returns the whole list.
    pub fn whole(method: MethodId, focal: &[FocalLines], basis: Basis, cause: Option<String>) -> Self {
        Self { method, basis, own: (0..focal.len()).collect(), cause }
    }
}

/// Tells whether a method that was entered is this focal one, or lies within it as a lambda or a local class does. Code of field
/// initializers is part of every constructor, so lines decide, and no range of them.
fn enters(entered: &Entered, focal: &FocalLines) -> bool {
    let file = focal.path.rsplit('/').next().unwrap_or(&focal.path);
    entered.package == focal.package
        && entered.file == file
        && entered.lines.range(focal.first_line..=focal.last_line.max(focal.first_line)).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::focal::Rule;

    fn focal(path: &str, first_line: usize, last_line: usize) -> FocalLines {
        let (path, package) = (path.to_owned(), "p/q".to_owned());
        FocalLines { rule: Rule::Extent, path, package, first_line, last_line, added: Vec::new() }
    }

    fn entered(file: &str, method: &str, lines: &[usize]) -> Entered {
        let (package, file, method) = ("p/q".to_owned(), file.to_owned(), method.to_owned());
        Entered { package, file, method, lines: lines.iter().copied().collect() }
    }

    #[test]
    fn what_is_entered_is_own_and_where_nothing_is_all_are() {
        let focal = [focal("src/p/q/A.java", 10, 14), focal("src/p/q/A.java", 20, 20), focal("src/p/q/B.java", 10, 14)];
        let of = |entered: &[Entered]| {
            let own = OwnFocal::entered("ATest#m".parse().unwrap(), &focal, entered);
            (own.basis, own.own)
        };
        assert_eq!(of(&[entered("A.java", "m", &[11, 12])]), (Basis::Entered, vec![0]));
        // A constructor's lines begin with those of field initializers and end with its own.
        assert_eq!(of(&[entered("A.java", "<init>", &[3, 20])]), (Basis::Entered, vec![1]));
        assert_eq!(of(&[entered("A.java", "m", &[14]), entered("B.java", "m", &[10])]), (Basis::Entered, vec![0, 2]));
        assert_eq!(of(&[entered("A.java", "n", &[15, 30])]), (Basis::NoneEntered, vec![0, 1, 2]));
        let other = Entered { package: "p".to_owned(), ..entered("A.java", "m", &[11]) };
        assert_eq!(of(&[other]), (Basis::NoneEntered, vec![0, 1, 2]));
        assert_eq!(of(&[]), (Basis::NoneEntered, vec![0, 1, 2]));
    }
}
