//! Requests to the executor: a cell, its tree, its methods.

use crate::digest::Digest;
use crate::execution::container::RepositoryImage;
use crate::execution::container::temporary::TemporaryFile;
use crate::execution::module::ModuleArguments;
use crate::execution::run::record::ExecutionPath;
use crate::task::{Cell, MethodId, Task};

/// The tree that a cell is executed on.
#[derive(Debug)]
pub struct CellInput {
    /// Tar archive of the code revision with the one file swapped.
    pub archive: TemporaryFile,
    /// The code revision's tree: [`RevisionTree::identity`](crate::workspace::RevisionTree::identity).
    pub tree: String,
    /// The swapped file's bytes by digest; `None` if that revision has no such file.
    pub swapped: Option<Digest>,
    /// The bytes themselves.
    pub text: Option<Vec<u8>>,
    /// The target file's module; `None` if no module contains the file.
    pub module: Option<ModuleArguments>,
    /// The target file, relative to the tree.
    pub test_file: String,
    /// Binary name of the test file's class. The method's own class may be nested in it.
    pub class: String,
}

/// A text that replaces a source of the code revision in a cell's tree: a mutant.
#[derive(Clone, Copy, Debug)]
pub struct OtherText<'a> {
    /// Names its logs.
    pub number: usize,
    /// The source, relative to the tree.
    pub path: &'a str,
    /// The replacing text.
    pub text: &'a str,
    /// The source's own bytes, which stand there again once the text is compiled.
    pub original: &'a [u8],
}

/// One cell to execute.
#[derive(Clone, Copy)]
pub struct CellRequest<'a> {
    /// The task.
    pub task: &'a Task,
    /// The cell.
    pub cell: Cell,
    /// Its tree.
    pub input: &'a CellInput,
    /// The repository's image.
    pub image: &'a RepositoryImage,
    /// Methods to launch.
    pub methods: &'a [MethodId],
    /// Repeats of each launch, at least 1.
    pub repeats: u32,
    /// The requested path. If this is the direct path, the direct path did not fit the cell.
    pub path: ExecutionPath,
    /// A replaced source of the code. Records of such a cell have no key.
    pub other_text: Option<OtherText<'a>>,
}

/// The identity of a cell that records name.
#[derive(Clone, Copy, Debug)]
pub struct CellIdentity<'a> {
    /// The task.
    pub task: &'a Task,
    /// The cell.
    pub cell: Cell,
    /// The repository's image.
    pub image: &'a RepositoryImage,
    /// The code revision's tree: [`RevisionTree::identity`](crate::workspace::RevisionTree::identity).
    pub tree: &'a str,
    /// The swapped file's bytes by digest.
    pub swapped: Option<Digest>,
    /// The requested path.
    pub path: ExecutionPath,
}

impl<'a> CellRequest<'a> {
    /// Returns what records of the cell are about.
    pub(super) fn identity(&self) -> CellIdentity<'a> {
        CellIdentity {
            task: self.task,
            cell: self.cell,
            image: self.image,
            tree: &self.input.tree,
            swapped: self.input.swapped,
            path: self.path,
        }
    }
}
