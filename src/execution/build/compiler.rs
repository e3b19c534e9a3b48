//! The warm compiler: javac in sealed containers that live as long as the command and serve one request after the
//! other.
//!
//! It compiles hostile sources and never runs them. A compiler that exhausts a limit, times out or answers malformed
//! data is ended, and its request fails over to another path. Protocol: `images/compiler/README.md`.

mod messages;

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fs_err as fs;
use serde::Serialize;
use tokio::sync::Semaphore;

use self::messages::{decode, encode};
use crate::digest::Digest;
use crate::engine::session::conversation::Conversation;
use crate::engine::spec::{
    Command, CommandLimits, ContainerLimits, ContainerSpec, PROGRAM_SCHEMA, Program, ReadOnlyMount, Scratch, Step,
};
use crate::engine::{Engine, EngineError};
use crate::execution::container::places::{CLASS_ARCHIVE, HOME};
use crate::execution::container::temporary::unique;
use crate::execution::container::{JVM_OPTIONS, RepositoryImage, class_archive_options, environment};

/// The version of the protocol, which the compiler says first.
pub const SCHEMA: u32 = 2;
const JAR: &str = "/testevo/compiler.jar";
const INPUTS: &str = "/testevo/inputs";
const MAIN_CLASS: &str = "testevo.compiler.Main";
const MIB: u64 = 1 << 20;

/// How the names of javac's own packages begin, with their module.
pub(super) const JAVAC: &str = "jdk.compiler/com.sun.tools.javac.";

/// javac's own packages that plugins such as Error Prone use.
pub(super) const OPENED: [&str; 10] =
    ["api", "code", "comp", "file", "main", "model", "parser", "processing", "tree", "util"];

/// The first development kit whose JVM closes javac's packages, unless it is told otherwise. Projects tell Maven's JVM
/// or a forked compiler's.
const CLOSED_SINCE: u32 = 16;

/// A JVM that compiled for hours is replaced, because annotation processors may keep state in it.
const MOST_REQUESTS: u32 = 400;

/// How long a compiler's container may live, in seconds.
const LIFE_SECONDS: u64 = 24 * 3600;

/// How long the JVM may take to start.
const STARTS_WITHIN: Duration = Duration::from_secs(120);

/// How long one request may take. A longer compilation is left to Maven.
const REQUEST: Duration = Duration::from_secs(120);

/// The shortest limit for one request.
const SHORTEST: Duration = Duration::from_secs(30);

/// How many times as long as the revision's own text another text may take.
const TIMES_LONGER: u32 = 20;

/// Returns how long a text may compile, given how long the revision's own text took. A text that takes many times as
/// long is left to Maven, and a small module need not wait as long for that as a large one.
pub fn patience(own: Duration) -> Duration {
    own.saturating_mul(TIMES_LONGER).clamp(SHORTEST, REQUEST)
}

/// The longest answer, in bytes.
const MOST_ANSWER: usize = 128 << 20;

/// A directory or jar on the host that replaces a path in a request's arguments.
#[derive(Clone, Debug)]
pub struct Input {
    /// The jar on the host.
    pub file: PathBuf,
    /// A name that is unique to its content.
    pub name: String,
}

/// A request to the warm compiler.
#[derive(Clone, Debug, Default)]
pub struct CompileRequest {
    /// Arguments for javac without the sources. Paths in `inputs` are replaced.
    pub arguments: Vec<String>,
    /// Jars that stand in for directories of the project.
    pub inputs: BTreeMap<String, Input>,
    /// The output directory of classes, absolute in the container.
    pub output: String,
    /// Further directories that must exist.
    pub directories: Vec<String>,
    /// Files by absolute path.
    pub files: Files,
    /// Sources to compile, in order.
    pub sources: Vec<String>,
    /// The time limit of this request; `None` for the general limit.
    pub patience: Option<Duration>,
}

/// Files by path.
pub type Files = Vec<(String, Vec<u8>)>;

/// The path of a source of a request, absolute in the container, and texts that it has in turn. Without texts, the
/// request is compiled once, as it is.
pub type Texts<'a> = (&'a str, &'a [&'a str]);

/// One of javac's errors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The source, absolute in the container; `None` for an error without a position.
    pub file: Option<String>,
    /// Line, counted from 1; negative for an error without a position.
    pub line: i64,
    /// Column, counted from 1, where a tab reaches the next multiple of eight; negative for an error without a
    /// position.
    pub column: i64,
    /// javac's own key of the error.
    pub code: String,
    /// Its text.
    pub message: String,
}

/// The result of a request.
#[derive(Clone, Debug)]
pub enum CompileAnswer {
    /// The sources compiled.
    Compiled {
        /// Classes by path relative to the output directory.
        classes: Files,
        /// Sources and resources that processors made, by absolute path.
        generated: Files,
    },
    /// The sources did not compile.
    Errors(Vec<Diagnostic>),
    /// The compiler gave no usable answer and was ended.
    Broken(String),
    /// The compiler died: killed, out of memory, or silent for too long. Either the text or the machine may be the
    /// cause.
    Lost(String),
}

impl CompileAnswer {
    /// Tells whether the compiler can serve another request.
    fn is_sound(&self) -> bool {
        !matches!(self, Self::Broken(_) | Self::Lost(_))
    }
}

/// What a compiler is started with.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The image of its requests.
    pub image: &'a RepositoryImage,
    /// The class archive that its JVM maps.
    pub class_archive: Option<&'a Path>,
}

/// The compilers of this process, up to a maximum number.
pub struct Compilers {
    engine: Arc<dyn Engine>,
    jar: PathBuf,
    temporary: PathBuf,
    slots: Semaphore,
    most: usize,
    /// A compiler is replaced after this many requests.
    most_requests: u32,
    /// How long a compiler may take for an answer.
    patience: Duration,
    idle: Mutex<Vec<WarmCompiler>>,
}

impl Compilers {
    /// Returns a pool of at most `most` compilers. `jar` is `images/compiler`, compiled; `temporary` is this process's
    /// own directory.
    pub fn new(engine: Arc<dyn Engine>, jar: PathBuf, temporary: PathBuf, most: usize) -> Self {
        let most = most.max(1);
        Self {
            engine,
            jar,
            temporary,
            slots: Semaphore::new(most),
            most,
            most_requests: MOST_REQUESTS,
            patience: REQUEST,
            idle: Mutex::default(),
        }
    }

    /// Compiles, in an idle warm compiler of the image if there is one.
    ///
    /// # Errors
    /// [`EngineError`] where no compiler could be started. A compiler that fails after its start is
    /// [`CompileAnswer::Broken`] or [`CompileAnswer::Lost`].
    pub async fn compile(&self, start: Start<'_>, request: &CompileRequest) -> Result<CompileAnswer, EngineError> {
        let answer = self.answers(start, request, ("", &[])).await?.pop();
        Ok(answer.unwrap_or_else(|| CompileAnswer::Lost("the compiler did not answer".to_owned())))
    }

    /// Compiles each text with the rest of the request, in one exchange with a compiler. Returns the answers in order, up
    /// to the first that is [`CompileAnswer::Broken`] or [`CompileAnswer::Lost`]. That one is left out, because the compiler
    /// may have failed for the sake of another text.
    ///
    /// # Errors
    /// As [`Self::compile`].
    pub async fn compile_each(
        &self,
        start: Start<'_>,
        request: &CompileRequest,
        texts: Texts<'_>,
    ) -> Result<Vec<CompileAnswer>, EngineError> {
        let mut answers = self.answers(start, request, texts).await?;
        answers.retain(CompileAnswer::is_sound);
        Ok(answers)
    }

    /// Returns a compiler's answers, up to the first that is not sound.
    async fn answers(
        &self,
        start: Start<'_>,
        request: &CompileRequest,
        texts: Texts<'_>,
    ) -> Result<Vec<CompileAnswer>, EngineError> {
        let closed = |_| EngineError::StartFailed { purpose: "compiler".into(), message: "the pool is closed".into() };
        let _slot = self.slots.acquire().await.map_err(closed)?;
        let mut compiler = match self.take(start.image.config_digest) {
            Some(compiler) => compiler,
            None => WarmCompiler::start(self.engine.as_ref(), start, &self.jar, &self.temporary).await?,
        };
        let patience = request.patience.unwrap_or(self.patience).min(self.patience);
        let number = texts.1.len().max(1);
        let mut answers: Vec<CompileAnswer> = Vec::with_capacity(number);
        while answers.len() < number && answers.last().is_none_or(CompileAnswer::is_sound) {
            let answer = match answers.is_empty() {
                true => compiler.compile(request, texts, patience).await,
                false => compiler.answer(patience).await,
            };
            answers.push(answer.unwrap_or_else(|error| CompileAnswer::Lost(error.to_string())));
            compiler.requests += 1;
        }
        // A compiler that is not returned to the pool ends when its value is dropped.
        if answers.last().is_some_and(CompileAnswer::is_sound) && compiler.requests < self.most_requests {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(compiler);
        }
        Ok(answers)
    }

    /// Takes an idle compiler of the image. If there is none, makes room for a new one.
    fn take(&self, image: Digest) -> Option<WarmCompiler> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = idle.iter().rposition(|compiler| compiler.image == image) {
            return Some(idle.remove(at));
        }
        if idle.len() >= self.most {
            idle.remove(0);
        }
        None
    }
}

/// A compiler in its container. Dropping it ends both.
struct WarmCompiler {
    image: Digest,
    conversation: Conversation,
    /// The directory on the host that the container sees as its inputs.
    inputs: PathBuf,
    linked: BTreeSet<String>,
    requests: u32,
}

impl Drop for WarmCompiler {
    fn drop(&mut self) {
        // If removal fails here, the directory is removed with this process's temporary directory.
        if let Err(error) = fs::remove_dir_all(&self.inputs) {
            tracing::debug!("{error}");
        }
    }
}

impl WarmCompiler {
    async fn start(engine: &dyn Engine, start: Start<'_>, jar: &Path, temporary: &Path) -> Result<Self, EngineError> {
        let inputs = temporary.join(format!("compiler-{}", unique()));
        fs::create_dir_all(&inputs).map_err(EngineError::Spool)?;
        let spec = container(start, jar, &inputs);
        let conversation = match Conversation::open(engine, &spec).await {
            Ok(conversation) => conversation,
            Err(error) => {
                let _ = fs::remove_dir_all(&inputs);
                return Err(error);
            }
        };
        let mut compiler =
            Self { image: start.image.config_digest, conversation, inputs, linked: BTreeSet::new(), requests: 0 };
        let schema = compiler.number(STARTS_WITHIN).await?;
        if schema != SCHEMA {
            let message = format!("it speaks schema {schema}");
            return Err(EngineError::StartFailed { purpose: spec.purpose, message });
        }
        Ok(compiler)
    }

    async fn number(&mut self, patience: Duration) -> Result<u32, EngineError> {
        let bytes = self.conversation.hear(4, patience).await?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Removes links to inputs whose files are gone. Masked revisions come and go, and a remaining link would keep
    /// their bytes on disk.
    fn forget_orphans(&mut self) -> std::io::Result<()> {
        let mut kept = BTreeSet::new();
        for name in std::mem::take(&mut self.linked) {
            let link = self.inputs.join(&name);
            if fs::metadata(&link)?.nlink() > 1 {
                kept.insert(name);
            } else {
                fs::remove_file(&link)?;
            }
        }
        self.linked = kept;
        Ok(())
    }

    /// Sends a request, and returns the first answer.
    async fn compile(
        &mut self,
        request: &CompileRequest,
        texts: Texts<'_>,
        patience: Duration,
    ) -> Result<CompileAnswer, EngineError> {
        self.forget_orphans().map_err(EngineError::Spool)?;
        let mut replaced = BTreeMap::new();
        for (path, input) in &request.inputs {
            let name = format!("{}.jar", input.name);
            if self.linked.insert(name.clone()) {
                // The directory is mounted, so the container sees the link at once.
                fs::hard_link(&input.file, self.inputs.join(&name)).map_err(EngineError::Spool)?;
            }
            replaced.insert(path.as_str(), format!("{INPUTS}/{name}"));
        }
        let message = encode(request, texts, &replaced);
        self.conversation.say(&message).await?;
        self.answer(patience).await
    }

    async fn answer(&mut self, patience: Duration) -> Result<CompileAnswer, EngineError> {
        let length = self.number(patience).await? as usize;
        if length > MOST_ANSWER {
            return Ok(CompileAnswer::Broken(format!("an answer of {length} bytes")));
        }
        let answer = self.conversation.hear(length, patience).await?;
        Ok(decode(&answer).unwrap_or_else(|| CompileAnswer::Broken("an answer that can't be understood".to_owned())))
    }
}

fn container(Start { image, class_archive }: Start<'_>, jar: &Path, inputs: &Path) -> ContainerSpec {
    let mut argv = vec![format!("{}/bin/java", image.java_home)];
    let options = ["-Xmx1024m", "-XX:+UseSerialGC"].into_iter().chain(JVM_OPTIONS);
    argv.extend(options.map(str::to_owned));
    if image.jdk >= CLOSED_SINCE {
        argv.extend(OPENED.map(|package| format!("--add-opens={JAVAC}{package}=ALL-UNNAMED")));
    }
    if class_archive.is_some() {
        argv.extend(class_archive_options());
    }
    argv.extend(["-cp", JAR, MAIN_CLASS, "3"].map(str::to_owned));
    let steps = vec![
        Step::MakeDirectory { path: HOME.to_owned() },
        Step::Converse(Command {
            argv,
            environment: environment(&image.java_home, &[]),
            working_directory: "/work".to_owned(),
            limits: CommandLimits {
                wall_seconds: LIFE_SECONDS,
                cpu_seconds: LIFE_SECONDS,
                output_bytes: u64::MAX,
                flood_bytes: u64::MAX,
            },
            events: true,
            required: true,
            only_after_success_of: None,
        }),
    ];
    ContainerSpec {
        purpose: "compiler".to_owned(),
        image: image.config_digest,
        mounts: [(jar, JAR), (inputs, INPUTS)]
            .into_iter()
            .chain(class_archive.map(|archive| (archive, CLASS_ARCHIVE)))
            .map(|(source, target)| ReadOnlyMount { source: source.to_owned(), target: target.to_owned() })
            .collect(),
        door: None,
        scratch: vec![
            Scratch { target: "/work".to_owned(), size_bytes: 512 * MIB },
            Scratch { target: "/tmp".to_owned(), size_bytes: 128 * MIB },
        ],
        limits: ContainerLimits { memory_bytes: 2048 * MIB, cpus: 2, processes: 256, wall_seconds: LIFE_SECONDS },
        program: Program { schema: PROGRAM_SCHEMA, door_port: None, steps },
    }
}

#[cfg(test)]
pub(in crate::execution) mod tests;
