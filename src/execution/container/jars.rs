//! Our own jars: the runner, the recorder, the warm compiler and the tracer, compiled from sources that this program
//! embeds.
//!
//! No image contains the jars, so a change of them changes no image and no proof. A sealed container compiles them once
//! with a development kit of the toolchain. The store keeps them by digest, and containers see them read-only.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};
use std::path::Path;

use fs_err as fs;
use serde::{Deserialize, Serialize};

use crate::artifact::made::{self, Described, Kind};
use crate::artifact::store::{Store, StoreError};
use crate::digest::Digest;
use crate::engine::session::{self, ContainerRun};
use crate::engine::spec::{
    Command, CommandLimits, ContainerLimits, ContainerSpec, PROGRAM_SCHEMA, Program, ReadOnlyMount, Scratch, Step,
    StepResult,
};
use crate::engine::{Engine, EngineError};
use crate::error::{ExitStatus, Failure};
use crate::event::EventSink;
use crate::execution::container::ToolJars;
use crate::execution::container::places::ANALYSER;

/// Why the jars could not be made.
#[derive(Debug, thiserror::Error)]
pub enum JarError {
    /// The container could not be run.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The compiler rejected the sources, or its container failed.
    #[error("our own Java sources could not be compiled with the image's development kit: {0}")]
    Compiler(String),
}

impl Failure for JarError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Engine(error) => error.exit_status(),
            Self::Store(error) => error.exit_status(),
            Self::Io(_) | Self::Compiler(_) => ExitStatus::Infrastructure,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Engine(error) => return error.hint(),
            Self::Store(error) => return error.hint(),
            Self::Io(_) => "check the data directory's permissions and free space",
            Self::Compiler(_) => "the image's development kit may be damaged: build it again with `build-images`",
        };
        Some(hint.to_owned())
    }
}

macro_rules! sources {
    ($($path:literal),+ $(,)?) => {
        &[$(($path, include_str!(concat!("../../../images/", $path)))),+]
    };
}

/// Path below `images/` and text of every source.
const SOURCES: &[(&str, &str)] = sources![
    "compiler/src/testevo/compiler/Compilation.java",
    "compiler/src/testevo/compiler/FileManagers.java",
    "compiler/src/testevo/compiler/Main.java",
    "compiler/src/testevo/compiler/Parse.java",
    "compiler/src/testevo/compiler/Request.java",
    "compiler/src/testevo/compiler/Response.java",
    "json/testevo/json/JsonObject.java",
    "recorder/resources/META-INF/sisu/javax.inject.Named",
    "recorder/src/testevo/recorder/CompilerCall.java",
    "recorder/src/testevo/recorder/CompilerMessages.java",
    "recorder/src/testevo/recorder/CompilerOutput.java",
    "recorder/src/testevo/recorder/Failures.java",
    "recorder/src/testevo/recorder/GoalListener.java",
    "recorder/src/testevo/recorder/Goals.java",
    "recorder/src/testevo/recorder/Projects.java",
    "recorder/src/testevo/recorder/RecordFile.java",
    "recorder/src/testevo/recorder/Recorder.java",
    "recorder/src/testevo/recorder/TestSettings.java",
    "runner/src/testevo/runner/Arguments.java",
    "runner/src/testevo/runner/BoundedReport.java",
    "runner/src/testevo/runner/Discovery.java",
    "runner/src/testevo/runner/DiscoveryReporter.java",
    "runner/src/testevo/runner/EventStream.java",
    "runner/src/testevo/runner/ExitStatus.java",
    "runner/src/testevo/runner/Failure.java",
    "runner/src/testevo/runner/Main.java",
    "runner/src/testevo/runner/RunReporter.java",
    "runner/src/testevo/runner/Seal.java",
    "runner/src/testevo/runner/Sources.java",
    "runner/src/testevo/runner/Target.java",
    "runner/src/testevo/runner/Trial.java",
    "tracer/resources/META-INF/MANIFEST.MF",
    "tracer/src/testevo/tracer/Agent.java",
    "tracer/src/testevo/tracer/Callers.java",
    "tracer/src/testevo/tracer/Directories.java",
    "tracer/src/testevo/tracer/Entries.java",
    "tracer/src/testevo/tracer/Probe.java",
    "tracer/src/testevo/tracer/Report.java",
    "tracer/src/testevo/tracer/Tracing.java",
];

const MIB: u64 = 1 << 20;

/// An image that has a development kit, JUnit and Maven.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// Config digest.
    pub image: Digest,
    /// Major version of its development kit.
    pub jdk: u32,
    /// `JAVA_HOME` in the image.
    pub java_home: String,
}

#[derive(Serialize, Deserialize)]
struct Remembered {
    runner: Digest,
    recorder: Digest,
    compiler: Digest,
    tracer: Digest,
}

impl Described for Remembered {
    const KIND: Kind = Kind { directory: "jars", schema: 4, name: "our own jars" };

    fn blobs(&self) -> Vec<Digest> {
        vec![self.runner, self.recorder, self.compiler, self.tracer]
    }
}

/// Returns the jars compiled in the image of this recipe, if the store has all of them. The image itself is not needed.
pub fn remembered(image_recipe: &Digest, store: &Store, events: &EventSink) -> Option<ToolJars> {
    // If the record can't be read, the jars are compiled again and replace it.
    let found = made::find::<Remembered>(store, key(image_recipe), events).ok().flatten();
    found.map(|jars| jars.paths(store))
}

/// Compiles the jars in the compiler's image, and records them under the digest of the image's recipe.
///
/// # Errors
/// [`JarError`].
pub async fn make(
    engine: &dyn Engine,
    compiler: &Compiler,
    image_recipe: &Digest,
    store: &Store,
    temporary: &Path,
) -> Result<ToolJars, JarError> {
    let jars = compile(engine, compiler, store, temporary).await?;
    Ok(made::keep(store, key(image_recipe), jars)?.paths(store))
}

impl Remembered {
    fn paths(&self, store: &Store) -> ToolJars {
        ToolJars {
            runner: store.path(&self.runner),
            recorder: store.path(&self.recorder),
            compiler: store.path(&self.compiler),
            tracer: store.path(&self.tracer),
        }
    }
}

/// The directory of the jars' descriptions below the store's root.
pub const DIRECTORY: &str = Remembered::KIND.directory;

/// Returns the key of the jars: a digest of the image with the compiler, and of the sources.
pub fn key(image_recipe: &Digest) -> Digest {
    let sources: BTreeMap<&str, Digest> =
        SOURCES.iter().map(|(path, text)| (*path, Digest::of(text.as_bytes()))).collect();
    made::key::<Remembered>(&(image_recipe, sources))
}

async fn compile(
    engine: &dyn Engine,
    compiler: &Compiler,
    store: &Store,
    temporary: &Path,
) -> Result<Remembered, JarError> {
    fs::create_dir_all(temporary)?;
    let archive = temporary.join("java-sources.tar");
    fs::write(&archive, source_archive()?)?;
    let (spec, steps) = container(compiler, &archive);
    let run = session::run(engine, &spec, temporary).await?;
    let archive = |name: &str| -> Result<Digest, JarError> {
        let step = steps.get(name).copied().unwrap_or_default();
        Ok(store.put(&jar(&content(&run, step)?, &resources(name))?)?)
    };
    Ok(Remembered {
        runner: archive("runner")?,
        recorder: archive("recorder")?,
        compiler: archive("compiler")?,
        tracer: archive("tracer")?,
    })
}

/// Returns the files of a jar that are not compiled.
fn resources(jar: &str) -> Vec<(&'static str, &'static str)> {
    let folder = format!("{jar}/resources/");
    SOURCES.iter().filter_map(|(path, text)| Some((path.strip_prefix(&folder)?, *text))).collect()
}

fn source_archive() -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, text) in SOURCES {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        archive.append_data(&mut header, path, text.as_bytes())?;
    }
    archive.into_inner()
}

/// Each jar with the class path that it is compiled against and the folders of its sources.
const JARS: [(&str, &str, &[&str]); 4] = [
    ("runner", "/opt/junit/console.jar", &["json/", "runner/"]),
    ("recorder", "/opt/maven/lib/*", &["json/", "recorder/"]),
    ("compiler", "/work/none", &["compiler/"]),
    ("tracer", ANALYSER, &["tracer/"]),
];

/// Returns the container, and for each jar the step that sends its classes.
fn container(compiler: &Compiler, archive: &Path) -> (ContainerSpec, BTreeMap<&'static str, usize>) {
    let javac = |class_path: &str, output: &str, folders: &[&str]| {
        let mut argv = vec![format!("{}/bin/javac", compiler.java_home)];
        let words: &[&str] = if compiler.jdk == 8 { &["-source", "8", "-target", "8"] } else { &["--release", "8"] };
        let more = ["-encoding", "UTF-8", "-proc:none", "-nowarn", "-J-Xmx512m", "-d", output, "-cp", class_path];
        argv.extend(words.iter().chain(&more).map(|word| (*word).to_owned()));
        let sources = SOURCES.iter().map(|(path, _)| *path).filter(|path| path.ends_with(".java"));
        let sources = sources.filter(|path| folders.iter().any(|folder| path.starts_with(folder)));
        argv.extend(sources.map(|path| format!("/work/src/{path}")));
        Step::Run(Command {
            argv,
            environment: vec![("LC_ALL".into(), "C.UTF-8".into())],
            working_directory: "/work".into(),
            limits: CommandLimits { wall_seconds: 300, cpu_seconds: 300, output_bytes: MIB, flood_bytes: 64 * MIB },
            events: false,
            required: true,
            only_after_success_of: None,
        })
    };
    let mut steps = vec![Step::Unpack { archive: "/testevo/input/tree.tar".into(), into: "/work/src".into() }];
    let mut sent = BTreeMap::new();
    for (name, class_path, folders) in JARS {
        let output = format!("/work/{name}");
        steps.push(Step::MakeDirectory { path: output.clone() });
        steps.push(javac(class_path, &output, folders));
        sent.insert(name, steps.len());
        steps.push(Step::SendArchive { root: output, max_bytes: 16 * MIB });
    }
    let spec = ContainerSpec {
        purpose: "own-jars".to_owned(),
        image: compiler.image,
        mounts: vec![ReadOnlyMount { source: archive.to_owned(), target: "/testevo/input/tree.tar".to_owned() }],
        door: None,
        scratch: vec![
            Scratch { target: "/work".to_owned(), size_bytes: 256 * MIB },
            Scratch { target: "/tmp".to_owned(), size_bytes: 64 * MIB },
        ],
        limits: ContainerLimits { memory_bytes: 2048 * MIB, cpus: 2, processes: 256, wall_seconds: 660 },
        program: Program { schema: PROGRAM_SCHEMA, door_port: None, steps },
    };
    (spec, sent)
}

fn content(run: &ContainerRun, step: usize) -> Result<Vec<u8>, JarError> {
    if let Some(output) = run.step(step).filter(|output| output.result() == Some(&StepResult::Done)) {
        return Ok(output.content.bytes()?.into_owned());
    }
    let said: Vec<String> = run
        .steps
        .iter()
        .map(|output| Ok(String::from_utf8_lossy(&output.stderr.bytes()?).into_owned()))
        .collect::<std::io::Result<_>>()?;
    Err(JarError::Compiler(crate::outcome::launch::shortened(said.join("\n").trim())))
}

/// Returns a jar with equal bytes for equal classes: sorted, stored, one fixed time.
fn jar(classes: &[u8], resources: &[(&str, &str)]) -> Result<Vec<u8>, JarError> {
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(classes).entries()? {
        let mut entry = entry?;
        if entry.header().entry_type().is_file() {
            let path = entry.path()?.to_string_lossy().trim_start_matches("./").to_owned();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            files.insert(path, bytes);
        }
    }
    if files.is_empty() {
        return Err(JarError::Compiler("no class came out".to_owned()));
    }
    files.extend(resources.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())));
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Stored)
        .last_modified_time(zip::DateTime::default())
        .unix_permissions(0o644);
    for (path, bytes) in files {
        writer.start_file(path, options).map_err(std::io::Error::other)?;
        writer.write_all(&bytes)?;
    }
    Ok(writer.finish().map_err(std::io::Error::other)?.into_inner())
}

#[cfg(test)]
mod tests;
