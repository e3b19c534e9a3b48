//! Which files of the source tree a file uses, and which crates, read from its text.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fs_err as fs;

/// Returns all sources of the program, relative to the project.
pub(crate) fn sources(root: &Path) -> BTreeSet<PathBuf> {
    let (mut found, mut left) = (BTreeSet::new(), vec![root.join("src")]);
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.insert(path.strip_prefix(root).unwrap().to_owned());
            }
        }
    }
    found
}

/// Returns a text without comments and without its module of tests.
pub(crate) fn program(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Returns the files that a file's program uses.
pub(crate) fn used(root: &Path, all: &BTreeSet<PathBuf>, file: &Path) -> BTreeSet<PathBuf> {
    let text = program(&fs::read_to_string(root.join(file)).unwrap());
    let own = module(file);
    let mut found = BTreeSet::new();
    for path in paths(&text) {
        let mut parts = path.as_slice();
        let mut at: Vec<&str> = match parts.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("self" | "super") => own.iter().map(String::as_str).collect(),
            _ => continue,
        };
        while let Some(word @ ("crate" | "self" | "super")) = parts.first().map(String::as_str) {
            if word == "super" {
                at.pop();
            }
            parts = &parts[1..];
        }
        at.extend(parts.iter().map(String::as_str));
        found.extend((1..=at.len()).rev().find_map(|length| file_of(all, &at[..length])));
    }
    found.remove(file);
    found
}

/// Returns the module that a file is.
pub(crate) fn module(file: &Path) -> Vec<String> {
    let below = file.strip_prefix("src").unwrap().with_extension("");
    let mut parts: Vec<String> = below.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts
}

fn file_of(all: &BTreeSet<PathBuf>, module: &[&str]) -> Option<PathBuf> {
    let path = Path::new("src").join(module.join("/"));
    let files = [path.with_extension("rs"), path.join("mod.rs")];
    files.into_iter().find(|file| all.contains(file))
}

/// Returns the paths that begin with `crate`, `self` or `super`, those of groups one by one.
fn paths(text: &str) -> Vec<Vec<String>> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for begin in ["crate::", "self::", "super::"] {
        for (at, _) in text.match_indices(begin) {
            let before = text[..at].chars().next_back();
            // The middle of another path or word.
            if !before.is_some_and(|c| is_word(c) || c == ':') {
                expand(&mut Vec::new(), &text[at..], &mut found);
            }
        }
    }
    found
}

/// Adds the paths that a text begins with, below some parts, and returns what is behind them.
fn expand<'a>(below: &mut Vec<String>, text: &'a str, found: &mut Vec<Vec<String>>) -> &'a str {
    let depth = below.len();
    let mut rest = text;
    loop {
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if let Some(mut group) = rest.strip_prefix('{') {
            loop {
                group = expand(below, group.trim_start(), found).trim_start();
                match group.strip_prefix(',') {
                    Some(next) => group = next.trim_start(),
                    None => break,
                }
            }
            below.truncate(depth);
            return group.strip_prefix('}').unwrap_or(group);
        }
        if length > 0 {
            below.push(rest[..length].to_owned());
        }
        match rest[length..].strip_prefix("::") {
            Some(next) if length > 0 => rest = next,
            _ => {
                found.push(below.clone());
                below.truncate(depth);
                let behind = &rest[length..];
                // `as name` of an import.
                let behind = behind
                    .strip_prefix(" as ")
                    .map_or(behind, |renamed| renamed.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_'));
                return behind;
            }
        }
    }
}

/// Returns the crates of these that a file's program uses.
pub(crate) fn crates<'a>(text: &str, known: &'a BTreeSet<String>) -> BTreeSet<&'a str> {
    let text = program(text);
    let uses = |name: &&String| {
        let path = format!("{}::", name.replace('-', "_"));
        text.match_indices(&path).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
        })
    };
    known.iter().filter(uses).map(String::as_str).collect()
}
