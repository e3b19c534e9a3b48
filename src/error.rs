//! How a command fails: one error for the whole command line, its exit code, and what the user can do.
//!
//! Modules below have errors of their own; here they are only gathered, and every new kind must say its exit code.

use std::io;

use crate::artifact::fetch::{FetchError, FetchManyError};
use crate::artifact::origin::OriginError;
use crate::artifact::store::StoreError;
use crate::data_dir::DataDirError;
use crate::doctor::MissingOrigin;
use crate::engine::EngineError;
use crate::execution::images::LoadError;
use crate::execution::jars::JarError;
use crate::execution::proof::ProofError;
use crate::execution::run_directory::RunDirectoryError;
use crate::execution::stage::RunError;
use crate::image::ImageError;
use crate::lock::LockFileError;
use crate::lock::archive::LockArchiveError;
use crate::lock::policy::PolicyError;
use crate::manifest::ManifestError;
use crate::report::leaderboard::LeaderboardError;
use crate::report::score::ReportError;
use crate::resolution::door::DoorError;
use crate::resolution::repository::LockError;
use crate::resolution::toolchain::ToolchainError;
use crate::sample::SampleError;
use crate::settings::SettingsError;
use crate::submission::predictions::PredictionsError;
use crate::task::file::TaskFileError;
use crate::task::published::PublishedError;
use crate::task::selector::SelectorError;
use crate::workspace::WorkspaceError;

/// The exit codes, in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitStatus {
    /// Everything went as asked.
    Fine = 0,
    /// The command finished and a check failed.
    CheckFailed = 1,
    /// The command line or the settings make no sense.
    Usage = 2,
    /// Faults of the machine or of this program are left.
    Infrastructure = 3,
    /// Data from outside is wrong.
    BadInput = 4,
    /// An origin or the network failed.
    Origin = 5,
    /// A digest, lock or store does not match.
    Mismatch = 6,
    /// An engine, or the isolation that was asked for, is missing.
    Engine = 7,
    /// The user interrupted.
    Interrupted = 130,
}

impl From<ExitStatus> for std::process::ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status as u8)
    }
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The command did its work and what it checked does not hold; the details are on stdout.
    #[error("{summary}")]
    CheckFailed {
        /// What does not hold, in one line.
        summary: String,
    },
    /// The command did its work as far as faults of the machine let it; the details are on stdout.
    #[error("{summary}")]
    InfrastructureLeft {
        /// What is left, in one line.
        summary: String,
    },
    /// A command did its work for some repositories only; what kept it from the others was told of.
    #[error("{failed} of {total} repositories could not be {done}")]
    Repositories {
        /// How many failed.
        failed: usize,
        /// How many there are.
        total: usize,
        /// What did not happen to them: `locked`.
        done: &'static str,
        /// What weighs most of their errors.
        #[source]
        worst: Box<CommandError>,
    },
    /// Arguments that don't go together.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to do.
        hint: String,
    },
    /// The settings can't be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The data directory can't be used.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// Published data can't be used.
    #[error(transparent)]
    Published(#[from] PublishedError),
    /// A manifest can't be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// A task file can't be used.
    #[error(transparent)]
    TaskFile(#[from] TaskFileError),
    /// What was asked for does not exist.
    #[error(transparent)]
    Selection(#[from] SelectorError),
    /// Sources could not be had.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The container engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// An origin's address is not known.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// Something could not be fetched.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The store does not match.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Blobs of the store hold other bytes than their names promise; which ones is on stdout.
    #[error("{blobs} of the store's blobs hold other bytes than their names promise")]
    StoreCorrupted {
        /// How many.
        blobs: usize,
    },
    /// A lock file can't be used.
    #[error(transparent)]
    LockFile(#[from] LockFileError),
    /// A lock that is there would be replaced by another one.
    #[error("the lock `{path}` is not the archive's")]
    OtherLock {
        /// The lock that is there.
        path: std::path::PathBuf,
    },
    /// A repository's lock was resolved for something else than its manifest says now.
    #[error("the lock of {repository} was resolved {difference}")]
    OtherManifest {
        /// The repository.
        repository: crate::task::RepositoryName,
        /// What it was resolved for, and what the manifest says.
        difference: String,
    },
    /// A file is another repository's than its name says.
    #[error("`{path}` is of {found}, not of {wanted}")]
    OtherRepository {
        /// The lock or manifest.
        path: std::path::PathBuf,
        /// Whose it is.
        found: crate::task::RepositoryName,
        /// Whose it should be.
        wanted: String,
    },
    /// An archive of locks can't be used.
    #[error(transparent)]
    LockArchive(#[from] LockArchiveError),
    /// An image can't be made.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// An image can't be loaded into the engine.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Our own jars can't be made.
    #[error(transparent)]
    Jar(#[from] JarError),
    /// A repository can't be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Several things could not be fetched.
    #[error(transparent)]
    FetchMany(#[from] FetchManyError),
    /// The toolchain can't be locked.
    #[error(transparent)]
    Toolchain(#[from] ToolchainError),
    /// The toolchain policy can't be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The sample repository can't be written.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// A proof can't be read or written.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// A run's directory can't be used.
    #[error(transparent)]
    RunDirectory(#[from] RunDirectoryError),
    /// A validation broke off.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Predictions can't be read.
    #[error(transparent)]
    Predictions(#[from] PredictionsError),
    /// Runs can't be reported.
    #[error(transparent)]
    Report(#[from] ReportError),
    /// A published leaderboard can't be read.
    #[error(transparent)]
    Leaderboard(#[from] LeaderboardError),
    /// An origin is missing, as `doctor` found.
    #[error(transparent)]
    MissingOrigin(#[from] MissingOrigin),
    /// Results could not be written to stdout.
    #[error("stdout could not be written")]
    Output(#[source] io::Error),
    /// The asynchronous runtime could not be started.
    #[error("the runtime could not be started")]
    Runtime(#[source] io::Error),
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl CommandError {
    /// Returns the exit code.
    pub fn exit_status(&self) -> ExitStatus {
        match self {
            Self::CheckFailed { .. } => ExitStatus::CheckFailed,
            Self::Repositories { worst, .. } => worst.exit_status(),
            Self::Usage { .. } | Self::Settings(_) => ExitStatus::Usage,
            Self::InfrastructureLeft { .. } | Self::Output(_) | Self::Runtime(_) => ExitStatus::Infrastructure,
            Self::DataDir(DataDirError::UnknownVersion { .. }) => ExitStatus::Mismatch,
            Self::DataDir(DataDirError::Io { .. }) => ExitStatus::Infrastructure,
            Self::Published(_)
            | Self::Manifest(
                ManifestError::Malformed { .. }
                | ManifestError::Unsupported { .. }
                | ManifestError::Limit { .. }
                | ManifestError::UnsupportedJava { .. },
            )
            | Self::TaskFile(
                TaskFileError::Malformed { .. } | TaskFileError::Twice { .. } | TaskFileError::Taken { .. },
            ) => ExitStatus::BadInput,
            Self::Manifest(ManifestError::Io(_)) | Self::TaskFile(TaskFileError::Io(_)) => ExitStatus::Infrastructure,
            Self::Manifest(ManifestError::UnknownSchema { .. })
            | Self::TaskFile(TaskFileError::UnknownSchema { .. }) => ExitStatus::Mismatch,
            Self::Manifest(ManifestError::Missing { .. }) | Self::Selection(_) => ExitStatus::Usage,
            Self::Workspace(error) => of_workspace(error),
            Self::Engine(error) => engine_status(error),
            Self::Origin(error) => of_origin(error),
            Self::MissingOrigin(_) => ExitStatus::Origin,
            Self::Fetch(error) => of_fetch(error),
            Self::Store(error) => of_store(error),
            Self::StoreCorrupted { .. }
            | Self::OtherLock { .. }
            | Self::OtherManifest { .. }
            | Self::OtherRepository { .. } => ExitStatus::Mismatch,
            Self::LockFile(error) | Self::LockArchive(LockArchiveError::Lock(error)) => of_lock_file(error),
            Self::LockArchive(LockArchiveError::Store(error)) => of_store(error),
            Self::LockArchive(LockArchiveError::Malformed { .. }) => ExitStatus::BadInput,
            Self::LockArchive(LockArchiveError::UnknownSchema { .. }) => ExitStatus::Mismatch,
            Self::LockArchive(LockArchiveError::Io { .. }) => ExitStatus::Infrastructure,
            Self::Image(error) => of_image(error),
            Self::Load(LoadError::Engine(error)) => engine_status(error),
            Self::Load(LoadError::Image(error)) => of_image(error),
            Self::Jar(JarError::Engine(error)) => engine_status(error),
            Self::Jar(JarError::Store(error)) => of_store(error),
            Self::Jar(JarError::Io(_) | JarError::Compiler(_)) => ExitStatus::Infrastructure,
            Self::Lock(error) => match error {
                LockError::Door(DoorError::Store(error)) | LockError::Store(error) => of_store(error),
                LockError::Workspace(error) => of_workspace(error),
                LockError::Engine(error) => engine_status(error),
                LockError::Fetch(error) => of_fetch(error),
                LockError::LockFile(error) => of_lock_file(error),
                LockError::Origin { .. } => ExitStatus::Origin,
                LockError::Exhausted { .. } => ExitStatus::BadInput,
                LockError::Door(DoorError::Socket { .. }) | LockError::Io(_) | LockError::Container { .. } => {
                    ExitStatus::Infrastructure
                }
            },
            Self::FetchMany(error) | Self::Toolchain(ToolchainError::FetchMany(error)) => of_fetch(&error.first),
            Self::Toolchain(ToolchainError::Fetch(error)) => of_fetch(error),
            Self::Toolchain(ToolchainError::Archive(_) | ToolchainError::Resolve { .. }) => ExitStatus::Origin,
            Self::Toolchain(ToolchainError::UnknownJdk { .. }) => ExitStatus::Usage,
            Self::Toolchain(ToolchainError::LockedPackage { .. } | ToolchainError::Requirement(_)) => {
                ExitStatus::Mismatch
            }
            Self::Policy(_) => ExitStatus::BadInput,
            Self::Sample(_) | Self::Proof(ProofError::Io(_)) => ExitStatus::Infrastructure,
            Self::Proof(ProofError::Malformed { .. }) => ExitStatus::Mismatch,
            Self::RunDirectory(error) => of_run_directory(error),
            Self::Run(RunError::RunDirectory(error)) | Self::Report(ReportError::RunDirectory(error)) => {
                of_run_directory(error)
            }
            Self::Report(ReportError::OtherCommand { .. }) => ExitStatus::Usage,
            Self::Report(ReportError::NoInputs(_)) => ExitStatus::Mismatch,
            Self::Predictions(PredictionsError::Io(error)) | Self::Leaderboard(LeaderboardError::Io(error))
                if error.kind() == io::ErrorKind::NotFound =>
            {
                ExitStatus::Usage
            }
            Self::Leaderboard(LeaderboardError::Io(_)) => ExitStatus::Infrastructure,
            Self::Leaderboard(LeaderboardError::TooLarge { .. } | LeaderboardError::Shape { .. }) => {
                ExitStatus::BadInput
            }
            Self::Predictions(PredictionsError::Io(_)) => ExitStatus::Infrastructure,
            Self::Predictions(_) => ExitStatus::BadInput,
            Self::Run(RunError::Io(_)) => ExitStatus::Infrastructure,
            Self::Run(RunError::Interrupted) | Self::Interrupted => ExitStatus::Interrupted,
        }
    }

    /// Returns what the user can do, where something is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::CheckFailed { .. } | Self::Output(_) | Self::Interrupted => None,
            Self::Repositories { worst, .. } => worst.hint(),
            Self::Usage { hint, .. } => Some(hint.clone()),
            Self::Settings(error) => Some(error.hint()),
            Self::Published(error) => Some(error.hint()),
            Self::Manifest(error) => Some(error.hint()),
            Self::TaskFile(error) => Some(error.hint()),
            Self::Selection(error) => Some(error.hint()),
            Self::Workspace(error) | Self::Lock(LockError::Workspace(error)) => Some(error.hint()),
            Self::Engine(error)
            | Self::Load(LoadError::Engine(error))
            | Self::Jar(JarError::Engine(error))
            | Self::Lock(LockError::Engine(error)) => error.hint().map(str::to_owned),
            Self::Origin(error) => error.hint(),
            Self::MissingOrigin(error) => Some(error.advice.clone()),
            Self::Fetch(error) | Self::Lock(LockError::Fetch(error)) => error.hint(),
            Self::Store(error)
            | Self::Jar(JarError::Store(error))
            | Self::Lock(LockError::Store(error) | LockError::Door(DoorError::Store(error))) => store_hint(error),
            Self::StoreCorrupted { .. } => {
                Some("`store verify --repair` removes them; `build-images` fetches or makes them again".to_owned())
            }
            Self::OtherLock { .. } => Some(
                "import with `--replace`, which keeps it in locks/history, or into another `--data-dir`".to_owned(),
            ),
            Self::OtherManifest { repository, .. } => {
                Some(format!("run `testevo-sandbox lock {repository}`: it resolves the repository anew"))
            }
            Self::OtherRepository { .. } => Some(
                "put the right one there, or remove it: `import` writes manifests, and `lock` resolves locks"
                    .to_owned(),
            ),
            Self::LockFile(error) | Self::Lock(LockError::LockFile(error)) => lock_file_hint(error),
            Self::LockArchive(error) => match error {
                LockArchiveError::Store(StoreError::WrongDigest { .. }) | LockArchiveError::Malformed { .. } => {
                    Some("copy it again from where `store export` wrote it, and compare the sizes".to_owned())
                }
                LockArchiveError::UnknownSchema { .. } => Some("use the program that wrote it".to_owned()),
                LockArchiveError::Lock(error) => lock_file_hint(error),
                LockArchiveError::Store(error) => store_hint(error),
                LockArchiveError::Io { .. } => Some("check the file's permissions and the free space".to_owned()),
            },
            Self::Image(error) | Self::Load(LoadError::Image(error)) => Some(error.hint()),
            Self::Jar(JarError::Compiler(_)) => {
                Some("the image's development kit may be damaged: build it again with `build-images`".to_owned())
            }
            Self::Lock(LockError::Origin { .. }) => {
                // One origin that is down stops all: what it might have is not known to be nowhere.
                Some(
                    "check the network, or say with `--origin NAME=URL` where else to find what that origin has; `lock` \
                     goes on where it stopped"
                        .to_owned(),
                )
            }
            Self::Lock(LockError::Exhausted { .. }) => {
                Some("look at the plugins and repositories that its POMs declare, or leave it out".to_owned())
            }
            Self::Lock(LockError::Container { .. }) => {
                Some("run it again: `lock` goes on where it stopped; see the free memory with `doctor`".to_owned())
            }
            Self::Proof(ProofError::Malformed { path, .. }) => {
                Some(format!("remove `{}`; the proof is made again", path.display()))
            }
            Self::FetchMany(error) => error.hint(),
            Self::Toolchain(error) => error.hint(),
            Self::Policy(_) => None,
            Self::Sample(_) | Self::Proof(ProofError::Io(_)) => {
                Some("check the data directory's permissions and free space".to_owned())
            }
            Self::RunDirectory(error)
            | Self::Run(RunError::RunDirectory(error))
            | Self::Report(ReportError::RunDirectory(error)) => run_directory_hint(error),
            Self::Report(ReportError::OtherCommand { .. }) => {
                Some("`testevo-sandbox runs show` shows other runs".to_owned())
            }
            Self::Report(ReportError::NoInputs(_)) => Some("score again in a new run".to_owned()),
            Self::Predictions(error) => Some(error.hint()),
            Self::Leaderboard(LeaderboardError::Io(_)) => Some("check the path and its permissions".to_owned()),
            Self::Leaderboard(_) => Some(
                "the file has `tracks`, each a list of agents with `tasks`: `d`, and values between 0 and 1 or null"
                    .to_owned(),
            ),
            Self::Jar(JarError::Io(_))
            | Self::Lock(LockError::Io(_) | LockError::Door(DoorError::Socket { .. }))
            | Self::Run(RunError::Io(_)) => Some("check the data directory's permissions and free space".to_owned()),
            Self::Run(RunError::Interrupted) => Some("the same command goes on where it stopped".to_owned()),
            Self::InfrastructureLeft { .. } => {
                Some("look at the reasons above; `testevo-sandbox doctor` says what this machine lacks".to_owned())
            }
            Self::DataDir(DataDirError::UnknownVersion { .. }) => {
                Some("use the program that wrote it, or name another directory with `--data-dir`".to_owned())
            }
            Self::DataDir(DataDirError::Io { .. }) => {
                Some("check its permissions and free space, or name another directory with `--data-dir`".to_owned())
            }
            Self::Runtime(_) => Some("check the limits on processes and open files".to_owned()),
        }
    }

    /// Returns the error as the user sees it: `error: …`, a line per cause, and `hint: …`, labels coloured on
    /// request; control characters of the texts are shown, not sent.
    pub fn render(&self, color: bool) -> String {
        use std::fmt::Write as _;
        let label =
            |label: &str, style: &str| if color { format!("\u{1b}[{style}m{label}\u{1b}[0m") } else { label.into() };
        let mut text = format!("{} {}\n", label("error:", "1;31"), crate::output::escape_lines(&self.to_string()));
        for cause in self.causes() {
            let _ = writeln!(text, "  caused by: {}", crate::output::escape_lines(&cause));
        }
        if let Some(hint) = self.hint() {
            let _ = writeln!(text, "{} {}", label("hint:", "1;36"), crate::output::escape_lines(&hint));
        }
        text
    }

    /// Returns the error as a machine reads it among events: a value with `event`, `exit_code`, `text`, `causes` and
    /// `hint`.
    pub fn as_event(&self) -> serde_json::Value {
        serde_json::json!({
            "event": "error",
            "exit_code": self.exit_status() as u8,
            "text": self.to_string(),
            "causes": self.causes(),
            "hint": self.hint(),
        })
    }

    /// Returns the causes, nearest first, without those that another message quotes already.
    pub(crate) fn causes(&self) -> Vec<String> {
        let mut last = self.to_string();
        let mut causes = Vec::new();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let message = error.to_string();
            if !last.contains(&message) {
                causes.push(message.clone());
                last = message;
            }
            cause = error.source();
        }
        causes
    }
}

fn of_workspace(error: &WorkspaceError) -> ExitStatus {
    match error {
        WorkspaceError::MirrorTemplate { .. } => ExitStatus::Usage,
        WorkspaceError::MirrorMissing { .. }
        | WorkspaceError::RevisionMissing { .. }
        | WorkspaceError::Offline { .. }
        | WorkspaceError::Fetch { .. }
        | WorkspaceError::MissingBlob { .. } => ExitStatus::Origin,
        WorkspaceError::Git { .. } => ExitStatus::Mismatch,
        WorkspaceError::LfsPointer { .. } | WorkspaceError::HostileTree { .. } | WorkspaceError::SwapBlocked { .. } => {
            ExitStatus::BadInput
        }
        WorkspaceError::GitCommand(_)
        | WorkspaceError::Archive { .. }
        | WorkspaceError::DataDir(_)
        | WorkspaceError::Io(_) => ExitStatus::Infrastructure,
    }
}

fn engine_status(error: &EngineError) -> ExitStatus {
    match error {
        EngineError::ImageMissing { .. } | EngineError::ImageNotLoaded { .. } => ExitStatus::Mismatch,
        EngineError::Spool(_) => ExitStatus::Infrastructure,
        _ => ExitStatus::Engine,
    }
}

fn of_origin(error: &OriginError) -> ExitStatus {
    match error {
        // Names in locks are looked at with the lock: these are the command line's, or the settings'.
        OriginError::InvalidName { .. } | OriginError::InvalidAddress { .. } => ExitStatus::Usage,
        _ => ExitStatus::Origin,
    }
}

fn of_fetch(error: &FetchError) -> ExitStatus {
    match error {
        FetchError::Origin(error) => of_origin(error),
        FetchError::Garbage { .. } => ExitStatus::Mismatch,
        FetchError::Store(error) => of_store(error),
        _ => ExitStatus::Origin,
    }
}

fn of_store(error: &StoreError) -> ExitStatus {
    match error {
        StoreError::Io { .. } => ExitStatus::Infrastructure,
        StoreError::Missing { .. } | StoreError::Corrupted { .. } | StoreError::WrongDigest { .. } => {
            ExitStatus::Mismatch
        }
    }
}

fn of_lock_file(error: &LockFileError) -> ExitStatus {
    match error {
        LockFileError::Missing { .. } => ExitStatus::Usage,
        LockFileError::Io(_) => ExitStatus::Infrastructure,
        LockFileError::Malformed { .. } | LockFileError::UnknownSchema { .. } => ExitStatus::Mismatch,
    }
}

fn of_image(error: &ImageError) -> ExitStatus {
    match error {
        ImageError::Store(error) => of_store(error),
        ImageError::Io { .. } | ImageError::DataDir(_) => ExitStatus::Infrastructure,
        _ => ExitStatus::Mismatch,
    }
}

fn of_run_directory(error: &RunDirectoryError) -> ExitStatus {
    match error {
        RunDirectoryError::Io(_) => ExitStatus::Infrastructure,
        RunDirectoryError::InvalidId(_)
        | RunDirectoryError::Unknown(_)
        | RunDirectoryError::InUse(_)
        | RunDirectoryError::OtherInputs { .. }
        | RunDirectoryError::Finished { .. } => ExitStatus::Usage,
        RunDirectoryError::Malformed { .. } | RunDirectoryError::UnknownSchema { .. } => ExitStatus::Mismatch,
    }
}

fn store_hint(error: &StoreError) -> Option<String> {
    match error {
        StoreError::Io { .. } => Some("check the store's permissions and free space".to_owned()),
        StoreError::Missing { .. } => Some("run `build-images`, which fetches what a lock names".to_owned()),
        StoreError::Corrupted { path, .. } => {
            Some(format!("remove `{}`; `build-images` fetches or makes it again", path.display()))
        }
        StoreError::WrongDigest { .. } => Some("the mirror serves wrong bytes; give another origin".to_owned()),
    }
}

fn lock_file_hint(error: &LockFileError) -> Option<String> {
    match error {
        LockFileError::Missing { .. } => Some("run `testevo-sandbox lock`".to_owned()),
        LockFileError::Io(_) => Some("check its permissions".to_owned()),
        LockFileError::Malformed { .. } => {
            Some("restore it from a copy or from locks/history, or remove it and run `lock` again".to_owned())
        }
        LockFileError::UnknownSchema { .. } => Some("use the program that wrote it".to_owned()),
    }
}

fn run_directory_hint(error: &RunDirectoryError) -> Option<String> {
    match error {
        RunDirectoryError::Io(_) => Some("check the data directory's permissions and free space".to_owned()),
        RunDirectoryError::InvalidId(_) => None,
        RunDirectoryError::Unknown(_) => Some("`testevo-sandbox runs list` shows what there is".to_owned()),
        RunDirectoryError::InUse(_) => Some("wait for it, or name another run".to_owned()),
        RunDirectoryError::OtherInputs { .. } | RunDirectoryError::Finished { .. } => {
            Some("name another run with `--run-id`, or none".to_owned())
        }
        RunDirectoryError::Malformed { .. } => Some("remove the run's directory, or name another run".to_owned()),
        RunDirectoryError::UnknownSchema { .. } => Some("use the program that wrote it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_its_causes_once_and_its_hint() {
        let error = CommandError::Runtime(io::Error::other("no \u{1b}[31mthreads"));
        assert_eq!(
            error.render(false),
            "error: the runtime could not be started\n  caused by: no \\u{1b}[31mthreads\n\
             hint: check the limits on processes and open files\n"
        );
        let io = io::Error::other("disk full");
        let error = CommandError::DataDir(DataDirError::Io { path: "d".into(), source: io });
        assert_eq!(error.render(false).matches("disk full").count(), 1);
    }
}
