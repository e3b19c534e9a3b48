//! What is left out of a compiled revision: the file, its classes, reports about it, and the build's lists.

use std::collections::BTreeSet;

use super::{classes_at, known_classes_of};
use crate::execution::build::compiled_tree::CompiledTree;
use crate::execution::build::prepared::{CompiledRevision, PreparedError, in_tree};
use crate::execution::build::recording::CompilerCall;
use crate::execution::container::places::PROJECT;
use crate::workspace::built::is_built_of;
use crate::workspace::cells::class_at;
use crate::workspace::java_source::declared_types;

/// Directory of the compiler plugin's lists of compiled files, in every directory where a module is built.
const LISTS: &str = "maven-status";

/// How the name of a forked compiler's file of arguments begins. It lists all sources. Where Maven debugs, it stays in
/// the tree.
const ARGUMENTS: &str = "org.codehaus.plexus.compiler.javac.JavacCompiler";

/// What a revision has of the file that is left out.
pub(super) struct OwnFile {
    pub(super) exists: bool,
    /// Names of the types that it declares.
    pub(super) types: BTreeSet<String>,
    /// Paths of its classes, relative to the tree.
    pub(super) classes: BTreeSet<String>,
    /// Binary names that reports may be about.
    pub(super) reported: BTreeSet<String>,
}

impl OwnFile {
    pub(super) fn find(
        whole: &CompiledTree,
        call: &CompilerCall,
        output: &str,
        test_file: &str,
    ) -> Result<Self, PreparedError> {
        let reported = classes_at(call, &format!("{PROJECT}/{test_file}"));
        let Some(place) = whole.file(test_file) else {
            return Ok(Self { exists: false, types: BTreeSet::new(), classes: BTreeSet::new(), reported });
        };
        let text = whole.read(place)?;
        let classes = known_classes_of(whole, output, test_file, &text)?;
        let reported = reported.into_iter().chain([class_at(test_file, &text)]).collect();
        Ok(Self { exists: true, types: declared_types(&text), classes, reported })
    }
}

/// Which paths of the tree are left out.
pub(super) struct LeftOut {
    test_file: String,
    classes: BTreeSet<String>,
    reported: BTreeSet<String>,
    /// Directories of classes. Reports outside of them are left out.
    outputs: Vec<String>,
}

impl LeftOut {
    pub(super) fn new(
        revision: &CompiledRevision,
        test_file: &str,
        classes: BTreeSet<String>,
        reported: BTreeSet<String>,
    ) -> Self {
        // Our builds leave such files only on the tests' class path, but a repository may contain some elsewhere.
        let paths = revision.class_path.iter().chain([&revision.output, &revision.test_output]);
        let outputs = paths.map(|path| in_tree(path).to_owned()).collect();
        Self { test_file: test_file.to_owned(), classes, reported, outputs }
    }

    pub(super) fn contains(&self, path: &str) -> bool {
        let is_below = |output: &String| path.strip_prefix(output.as_str()).is_some_and(|rest| rest.starts_with('/'));
        let was_built =
            || !self.outputs.iter().any(is_below) && self.reported.iter().any(|class| is_built_of(path, class));
        path == self.test_file || self.classes.contains(path) || is_in_lists(path) || was_built()
    }
}

/// Tells whether a path is one of the build's lists of sources or classes.
fn is_in_lists(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    parts.next().is_some_and(|name| name.starts_with(ARGUMENTS)) || parts.any(|directory| directory == LISTS)
}
