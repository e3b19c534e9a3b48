//! The user's settings: `settings.toml` in the data directory. The environment and flags override it elsewhere.

mod slurm;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::Deserialize;

use crate::error::{ExitStatus, Failure};
use crate::output::without_types;

pub use self::slurm::SlurmSettings;

/// The largest settings file that is read, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// Errors of the settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A file could not be read.
    #[error("the settings could not be read: {0}")]
    Io(#[from] io::Error),
    /// The file is malformed.
    #[error("the settings `{path}` can't be understood: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The parser's message, with the line.
        reason: String,
    },
}

impl Failure for SettingsError {
    fn exit_status(&self) -> ExitStatus {
        ExitStatus::Usage
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Io(_) => "check the file's permissions, and that its file system answers",
            Self::Malformed { .. } => {
                "known keys: engine, jobs, max_disk, git_mirror, offline, color, check_valid_until, and the tables [origins] and [slurm]"
            }
        };
        Some(hint.to_owned())
    }
}

/// The content of `settings.toml`. Every key is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// As `--engine`.
    pub engine: Option<EngineChoice>,
    /// As `--jobs`.
    pub jobs: Option<std::num::NonZeroUsize>,
    /// As `--max-disk`, in GiB.
    pub max_disk: Option<std::num::NonZeroU32>,
    /// As `--git-mirror`.
    pub git_mirror: Option<String>,
    /// As `--offline`.
    pub offline: Option<bool>,
    /// As `--color`.
    pub color: Option<ColorChoice>,
    /// Whether signed indexes past their `Valid-Until` are refused; unset, apt's configuration decides.
    pub check_valid_until: Option<bool>,
    /// As `--origin`: addresses by the origin's name. Blanks separate several addresses of one origin.
    pub origins: BTreeMap<String, String>,
    /// What is asked of Slurm.
    pub slurm: SlurmSettings,
}

impl Settings {
    /// Reads the settings below the data directory `root`. A missing file gives empty settings.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn load(root: &Path) -> Result<Self, SettingsError> {
        let path = root.join("settings.toml");
        let malformed = |reason: String| SettingsError::Malformed { path: path.clone(), reason };
        let text = match fs::metadata(&path) {
            Ok(metadata) if metadata.len() > MOST_BYTES => return Err(malformed("it is too large".to_owned())),
            Ok(_) => fs::read_to_string(&path)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(error.into()),
        };
        toml::from_str(&text).map_err(|error: toml::de::Error| malformed(without_types(&error.to_string())))
    }
}

/// The engine that runs containers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum EngineChoice {
    /// The first that answers.
    #[default]
    Auto,
    /// Docker's daemon.
    Docker,
    /// Podman's service.
    Podman,
    /// The built-in engine.
    Native,
}

/// Whether stderr is coloured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum ColorChoice {
    /// On terminals, unless `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_and_unknown_keys_are_named() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Settings::load(directory.path()).unwrap(), Settings::default());
        let path = directory.path().join("settings.toml");
        fs::write(&path, "engine = \"podman\"\njobs = 3\n[origins]\ncentral = \"mirror\"\n").unwrap();
        let settings = Settings::load(directory.path()).unwrap();
        assert_eq!(settings.engine, Some(EngineChoice::Podman));
        assert_eq!(settings.origins["central"], "mirror");
        fs::write(&path, "jbos = 3\n").unwrap();
        let error = Settings::load(directory.path()).unwrap_err();
        assert!(error.to_string().contains("jbos"), "{error}");
        fs::write(&path, "jobs = 0\n").unwrap();
        let error = Settings::load(directory.path()).unwrap_err();
        assert!(error.to_string().contains("expected a whole number from 1 on"), "{error}");
    }
}
