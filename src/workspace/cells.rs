//! The trees of a task's cells: a code revision with the target file of the test revision.

use std::path::Path;

use fs_err as fs;

use super::java_source::package_of;
use super::{
    BuildFiles, ModuleLocation, Notices, Repository, RevisionTree, Swap, TREE_TIME, WorkspaceError, write_archive,
};
use crate::task::{Cell, MethodId, RepositoryPath, Task};

/// A cell's tree, written as an archive.
#[derive(Clone, Debug)]
pub struct CellTree {
    /// The code revision's tree: [`RevisionTree::identity`](crate::workspace::RevisionTree::identity).
    pub tree: String,
    /// The target file's bytes; `None` if the test revision has no such file.
    pub test_file: Option<Vec<u8>>,
    /// The target file's module in the code revision; `None` if no module contains the file.
    pub module: Option<ModuleLocation>,
    /// Binary name of the class that the target file declares; empty without a file. The method's own class may be
    /// nested in it.
    pub class: String,
}

/// Writes the tree of a task's cell to `archive`.
///
/// # Errors
/// [`WorkspaceError`]. Missing content is an error only for the target file, a build file or a source.
pub fn write_cell(
    repository: &Repository,
    task: &Task,
    cell: Cell,
    archive: &Path,
    notices: &Notices,
) -> Result<CellTree, WorkspaceError> {
    let code = repository.tree(task.revision(cell.code()))?;
    let test = repository.tree(task.revision(cell.test()))?;
    let test_file = test.read_source(task.test_file.as_str())?;
    let swap = Swap { path: &task.test_file, content: test_file.as_deref() };
    write_to(&code, Some(swap), archive, notices)?;
    let module = BuildFiles::read(&code)?.module_of(&task.test_file);
    let class = test_file.as_deref().map_or_else(String::new, |source| class_of(&task.test_file, source));
    Ok(CellTree { tree: code.identity()?, test_file, module, class })
}

/// Writes a tree to `archive`, with one file swapped if given, and sends notices about missing content.
///
/// # Errors
/// As [`write_cell`].
pub fn write_to(
    tree: &RevisionTree,
    swap: Option<Swap<'_>>,
    archive: &Path,
    notices: &Notices,
) -> Result<(), WorkspaceError> {
    let failed = |source| WorkspaceError::Archive {
        repository: tree.repository().clone(),
        revision: tree.revision().clone(),
        source,
    };
    let mut out = std::io::BufWriter::new(fs::File::create(archive).map_err(failed)?);
    let report = write_archive(tree, swap, TREE_TIME, &mut out)?;
    out.into_inner().map_err(|error| failed(error.into_error()))?;
    // A picture or an archive that the mirror lacks may be irrelevant, but files that a compiler reads are not.
    report.require(tree, |path| path.ends_with(".java") || path.ends_with("pom.xml"))?;
    notices.tell(tree, &report.unusual);
    Ok(())
}

/// Returns the binary name of a target file's class: its package and its own base name.
pub fn class_of(path: &RepositoryPath, source: &[u8]) -> String {
    class_at(path.as_str(), source)
}

/// Returns the binary name of a source's class: its package and the base name of its path.
pub fn class_at(path: &str, source: &[u8]) -> String {
    let file = path.rsplit('/').next().unwrap_or_default();
    let base = file.strip_suffix(".java").unwrap_or(file);
    match package_of(source).as_str() {
        "" => base.to_owned(),
        package => format!("{package}.{base}"),
    }
}

/// Returns the binary name of the class that declares a target method, given the test file's class: that class or one
/// nested in it. The id of any other class maps to the file's own class, because nothing else is known before
/// compiling.
pub fn class_of_method(test_class: &str, method: &MethodId) -> String {
    match nested_in(test_class, method) {
        Some(nested) => format!("{test_class}{nested}"),
        None => test_class.to_owned(),
    }
}

/// Returns the suffix of the method's class after the test file's class: `$Inner`, or empty for that class itself.
/// `None` for any other class.
pub fn nested_in<'a>(test_class: &str, method: &'a MethodId) -> Option<&'a str> {
    let (package, base) = test_class.rsplit_once('.').unwrap_or(("", test_class));
    let class = method.class();
    let unqualified = class.strip_prefix(package).and_then(|rest| rest.strip_prefix('.')).unwrap_or(class);
    unqualified.strip_prefix(base).filter(|rest| rest.is_empty() || rest.starts_with('$'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_launched_in_the_class_that_their_ids_name() {
        for (test_class, id, class) in [
            ("p.q.ATest", "ATest#m", "p.q.ATest"),
            ("p.q.ATest", "ATest$Inner#m", "p.q.ATest$Inner"),
            ("p.q.ATest", "ATest$Inner$Deep#m", "p.q.ATest$Inner$Deep"),
            ("p.q.ATest", "p.q.ATest$Inner#m", "p.q.ATest$Inner"),
            ("p.q.ATest", "p.q.ATest#m", "p.q.ATest"),
            ("ATest", "ATest$Inner#m", "ATest$Inner"),
            // Nothing tells where these are.
            ("p.q.ATest", "Inner#m", "p.q.ATest"),
            ("p.q.ATest", "ATestCase$Inner#m", "p.q.ATest"),
            ("p.q.ATest", "r.ATest$Inner#m", "p.q.ATest"),
        ] {
            assert_eq!(class_of_method(test_class, &id.parse().unwrap()), class, "{id} in {test_class}");
        }
    }
}
