//! A compiled tree on which methods are launched, from either path.

use std::path::PathBuf;

use crate::execution::build::surefire::JvmSettings;
use crate::execution::container::temporary::TemporaryFile;
use crate::execution::run::record::ExecutionPath;

/// A compiled tree, and what a launch on it needs.
#[derive(Debug)]
pub struct Built {
    /// The path that built it.
    pub path: ExecutionPath,
    /// Tar archives on the host, each unpacked over the last: the tree, and the files in the target file's place.
    pub archives: Vec<PathBuf>,
    /// The module's directory in the container.
    pub module: String,
    /// Class directories and jars of the test class path, in Maven's order.
    pub class_path: Vec<String>,
    /// The project's Surefire settings that apply to its tests.
    pub settings: JvmSettings,
    /// The archive that is removed with this value.
    pub(in crate::execution) _own: TemporaryFile,
}
