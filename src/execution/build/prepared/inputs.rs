//! Packs the warm compiler's inputs from a compiled tree, and checks that it can compile with them as the build did.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Seek as _};
use std::path::Path;

use super::fitness::{rewritten, unfit};
use super::{PreparedError, in_tree};
use crate::artifact::store::Store;
use crate::digest::Digest;
use crate::execution::build::compiled_tree::{CompiledTree, EntryKind};
use crate::execution::build::recording::{CompilerCall, OUTPUT_OPTIONS, Recording};
use crate::execution::container::places::within;
use crate::outcome::launch::shortened;

/// A build whose compiled tree is examined.
pub(super) struct Sources<'a> {
    /// Tar archive of the tree that was built.
    pub(super) source: &'a Path,
    /// The module's `groupId:artifactId`.
    pub(super) project: &'a str,
    /// The compiler calls for the module's tests.
    pub(super) test_calls: &'a [CompilerCall],
    /// The directory of the module's test classes.
    pub(super) test_output: &'a str,
}

/// The result of examining a compiled tree.
pub(super) struct Looked {
    /// As [`super::CompiledRevision::jars`].
    pub(super) jars: BTreeMap<String, Digest>,
    /// As [`super::CompiledRevision::generates`].
    pub(super) generates: bool,
    /// As [`super::CompiledRevision::unfit`].
    pub(super) unfit: Option<String>,
}

/// Examines a compiled tree in the store, and packs jars of the directories where compilers find classes.
///
/// # Errors
/// [`PreparedError`]; [`PreparedError::Unfit`] is not a fault of ours.
pub(super) fn look(
    store: &Store,
    tree: &Digest,
    recording: &Recording,
    build: &Sources<'_>,
) -> Result<Looked, PreparedError> {
    let tree = CompiledTree::open(&store.sound(tree)?)?;
    let rewritten = rewritten(build.source, &tree, build.test_calls)?;
    let unfit = unfit(recording, build.project, build.test_calls, build.test_output).or(rewritten);
    let mut generated = build.test_calls.iter().filter_map(|call| call.generated_sources.as_deref()).map(in_tree);
    let generates = generated.any(|path| tree.files_below(path).next().is_some());
    let mut jars = BTreeMap::new();
    let mut unclear = None;
    for path in on_paths(recording, build.test_output) {
        let mut writer = store.writer()?;
        match within(path).map(|within| (tree.at(&within), within)) {
            Some((EntryKind::File(place), _)) => tree.copy(place, &mut writer)?,
            Some((EntryKind::Directory, directory)) => {
                let mut jar = tree.write_jar(&directory, |_| false, store.unnamed_file()?)?;
                jar.rewind()?;
                io::copy(&mut jar, &mut writer)?;
            }
            // Compilers ignore missing entries.
            Some((EntryKind::Nothing, _)) | None => continue,
            Some((EntryKind::Unclear, path)) => {
                unclear = Some(format!("`{path}` is no file and no directory, and compilers look for classes there"));
                continue;
            }
        }
        jars.insert(path.to_owned(), writer.commit()?.0);
    }
    let told = || build.test_calls.iter().find_map(|call| told_of(call, &tree, &jars, build.test_output));
    let unfit = unfit.or(unclear).or_else(told).map(|reason| shortened(&reason));
    Ok(Looked { jars, generates, unfit })
}

/// Returns the paths where compilers look for classes, except the module's test classes.
fn on_paths<'a>(recording: &'a Recording, test_output: &str) -> BTreeSet<&'a str> {
    let paths = recording.compilations.iter().flat_map(|call| {
        let lists = [&call.class_path, &call.module_path, &call.processor_path];
        lists.into_iter().flatten().chain(std::iter::once(&call.output))
    });
    paths.map(String::as_str).filter(|path| *path != test_output).collect()
}

/// Returns why a compiler that sees only `jars` and its sources may behave differently: an argument names another part
/// of the tree. `None` if no argument does.
fn told_of(
    call: &CompilerCall,
    tree: &CompiledTree,
    jars: &BTreeMap<String, Digest>,
    test_output: &str,
) -> Option<String> {
    // A forked compiler works in its module's directory, others in the tree's.
    let base = call.working_directory.as_deref().filter(|_| call.fork);
    let within = |path: &str| match base {
        Some(base) if !path.starts_with('/') => within(&format!("{base}/{path}")),
        _ => within(path),
    };
    let directories = [test_output, &call.output].into_iter().chain(call.generated_sources.as_deref());
    let directories = directories.chain(call.source_roots.iter().map(String::as_str));
    let known: BTreeSet<Option<String>> = directories.map(&within).collect();
    let before = std::iter::once("").chain(call.arguments.iter().map(String::as_str));
    for (before, argument) in before.zip(&call.arguments) {
        if OUTPUT_OPTIONS.contains(&before) {
            continue;
        }
        // The form of processors' own arguments is unknown.
        let lists = argument.split([':', '=']).chain(argument.split([':', '=', ',', ';', '@', ' ', '"', '\'']));
        for path in lists
            .filter(|path| path.contains(['/', '.']) && !jars.contains_key(*path) && !known.contains(&within(path)))
        {
            match within(path).map(|within| (tree.at(&within), within)) {
                Some((EntryKind::Nothing, _)) | None => {}
                Some((_, within)) => return Some(format!("the compiler of the tests is told of `{within}`")),
            }
        }
    }
    None
}

#[cfg(test)]
mod tests;
