//! What of a compiled tree the warm compiler gets, and whether it can compile with that as the build did.

use std::collections::BTreeMap;
use std::io::{self, Seek as _};
use std::path::Path;

use super::fitness::{rewritten, unfit};
use super::{PreparedError, in_tree};
use crate::artifact::store::Store;
use crate::digest::Digest;
use crate::execution::compiled_tree::CompiledTree;
use crate::execution::recording::{CompilerCall, Recording};

/// A build whose compiled tree is looked at.
pub(super) struct Build<'a> {
    /// Tar archive of the tree that was built.
    pub(super) source: &'a Path,
    /// The module's `groupId:artifactId`.
    pub(super) project: &'a str,
    /// What the compiler was asked for to compile the module's tests.
    pub(super) test_calls: &'a [CompilerCall],
    /// Where the module's test classes are.
    pub(super) test_output: &'a str,
}

/// What a compiled tree holds for the warm compiler.
pub(super) struct Looked {
    /// As [`super::CompiledRevision::jars`].
    pub(super) jars: BTreeMap<String, Digest>,
    /// As [`super::CompiledRevision::generates`].
    pub(super) generates: bool,
    /// As [`super::CompiledRevision::unfit`].
    pub(super) unfit: Option<String>,
}

/// Looks through a compiled tree in the store, and packs what compilers find classes in.
///
/// # Errors
/// [`PreparedError`]; [`PreparedError::TooLarge`] is no fault of ours.
pub(super) fn look(
    store: &Store,
    tree: &Digest,
    recording: &Recording,
    build: &Build<'_>,
) -> Result<Looked, PreparedError> {
    let tree = CompiledTree::open(&store.path(tree))?;
    let rewritten = rewritten(build.source, &tree, build.test_calls)?;
    let unfit = unfit(recording, build.project, build.test_calls, build.test_output).or(rewritten);
    let mut generated = build.test_calls.iter().filter_map(|call| call.generated_sources.as_deref()).map(in_tree);
    let generates = generated.any(|path| tree.files_below(path).next().is_some());
    let mut jars = BTreeMap::new();
    for directory in class_directories(recording, build.test_output, &tree) {
        let mut jar = tree.write_jar(in_tree(&directory), |_| false, store.unnamed_file()?)?;
        jar.rewind()?;
        let mut writer = store.writer()?;
        io::copy(&mut jar, &mut writer)?;
        jars.insert(directory, writer.commit()?.0);
    }
    Ok(Looked { jars, generates, unfit })
}

/// Returns the directories of the project that some compiler finds classes in, but for the module's test classes.
fn class_directories(recording: &Recording, test_output: &str, tree: &CompiledTree) -> Vec<String> {
    let paths = recording.compilations.iter().flat_map(|call| {
        let lists = [&call.class_path, &call.module_path, &call.processor_path];
        lists.into_iter().flatten().chain(std::iter::once(&call.output))
    });
    let mut directories: Vec<String> = paths
        .filter(|path| path.as_str() != test_output && tree.files_below(in_tree(path)).next().is_some())
        .cloned()
        .collect();
    directories.sort();
    directories.dedup();
    directories
}
