//! The reference path: what Maven and the launcher are asked to do inside a container. Source: protocol §2.
//!
//! Only values are made here: programs for the init. A compile container turns a source tree into a compiled tree, its
//! class path and Maven's events; launch containers turn a compiled tree into launcher events, a fresh JVM a method.

use std::path::Path;

use super::limits::ExecutionLimits;
use super::surefire::JvmSettings;
use crate::engine::spec::{
    Command, CommandLimits, ContainerLimits, ContainerSpec, PROGRAM_SCHEMA, Program, ReadOnlyMount, Scratch, Step,
};
use crate::manifest::Launcher;
use crate::workspace::ModuleLocation;

/// Where the project's tree always is.
pub const PROJECT: &str = "/work/project";
/// Where the Maven cache always is.
pub const MAVEN_REPOSITORY: &str = "/opt/maven-repository";
/// Home of the task's user.
pub(super) const HOME: &str = "/work/home";
/// Temporary directory of launched methods.
pub(super) const TEMPORARY: &str = "/work/tmp";
/// Where a container's inputs are.
pub const INPUTS: &str = "/testevo/input";
/// The one input archive of a container.
pub const TREE: &str = "/testevo/input/tree.tar";
/// What the direct path puts over the tree: the swapped file and classes.
pub const SWAPPED: &str = "/testevo/input/swapped.tar";
/// What is put over that: classes of a mutant.
pub const REPLACED: &str = "/testevo/input/replaced.tar";
const RECORDER: &str = "/testevo/recorder.jar";
const RUNNER: &str = "/testevo/runner.jar";
/// Where launches that are traced see the tracer; its manifest names the place.
pub(super) const TRACER: &str = "/testevo/tracer.jar";
/// Where launches see their class archive.
pub(super) const CLASS_ARCHIVE: &str = "/testevo/classes.jsa";
/// What the recorder writes.
pub const RECORDING: &str = "/work/recording.jsonl";
/// Relative to each module: Maven resolves it against the module that it works on, so that every module of the reactor
/// gets a file of its own and only the task's module's is read.
const CLASS_PATH_FILE: &str = "target/testevo-sandbox.classpath";
/// Pinned: bound to no version, Maven would take the newest one of the day.
const BUILD_CLASSPATH_GOAL: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath";

/// Where the task's module is, as Maven is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleArguments {
    /// The module's directory relative to the tree, empty for the root.
    pub directory: String,
    /// The directory of the POM that Maven starts from, empty for the root.
    pub start: String,
    /// Profiles that must be named for the module to be part of the build.
    pub profiles: Vec<String>,
    /// Whether everything that the start reaches is built, instead of the module and what it needs.
    pub whole: bool,
}

impl ModuleArguments {
    /// Returns what Maven is told of a module.
    pub fn of(location: &ModuleLocation) -> Self {
        let ModuleLocation { directory, start, profiles, whole, artifact_id: _ } = location.clone();
        Self { directory, start, profiles, whole }
    }

    fn maven(&self) -> Vec<String> {
        let mut arguments: Vec<String> = Vec::new();
        if !self.start.is_empty() {
            arguments.extend(["-f".into(), format!("{}/pom.xml", self.start)]);
        }
        if !self.profiles.is_empty() {
            arguments.extend(["-P".into(), self.profiles.join(",")]);
        }
        let below = Path::new(&self.directory).strip_prefix(&self.start).ok().and_then(Path::to_str);
        let selected = match below {
            // Naming the root would build only the aggregator's own module anyway; without `-pl` its siblings are
            // built as well, which `-pl . -am` avoids.
            Some("") => self.start.is_empty().then_some("."),
            below => below,
        };
        if let Some(selected) = selected.filter(|_| !self.whole) {
            arguments.extend(["-pl".into(), selected.into(), "-am".into()]);
        }
        arguments
    }

    /// Returns what tells this module's build from others': the directory and the arguments, in a form that locks name sets
    /// of build files by.
    pub fn identity(&self) -> String {
        // Whether the root's POM reaches the module was all there was to tell.
        let mut identity = format!("{}\n{}", self.directory, self.start.is_empty());
        let own = self.start.is_empty() || self.start == self.directory;
        if !own || self.whole || !self.profiles.is_empty() {
            identity.push_str(&format!("\n{}", self.maven().join(" ")));
        }
        identity
    }

    /// Returns the module's directory in the container.
    pub fn path(&self) -> String {
        match self.directory.as_str() {
            "" => PROJECT.to_owned(),
            directory => format!("{PROJECT}/{directory}"),
        }
    }
}

/// What a Maven command needs to know about a repository and its image.
#[derive(Clone, Debug)]
pub struct MavenSettings<'a> {
    /// `JAVA_HOME` in the image.
    pub java_home: String,
    /// Skips and other arguments of the manifest.
    pub arguments: &'a [String],
}

pub(super) fn environment(java_home: &str, more: &[(&str, String)]) -> Vec<(String, String)> {
    let mut environment: Vec<(String, String)> = [
        ("HOME", HOME.to_owned()),
        ("JAVA_HOME", java_home.to_owned()),
        ("LANG", "en_US.UTF-8".to_owned()),
        ("LC_ALL", "en_US.UTF-8".to_owned()),
        ("PATH", format!("{java_home}/bin:/opt/maven/bin:/usr/local/bin:/usr/bin:/bin")),
        ("TZ", "UTC".to_owned()),
        ("USER", "task".to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    environment.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    environment.sort();
    environment
}

/// Returns the Maven command that runs `goals` for a module.
pub fn maven_command(
    settings: &MavenSettings<'_>,
    module: &ModuleArguments,
    offline: bool,
    goals: &[&str],
    limits: CommandLimits,
) -> Command {
    let mut argv = vec!["/opt/maven/bin/mvn".to_owned(), "-B".to_owned(), "-e".to_owned()];
    if offline {
        argv.push("-o".to_owned());
    }
    argv.push(format!("-Dmaven.repo.local={MAVEN_REPOSITORY}"));
    argv.push(format!("-Dmaven.ext.class.path={RECORDER}"));
    argv.push(format!("-Dtestevo.recorder.output={RECORDING}"));
    argv.push(format!("-Dmdep.outputFile={CLASS_PATH_FILE}"));
    argv.extend(settings.arguments.iter().cloned());
    argv.extend(module.maven());
    argv.extend(goals.iter().map(|goal| (*goal).to_owned()));
    // Maven itself reads this; one processor less busy with compiling the compiler, and a heap below the limit.
    let options = "-Xmx1536m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ActiveProcessorCount=2 \
                   -Dfile.encoding=UTF-8 -Duser.language=en -Duser.country=US -Duser.timezone=UTC \
                   -Djava.awt.headless=true -Dorg.slf4j.simpleLogger.showThreadName=false";
    Command {
        argv,
        environment: environment(&settings.java_home, &[("MAVEN_OPTS", options.to_owned())]),
        working_directory: PROJECT.to_owned(),
        limits,
        events: false,
        required: false,
        only_after_success_of: None,
    }
}

/// Goals of the reference compilation. Source: protocol §2.2.
pub const COMPILE_GOALS: [&str; 2] = ["test-compile", BUILD_CLASSPATH_GOAL];

/// Returns the file that the class path of the task's module is written to.
pub(super) fn class_path_file(module: &ModuleArguments) -> String {
    format!("{}/{CLASS_PATH_FILE}", module.path())
}

/// Indexes of the steps of [`compile_program`].
#[derive(Clone, Copy, Debug)]
pub struct CompileSteps {
    /// Maven.
    pub maven: usize,
    /// Maven's events as the recorder wrote them.
    pub recording: usize,
    /// The class path of the task's module.
    pub class_path: usize,
    /// The compiled tree.
    pub archive: usize,
}

/// Returns the program of a compile container; what a source is to hold instead, path relative to the tree and text, is
/// written before Maven begins.
pub fn compile_program(
    settings: &MavenSettings<'_>,
    module: &ModuleArguments,
    limits: &ExecutionLimits,
    other_text: Option<(&str, &str)>,
) -> (Program, CompileSteps) {
    let command = maven_command(settings, module, true, &COMPILE_GOALS, limits.compile_command);
    let mut steps = vec![
        Step::MakeDirectory { path: HOME.to_owned() },
        Step::Unpack { archive: TREE.to_owned(), into: PROJECT.to_owned() },
    ];
    let written = |(path, text): (&str, &str)| Step::Write { path: format!("{PROJECT}/{path}"), content: text.into() };
    steps.extend(other_text.map(written));
    let maven = steps.len();
    steps.extend([
        Step::Run(command),
        Step::SendFile { path: RECORDING.to_owned(), max_bytes: 32 << 20 },
        Step::SendFile { path: class_path_file(module), max_bytes: 1 << 20 },
        Step::SendArchive { root: PROJECT.to_owned(), max_bytes: limits.compile_scratch_bytes },
    ]);
    let program = Program { schema: PROGRAM_SCHEMA, door_port: None, steps };
    (program, CompileSteps { maven, recording: maven + 1, class_path: maven + 2, archive: maven + 3 })
}

/// What one launch needs to know.
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
    /// What applies of the project's settings for its tests.
    pub settings: &'a JvmSettings,
    /// Whether the container has a class archive.
    pub class_archive: bool,
}

impl Launch<'_> {
    fn working_directory(&self) -> &str {
        self.settings.working_directory.as_deref().unwrap_or(self.module)
    }

    /// Returns what makes the tree's directories as a method finds them: the one that it works in, and class directories
    /// that it can only read (protocol §2.3).
    pub(super) fn directories(&self) -> Vec<Step> {
        // Surefire makes the directory that it is told to work in.
        let mut steps: Vec<Step> =
            self.settings.working_directory.iter().map(|path| Step::MakeDirectory { path: path.clone() }).collect();
        let written = [self.module, self.working_directory()].map(within);
        // Dependencies lie in the image or are jars, which init leaves alone.
        let own = self
            .class_path
            .iter()
            .filter_map(|element| within(element))
            .filter(|element| !written.iter().flatten().any(|directory| Path::new(directory).starts_with(element)));
        steps.extend(own.map(|element| Step::Protect { path: format!("{PROJECT}/{element}") }));
        steps
    }
}

/// Returns a path of the container relative to the tree, without `.` and `..`; `None` where it leads elsewhere. Compilers
/// work in the tree's directory, so that a path that does not begin at the root is one of the tree's.
pub(super) fn within(path: &str) -> Option<String> {
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

/// Returns the beginning of every launch's class path. JUnit first: neither the project's own older JUnit nor test code
/// may stand before the launcher's.
pub(super) fn launcher_class_path(console: &str) -> String {
    format!("{RUNNER}:{console}")
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
    argv.extend(
        [
            "-XX:ActiveProcessorCount=2",
            // A method's JVM lives too briefly for the second compiler to pay.
            "-XX:TieredStopAtLevel=1",
            "-XX:-UsePerfData",
            "-Dfile.encoding=UTF-8",
            "-Duser.language=en",
            "-Duser.country=US",
            "-Duser.timezone=UTC",
            "-Djava.awt.headless=true",
        ]
        .map(str::to_owned),
    );
    argv.push(format!("-Djava.io.tmpdir={TEMPORARY}"));
    if launch.class_archive {
        // One that does not fit is passed over, and without the last word newer JVMs would say so on the test's stdout.
        argv.extend([
            format!("-XX:SharedArchiveFile={CLASS_ARCHIVE}"),
            "-Xshare:auto".to_owned(),
            "-Xlog:cds*=off".to_owned(),
        ]);
    }
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

/// Main class of our launcher.
pub(super) const RUNNER_CLASS: &str = "testevo.runner.Main";
/// Where the launcher writes reports.
pub(super) const XML_DIRECTORY: &str = "/work/xml";

/// Indexes of the steps of one method in [`launch_program`].
#[derive(Clone, Copy, Debug)]
pub struct LaunchSteps {
    /// The JVM.
    pub java: usize,
    /// JUnit XML of Jupiter and of Vintage; each may be absent.
    pub reports: [usize; 2],
}

/// Where commands can write: emptied before each method or build, so that none finds what another left.
const SCRATCH: [&str; 3] = ["/work", "/tmp", "/dev/shm"];

/// Returns the steps that leave nothing of what was before.
pub(super) fn emptied() -> impl Iterator<Item = Step> {
    SCRATCH.into_iter().map(|path| Step::Empty { path: path.to_owned() })
}

/// Returns the program of a launch container, which launches each method on a tree of its own.
pub fn launch_program(launches: &[Launch<'_>], limits: &ExecutionLimits) -> (Program, Vec<LaunchSteps>) {
    let mut steps = Vec::new();
    let mut indexes = Vec::new();
    for launch in launches {
        steps.extend(emptied());
        for path in [HOME, TEMPORARY, XML_DIRECTORY] {
            steps.push(Step::MakeDirectory { path: path.to_owned() });
        }
        steps.push(Step::Unpack { archive: TREE.to_owned(), into: PROJECT.to_owned() });
        steps.extend(launch.directories());
        let java = steps.len();
        steps.push(Step::Run(launch_command(launch, limits)));
        steps.extend(reports());
        indexes.push(LaunchSteps { java, reports: [java + 1, java + 2] });
    }
    (Program { schema: PROGRAM_SCHEMA, door_port: None, steps }, indexes)
}

/// Indexes of the steps of [`direct_launch_program`].
#[derive(Clone, Debug)]
pub struct DirectLaunchSteps {
    /// The JVM and its reports.
    pub launch: LaunchSteps,
    /// The files that were asked for.
    pub files: Vec<usize>,
}

/// Returns the program of a container that launches one method on a tree with something put over it; `files` (absolute
/// path, most bytes) are sent at the end.
pub fn direct_launch_program(
    launch: &Launch<'_>,
    replaced: bool,
    files: &[(String, u64)],
    limits: &ExecutionLimits,
) -> (Program, DirectLaunchSteps) {
    let mut steps: Vec<Step> =
        [HOME, TEMPORARY, XML_DIRECTORY].map(|path| Step::MakeDirectory { path: path.to_owned() }).into();
    let archives = [Some(TREE), Some(SWAPPED), replaced.then_some(REPLACED)];
    steps.extend(
        archives
            .into_iter()
            .flatten()
            .map(|archive| Step::Unpack { archive: archive.to_owned(), into: PROJECT.to_owned() }),
    );
    steps.extend(launch.directories());
    let java = steps.len();
    steps.push(Step::Run(launch_command(launch, limits)));
    steps.extend(reports());
    let first = steps.len();
    steps.extend(files.iter().map(|(path, max_bytes)| Step::SendFile { path: path.clone(), max_bytes: *max_bytes }));
    let files = (first..steps.len()).collect();
    let indexes = DirectLaunchSteps { launch: LaunchSteps { java, reports: [java + 1, java + 2] }, files };
    (Program { schema: PROGRAM_SCHEMA, door_port: None, steps }, indexes)
}

fn reports() -> [Step; 2] {
    ["jupiter", "vintage"].map(|engine| {
        let path = format!("{XML_DIRECTORY}/TEST-junit-{engine}.xml");
        Step::SendFile { path, max_bytes: 4 << 20 }
    })
}

/// The console of JUnit Platform 1.
pub const PLATFORM_1: &str = "/opt/junit/console.jar";
/// The console of JUnit Platform 6.
const PLATFORM_6: &str = "/opt/junit6/console.jar";

/// Returns the console jar that the manifest names, or whose launcher fits the class path: projects on JUnit 6 need
/// Platform 6, which needs Java 17.
pub fn console_for(class_path: &[String], jdk: u32, launcher: Launcher) -> &'static str {
    let on_six = class_path.iter().any(|element| {
        let file = element.rsplit('/').next().unwrap_or(element);
        file.starts_with("junit-jupiter-api-6.") || file.starts_with("junit-platform-commons-6.")
    });
    match launcher {
        Launcher::Platform6 => PLATFORM_6,
        Launcher::Auto if on_six && jdk >= 17 => PLATFORM_6,
        Launcher::Auto | Launcher::Platform1 => PLATFORM_1,
    }
}

/// Our own jars on the host.
#[derive(Clone, Debug)]
pub struct ToolJars {
    /// `images/runner`, compiled.
    pub runner: std::path::PathBuf,
    /// `images/recorder`, compiled.
    pub recorder: std::path::PathBuf,
    /// `images/compiler`, compiled.
    pub compiler: std::path::PathBuf,
    /// `images/tracer`, compiled.
    pub tracer: std::path::PathBuf,
}

impl ToolJars {
    /// Returns jars of these names below a directory, which need not be there.
    #[cfg(test)]
    pub(crate) fn below(directory: &Path) -> Self {
        let [runner, recorder, compiler, tracer] =
            ["runner", "recorder", "compiler", "tracer"].map(|name| directory.join(name));
        Self { runner, recorder, compiler, tracer }
    }

    fn mounts(&self) -> [ReadOnlyMount; 2] {
        [
            ReadOnlyMount { source: self.runner.clone(), target: RUNNER.to_owned() },
            ReadOnlyMount { source: self.recorder.clone(), target: RECORDER.to_owned() },
        ]
    }
}

/// Returns a container that has `tree` as its only input besides our own files.
pub fn container(
    purpose: &str,
    image: crate::digest::Digest,
    tree: std::path::PathBuf,
    jars: &ToolJars,
    (limits, scratch_bytes): (ContainerLimits, u64),
    program: Program,
) -> ContainerSpec {
    let mut spec = container_without_tree(purpose, image, jars, (limits, scratch_bytes), program);
    spec.mounts.insert(0, ReadOnlyMount { source: tree, target: TREE.to_owned() });
    spec
}

/// Returns a container that has no input besides our own files.
pub fn container_without_tree(
    purpose: &str,
    image: crate::digest::Digest,
    jars: &ToolJars,
    (limits, scratch_bytes): (ContainerLimits, u64),
    program: Program,
) -> ContainerSpec {
    ContainerSpec {
        purpose: purpose.to_owned(),
        image,
        mounts: jars.mounts().into(),
        door: None,
        scratch: vec![
            Scratch { target: "/work".to_owned(), size_bytes: scratch_bytes },
            Scratch { target: "/tmp".to_owned(), size_bytes: scratch_bytes / 4 },
        ],
        limits,
        program,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maven_is_told_of_a_module() {
        let told = |directory: &str, start: &str, profiles: &[&str], whole| {
            let profiles = profiles.iter().map(|profile| (*profile).to_owned()).collect();
            let module = ModuleArguments { directory: directory.into(), start: start.into(), profiles, whole };
            (module.maven().join(" "), module.identity())
        };
        // Locks that exist name sets by what was all there was to tell.
        for (directory, start, arguments, identity) in [
            ("", "", "-pl . -am", "\ntrue"),
            ("a/b", "", "-pl a/b -am", "a/b\ntrue"),
            ("a/b", "a/b", "-f a/b/pom.xml", "a/b\nfalse"),
        ] {
            assert_eq!(told(directory, start, &[], false), (arguments.to_owned(), identity.to_owned()));
        }
        for (start, profiles, whole, arguments) in [
            ("a", &[][..], false, "-f a/pom.xml -pl b -am"),
            ("a", &["x"], true, "-f a/pom.xml -P x"),
            ("", &["x", "y"], false, "-P x,y -pl a/b -am"),
            ("", &[], true, ""),
        ] {
            let identity = format!("a/b\n{}\n{arguments}", start.is_empty());
            assert_eq!(told("a/b", start, profiles, whole), (arguments.to_owned(), identity));
        }
    }

    #[test]
    fn every_method_finds_its_scratch_empty() {
        let launch = Launch {
            java_home: "/opt/java",
            console: PLATFORM_1,
            module: PROJECT,
            class_path: &[],
            class: "ATest",
            method: "m",
            settings: &JvmSettings::default(),
            class_archive: false,
        };
        let limits = ExecutionLimits::from(&crate::manifest::Limits::default());
        let (program, indexes) = launch_program(&[launch.clone(), launch], &limits);
        let mut begin = 0;
        for steps in indexes {
            assert!(matches!(program.steps[steps.java], Step::Run(_)));
            let before = &program.steps[begin..steps.java];
            let emptied = before.iter().take_while(|step| matches!(step, Step::Empty { .. })).count();
            assert_eq!(emptied, SCRATCH.len(), "before anything else: {before:?}");
            assert!(before.iter().any(|step| matches!(step, Step::Unpack { .. })));
            begin = steps.reports[1] + 1;
        }
    }

    #[test]
    fn class_directories_are_read_only_unless_a_method_works_in_them() {
        let of = |module: &str, works_in: Option<&str>, class_path: &[&str]| {
            let settings = JvmSettings { working_directory: works_in.map(str::to_owned), ..JvmSettings::default() };
            let class_path: Vec<String> = class_path.iter().map(|element| (*element).to_owned()).collect();
            let launch = Launch {
                java_home: "/opt/java",
                console: PLATFORM_1,
                module,
                class_path: &class_path,
                class: "ATest",
                method: "m",
                settings: &settings,
                class_archive: false,
            };
            let protected = launch.directories().into_iter().filter_map(|step| match step {
                Step::Protect { path } => Some(path),
                _ => None,
            });
            protected.collect::<Vec<_>>()
        };
        let (tests, classes) = ("/work/project/m/target/test-classes", "/work/project/m/target/classes");
        let jar = "/opt/maven-repository/a.jar";
        assert_eq!(of("/work/project/m", None, &[tests, classes, jar]), [tests, classes]);
        assert_eq!(of("/work/project/m", Some(tests), &[tests, classes]), [classes]);
        let roundabout = ["/work/project/m/../m/./target/classes", "/work/project/m/..", "/work/project/m/../../etc"];
        assert_eq!(of("/work/project/m", None, &roundabout), [classes]);
        assert_eq!(of("/work/project/m", None, &["/work/project/m/../lib/own.jar"]), ["/work/project/lib/own.jar"]);
    }

    #[test]
    fn the_console_is_the_manifests_or_fits_the_class_path() {
        let of = |name: &str, jdk, launcher| console_for(&[format!("/m2/{name}")], jdk, launcher);
        let (five, six) = ("junit-jupiter-api-5.9.1.jar", "junit-jupiter-api-6.0.0.jar");
        assert_eq!(of(five, 17, Launcher::Auto), PLATFORM_1);
        assert_eq!(of(six, 17, Launcher::Auto), PLATFORM_6);
        assert_eq!(of(six, 11, Launcher::Auto), PLATFORM_1);
        assert_eq!(of(six, 17, Launcher::Platform1), PLATFORM_1);
        assert_eq!(of(five, 17, Launcher::Platform6), PLATFORM_6);
    }
}
