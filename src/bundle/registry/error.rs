//! Why bundles do not come to or from registries.

use std::io;
use std::path::PathBuf;

use crate::bundle::BundleError;
use crate::error::{ExitStatus, Failure};

/// Why a registry does not take or give a bundle.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The text names no place in a registry.
    #[error("`{text}` is no reference of a registry: {reason}")]
    Reference {
        /// The text.
        text: String,
        /// The parser's reason.
        reason: String,
    },
    /// The registry wants other credentials, or some.
    #[error("the registry `{registry}` does not let this user in: {reason}")]
    Unauthorized {
        /// The registry.
        registry: String,
        /// Its words.
        reason: String,
    },
    /// The registry has nothing of that name.
    #[error("there is no `{0}`")]
    Missing(String),
    /// The registry can't be reached, or answers with an error.
    #[error("`{reference}`: {doing}: {reason}")]
    Exchange {
        /// The place in the registry.
        reference: String,
        /// What was done.
        doing: String,
        /// The reason.
        reason: String,
    },
    /// The registry sends other bytes than it was asked for.
    #[error("`{reference}` gives other bytes for {digest} than its digest says")]
    Lies {
        /// The place in the registry.
        reference: String,
        /// The digest that was asked for.
        digest: String,
    },
    /// The registry sends more bytes than the index says, or than an index may have.
    #[error("`{reference}` sends more than {limit} bytes for {what}")]
    TooLarge {
        /// The place in the registry.
        reference: String,
        /// The digest, or the tag, that was asked for.
        what: String,
        /// The most bytes that are read.
        limit: u64,
    },
    /// The index is none of a bundle.
    #[error("what lies at `{reference}` is no bundle: {reason}")]
    NoBundle {
        /// The place in the registry.
        reference: String,
        /// The reason.
        reason: String,
    },
    /// The directory can't be written.
    #[error("`{path}` can't be written")]
    Write {
        /// The directory.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// There is not enough space for what is missing.
    #[error("`{path}` has {free} MiB of free space, and the bundle needs {needed} MiB more")]
    NoSpace {
        /// The directory.
        path: PathBuf,
        /// Free space in MiB.
        free: u64,
        /// Needed space in MiB.
        needed: u64,
    },
}

impl Failure for RegistryError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Reference { .. } => ExitStatus::Usage,
            Self::Unauthorized { .. } | Self::Missing(_) | Self::Exchange { .. } => ExitStatus::Origin,
            Self::Lies { .. } | Self::TooLarge { .. } => ExitStatus::Mismatch,
            Self::NoBundle { .. } => ExitStatus::BadInput,
            Self::Write { .. } | Self::NoSpace { .. } => ExitStatus::Infrastructure,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Reference { .. } => "write it as HOST[:PORT]/NAME:TAG",
            Self::Unauthorized { .. } => {
                "log in with `docker login` or `podman login`; credentials are read where these keep them"
            }
            Self::Missing(_) => "look at the name and the tag",
            Self::Exchange { .. } => {
                "run the command again: what the registry has is not sent twice; `--plain-http` is for a registry without TLS"
            }
            Self::Lies { .. } | Self::TooLarge { .. } => {
                "use another registry, or have the bundle pushed again; nothing of it was taken"
            }
            Self::NoBundle { .. } => "name what `bundle push` wrote",
            Self::Write { .. } | Self::NoSpace { .. } => "make space, or name another directory",
        };
        Some(hint.to_owned())
    }
}

/// An error of either side of a transfer.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// Of the registry.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// Of the bundle.
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

impl Failure for TransferError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Registry(error) => error.exit_status(),
            Self::Bundle(error) => error.exit_status(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Registry(error) => error.hint(),
            Self::Bundle(error) => error.hint(),
        }
    }
}
