//! Bundles: what scoring needs of some tasks, or what agents get of them, as an OCI image layout in a directory or in one tar archive.
//!
//! `index.json` names the bundle's manifest and the manifests of its images. The bundle's manifest names a
//! [`Description`] and every blob by digest, so a signature of `index.json` covers everything. A bundle to read is
//! untrusted: only known members are accepted, no link is followed, sizes are bounded, and every byte is checked against
//! a digest before its use. This module knows the format; `application::bundle` decides what is in a bundle and where it
//! goes.

pub mod agents;
pub mod bill;
pub mod description;
pub mod layout;
pub mod licenses;
pub mod names;
pub mod objects;
pub mod registry;
pub mod runs;
pub mod signature;
pub mod writing;

use std::io;
use std::path::PathBuf;

pub use description::{Audience, Described, Description, MadeKind};
pub use layout::Layout;

use crate::artifact::store::StoreError;
use crate::digest::Digest;
use crate::error::{ExitStatus, Failure};
use crate::output::size;
use crate::task::{RepositoryName, TaskId};

/// Errors of bundles. Each names the bundle, except for those of the store.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The file or directory is no bundle, or is damaged.
    #[error("the bundle `{name}` can't be used: {reason}")]
    Malformed {
        /// The bundle.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A newer program wrote it.
    #[error("the bundle `{name}` has schema {found}, this program knows schema {}", description::SCHEMA)]
    UnknownSchema {
        /// The bundle.
        name: String,
        /// Its schema.
        found: u64,
    },
    /// A blob has other bytes than its name says.
    #[error("in the bundle `{name}`, blob {digest} has other bytes than its name says")]
    Damaged {
        /// The bundle.
        name: String,
        /// The blob.
        digest: Digest,
    },
    /// The bundle lacks blobs that are not in the store either.
    #[error("the bundle `{name}` lacks {count} of its blobs, and so does the store: {first}, …")]
    Lacking {
        /// The bundle.
        name: String,
        /// How many blobs are missing.
        count: usize,
        /// The first of them.
        first: Digest,
    },
    /// The bundle and those that it is based on lack a workspace.
    #[error("the bundle `{name}` lacks the workspace of the task {task}")]
    LackingWorkspace {
        /// The bundle.
        name: String,
        /// The task.
        task: TaskId,
    },
    /// The bundle lacks objects of git that the data directory lacks too.
    #[error("the bundle `{name}` lacks sources of {repository}: {reason}")]
    LackingSources {
        /// The bundle.
        name: String,
        /// The repository.
        repository: RepositoryName,
        /// What is missing.
        reason: String,
    },
    /// The bundle has no signature, and one is required.
    #[error("the bundle `{name}` is not signed")]
    Unsigned {
        /// The bundle.
        name: String,
    },
    /// The signature is not one of an allowed signer.
    #[error("the signature of the bundle `{name}` is not accepted: {reason}")]
    Signature {
        /// The bundle.
        name: String,
        /// The reason.
        reason: String,
    },
    /// The data directory has a task of the same id with other content.
    #[error("the bundle `{name}` has another version of the task {task} than the data directory")]
    OtherTask {
        /// The bundle.
        name: String,
        /// The task.
        task: TaskId,
    },
    /// The bundle is for somebody else.
    #[error("the bundle `{name}` is for {found}s, and this needs one for {needed}s")]
    OtherAudience {
        /// The bundle.
        name: String,
        /// Whom it is for.
        found: Audience,
        /// Whom it should be for.
        needed: Audience,
    },
    /// `index.json` gives an image another name than the description does.
    #[error(
        "the bundle `{name}` calls the image {manifest} `{found}` in its index.json, and `{expected}` in its description"
    )]
    ImageName {
        /// The bundle.
        name: String,
        /// The image's manifest.
        manifest: String,
        /// The name in `index.json`.
        found: String,
        /// The names that follow from the description.
        expected: String,
    },
    /// The data directory has another image of a repository.
    #[error("the bundle `{name}` has another image of {repository} than the data directory")]
    OtherImage {
        /// The bundle.
        name: String,
        /// The repository.
        repository: RepositoryName,
    },
    /// A run can't be bundled.
    #[error("run `{run}` can't be bundled: {reason}")]
    Run {
        /// The run.
        run: String,
        /// The reason.
        reason: String,
    },
    /// The data directory has another run of the same id.
    #[error("the bundle `{name}` has another run `{run}` than the data directory")]
    OtherRun {
        /// The bundle.
        name: String,
        /// The run.
        run: String,
    },
    /// There is not enough space for what is written.
    #[error("`{}` has {} of free space, and the bundle needs {}", path.display(), size(*free), size(*needed))]
    NoSpace {
        /// The directory.
        path: PathBuf,
        /// Its free space in bytes.
        free: u64,
        /// The bytes that are written.
        needed: u64,
    },
    /// A program for signatures failed.
    #[error("`ssh-keygen` could not sign the bundle: {0}")]
    Signing(String),
    /// Git's objects could not be read or written.
    #[error("the sources of {repository} could not be {doing}: {reason}")]
    Git {
        /// The repository.
        repository: RepositoryName,
        /// `read` or `written`.
        doing: &'static str,
        /// The reason.
        reason: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Reading or writing failed.
    #[error("the bundle `{name}` could not be {doing}")]
    Io {
        /// The bundle.
        name: String,
        /// `read` or `written`.
        doing: &'static str,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl Failure for BundleError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Malformed { .. } => ExitStatus::BadInput,
            Self::OtherAudience { .. } | Self::Run { .. } => ExitStatus::Usage,
            Self::UnknownSchema { .. }
            | Self::Damaged { .. }
            | Self::Lacking { .. }
            | Self::LackingSources { .. }
            | Self::LackingWorkspace { .. }
            | Self::Unsigned { .. }
            | Self::Signature { .. }
            | Self::OtherTask { .. }
            | Self::ImageName { .. }
            | Self::OtherImage { .. }
            | Self::OtherRun { .. } => ExitStatus::Mismatch,
            Self::Store(error) => error.exit_status(),
            Self::NoSpace { .. } | Self::Signing(_) | Self::Git { .. } | Self::Io { .. } => ExitStatus::Infrastructure,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Malformed { .. } | Self::Damaged { .. } => {
                "copy it again from where `bundle create` wrote it; `bundle verify` names every difference"
            }
            Self::UnknownSchema { .. } => "use the program that wrote it",
            Self::ImageName { .. } => {
                "copy it again from where `bundle create` wrote it; if the name differs there too, trust neither image"
            }
            Self::Lacking { .. } | Self::LackingSources { .. } => {
                "it was made with `--base`: import the bundle that it was based on first"
            }
            Self::LackingWorkspace { .. } => {
                "it was made with `--base`: name the bundle that it was based on with `--base` here, too"
            }
            Self::Unsigned { .. } => {
                "ask its maker for a signed one, or pass `--unsigned` if you trust where it is from"
            }
            Self::Signature { .. } => {
                "get the bundle or the file of allowed signers again from its maker; `--unsigned` ignores the signature"
            }
            Self::OtherTask { .. } => {
                "name another `--data-dir`, or run `bundle import --replace` to take the bundle's version"
            }
            Self::OtherAudience { needed, .. } => {
                return Some(format!("get one that `bundle create --audience {needed}` made of these tasks"));
            }
            Self::OtherImage { .. } => {
                "name another `--data-dir`, or run `bundle import --replace` to take the bundle's image"
            }
            Self::Run { .. } => "name finished runs of the bundle's tasks; `runs list` shows what there is",
            Self::OtherRun { .. } => "remove that run with `runs rm`, or import into another `--data-dir`",
            Self::NoSpace { .. } => "make space, or name another directory; `store gc` removes unused blobs",
            Self::Signing(_) => "check that OpenSSH 8.2 or later is installed and that the key can be used",
            Self::Git { .. } => "check the repository with `git fsck`, the permissions and the free space",
            Self::Store(error) => return error.hint(),
            Self::Io { .. } => "check the path, its permissions and the free space",
        };
        Some(hint.to_owned())
    }
}
