//! The errors of engines.

use super::{digest, disk, json, path, text};
use crate::artifact::store::StoreError;
use crate::engine::EngineError;
use crate::engine::frame::FrameError;
use crate::engine::native::Stage;

pub(super) fn engines() -> Vec<EngineError> {
    let purpose = || text("a test");
    let started = |message: &str| EngineError::StartFailed { purpose: purpose(), message: text(message) };
    let step = |stage, errno| EngineError::NativeStep { purpose: purpose(), stage, errno, message: text("it failed") };
    vec![
        EngineError::Unreachable { tried: vec![text("unix:///one: none"), text("unix:///two: none")] },
        EngineError::Address { address: text("tcp://host") },
        EngineError::Unfit { address: text("unix:///one"), reason: text("too old") },
        EngineError::Daemon {
            operation: "list containers",
            source: Box::new(bollard::errors::Error::RequestTimeoutError),
        },
        EngineError::ImageMissing { image: digest() },
        EngineError::ImageNotLoaded { image: digest(), answer: text("ok") },
        EngineError::ImageDamaged { image: digest(), file: path() },
        EngineError::LayerDamaged { layer: digest(), file: path() },
        EngineError::Blob(StoreError::Corrupted { expected: digest(), found: digest(), path: path() }),
        EngineError::Mount { path: path(), source: disk() },
        EngineError::MountClosed { path: path(), mode: 0o600 },
        EngineError::MountElsewhere { path: path(), message: text("no such file") },
        EngineError::InitFile { reason: text("it is gone") },
        EngineError::CreateRefused { purpose: purpose(), message: text("no") },
        started("no"),
        started("unable to setup user: Invalid argument"),
        started("cgroups in hybrid mode not supported"),
        EngineError::Isolation { engine: text("native"), missing: vec![text("memory"), text("processes")] },
        step(Stage::Namespaces, libc::ENOSPC),
        step(Stage::Request, 0),
        EngineError::Layers { doing: text("unpacking"), source: disk() },
        EngineError::AttachLost { purpose: purpose(), reason: text("it ended") },
        EngineError::Vanished { purpose: purpose() },
        EngineError::ShortOfMemory { purpose: purpose() },
        EngineError::Frames { purpose: purpose(), source: FrameError::Magic },
        EngineError::TooMuch { purpose: purpose(), what: text("output") },
        EngineError::ProgramTooLong { purpose: purpose(), length: 9 },
        EngineError::Archive { path: "/data/tmp/tree.tar".into(), source: disk() },
        EngineError::Spool(disk()),
        EngineError::Program(json()),
    ]
}
