//! What containers say: init's frames, a whole conversation, the warm compiler's answers.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use testevo_sandbox::digest::Digest;
use testevo_sandbox::engine::frame::{Decoder, Frame, MAGIC, MAX_OUTPUT, encode_end, encode_output, encode_step_end};
use testevo_sandbox::engine::session;
use testevo_sandbox::engine::spec::{
    Command, CommandEnd, CommandLimits, ContainerLimits, ContainerSpec, LimitReached, PROGRAM_SCHEMA, Program,
    ProgramEnd, Step, StepReport, StepResult, Stream,
};
use testevo_sandbox::engine::{
    Container, ContainerControl, ContainerExit, Engine, EngineDescription, EngineError, EngineImage, ImageRemoval,
    OutputPiece,
};
use testevo_sandbox::execution::build::compiler::{CompileAnswer, CompileRequest, Compilers, SCHEMA, Start};
use testevo_sandbox::execution::container::RepositoryImage;
use testevo_sandbox::execution::container::Surefire;

use crate::Target;
use crate::scratch::{Fresh, done};

const WORDS: &[&[u8]] = &[
    b"testevo\x01",
    b"\x01\x06\x00\x00\x00\x00\x00\x00\x00\x01x",
    b"\x02\x29\x00\x00\x00",
    b"\x03\x13\x00\x00\x00{\"end\":\"completed\"}",
    b"{\"index\":0,\"result\":{\"result\":\"done\"},\"wall_ms\":1}",
    b"\"exit_code\":",
];

/// The decoder of frames, and what encodes them.
pub(super) const FRAMES: Target =
    Target { name: "frames", run: frames, seeds, words: WORDS, runs: 1500, most_bytes: 256 << 10, memory: 60 };

/// A whole conversation, as far as steps' outputs in memory and files.
pub(super) const SESSION: Target =
    Target { name: "session", run: session, seeds, words: WORDS, runs: 1000, most_bytes: 256 << 10, memory: 60 };

/// The warm compiler's answers.
pub(super) const COMPILER: Target = Target {
    name: "compiler",
    run: compiler,
    seeds: answers,
    words: &[b"\x00\x00\x00\x02A.", b"../", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00"],
    runs: 750,
    most_bytes: 64 << 10,
    memory: 200,
};

fn decoded(input: &[u8], piece: usize) -> (Vec<Frame>, Option<String>) {
    let (mut decoder, mut frames) = (Decoder::new(), Vec::new());
    for bytes in input.chunks(piece) {
        decoder.feed(bytes);
        loop {
            match decoder.frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error.to_string())),
            }
        }
    }
    (frames, None)
}

fn encoded(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for frame in frames {
        match frame {
            Frame::Output { step, stream, bytes: output } => encode_output(*step, *stream, output, &mut bytes),
            Frame::StepEnd(report) => encode_step_end(report, &mut bytes).unwrap_or_else(|error| panic!("{error}")),
            Frame::End(end) => encode_end(end, &mut bytes).unwrap_or_else(|error| panic!("{error}")),
        }
    }
    bytes
}

fn frames(input: &[u8]) {
    let whole = decoded(input, input.len().max(1));
    assert_eq!(decoded(input, 1 + input.len() % 7), whole, "pieces decide nothing");
    assert_eq!(decoded(&encoded(&whole.0), MAX_OUTPUT), (whole.0, None), "what is decoded can be encoded");
}

fn seeds() -> Vec<Vec<u8>> {
    let end = |limit| CommandEnd {
        exit_code: Some(0),
        signal: None,
        limit,
        cpu_ms: 12,
        peak_resident_bytes: 1 << 30,
        dropped_bytes: 0,
        leftover_processes: 0,
        process_limit_hits: Some(0),
        memory_limit_kills: None,
    };
    let step = |index, result| Frame::StepEnd(StepReport { index, result, wall_ms: 5 });
    let output = |step, stream, bytes: &[u8]| Frame::Output { step, stream, bytes: bytes.to_vec() };
    let whole = vec![
        output(0, Stream::Stdout, b"out"),
        output(0, Stream::Stderr, b"err"),
        output(0, Stream::Events, b"{\"event\":\"x\"}\n"),
        step(0, StepResult::Ended(end(None))),
        output(1, Stream::Content, b"content"),
        step(1, StepResult::Cut { size: 9 }),
        step(2, StepResult::Absent),
        output(3, Stream::Content, &[b'x'; MAX_OUTPUT]),
        output(3, Stream::Content, &[b'y'; 100]),
        step(3, StepResult::Done),
        Frame::End(ProgramEnd::Completed),
    ];
    let odd = vec![
        step(0, StepResult::Ended(end(Some(LimitReached::Output)))),
        step(1, StepResult::Refused { reason: "a link".to_owned() }),
        step(2, StepResult::Skipped),
        step(3, StepResult::Failed { error: "full".to_owned(), errno: Some(28) }),
        Frame::End(ProgramEnd::Stopped { step: 3 }),
    ];
    let rejected = vec![Frame::End(ProgramEnd::Rejected { reason: "why".to_owned() })];
    [whole, odd, rejected].iter().map(|frames| encoded(frames)).collect()
}

/// An engine whose containers say one thing.
struct Saying(Vec<u8>);

struct Ended;

#[async_trait]
impl ContainerControl for Ended {
    async fn wait(&mut self) -> Result<ContainerExit, EngineError> {
        Ok(ContainerExit { exit_code: 0, memory_kill: None })
    }

    async fn kill(&mut self) -> Result<(), EngineError> {
        Ok(())
    }
}

#[async_trait]
impl Engine for Saying {
    async fn start(&self, _: &ContainerSpec) -> Result<Container, EngineError> {
        let pieces: Vec<Bytes> = self.0.chunks(50_000).map(Bytes::copy_from_slice).collect();
        let output = stream::iter(pieces.into_iter().map(|piece| Ok(OutputPiece::Stdout(piece)))).boxed();
        Ok(Container { input: Box::pin(tokio::io::sink()), output, control: Box::new(Ended) })
    }

    async fn has_image(&self, _: &Digest) -> Result<bool, EngineError> {
        unreachable!("no target asks for images")
    }

    async fn load_image(&self, _: &Digest, _: BoxStream<'static, io::Result<Bytes>>) -> Result<(), EngineError> {
        unreachable!("no target asks for images")
    }

    async fn inspect_image(&self, _: &Digest) -> Result<Option<EngineImage>, EngineError> {
        unreachable!("no target asks for images")
    }

    async fn tag_image(&self, _: &Digest, _: &str) -> Result<(), EngineError> {
        unreachable!("no target asks for images")
    }

    async fn untag_image(&self, _: &Digest, _: &str) -> Result<(), EngineError> {
        unreachable!("no target asks for images")
    }

    async fn remove_image(&self, _: &Digest) -> Result<ImageRemoval, EngineError> {
        unreachable!("no target asks for images")
    }

    async fn describe(&self) -> Result<EngineDescription, EngineError> {
        unreachable!("no target asks what the engine is")
    }

    async fn sweep(&self) -> Result<usize, EngineError> {
        Ok(0)
    }

    async fn close(&self) -> Result<(), EngineError> {
        Ok(())
    }
}

/// What each of a step's streams may have in [`session`], in bytes.
const OUTPUT_BYTES: u64 = 100_000;
const FILE_BYTES: u64 = 50;
const LISTED: u64 = 2;

fn spec() -> ContainerSpec {
    let command = Command {
        argv: vec!["/bin/true".to_owned()],
        environment: Vec::new(),
        working_directory: "/".to_owned(),
        limits: CommandLimits { wall_seconds: 1, cpu_seconds: 1, output_bytes: OUTPUT_BYTES, flood_bytes: 1 << 20 },
        events: true,
        required: false,
        only_after_success_of: None,
    };
    let path = || "/work/x".to_owned();
    let steps = vec![
        Step::Run(command),
        Step::SendFile { path: path(), max_bytes: FILE_BYTES },
        Step::SendListing { root: path(), max_files: LISTED },
        Step::SendArchive { root: path(), max_bytes: OUTPUT_BYTES },
    ];
    ContainerSpec {
        purpose: "fuzz".to_owned(),
        image: Digest::of(b""),
        mounts: Vec::new(),
        door: None,
        scratch: Vec::new(),
        limits: ContainerLimits { memory_bytes: 1 << 30, cpus: 1, processes: 10, wall_seconds: 60 },
        program: Program { schema: PROGRAM_SCHEMA, door_port: None, steps },
    }
}

fn runtime() -> tokio::runtime::Runtime {
    done(tokio::runtime::Builder::new_current_thread().enable_time().build())
}

fn session(input: &[u8]) {
    let spool = Fresh::new("session");
    let spec = spec();
    let run = runtime().block_on(session::run(&Saying(input.to_vec()), &spec, spool.path()));
    let Ok(run) = run else { return };
    assert!(run.steps.len() <= spec.program.steps.len());
    for step in &run.steps {
        let most = [OUTPUT_BYTES, FILE_BYTES, LISTED * 4097, OUTPUT_BYTES][step.index];
        for captured in [&step.stdout, &step.stderr, &step.events, &step.content] {
            assert!(captured.length() <= most);
            assert_eq!(done(captured.bytes()).len() as u64, captured.length());
        }
    }
    let ended = decoded(input, input.len().max(1)).0.iter().any(|frame| matches!(frame, Frame::End(_)));
    assert_eq!(run.is_complete(), ended, "only init's own word ends a program");
}

/// The schema of the compiler's conversation, and an answer, each behind its length.
fn compiler(input: &[u8]) {
    let mut said = SCHEMA.to_be_bytes().to_vec();
    said.extend((input.len() as u32).to_be_bytes());
    said.extend(input);
    let frames: Vec<Frame> = said
        .chunks(MAX_OUTPUT)
        .map(|bytes| Frame::Output { step: 1, stream: Stream::Events, bytes: bytes.to_vec() })
        .collect();
    let temporary = Fresh::new("compiler");
    let engine = Arc::new(Saying(encoded(&frames)));
    let compilers = Compilers::new(engine, temporary.path().join("compiler.jar"), temporary.path().to_owned(), 1);
    let image = RepositoryImage {
        config_digest: Digest::of(b""),
        toolchain: Digest::of(b""),
        jdk: 17,
        java_home: "/usr/lib/jvm/x".to_owned(),
        maven_arguments: Vec::new(),
        launcher: Default::default(),
        surefire: Surefire::Project,
    };
    let request = CompileRequest { inputs: BTreeMap::new(), ..CompileRequest::default() };
    match runtime().block_on(compilers.compile(Start { image: &image, class_archive: None }, &request)) {
        Ok(CompileAnswer::Compiled { classes, .. }) => {
            for (path, _) in classes {
                assert!(path.split('/').all(|part| !matches!(part, "" | "." | "..")), "{path}");
            }
        }
        Ok(CompileAnswer::Lost(reason)) => panic!("the whole answer was said: {reason}"),
        Ok(CompileAnswer::Errors(_) | CompileAnswer::Broken(_)) => {}
        Err(error) => panic!("the compiler began well: {error}"),
    }
}

fn answers() -> Vec<Vec<u8>> {
    let text = |text: &str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
    let number = |number: u32| number.to_be_bytes().to_vec();
    let none = || [number(0), number(0), number(0), number(0)].concat();
    let compiled = [
        vec![0],
        text(""),
        number(0),
        number(0),
        number(1),
        text("p/A.class"),
        text("class"),
        number(1),
        text("/work/project/target/generated/A.java"),
        text("class A {}"),
    ];
    let failed = [
        vec![1],
        text(""),
        number(1),
        text("/work/project/src/test/java/ATest.java"),
        7_i64.to_be_bytes().to_vec(),
        (-1_i64).to_be_bytes().to_vec(),
        text("compiler.err.cant.resolve"),
        text("cannot find symbol"),
        number(3),
        number(0),
        number(0),
    ];
    vec![compiled.concat(), failed.concat(), [vec![2], text("trouble"), none()].concat()]
}
