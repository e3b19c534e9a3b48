//! Sources of tests that the build's Java compiler is not told of, but that may depend on the masked file: those that
//! the build leaves out by its patterns, and those in Kotlin. The Java compiler may find the former by itself, in the
//! directories of sources, if one of its sources mentions them. Kotlin's compiler runs before and reads Java sources.

use std::collections::BTreeSet;

use super::Sources;
use crate::execution::build::compiled_tree::{CompiledTree, MOST_READ_BYTES};
use crate::execution::build::patterns::matches;
use crate::execution::build::prepared::{CompiledRevision, PreparedError, in_tree};
use crate::execution::build::recording::CompilerCall;
use crate::workspace::class_file::{ClassFacts, MOST_CLASS_BYTES};
use crate::workspace::java_source::{declared_types, mentions};

/// The compiler plugin's pattern of all sources.
const EVERY_SOURCE: &str = "**/*.java";

/// The directory in which Kotlin's incremental compiler keeps lists of sources.
const KOTLIN_LISTS: &str = "kotlin-ic";

/// Returns the sources in a call's directories that the call does not name. Annotation processors' own output is left
/// out: they make it while the compiler runs.
fn left_out(whole: &CompiledTree, call: &CompilerCall) -> Sources {
    if call.excludes.is_empty() && call.includes.iter().all(|pattern| pattern == EVERY_SOURCE) {
        return Sources::new();
    }
    let named: BTreeSet<&String> = call.sources.iter().collect();
    let generated = call.generated_sources.as_deref().map(|directory| format!("{directory}/"));
    let mut found = Sources::new();
    for root in &call.source_roots {
        for (path, place) in whole.files_below(in_tree(root)) {
            let path = format!("{}/{path}", root.trim_end_matches('/'));
            let is_generated = generated.as_ref().is_some_and(|generated| path.starts_with(generated));
            if path.ends_with(".java") && !is_generated && !named.contains(&path) {
                found.push((path, place));
            }
        }
    }
    found
}

/// Tells whether a call's patterns choose the source at `path`, absolute. False if that can't be told.
pub(super) fn chooses(call: &CompilerCall, path: &str) -> bool {
    let below = |root: &String| path.strip_prefix(root.trim_end_matches('/'))?.strip_prefix('/');
    let every = [EVERY_SOURCE.to_owned()];
    let includes = if call.includes.is_empty() { &every[..] } else { &call.includes };
    let matched = |patterns: &[String], path: &str| -> Option<bool> {
        let each: Option<Vec<bool>> = patterns.iter().map(|pattern| matches(pattern, path)).collect();
        Some(each?.contains(&true))
    };
    let chosen = |path| matched(includes, path) == Some(true) && matched(&call.excludes, path) == Some(false);
    call.source_roots.iter().filter_map(below).any(chosen)
}

/// Sources that may depend on the masked file, or the file on them.
pub(super) struct Unlisted {
    /// The sources that must not mention the file's types.
    pub(super) sources: Sources,
    /// Types of the sources that the build leaves out, which the file must not mention.
    left_out: BTreeSet<String>,
    /// Classes that Kotlin's compiler made, of which the file must not declare one.
    kotlin: BTreeSet<String>,
}

impl Unlisted {
    /// Finds them for a part of a revision's tests, whose classes are below `output`.
    ///
    /// # Errors
    /// [`PreparedError`]; [`PreparedError::Unfit`] if they can't be told.
    pub(super) fn find(
        whole: &CompiledTree,
        revision: &CompiledRevision,
        part: usize,
        output: &str,
    ) -> Result<Self, PreparedError> {
        let mut sources = left_out(whole, &revision.test_calls[part]);
        // The compiler prefers the classes of earlier parts to their sources.
        let earlier: BTreeSet<&String> = revision.test_calls[..part].iter().flat_map(|call| &call.sources).collect();
        let mut left_out = BTreeSet::new();
        for (_, place) in sources.iter().filter(|(path, _)| !earlier.contains(path)) {
            left_out.extend(declared_types(&whole.read(*place)?));
        }
        let (more, kotlin) = kotlin(whole, output)?;
        sources.extend(more);
        match sources.iter().find(|(_, place)| place.length > MOST_READ_BYTES) {
            Some((large, _)) => Err(PreparedError::Unfit(format!("`{large}` is too large to be read"))),
            None => Ok(Self { sources, left_out, kotlin }),
        }
    }

    /// Tells whether a text, which with its dependents declares `types`, reaches a source that is left out, or takes
    /// the name of a class in Kotlin.
    pub(super) fn touched_by(&self, text: &[u8], types: &BTreeSet<String>) -> bool {
        mentions(text, &self.left_out) || !types.is_disjoint(&self.kotlin)
    }
}

/// Returns the Kotlin sources, and their namesakes, of which classes below `output` were made, and these classes'
/// simple names.
fn kotlin(whole: &CompiledTree, output: &str) -> Result<(Sources, BTreeSet<String>), PreparedError> {
    let is_source = |path: &str| [".kt", ".kts"].iter().any(|end| path.ends_with(end));
    let unfit = |reason: &str| Err(PreparedError::Unfit(reason.to_owned()));
    if !whole.files_below("").any(|(path, _)| is_source(path)) {
        return Ok((Sources::new(), BTreeSet::new()));
    }
    if whole.files_below("").any(|(path, _)| path.split('/').any(|part| part == KOTLIN_LISTS)) {
        return unfit("Kotlin's incremental compiler keeps lists of the tests' sources");
    }
    let (mut files, mut types) = (BTreeSet::new(), BTreeSet::new());
    for (path, place) in whole.files_below(output).filter(|(path, _)| path.ends_with(".class")) {
        if place.length > MOST_CLASS_BYTES {
            return unfit("a class of the tests is too large to be read");
        }
        let Ok(facts) = ClassFacts::read(&whole.read(place)?) else {
            return unfit("a class of the tests can't be read");
        };
        let Some(source) = facts.source_file.filter(|source| is_source(source)) else { continue };
        files.insert(source);
        let name = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".class");
        types.extend(name.split('$').filter(|part| !part.is_empty()).map(str::to_owned));
    }
    let is_named = |path: &str| files.contains(path.rsplit('/').next().unwrap_or(path));
    let sources = whole.files_below("").filter(|(path, _)| is_named(path));
    Ok((sources.map(|(path, place)| (path.to_owned(), place)).collect(), types))
}
