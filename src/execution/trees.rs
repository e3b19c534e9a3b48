//! The trees that executions read: local repositories, opened once and read on demand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::digest::Digest;
use crate::execution::container::temporary::TemporaryFile;
use crate::execution::module::{ModuleArguments, WholeBuilds};
use crate::execution::request::CellInput;
use crate::task::{Cell, RepositoryName, Revision, Side, Task};
use crate::workspace::cells::{class_of, write_cell, write_to};
use crate::workspace::{BuildFiles, Notices, Repository, WorkspaceError};

/// Opened repositories.
#[derive(Clone, Debug)]
pub struct Trees {
    paths: BTreeMap<RepositoryName, PathBuf>,
    temporary: PathBuf,
    notices: Arc<Notices>,
    whole: Arc<WholeBuilds>,
    /// The paths that trees lack, as far as somebody asked.
    missing: Arc<Mutex<BTreeMap<Revision, Vec<String>>>>,
}

/// The facts of a cell, known before any archive is written.
#[derive(Clone, Debug)]
pub struct CellFacts {
    /// The code revision's tree: [`RevisionTree::identity`](crate::workspace::RevisionTree::identity).
    pub tree: String,
    /// The target file's text in the test revision; `None` if the revision has no such file.
    pub text: Option<Vec<u8>>,
    /// The target file's module in the code revision; `None` if no module contains the file.
    pub module: Option<ModuleArguments>,
    /// Binary name of the class that the text declares, empty if it declares none. The method's own class may be nested
    /// in it.
    pub class: String,
}

impl CellFacts {
    /// Returns the text's digest.
    pub fn swapped(&self) -> Option<Digest> {
        self.text.as_deref().map(Digest::of)
    }
}

impl Trees {
    /// Returns the trees of repositories that are already open. Archives are written to `temporary`, and `notices` gets
    /// messages about gaps in the trees. `whole` says where Maven builds all modules.
    pub fn new(
        paths: BTreeMap<RepositoryName, PathBuf>,
        temporary: PathBuf,
        notices: Arc<Notices>,
        whole: Arc<WholeBuilds>,
    ) -> Self {
        Self { paths, temporary, notices, whole, missing: Arc::default() }
    }

    fn open(&self, task: &Task) -> Result<Repository, WorkspaceError> {
        let path = self.paths.get(&task.repository).map_or(Path::new(""), PathBuf::as_path);
        Repository::open(task.repository.clone(), path)
    }

    /// Writes an archive with `write`.
    fn archive<T>(&self, write: impl FnOnce(&Path) -> Result<T, WorkspaceError>) -> Result<(TemporaryFile, T), String> {
        let archive = TemporaryFile::named(&self.temporary, "tree", "tar");
        let written = write(archive.path()).map_err(|error| error.to_string())?;
        Ok((archive, written))
    }

    /// Writes the archive of a cell's tree.
    ///
    /// # Errors
    /// The reason for which the sources can't be read.
    pub fn cell(&self, task: &Task, cell: Cell) -> Result<CellInput, String> {
        let repository = self.open(task).map_err(|error| error.to_string())?;
        let (archive, written) = self.archive(|archive| write_cell(&repository, task, cell, archive, &self.notices))?;
        Ok(CellInput {
            archive,
            tree: written.tree,
            swapped: written.test_file.as_deref().map(Digest::of),
            text: written.test_file,
            module: written.module.as_ref().map(|module| self.whole.module(task, cell.code(), module)),
            test_file: task.test_file.to_string(),
            class: written.class,
        })
    }

    /// Returns the facts of a cell without writing its tree.
    ///
    /// # Errors
    /// As [`Trees::cell`].
    pub fn facts(&self, task: &Task, cell: Cell) -> Result<CellFacts, String> {
        let facts = || -> Result<CellFacts, WorkspaceError> {
            let repository = self.open(task)?;
            let code = repository.tree(task.revision(cell.code()))?;
            let test = repository.tree(task.revision(cell.test()))?;
            let text = test.read_source(task.test_file.as_str())?;
            let module = BuildFiles::read(&code)?.module_of(&task.test_file);
            let class = text.as_deref().map_or_else(String::new, |text| class_of(&task.test_file, text));
            let module = module.as_ref().map(|module| self.whole.module(task, cell.code(), module));
            Ok(CellFacts { tree: code.identity()?, text, module, class })
        };
        facts().map_err(|error| error.to_string())
    }

    /// Returns the paths that a code revision's tree lacks, sorted; empty if it lacks nothing.
    ///
    /// # Errors
    /// As [`Trees::cell`].
    pub fn missing(&self, task: &Task, cell: Cell) -> Result<Vec<String>, String> {
        let revision = task.revision(cell.code());
        let known = || self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(missing) = known().get(revision) {
            return Ok(missing.clone());
        }
        let tree = self.open(task).and_then(|repository| repository.tree(revision));
        let gaps = tree.and_then(|tree| tree.gaps()).map_err(|error| error.to_string())?;
        let missing: Vec<String> = gaps.paths().into_iter().map(str::to_owned).collect();
        known().insert(revision.clone(), missing.clone());
        Ok(missing)
    }

    /// Writes the archive of a revision's own tree.
    ///
    /// # Errors
    /// As [`Trees::cell`].
    pub fn revision(&self, task: &Task, side: Side) -> Result<TemporaryFile, String> {
        let tree = self.open(task).and_then(|repository| repository.tree(task.revision(side)));
        let tree = tree.map_err(|error| error.to_string())?;
        Ok(self.archive(|archive| write_to(&tree, None, archive, &self.notices))?.0)
    }
}
