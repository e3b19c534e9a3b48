//! Paths inside the containers of executions. Source: protocol §2.

use crate::engine::spec::Step;

/// The project's tree.
pub const PROJECT: &str = "/work/project";
/// The Maven cache.
pub const MAVEN_REPOSITORY: &str = "/opt/maven-repository";
/// Home of the task's user.
pub const HOME: &str = "/work/home";
/// Temporary directory of launched methods.
pub const TEMPORARY: &str = "/work/tmp";
/// The one input archive of a container that runs no launch. Archives of launches are nowhere.
pub const TREE: &str = "/testevo/input/tree.tar";
/// The recorder's jar, as builds see it.
pub(in crate::execution) const RECORDER: &str = "/testevo/recorder.jar";
/// Main class of our launcher.
pub(in crate::execution) const RUNNER_CLASS: &str = "testevo.runner.Main";
/// Our launcher's jar, as launches see it.
pub(in crate::execution) const RUNNER: &str = "/testevo/runner.jar";
/// The tracer's jar, as traced launches see it; the jar's manifest names this path.
pub(in crate::execution) const TRACER: &str = "/testevo/tracer.jar";
/// JaCoCo's command line, which the tracer works with too.
pub(in crate::execution) const ANALYSER: &str = "/opt/jacoco/cli.jar";
/// The class archive, as launches see it.
pub const CLASS_ARCHIVE: &str = "/testevo/classes.jsa";
/// The recorder's output.
pub const RECORDING: &str = "/work/recording.jsonl";
/// The directory of the launcher's reports.
pub const XML_DIRECTORY: &str = "/work/xml";

/// Writable directories: emptied before each method or build, so that no command finds another's files.
pub(in crate::execution) const SCRATCH: [&str; 3] = ["/work", "/tmp", "/dev/shm"];

/// Returns the steps that empty the writable directories.
pub(in crate::execution) fn emptied() -> impl Iterator<Item = Step> {
    SCRATCH.into_iter().map(|path| Step::Empty { path: path.to_owned() })
}

/// Returns a path of the container relative to the tree, without `.` and `..`; `None` if it leads out of the tree.
/// Compilers work in the tree's directory, so relative paths belong to the tree.
pub(in crate::execution) fn within(path: &str) -> Option<String> {
    let path = if path.starts_with('/') { path.to_owned() } else { format!("{PROJECT}/{path}") };
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let path = format!("/{}", parts.join("/"));
    match path.strip_prefix(PROJECT)? {
        "" => Some(String::new()),
        rest => rest.strip_prefix('/').map(str::to_owned),
    }
}

/// Returns the beginning of every launch's class path. JUnit comes first, so that neither the project's own older JUnit
/// nor test code can replace the launcher's.
pub(in crate::execution) fn launcher_class_path(console: &str) -> String {
    format!("{RUNNER}:{console}")
}
