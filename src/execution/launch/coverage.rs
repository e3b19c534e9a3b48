//! Coverage of one method's launch. JaCoCo's agent runs on the method's own JVM, and init sends its data out. JaCoCo's
//! command line analyses the data in a container where nothing of the submission runs. Source: protocol §4.
//!
//! The data is untrusted: any code in the JVM can write it. Its size is bounded, and only JaCoCo reads it, in a
//! container. JaCoCo's XML is read without resolving entities.

use std::collections::{BTreeMap, BTreeSet};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use crate::artifact::key::key;
use crate::digest::Digest;
use crate::engine::session::{self, ContainerRun};
use crate::engine::spec::{Command, ContainerSpec, PROGRAM_SCHEMA, Program, ReadOnlyMount, Scratch, Step, StepResult};
use crate::execution::attempt::{Came, attempt};
use crate::execution::build::built::Built;
use crate::execution::container::RepositoryImage;
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::container::places::{ANALYSER, PROJECT, TREE};
use crate::execution::container::steps::command_end;
use crate::execution::container::temporary::Spool;
use crate::execution::executor::Executor;
use crate::execution::fault::{engine_fault, not_done};
use crate::execution::launch::agent::{Agent, WithAgent};
use crate::execution::run::logs::CellLogs;
use crate::focal::FocalLines;
use crate::focal::own::OwnMethod;
use crate::metrics::coverage::FocalCoverage;
use crate::outcome::launch::shortened;
use crate::task::MethodId;

mod xml;

pub use xml::{XmlError, attribute, read_xml};

const AGENT_JAR: &str = "/opt/jacoco/agent.jar";
/// The file that the agent writes.
const DATA: &str = "/work/jacoco/jacoco.exec";
/// The most data that one launch may write, in bytes: a bit for each branch of each class.
const MOST_DATA_BYTES: u64 = 32 << 20;
/// The largest XML, in bytes.
pub const MOST_XML_BYTES: u64 = 128 << 20;

/// The lines that JaCoCo lists of one source file; true for a line with an executed instruction.
pub type Lines = BTreeMap<usize, bool>;

/// A source file as JaCoCo names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SourceFile {
    /// Its package, parts by `/`; empty for the unnamed one.
    pub package: String,
    /// Its name alone.
    pub name: String,
}

/// A request to measure coverage.
#[derive(Clone, Copy, Debug)]
pub struct CoverageRequest<'a> {
    /// Methods to cover, launched now or not.
    pub methods: &'a [MethodId],
    /// Source files whose lines are wanted.
    pub files: &'a [SourceFile],
}

/// The coverage of one method's launch.
#[derive(Clone, Debug)]
pub struct MethodCoverage {
    /// The method.
    pub method: MethodId,
    /// Lines by source file, or the reason why coverage is missing. Files without a class that JaCoCo knows are left
    /// out.
    pub lines: Result<BTreeMap<SourceFile, Lines>, String>,
    /// Whether another try may give another result, because the fault is ours.
    pub may_pass: bool,
}

/// Lines by source file, or why there are none, and whether trying again may give another result.
type Analysed = (Result<BTreeMap<SourceFile, Lines>, String>, bool);

/// Returns the key of a method's coverage, given the key of its launch: equal keys mean equal lines.
pub fn coverage_key(launch: Digest, files: &[SourceFile]) -> Digest {
    key("jacoco", 2, &(launch, files))
}

/// Returns the files that contain focal lines, as JaCoCo names them, each once.
pub fn source_files(focal: &[FocalLines]) -> Vec<SourceFile> {
    let files: BTreeSet<SourceFile> = focal.iter().map(source_file).collect();
    files.into_iter().collect()
}

fn source_file(focal: &FocalLines) -> SourceFile {
    let name = focal.path.rsplit('/').next().unwrap_or(&focal.path).to_owned();
    SourceFile { package: focal.package.clone(), name }
}

/// Returns the coverage of a test method's own focal methods, given the lines of their files.
pub fn own_coverage(own: &[OwnMethod], lines: &BTreeMap<SourceFile, Lines>) -> Vec<FocalCoverage> {
    let none = Lines::new();
    let of = |own: &OwnMethod| {
        let file = SourceFile { package: own.package.clone(), name: own.file.clone() };
        let file = lines.get(&file).unwrap_or(&none);
        FocalCoverage::of_lines((own.first_line, own.last_line), &own.lines, file)
    };
    own.iter().map(of).collect()
}

/// Returns the coverage of the focal methods, given the lines of their files.
pub fn focal_coverage(focal: &[FocalLines], lines: &BTreeMap<SourceFile, Lines>) -> Vec<FocalCoverage> {
    let none = Lines::new();
    let of = |focal: &FocalLines| {
        let file = lines.get(&source_file(focal)).unwrap_or(&none);
        FocalCoverage::of((focal.first_line, focal.last_line), file)
    };
    focal.iter().map(of).collect()
}

/// Returns the coverage agent. The agent creates its output directory in the container's empty scratch space.
pub(in crate::execution) fn agent() -> Agent {
    let argument = agent_of(DATA, false);
    Agent { name: "coverage", argument, writes: (DATA.to_owned(), MOST_DATA_BYTES), mounts: Vec::new() }
}

/// Returns the agent's argument for a file. With `append`, the agent keeps the data that other JVMs wrote there.
pub fn agent_of(file: &str, append: bool) -> String {
    format!("-javaagent:{AGENT_JAR}=destfile={file},append={append},output=file,dumponexit=true,jmx=false")
}

/// A compiled tree's coverage request.
#[derive(Clone, Copy)]
pub struct Covering<'a> {
    /// Binary name of the test class.
    pub class: &'a str,
    /// Source files whose lines are wanted.
    pub files: &'a [SourceFile],
    /// The logs of launches.
    pub logs: &'a CellLogs,
}

impl Executor {
    /// Launches methods with the coverage agent and returns the coverage of each.
    ///
    /// # Errors
    /// I/O errors of writing logs and temporary files.
    pub async fn cover<'a>(
        &self,
        image: &RepositoryImage,
        built: &Built,
        covering: &Covering<'_>,
        methods: impl Iterator<Item = &'a MethodId>,
    ) -> std::io::Result<Vec<MethodCoverage>> {
        let at = (covering.class, covering.logs);
        let data = self.launch_with(&agent(), image, built, at, methods).await?;
        self.analyse(image, built, data, covering.files).await
    }

    /// Analyses the agent's data of several launches in one container.
    async fn analyse(
        &self,
        image: &RepositoryImage,
        built: &Built,
        data: Vec<WithAgent>,
        files: &[SourceFile],
    ) -> std::io::Result<Vec<MethodCoverage>> {
        let mut covered = Vec::new();
        let mut methods = Vec::new();
        // The first of the archives has the main classes.
        let tree = built.archives.first().cloned().unwrap_or_default();
        let mut mounts = vec![ReadOnlyMount { source: tree, target: TREE.to_owned() }];
        let spool = Spool::create(&self.temporary)?;
        for WithAgent { method, data, .. } in data {
            match data {
                Ok(data) => {
                    let source = spool.path().join(format!("{}.exec", methods.len()));
                    // JaCoCo reads the data of several JVMs one after another.
                    let mut whole = fs::File::create(&source)?;
                    for file in data {
                        std::io::copy(&mut fs::File::open(file.path())?, &mut whole)?;
                    }
                    mounts.push(ReadOnlyMount { source, target: data_path(methods.len()) });
                    methods.push(method);
                }
                Err((cause, may_pass)) => covered.push(MethodCoverage { method, lines: Err(cause), may_pass }),
            }
        }
        if methods.is_empty() {
            return Ok(covered);
        }
        let (program, steps) =
            analysing_program(&image.java_home, &built.class_path, files, methods.len(), &self.limits);
        let spec = ContainerSpec {
            purpose: "analyse".to_owned(),
            image: image.config_digest,
            mounts,
            door: None,
            scratch: vec![
                Scratch { target: "/work".to_owned(), size_bytes: self.limits.compile_scratch_bytes },
                Scratch { target: "/tmp".to_owned(), size_bytes: self.limits.compile_scratch_bytes / 4 },
            ],
            limits: self.limits.compile,
            program,
        };
        let once = async |_| {
            let output = Spool::create(&self.temporary)?;
            let run = session::run(self.engine.as_ref(), &spec, output.path()).await;
            let of = |(method, (java, sent)): (&MethodId, &(usize, usize))| {
                let (lines, may_pass) = match &run {
                    Ok(run) => analysed(run, *java, *sent, files)?,
                    Err(error) => (Err(engine_fault(error).detail), true),
                };
                Ok(MethodCoverage { method: method.clone(), lines, may_pass })
            };
            methods.iter().zip(&steps).map(of).collect::<std::io::Result<Vec<_>>>()
        };
        let came = |analysed: &Vec<MethodCoverage>| match analysed.iter().any(|one| one.may_pass) {
            true => Came::Fault,
            false => Came::Answer,
        };
        covered.extend(attempt(&self.exclusive, None, once, came).await?.answer);
        Ok(covered)
    }
}

fn analysed(run: &ContainerRun, java: usize, sent: usize, files: &[SourceFile]) -> std::io::Result<Analysed> {
    let Some(end) = command_end(run, java) else { return Ok((Err(not_done(run, "analysis").detail), true)) };
    if end.exit_code != Some(0) {
        let said = match run.step(java) {
            Some(step) => String::from_utf8_lossy(&step.stderr.bytes()?).into_owned(),
            None => String::new(),
        };
        return Ok((Err(shortened(&format!("JaCoCo could not analyse the data: {said}"))), false));
    }
    let Some(sent) = run.step(sent).filter(|step| step.result() == Some(&StepResult::Done)) else {
        return Ok((Err("JaCoCo wrote no XML, or too much".to_owned()), false));
    };
    let xml = sent.content.bytes()?;
    Ok((read_xml(&xml, files).map_err(|error| error.to_string()), false))
}

/// Returns the program that turns each method's data into XML, and for each the indexes of its JVM and its XML.
fn analysing_program(
    java_home: &str,
    class_path: &[String],
    files: &[SourceFile],
    number: usize,
    limits: &ExecutionLimits,
) -> (Program, Vec<(usize, usize)>) {
    let mut steps = vec![
        Step::MakeDirectory { path: "/work/xml".to_owned() },
        Step::Unpack { archive: TREE.to_owned(), into: PROJECT.to_owned() },
    ];
    let directories = class_directories(class_path);
    // A JVM finds versions of a class for other releases only in jars. In a directory, JaCoCo takes them for different
    // classes of the same name.
    steps.extend(directories.iter().map(|path| Step::Remove { path: format!("{path}/META-INF/versions") }));
    let directories = package_directories(&directories, files);
    // A module without main sources has no class directory, and JaCoCo takes a missing directory for a file.
    steps.extend(directories.iter().map(|path| Step::MakeDirectory { path: path.clone() }));
    let directories: Vec<&String> = directories.iter().collect();
    let mut indexes = Vec::new();
    for index in 0..number {
        let xml = format!("/work/xml/{index}.xml");
        steps.push(Step::Run(report_command(java_home, &data_path(index), &directories, &xml, limits)));
        steps.push(Step::SendFile { path: xml.clone(), max_bytes: MOST_XML_BYTES });
        indexes.push((steps.len() - 2, steps.len() - 1));
        steps.push(Step::Remove { path: xml });
    }
    (Program { schema: PROGRAM_SCHEMA, door_port: None, steps }, indexes)
}

/// Returns the directories of main classes on a test class path: those of the module and of its siblings. The first
/// directory on the class path has the test classes and is left out.
pub fn class_directories(class_path: &[String]) -> Vec<&String> {
    class_path.iter().skip(1).filter(|path| path.starts_with(PROJECT) && !path.ends_with(".jar")).collect()
}

/// Returns the directories of these files' packages in each class directory, without subdirectories of one another.
/// JaCoCo fails on a resource that only looks like a class or an archive, so it sees no other directories.
fn package_directories(directories: &[&String], files: &[SourceFile]) -> Vec<String> {
    let packages: BTreeSet<&str> = files.iter().map(|file| file.package.as_str()).collect();
    let is_below = |package: &str, other: &str| {
        other.is_empty() || package.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
    };
    let is_first = |package: &&&str| !packages.iter().any(|other| other != *package && is_below(package, other));
    let packages: Vec<&str> = packages.iter().filter(is_first).copied().collect();
    let of = |directory: &&String| {
        let directory = (*directory).clone();
        packages.iter().map(move |package| match package.is_empty() {
            true => directory.clone(),
            false => format!("{directory}/{package}"),
        })
    };
    directories.iter().flat_map(of).collect()
}

/// Returns the command that turns an agent's data and class directories into XML.
pub fn report_command(
    java_home: &str,
    data: &str,
    directories: &[&String],
    xml: &str,
    limits: &ExecutionLimits,
) -> Command {
    let java = format!("{java_home}/bin/java");
    let jvm = ["-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:ActiveProcessorCount=2"];
    let words = [java.as_str()].into_iter().chain(jvm).chain(["-jar", ANALYSER, "report", data]);
    let mut argv: Vec<String> = words.map(str::to_owned).collect();
    for directory in directories {
        argv.extend(["--classfiles".to_owned(), (*directory).clone()]);
    }
    argv.extend(["--quiet", "--xml", xml].map(str::to_owned));
    Command {
        argv,
        environment: vec![("HOME".to_owned(), "/work".to_owned()), ("TZ".to_owned(), "UTC".to_owned())],
        working_directory: "/work".to_owned(),
        limits: limits.compile_command,
        events: false,
        required: false,
        only_after_success_of: None,
    }
}

fn data_path(index: usize) -> String {
    format!("/testevo/input/{index}.exec")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_packages_of_the_files_are_analysed() {
        let directories = [format!("{PROJECT}/target/classes"), format!("{PROJECT}/other/classes")];
        let of = |packages: &[&str]| {
            let file = |package: &&str| SourceFile { package: (*package).to_owned(), name: "A.java".to_owned() };
            let files: Vec<SourceFile> = packages.iter().map(file).collect();
            let found = package_directories(&directories.iter().collect::<Vec<_>>(), &files);
            found.iter().map(|path| path.strip_prefix(PROJECT).unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            of(&["a/b", "a/bc", "a/b", "a/b/c"]),
            ["/target/classes/a/b", "/target/classes/a/bc", "/other/classes/a/b", "/other/classes/a/bc"]
        );
        assert_eq!(of(&["a", "", "b"]), ["/target/classes", "/other/classes"]);
    }
}
