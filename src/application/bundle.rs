//! Bundles: writes, checks and takes over what scoring or agents need of some tasks.

mod bill;
pub mod create;
mod images;
pub mod import;
pub mod load;
mod opened;
mod parts;
pub mod registry;
mod runs;
mod summary;
pub mod unpack;
pub mod verify;
mod workspaces;

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;

pub use self::summary::{Created, Imported};
use super::Context;
use super::io_failure::IoFailure;
use crate::artifact::made::Described as _;
use crate::bundle::layout::{INDEX, SIGNATURE};
use crate::bundle::{Audience, BundleError, Description, Layout, MadeKind, description, signature};
use crate::digest::Digest;
use crate::error::CommandError;
use crate::execution::build::prepared::Prepared;
use crate::execution::container::jars;
use crate::execution::sharing::ClassArchive;
use crate::host::free_bytes;

/// The file of allowed signers in a data directory.
const ALLOWED_SIGNERS: &str = "allowed_signers";

/// Whose bundles are accepted.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// A file of allowed signers, as OpenSSH has it; `None` for `allowed_signers` in the data directory, if it exists.
    pub allowed_signers: Option<PathBuf>,
    /// Whether signatures are not looked at.
    pub unsigned: bool,
}

impl Trust {
    /// Returns the file of allowed signers; `None` if none is configured.
    fn allowed(&self, context: &Context) -> Result<Option<PathBuf>, CommandError> {
        if self.allowed_signers.is_some() {
            return Ok(self.allowed_signers.clone());
        }
        let default = context.data_dir()?.join(ALLOWED_SIGNERS);
        // A link that leads nowhere was meant as a file of signers, so reading it must fail.
        match fs::symlink_metadata(&default) {
            Ok(_) => Ok(Some(default)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(IoFailure::of("looking for allowed signers")(error)),
        }
    }
}

/// A bundle whose index and description were read.
struct Opened {
    layout: Layout,
    /// The bytes of its `index.json`.
    index: Vec<u8>,
    /// Bundles that may have blobs which it lacks. They need no signature: each blob is compared with its digest.
    bases: Vec<Layout>,
    description: Description,
    /// The blobs of the bundle's manifest and description.
    own: [Digest; 2],
    /// The signer, if the signature was checked.
    signer: Option<String>,
}

impl Opened {
    /// Returns the error that the bundle is for another audience.
    fn not_for(&self, needed: Audience) -> BundleError {
        let name = self.layout.name().to_owned();
        BundleError::OtherAudience { name, found: self.description.audience(), needed }
    }
}

/// Checks that there is space for so many bytes in a directory, which may not exist yet.
fn check_space(directory: &Path, needed: u64) -> Result<(), CommandError> {
    // Where the file system does not tell, writing finds out.
    let free = free_bytes(directory).unwrap_or(u64::MAX);
    match needed <= free {
        true => Ok(()),
        false => Err(BundleError::NoSpace { path: directory.to_owned(), free, needed }.into()),
    }
}

/// Opens a bundle and checks its signature: where allowed signers are configured, one of them must have signed it.
fn open(path: &Path, trust: &Trust, context: &Context) -> Result<Opened, CommandError> {
    let layout = Layout::open(path)?;
    let Some(index) = layout.read(INDEX, description::MOST_INDEX_BYTES)? else {
        return Err(layout.malformed(format!("it has no `{INDEX}`")).into());
    };
    let allowed = if trust.unsigned { None } else { trust.allowed(context)? };
    let signer = match allowed {
        None => None,
        Some(allowed) => {
            let name = || layout.name().to_owned();
            let Some(signed) = layout.read(SIGNATURE, signature::MOST_BYTES)? else {
                return Err(BundleError::Unsigned { name: name() }.into());
            };
            let verified = signature::verify(&index, &signed, &allowed);
            Some(verified.map_err(|reason| BundleError::Signature { name: name(), reason })?)
        }
    };
    // Nothing that the index names is looked at before its signature was.
    let (description, own) = Description::read(&layout, &index)?;
    Ok(Opened { layout, index, bases: Vec::new(), description, own, signer })
}

/// As [`open`], with the bundles that this one was based on.
fn open_with(path: &Path, bases: &[PathBuf], trust: &Trust, context: &Context) -> Result<Opened, CommandError> {
    let mut opened = open(path, trust, context)?;
    opened.bases = bases.iter().map(|base| Layout::open(base)).collect::<Result<_, _>>()?;
    Ok(opened)
}

/// Returns the directory of a kind of descriptions below the store's root.
fn directory_of(kind: MadeKind) -> &'static str {
    match kind {
        MadeKind::Prepared => Prepared::KIND.directory,
        MadeKind::ClassArchive => ClassArchive::KIND.directory,
        MadeKind::Jars => jars::DIRECTORY,
    }
}
