//! The context of every command: options, the data directory, the receiver of events, and the interrupt.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use crate::data_dir::{DataDir, DataDirError};
use crate::error::CommandError;
use crate::event::EventSink;
use crate::execution::run::verdicts::Invocation;
use crate::settings::{EngineChoice, SlurmSettings};
use crate::umask::Umask;
use crate::workspace::{MirrorTemplate, Sources};

/// The global options.
#[derive(Clone, Debug)]
pub struct Options {
    /// The engine for containers.
    pub engine: EngineChoice,
    /// Whether an engine that can't enforce every limit is refused.
    pub strict_isolation: bool,
    /// The most jobs at once on this machine.
    pub jobs: NonZeroUsize,
    /// The same for every machine; `None` where each machine has as many as it can.
    pub asked_jobs: Option<NonZeroUsize>,
    /// The data directory; it may not exist yet.
    pub data_dir: PathBuf,
    /// The most bytes that the data directory may take on its disk; `None` for no limit.
    pub max_disk: Option<u64>,
    /// Template of paths of local git repositories.
    pub git_mirror: Option<String>,
    /// Addresses of origins by name.
    pub origins: BTreeMap<String, String>,
    /// Whether the network must not be used.
    pub offline: bool,
    /// Whether signed indexes past their `Valid-Until` are refused; `None` leaves it to apt's configuration.
    pub check_valid_until: Option<bool>,
    /// Whether commands only tell what they would do.
    pub dry_run: bool,
    /// What is asked of Slurm.
    pub slurm: SlurmSettings,
}

/// The context of a command.
pub struct Context {
    /// The options.
    pub options: Options,
    /// The receiver of progress and messages.
    pub events: EventSink,
    /// Cancelled by the first interrupt. Work with a cleanup of its own watches it.
    pub cancellation: CancellationToken,
    /// The caller's umask, for files at paths that the caller chose.
    pub umask: Umask,
    started: Instant,
    data_dir: OnceLock<DataDir>,
    /// Whether the user knows which engine was chosen. Parts of a command share it.
    engine_told: Arc<AtomicBool>,
}

impl Context {
    /// Returns the context of a command that begins now.
    pub fn new(options: Options, events: EventSink, umask: Umask) -> Self {
        let (cancellation, started) = (CancellationToken::new(), Instant::now());
        Self { options, events, cancellation, umask, started, data_dir: OnceLock::new(), engine_told: Arc::default() }
    }

    /// Returns a context with other options for a part of the same command.
    pub fn with_options(&self, options: Options) -> Self {
        let (events, cancellation) = (self.events.clone(), self.cancellation.clone());
        let (umask, started, engine_told) = (self.umask, self.started, Arc::clone(&self.engine_told));
        Self { options, events, cancellation, umask, started, data_dir: OnceLock::new(), engine_told }
    }

    /// Tells which engine was chosen, once in a command.
    pub(super) fn tell_engine(&self, text: String) {
        if !self.engine_told.swap(true, Ordering::Relaxed) {
            self.events.message(text);
        }
    }

    /// Returns the data directory, opened (and created) at the first call.
    ///
    /// # Errors
    /// [`DataDirError`].
    pub fn data_dir(&self) -> Result<&DataDir, CommandError> {
        if let Some(data_dir) = self.data_dir.get() {
            return Ok(data_dir);
        }
        let path = &self.options.data_dir;
        let unusable = |source| DataDirError::Io { path: path.clone(), source };
        self.umask.create_directory(path).map_err(unusable)?;
        let opened = DataDir::open(path)?;
        Ok(self.data_dir.get_or_init(|| opened))
    }

    /// Returns the sources of repositories according to the options.
    ///
    /// # Errors
    /// [`DataDirError`]; [`WorkspaceError`](crate::workspace::WorkspaceError) for a template without the repository's
    /// name.
    pub fn sources(&self) -> Result<Sources, CommandError> {
        Ok(Sources {
            mirror: self.options.git_mirror.as_deref().map(MirrorTemplate::new).transpose()?,
            data_dir: self.data_dir()?.clone(),
            // A dry run reads only local repositories.
            offline: self.options.offline || self.options.dry_run,
            events: self.events.clone(),
        })
    }

    /// Returns the resources that this command has used so far.
    pub fn invocation(&self) -> Invocation {
        let used = crate::host::process_usage();
        Invocation {
            wall_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            cpu_ms: used.cpu_ms,
            peak_resident_bytes: used.peak_resident_bytes,
            jobs: self.options.jobs.get(),
            parts_ms: None,
        }
    }

    /// Runs work until it ends or [`Context::cancellation`] is cancelled.
    ///
    /// # Errors
    /// The work's error; [`CommandError::Interrupted`].
    pub async fn until_interrupted<T>(
        &self,
        work: impl Future<Output = Result<T, CommandError>>,
    ) -> Result<T, CommandError> {
        tokio::select! {
            biased;
            () = self.cancellation.cancelled() => Err(CommandError::Interrupted),
            done = work => done,
        }
    }
}

/// Removes the files that this process wrote for its own use only.
impl Drop for Context {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.data_dir.get().map(DataDir::remove_temporary) {
            // The next command's sweep removes them.
            tracing::debug!("{error}");
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    #[test]
    fn the_engine_is_told_once_in_a_command_and_its_parts() {
        use std::sync::Mutex;
        let told = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&told);
        let events = EventSink::new(move |event| hears.lock().unwrap().push(event));
        let options = offline(std::path::Path::new("nowhere"));
        let context = Context::new(options.clone(), events, Umask::take());
        context.with_options(options).tell_engine("Docker 1 runs the containers".to_owned());
        context.tell_engine("Docker 1 runs the containers".to_owned());
        assert_eq!(told.lock().unwrap().len(), 1);
    }

    /// Returns options for a data directory that never use the network.
    pub(in crate::application) fn offline(data_dir: &std::path::Path) -> Options {
        Options {
            engine: EngineChoice::Native,
            strict_isolation: false,
            jobs: NonZeroUsize::MIN,
            asked_jobs: None,
            data_dir: data_dir.to_owned(),
            max_disk: None,
            git_mirror: None,
            origins: BTreeMap::new(),
            offline: true,
            check_valid_until: None,
            dry_run: false,
            slurm: SlurmSettings::default(),
        }
    }
}
