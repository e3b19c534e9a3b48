//! A compiled tree on which methods are launched, from either path.

use std::path::PathBuf;
use std::sync::Arc;

use crate::execution::build::surefire::JvmSettings;
use crate::execution::container::temporary::TemporaryFile;
use crate::execution::run::record::ExecutionPath;
use crate::workspace::class_file::family::Family;

/// A compiled tree, and what a launch on it needs.
#[derive(Debug)]
pub struct Built {
    /// The path that built it.
    pub path: ExecutionPath,
    /// Tar archives on the host, each unpacked over the previous one: the tree, then the files that replace the target
    /// file.
    pub archives: Vec<PathBuf>,
    /// The module's directory in the container.
    pub module: String,
    /// Class directories and jars of the test class path, in Maven's order.
    pub class_path: Vec<String>,
    /// Processor time of the build in milliseconds, on the direct path that of the revision's build; `None` if unknown.
    pub build_cpu_ms: Option<u64>,
    /// The project's Surefire settings that apply to its tests.
    pub settings: JvmSettings,
    /// The module's test classes by inheritance, if a target method's class is abstract; empty otherwise.
    pub family: Arc<Family>,
    /// The archives that belong to this value and its clones, and are removed with the last of them.
    pub(in crate::execution) own: Vec<Arc<TemporaryFile>>,
}
