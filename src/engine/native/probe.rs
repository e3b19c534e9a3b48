//! Creates a real container with an empty image, with which `doctor` tests this machine.

use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use super::super::session::{self, RunEnd};
use super::super::spec::{
    Command, CommandLimits, ContainerLimits, ContainerSpec, INIT_PATH, PROGRAM_SCHEMA, Program, ProgramEnd, Scratch,
    Step,
};
use super::super::{Engine as _, EngineError};
use super::NativeEngine;
use super::layers::Source;
use crate::digest::Digest;

/// A tar archive of nothing.
const EMPTY: [u8; 1024] = [0; 1024];

impl NativeEngine {
    /// Creates a container of an empty image with every protection, runs a command in it, and returns how long that
    /// took. `spool` is an existing directory of this process.
    ///
    /// # Errors
    /// [`EngineError::NativeStep`] with the step that failed; every other error of [`session::run`];
    /// [`EngineError::StartFailed`] if the command did not complete.
    pub async fn probe(&self, spool: &Path) -> Result<Duration, EngineError> {
        let image = Digest::of(b"an image of nothing");
        let open = || -> Result<Box<dyn Read>, EngineError> { Ok(Box::new(io::Cursor::new(EMPTY))) };
        self.layers.add(&image, &[Source { diff_id: Digest::of(&EMPTY), open: &open }], 0)?;
        let command = Command {
            argv: vec![INIT_PATH.to_owned(), "--version".to_owned()],
            environment: Vec::new(),
            working_directory: "/tmp".to_owned(),
            limits: CommandLimits { wall_seconds: 30, cpu_seconds: 30, output_bytes: 4096, flood_bytes: 1 << 20 },
            events: false,
            required: true,
            only_after_success_of: None,
        };
        let spec = ContainerSpec {
            purpose: "probe".to_owned(),
            image,
            mounts: Vec::new(),
            door: None,
            scratch: vec![Scratch { target: "/tmp".to_owned(), size_bytes: 1 << 20 }],
            limits: ContainerLimits { memory_bytes: 256 << 20, cpus: 1, processes: 64, wall_seconds: 60 },
            program: Program { schema: PROGRAM_SCHEMA, door_port: None, steps: vec![Step::Run(command)] },
        };
        let run = session::run(self, &spec, spool).await?;
        self.wait_for_removals().await;
        match run.end {
            RunEnd::Program(ProgramEnd::Completed) => Ok(run.wall),
            other => {
                let steps: Vec<_> = run.steps.iter().filter_map(|step| step.result()).collect();
                let message = format!("{other:?} {steps:?}");
                Err(EngineError::StartFailed { purpose: spec.purpose, message })
            }
        }
    }
}
