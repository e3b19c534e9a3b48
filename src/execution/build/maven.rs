//! Maven's programs in a container: the build of a tree on the reference path. Source: protocol §2.2.
//!
//! This module makes values only: programs for init. A compile container turns a source tree into a compiled tree, its
//! class path and Maven's events.

use crate::engine::spec::{Command, CommandLimits, PROGRAM_SCHEMA, Program, Step};
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::container::places::{HOME, MAVEN_REPOSITORY, PROJECT, RECORDER, RECORDING, TREE};
use crate::execution::container::{class_archive_options, environment};
use crate::execution::module::ModuleArguments;
use crate::execution::request::OtherText;

/// Relative to each module: Maven resolves this path against the module that it builds. So every module of the reactor
/// writes a file of its own, and only the task's module's file is read.
const CLASS_PATH_FILE: &str = "target/testevo-sandbox.classpath";
/// Pinned, because Maven would otherwise take the newest version of the day.
const BUILD_CLASSPATH_GOAL: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath";

/// The parts of a Maven command that a repository and its image decide.
#[derive(Clone, Debug)]
pub struct MavenSettings<'a> {
    /// `JAVA_HOME` in the image.
    pub java_home: String,
    /// Skips and other arguments of the manifest.
    pub arguments: &'a [String],
    /// Whether Maven's JVM maps a class archive.
    pub class_archive: bool,
}

/// Properties that `git-commit-id-maven-plugin` sets from git, without their prefix `git.`. There is no git in a build, so the
/// plugin is switched off; what uses its properties sees these, equal for every revision. The project's version
/// (`build.version`) is missing, because each module has its own. Source: the plugin's documentation.
const GIT_FACTS: [(&str, &str); 26] = [
    ("branch", "main"),
    ("build.host", "localhost"),
    ("build.number", "0"),
    ("build.number.unique", "0"),
    ("build.time", "2000-01-01T00:00:00+0000"),
    ("build.user.email", "nobody@localhost"),
    ("build.user.name", "nobody"),
    ("closest.tag.commit.count", "0"),
    ("closest.tag.name", ""),
    ("commit.author.time", "2000-01-01T00:00:00+0000"),
    ("commit.committer.time", "2000-01-01T00:00:00+0000"),
    ("commit.id", "0123456789abcdef0123456789abcdef01234567"),
    ("commit.id.abbrev", "0123456"),
    ("commit.id.describe", "0123456"),
    ("commit.id.describe-short", "0123456"),
    ("commit.id.full", "0123456789abcdef0123456789abcdef01234567"),
    ("commit.message.full", "commit"),
    ("commit.message.short", "commit"),
    ("commit.time", "2000-01-01T00:00:00+0000"),
    ("commit.user.email", "nobody@localhost"),
    ("commit.user.name", "nobody"),
    ("dirty", "false"),
    ("local.branch.ahead", "0"),
    ("local.branch.behind", "0"),
    ("tags", ""),
    ("total.commit.count", "1"),
];

/// Options for Maven's JVM. They save processor time for compiling the JVM's own code, and keep the heap below the limit.
///
/// Maven puts a project's `.mvn/jvm.config` before them. Its options may choose another collector, an initial heap above
/// this limit, or be unknown to this JVM: the JVM would not start. No class that Maven makes depends on these.
const JVM_OPTIONS: &str = "-Xms64m -Xmx1536m -XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockExperimentalVMOptions \
                           -XX:-UseG1GC -XX:-UseParallelGC -XX:-UseParallelOldGC -XX:-UseConcMarkSweepGC \
                           -XX:-UseParNewGC -XX:-UseZGC -XX:-UseShenandoahGC -XX:-UseEpsilonGC -XX:+UseSerialGC \
                           -XX:TieredStopAtLevel=1 -XX:ActiveProcessorCount=2 \
                           -Dfile.encoding=UTF-8 -Duser.language=en -Duser.country=US -Duser.timezone=UTC \
                           -Djava.awt.headless=true -Dorg.slf4j.simpleLogger.showThreadName=false";

/// Maven copies a snapshot's file with a time in its name to one without, unless this property is false. The cache of an image
/// is read-only.
const NORMALIZES: &str = "aether.artifactResolver.snapshotNormalization";

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
        argv.push(format!("-D{NORMALIZES}=false"));
    }
    argv.push(format!("-Dmaven.repo.local={MAVEN_REPOSITORY}"));
    argv.push(format!("-Dmaven.ext.class.path={RECORDER}"));
    argv.push(format!("-Dtestevo.recorder.output={RECORDING}"));
    argv.push(format!("-Dmdep.outputFile={CLASS_PATH_FILE}"));
    argv.extend(GIT_FACTS.iter().map(|(name, value)| format!("-Dgit.{name}={value}")));
    argv.extend(module.default_argument().map(str::to_owned));
    argv.extend(settings.arguments.iter().cloned());
    argv.extend(module.maven());
    argv.extend(goals.iter().map(|goal| (*goal).to_owned()));
    let mut options = JVM_OPTIONS.to_owned();
    if settings.class_archive {
        options = format!("{options} {}", class_archive_options().join(" "));
    }
    Command {
        argv,
        environment: environment(&settings.java_home, &[("MAVEN_OPTS", options)]),
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
pub fn class_path_file(module: &ModuleArguments) -> String {
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

/// Returns the program of a compile container. The other text stands in the tree while Maven runs, and no longer: a test must
/// not read from sources that it meets a mutant.
pub fn compile_program(
    settings: &MavenSettings<'_>,
    module: &ModuleArguments,
    limits: &ExecutionLimits,
    other_text: Option<OtherText<'_>>,
) -> (Program, CompileSteps) {
    let command = maven_command(settings, module, true, &COMPILE_GOALS, limits.compile_command);
    let mut steps = vec![
        Step::MakeDirectory { path: HOME.to_owned() },
        Step::Unpack { archive: TREE.to_owned(), into: PROJECT.to_owned() },
    ];
    let write = |path: &str, content: &str| Step::Write { path: format!("{PROJECT}/{path}"), content: content.into() };
    steps.extend(other_text.map(|other| write(other.path, other.text)));
    let maven = steps.len();
    steps.extend([
        Step::Run(command),
        Step::SendFile { path: RECORDING.to_owned(), max_bytes: 32 << 20 },
        Step::SendFile { path: class_path_file(module), max_bytes: 1 << 20 },
    ]);
    // A source in another encoding differs here, and does so in the launch on the text that mutants start from.
    steps.extend(other_text.map(|other| write(other.path, &String::from_utf8_lossy(other.original))));
    let archive = steps.len();
    steps.extend([Step::SendArchive { root: PROJECT.to_owned(), max_bytes: limits.compile_scratch_bytes }]);
    let program = Program { schema: PROGRAM_SCHEMA, door_port: None, steps };
    (program, CompileSteps { maven, recording: maven + 1, class_path: maven + 2, archive })
}
