//! `bundle push` and `bundle pull`: bundles in OCI registries.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err as fs;
use serde::Serialize;

use super::{Trust, open};
use crate::application::Context;
use crate::bundle::registry::{Registry, Transferred};
use crate::bundle::{Audience, BundleError, signature};
use crate::digest::Digest;
use crate::error::CommandError;

/// What came of a transfer.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// The place in the registry.
    pub reference: String,
    /// Digest of the index, by which the bundle can be pulled too.
    pub index: Digest,
    /// The images, as engines pull them.
    pub images: Vec<String>,
    /// Number of blobs that were sent or fetched.
    pub blobs: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Number of blobs that were there already.
    pub present: usize,
    /// The signer, if the signature was checked.
    pub signer: Option<String>,
}

impl Moved {
    fn new(registry: &Registry, transferred: Transferred, signer: Option<String>) -> Self {
        let Transferred { index, manifests, blobs, bytes, present } = transferred;
        // The first manifest is the bundle's own.
        let images = manifests.iter().skip(1).map(|manifest| registry.by_digest(manifest)).collect();
        Self { reference: registry.name(), index, images, blobs, bytes, present, signer }
    }
}

/// Sends a bundle to a registry. A dry run sends nothing.
///
/// # Errors
/// [`TransferError`](crate::bundle::registry::TransferError); [`CommandError::Usage`] where the network is not to be used; an interrupt.
pub async fn push(bundle: &Path, reference: &str, plain: bool, context: &Context) -> Result<Moved, CommandError> {
    needs_network(context)?;
    let registry = Registry::open(reference, plain)?;
    let trust = Trust { allowed_signers: None, unsigned: true };
    let opened = open(bundle, &trust, context)?;
    opened.check_names()?;
    if opened.description.audience() == Audience::Scorer {
        context.events.warning(format!(
            "`{}` is for scorers: whoever may pull it can read the developers' tests",
            opened.layout.name()
        ));
    }
    let stage = context.events.stage("push", None, 0);
    let pushing = async { Ok(registry.push(Arc::new(opened.layout), context.options.dry_run, &stage).await?) };
    let transferred = context.until_interrupted(pushing).await?;
    Ok(Moved::new(&registry, transferred, None))
}

/// A bundle to fetch.
#[derive(Clone, Debug)]
pub struct PullRequest {
    /// The place in the registry.
    pub reference: String,
    /// The new directory.
    pub output: PathBuf,
    /// Whose bundles are accepted.
    pub trust: Trust,
    /// Whether the registry is spoken to without TLS.
    pub plain: bool,
}

/// Fetches a bundle from a registry. Where allowed signers are configured, nothing is fetched that none of them signed.
///
/// # Errors
/// As [`push`], and [`CommandError::Usage`] where something lies at the directory's place.
pub async fn pull(request: &PullRequest, context: &Context) -> Result<Moved, CommandError> {
    let PullRequest { reference, output, trust, plain } = request;
    needs_network(context)?;
    if fs::symlink_metadata(output).is_ok() {
        return Err(CommandError::Usage {
            message: format!("`{}` exists", output.display()),
            hint: "name a new directory, or remove this one".to_owned(),
        });
    }
    let registry = Registry::open(reference, *plain)?;
    let allowed = if trust.unsigned { None } else { trust.allowed(context)? };
    let pulling = async {
        let (index, signed) = registry.index().await?;
        let signer = match (&allowed, &signed) {
            (None, _) => None,
            (Some(_), None) => return Err(BundleError::Unsigned { name: registry.name() }.into()),
            (Some(allowed), Some(signed)) => Some(
                signature::verify(&index, signed, allowed)
                    .map_err(|reason| BundleError::Signature { name: registry.name(), reason })?,
            ),
        };
        let stage = context.events.stage("pull", None, 0);
        let (signed, dry) = (signed.as_deref(), context.options.dry_run);
        let fetched = registry.fetch((&index, signed), output, context.umask, dry, &stage).await?;
        Ok(Moved::new(&registry, fetched, signer))
    };
    context.until_interrupted(pulling).await
}

fn needs_network(context: &Context) -> Result<(), CommandError> {
    match context.options.offline {
        false => Ok(()),
        true => Err(CommandError::Usage {
            message: "a registry can't be reached with `--offline`".to_owned(),
            hint: "leave `--offline` out, or copy the bundle as a file".to_owned(),
        }),
    }
}
