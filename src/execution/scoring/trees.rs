//! Turns a submission into the tree that is executed: post-image, target methods, code revision.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::shadows::shadows;
use crate::execution::container::temporary::TemporaryFile;
use crate::execution::module::WholeBuilds;
use crate::execution::request::CellInput;
use crate::execution::trees::CellFacts;
use crate::focal::{self, Focal};
use crate::java::Unit;
use crate::submission::Content;
use crate::submission::extraction::{Extraction, StartingTree, extract};
use crate::task::{MethodId, RepositoryName, Side, Task};
use crate::workspace::cells::{class_of, write_to};
use crate::workspace::java_source::package_of;
use crate::workspace::{BuildFiles, Notices, Repository, Swap, WorkspaceError};

/// The trees of submissions, read from repositories that are already open.
#[derive(Clone, Debug)]
pub struct SubmissionTrees {
    /// Git directories.
    pub paths: BTreeMap<RepositoryName, PathBuf>,
    /// Directory for archives; only this process writes there.
    pub temporary: PathBuf,
    /// Receives messages about gaps in trees.
    pub notices: Arc<Notices>,
    /// Where Maven builds all modules.
    pub whole: Arc<WholeBuilds>,
}

/// A submission, resolved without executing anything.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The starting file; `None` if the starting tree has none.
    pub start: Option<Vec<u8>>,
    /// The target file's new bytes, or why there are none.
    pub extraction: Extraction,
    /// Target methods that the new file certainly lacks.
    pub without: Vec<MethodId>,
    /// Types of either revision's project that the new file declares and the starting file does not.
    pub shadows: Vec<String>,
}

impl SubmissionTrees {
    fn repository(&self, task: &Task) -> Result<Repository, WorkspaceError> {
        let path = self.paths.get(&task.repository).map(PathBuf::as_path).unwrap_or(Path::new(""));
        Repository::open(task.repository.clone(), path)
    }

    /// Finds the task's focal methods.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub fn focal(&self, task: &Task) -> Result<Vec<Focal>, WorkspaceError> {
        focal::resolve(&self.repository(task)?, task)
    }

    /// Resolves a submission for the task.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub fn resolve(&self, task: &Task, content: &Content) -> Result<Resolved, WorkspaceError> {
        let repository = self.repository(task)?;
        let start = self.start(task)?;
        let new = repository.tree(&task.rev2)?;
        let extraction = if *content == Content::Gold {
            let gold = new
                .read_source(task.test_file.as_str())?
                .ok_or_else(|| new.missing(task.test_file.as_str().as_bytes()))?;
            Extraction { content: Ok(gold), dropped: Vec::new(), line_ends_adapted: false }
        } else {
            // A patch may move another file of the tree. An unreadable file counts as missing.
            let other = |path: &[u8]| new.read(std::str::from_utf8(path).ok()?).ok().flatten();
            extract(content, &StartingTree { target: &task.test_file, start: start.as_deref(), other: &other })
        };
        let (mut lacking, mut shadowed) = (Vec::new(), Vec::new());
        if let Ok(file) = &extraction.content {
            lacking = without(file, &task.test_methods);
            let old = repository.tree(&task.rev1)?;
            let paths = new.entries().keys().chain(old.entries().keys());
            let paths = paths.filter_map(|path| std::str::from_utf8(path).ok());
            // A source that can't be read may be the very one whose type the file declares again.
            let unreadable = OnceCell::new();
            let package_at = |path: &str| {
                let source = new.read(path).and_then(|source| match source {
                    None => old.read(path),
                    source => Ok(source),
                });
                match source {
                    Ok(source) => Some(package_of(&source?)),
                    Err(error) => {
                        let _ = unreadable.set(error);
                        None
                    }
                }
            };
            shadowed = shadows(task.test_file.as_str(), file, start.as_deref(), paths, package_at);
            if let Some(error) = unreadable.into_inner() {
                return Err(error);
            }
        }
        Ok(Resolved { start, extraction, without: lacking, shadows: shadowed })
    }

    /// Returns the target file from which a submission starts; `None` if the old revision has none.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub fn start(&self, task: &Task) -> Result<Option<Vec<u8>>, WorkspaceError> {
        self.repository(task)?.tree(&task.rev1)?.read_source(task.test_file.as_str())
    }

    /// Returns a file of the new revision; empty if the revision has no such file.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub fn new_file(&self, task: &Task, path: &str) -> Result<Vec<u8>, WorkspaceError> {
        Ok(self.repository(task)?.tree(&task.rev2)?.read(path)?.unwrap_or_default())
    }

    /// Returns the facts of a cell with `file` on a side's code.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub fn describe(&self, task: &Task, code: Side, file: Vec<u8>) -> Result<CellFacts, WorkspaceError> {
        let tree = self.repository(task)?.tree(task.revision(code))?;
        let class = class_of(&task.test_file, &file);
        let location = BuildFiles::read(&tree)?.module_of(&task.test_file);
        let module = location.as_ref().map(|module| self.whole.module(task, code, module));
        Ok(CellFacts { tree: tree.identity()?, text: Some(file), module, class })
    }

    /// Writes the tree that [`SubmissionTrees::describe`] describes to an archive.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub fn write(&self, task: &Task, code: Side, file: &[u8], facts: &CellFacts) -> Result<CellInput, WorkspaceError> {
        let archive = TemporaryFile::named(&self.temporary, "submission", "tar");
        let tree = self.repository(task)?.tree(task.revision(code))?;
        let swap = Swap { path: &task.test_file, content: Some(file) };
        write_to(&tree, Some(swap), archive.path(), &self.notices)?;
        Ok(CellInput {
            archive,
            tree: facts.tree.clone(),
            swapped: facts.swapped(),
            text: facts.text.clone(),
            module: facts.module.clone(),
            test_file: task.test_file.to_string(),
            class: facts.class.clone(),
        })
    }
}

/// Returns the methods that a file certainly lacks: it declares their class, which inherits nothing and does not
/// declare them. A file that is not Java is left to the compiler.
fn without(file: &[u8], methods: &[MethodId]) -> Vec<MethodId> {
    let unit = Unit::parse(file);
    if unit.has_errors {
        return Vec::new();
    }
    let lacks = |method: &&MethodId| match unit.type_named(simple(method.class())) {
        Some(declared) => !declared.inherits && !declared.methods.iter().any(|found| found.name == method.method()),
        None => true,
    };
    methods.iter().filter(lacks).cloned().collect()
}

/// Returns a class's binary name without its package.
fn simple(class: &str) -> &str {
    class.rsplit('.').next().unwrap_or(class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventSink;
    use crate::sample::SampleRepository;
    use crate::task::published;

    #[test]
    fn a_source_that_can_not_be_read_is_not_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        let (sources, data) = (directory.path().join("sources"), directory.path().join("published.json"));
        let demo = SampleRepository::demo().unwrap();
        fs_err::write(&data, demo.published(&demo.write_git(&sources).unwrap())).unwrap();
        let tasks = published::read(&[data]).unwrap().remove(0).tasks;
        let task = tasks.iter().find(|task| task.id.as_str().ends_with("__fixed-bug")).unwrap();
        let trees = SubmissionTrees {
            paths: BTreeMap::from([(demo.name.clone(), sources.clone())]),
            temporary: directory.path().to_owned(),
            notices: Arc::new(Notices::new(EventSink::none())),
            whole: Arc::default(),
        };
        let content = Content::File(b"package shop; class StockTest {} class Stock {}".to_vec());
        assert_eq!(trees.resolve(task, &content).unwrap().shadows, ["shop.Stock"]);
        let tree = trees.repository(task).unwrap().tree(&task.rev2).unwrap();
        let id = tree.entry("src/main/java/shop/Stock.java").unwrap().id();
        fs_err::remove_file(sources.join("objects").join(&id[..2]).join(&id[2..])).unwrap();
        assert!(matches!(trees.resolve(task, &content), Err(WorkspaceError::MissingBlob { .. })));
    }

    #[test]
    fn a_method_is_missing_only_where_that_is_certain() {
        let methods: [MethodId; 1] = ["ATest#m".parse().unwrap()];
        for (source, missing) in [
            ("class ATest { @Test void m() {} }", false),
            ("class ATest { }", true),
            ("class ATest { @Nested class N { @Test void m() {} } }", true),
            ("class BTest { void m() {} }", true),
            ("class ATest extends Base { }", false),
            ("class ATest implements Contract { }", false),
            ("class ATest { void m( }", false),
            ("interface ATest { default void m() {} }", false),
        ] {
            assert_eq!(!without(source.as_bytes(), &methods).is_empty(), missing, "{source}");
        }
    }
}
