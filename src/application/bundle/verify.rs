//! `bundle verify`: reads every byte of a bundle and compares it with what the bundle says of itself.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Serialize;

use super::{Trust, open};
use crate::agent::packing;
use crate::application::Context;
use crate::application::workbench::blocking;
use crate::bundle::{Audience, BundleError, Description, Layout, objects};
use crate::digest::Digest;
use crate::error::CommandError;

/// What is verified.
#[derive(Clone, Debug)]
pub struct VerifyRequest {
    /// A directory or a tar archive.
    pub bundle: PathBuf,
    /// Whose bundles are accepted.
    pub trust: Trust,
    /// Bundles that this one was based on.
    pub bases: Vec<PathBuf>,
}

/// The result of verifying a bundle.
#[derive(Debug, Serialize)]
pub struct Verified {
    /// Version of this value's schema.
    pub schema: u32,
    /// Whom it is for.
    pub audience: Audience,
    /// Number of tasks.
    pub tasks: usize,
    /// The signer, if the signature was checked.
    pub signer: Option<String>,
    /// Number of sound blobs.
    pub sound: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// Number of blobs that are in a base.
    pub in_base: usize,
    /// Damaged blobs and what is wrong with them, in one line each.
    pub damaged: Vec<String>,
    /// Blobs that are neither here nor in a base.
    pub missing: Vec<Digest>,
    /// Files in the directory of blobs that the bundle does not name.
    pub strangers: Vec<String>,
}

impl Verified {
    /// Checks that the bundle is whole.
    ///
    /// # Errors
    /// [`CommandError::CheckFailed`].
    pub fn verdict(&self) -> Result<(), CommandError> {
        match self.damaged.len() + self.missing.len() + self.strangers.len() {
            0 => Ok(()),
            _ => {
                let (damaged, missing, strangers) = (self.damaged.len(), self.missing.len(), self.strangers.len());
                let summary = format!(
                    "the bundle is not whole: {damaged} of its blobs are damaged, {missing} missing, {strangers} unknown"
                );
                Err(CommandError::CheckFailed { summary })
            }
        }
    }
}

/// Verifies a bundle.
///
/// # Errors
/// [`BundleError`] for what can't be read or is not signed as required; an interrupt.
pub async fn verify(request: &VerifyRequest, context: &Context) -> Result<Verified, CommandError> {
    let opened = open(&request.bundle, &request.trust, context)?;
    let bases = request.bases.iter().map(|path| Layout::open(path)).collect::<Result<Vec<_>, _>>()?;
    let work = move || {
        let (layout, description) = (&opened.layout, &opened.description);
        let mut verified = Verified {
            schema: 1,
            audience: description.audience(),
            tasks: description.tasks().len(),
            signer: opened.signer.clone(),
            sound: 0,
            bytes: 0,
            in_base: 0,
            damaged: Vec::new(),
            missing: Vec::new(),
            strangers: Vec::new(),
        };
        for (digest, size) in description.sizes() {
            if layout.has(&digest)? {
                match layout.check_blob(&digest, size) {
                    Ok(()) => {
                        verified.sound += 1;
                        verified.bytes += size;
                    }
                    Err(error @ (BundleError::Damaged { .. } | BundleError::Malformed { .. })) => {
                        verified.damaged.push(error.to_string());
                    }
                    Err(error) => return Err(error.into()),
                }
                continue;
            }
            let holder = bases.iter().find(|base| base.has(&digest).unwrap_or(false));
            match holder.map(|base| base.check_blob(&digest, size)) {
                Some(Ok(())) => verified.in_base += 1,
                Some(Err(error)) => verified.damaged.push(error.to_string()),
                None => verified.missing.push(digest),
            }
        }
        for blob in description.sources() {
            if layout.has(&blob.digest)?
                && let Err(reason) = objects::ids(layout.open_blob(&blob.digest, blob.size)?)
            {
                verified.damaged.push(format!("blob {}: {reason}", blob.digest));
            }
        }
        verified.damaged.extend(opened.damaged_runs()?);
        if let Description::Agent(description) = description {
            for (_, task, packed) in description.workspaces() {
                if !layout.has(&packed.archive)? {
                    continue;
                }
                let archive = layout.open_blob(&packed.archive, packed.size)?;
                if let Err(error) = packing::unpack(task, &packed.commit, archive, None) {
                    verified.damaged.push(error.to_string());
                }
            }
        }
        let sizes = description.sizes();
        let own: BTreeSet<Digest> = opened.own.iter().copied().collect();
        let known = |name: &String| {
            Digest::from_hex(name).is_ok_and(|digest| own.contains(&digest) || sizes.contains_key(&digest))
        };
        verified.strangers = layout.blob_names()?.into_iter().filter(|name| !known(name)).collect();
        Ok(verified)
    };
    context.until_interrupted(blocking(work)).await
}
