//! The program of a launch container, as values for init: it unpacks the compiled tree, runs the launcher and sends
//! reports. Source: protocol §2.3.

use crate::engine::spec::{Command, PROGRAM_SCHEMA, Program, Step};
use crate::execution::build::surefire::JvmSettings;
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::container::places::{HOME, PROJECT, RUNNER_CLASS, TEMPORARY, XML_DIRECTORY, launcher_class_path};
use crate::execution::container::{JVM_OPTIONS, class_archive_options, environment};
use crate::manifest::Launcher;
use crate::outcome::launch::seal::Seal;

/// The parameters of one launch.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// `JAVA_HOME` in the image.
    pub java_home: &'a str,
    /// The console jar that brings JUnit.
    pub console: &'a str,
    /// The module's directory in the container.
    pub module: &'a str,
    /// Class directories and jars of the test class path, in Maven's order.
    pub class_path: &'a [String],
    /// Binary name of the test class.
    pub class: &'a str,
    /// The target method.
    pub method: &'a str,
    /// The project's Surefire settings that apply to its tests.
    pub settings: &'a JvmSettings,
    /// Whether the container has a class archive.
    pub class_archive: bool,
    /// The key that the runner signs events with.
    pub seal: Option<Seal>,
}

impl Launch<'_> {
    fn working_directory(&self) -> &str {
        self.settings.working_directory.as_deref().unwrap_or(self.module)
    }

    /// Returns the step that creates the working directory if a setting names one, as Surefire does. The rest of the
    /// tree exists already; it is writable and removed with the container (protocol §2.3).
    pub fn directories(&self) -> Option<Step> {
        self.settings.working_directory.as_ref().map(|path| Step::MakeDirectory { path: path.clone() })
    }
}

/// Returns the command that launches one method in a JVM of its own.
pub fn launch_command(launch: &Launch<'_>, limits: &ExecutionLimits) -> Command {
    let mut class_path = vec![launcher_class_path(launch.console)];
    class_path.extend(launch.class_path.iter().cloned());
    let mut argv = vec![format!("{}/bin/java", launch.java_home)];
    argv.push(format!("-Xmx{}m", limits.launch_heap_mib));
    if !launch.settings.chooses_collector() {
        argv.push("-XX:+UseSerialGC".to_owned());
    }
    argv.extend(JVM_OPTIONS.map(str::to_owned));
    argv.push(format!("-Djava.io.tmpdir={TEMPORARY}"));
    if launch.class_archive {
        argv.extend(class_archive_options());
    }
    // An option that this JVM does not know ends it; projects have options for several JDKs.
    argv.push("-XX:+IgnoreUnrecognizedVMOptions".to_owned());
    argv.extend(launch.settings.arguments.iter().cloned());
    argv.push("-ea".to_owned());
    argv.push(format!("-Dbasedir={}", launch.module));
    argv.push("-cp".to_owned());
    argv.push(class_path.join(":"));
    argv.push(RUNNER_CLASS.to_owned());
    for (name, value) in
        [("--class", launch.class), ("--method", launch.method), ("--events-fd", "3"), ("--xml", XML_DIRECTORY)]
    {
        argv.push(name.to_owned());
        argv.push(value.to_owned());
    }
    if launch.seal.is_some() {
        argv.extend(["--seal", SEAL].map(str::to_owned));
    }
    let mut environment = environment(launch.java_home, &[]);
    for (name, value) in &launch.settings.environment {
        environment.retain(|(known, _)| known != name);
        environment.push((name.clone(), value.clone()));
    }
    Command {
        argv,
        environment,
        working_directory: launch.working_directory().to_owned(),
        limits: limits.launch_command,
        events: true,
        required: false,
        only_after_success_of: None,
    }
}

/// The file with the runner's key. The runner removes it after reading.
const SEAL: &str = "/work/seal";

/// Indexes of the steps of [`launch_program`].
#[derive(Clone, Debug)]
pub struct LaunchSteps {
    /// The JVM.
    pub java: usize,
    /// JUnit XML of each engine; each may be absent.
    pub reports: [usize; ENGINES.len()],
    /// The requested files.
    pub files: Vec<usize>,
}

/// Returns the program of a container that launches one method on a tree. Archives of these lengths follow the program and
/// are unpacked in order, each over the previous one. Files (absolute path, largest size) are sent at the end.
pub fn launch_program(
    launch: &Launch<'_>,
    archives: &[u64],
    files: &[(String, u64)],
    limits: &ExecutionLimits,
) -> (Program, LaunchSteps) {
    let mut steps: Vec<Step> =
        [HOME, TEMPORARY, XML_DIRECTORY].map(|path| Step::MakeDirectory { path: path.to_owned() }).into();
    steps.extend(archives.iter().map(|bytes| Step::UnpackInput { bytes: *bytes, into: PROJECT.to_owned() }));
    steps.extend(launch.directories());
    steps.extend(launch.seal.iter().map(|seal| Step::Write { path: SEAL.to_owned(), content: seal.text() }));
    let java = steps.len();
    steps.push(Step::Run(launch_command(launch, limits)));
    steps.extend(reports());
    let first = steps.len();
    steps.extend(files.iter().map(|(path, max_bytes)| Step::SendFile { path: path.clone(), max_bytes: *max_bytes }));
    let files = (first..steps.len()).collect();
    (
        Program { schema: PROGRAM_SCHEMA, door_port: None, steps },
        LaunchSteps { java, reports: std::array::from_fn(|engine| java + 1 + engine), files },
    )
}

/// The engines of the JUnit Platform whose reports are kept: Jupiter, and Vintage for JUnit 3 and 4.
pub(in crate::execution) const ENGINES: [&str; 2] = ["jupiter", "vintage"];

fn reports() -> [Step; ENGINES.len()] {
    ENGINES.map(|engine| {
        let path = format!("{XML_DIRECTORY}/TEST-junit-{engine}.xml");
        Step::SendFile { path, max_bytes: 4 << 20 }
    })
}

/// The console of JUnit Platform 1.
pub const PLATFORM_1: &str = "/opt/junit/console.jar";
/// The console of JUnit Platform 6.
pub const PLATFORM_6: &str = "/opt/junit6/console.jar";
/// The oldest JDK with which Platform 6 runs.
pub const OLDEST_JDK_OF_PLATFORM_6: u32 = 17;

/// Returns the console jar that the manifest names. If it names none, returns the one whose launcher fits the class
/// path. Projects on JUnit 6 need Platform 6.
pub fn console_for(class_path: &[String], jdk: u32, launcher: Launcher) -> &'static str {
    let on_six = class_path.iter().any(|element| {
        let file = element.rsplit('/').next().unwrap_or(element);
        file.starts_with("junit-jupiter-api-6.") || file.starts_with("junit-platform-commons-6.")
    });
    match launcher {
        Launcher::Platform6 => PLATFORM_6,
        Launcher::Auto if on_six && jdk >= OLDEST_JDK_OF_PLATFORM_6 => PLATFORM_6,
        Launcher::Auto | Launcher::Platform1 => PLATFORM_1,
    }
}

#[cfg(test)]
mod tests;
