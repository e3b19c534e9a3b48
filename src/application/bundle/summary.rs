//! What commands tell of bundles that they wrote or took.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Opened;
use crate::application::audit::Audited;
use crate::bundle::Audience;
use crate::digest::Digest;
use crate::error::CommandError;
use crate::output::counted;
use crate::task::TaskId;

/// A bundle that was written.
#[derive(Debug, Default, Serialize)]
pub struct Created {
    /// Version of this value's schema.
    pub schema: u32,
    /// Number of tasks.
    pub tasks: usize,
    /// Number of prepared revisions.
    pub prepared: usize,
    /// Number of revisions that are not prepared.
    pub unprepared: usize,
    /// Number of finished runs.
    #[serde(skip_serializing_if = "is_zero")]
    pub runs: usize,
    /// Number of kept results of these runs.
    #[serde(skip_serializing_if = "is_zero")]
    pub results: usize,
    /// Number of blobs that were written.
    pub blobs: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// Number of blobs that the base has.
    pub in_base: usize,
    /// Audits that kept a bundle for agents from being written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Audited>,
}

impl Created {
    /// Checks that a bundle was written.
    ///
    /// # Errors
    /// [`CommandError::CheckFailed`] if audits kept it from being written.
    pub fn verdict(&self) -> Result<(), CommandError> {
        match self.refused.len() {
            0 => Ok(()),
            count => {
                let places = counted(count, "place", "places");
                let summary =
                    format!("no bundle was written: {places} for agents may show a developers' test, as listed");
                Err(CommandError::CheckFailed { summary })
            }
        }
    }
}

/// What an import took.
#[derive(Debug, Serialize)]
pub struct Imported {
    /// Version of this value's schema.
    pub schema: u32,
    /// Whom the bundle is for.
    pub audience: Audience,
    /// The bundle's tasks.
    #[serde(skip)]
    pub tasks: Vec<TaskId>,
    /// Number of tasks.
    #[serde(rename = "tasks")]
    pub count: usize,
    /// The signer, if the signature was checked.
    pub signer: Option<String>,
    /// Number of finished runs that the data directory lacked.
    #[serde(skip_serializing_if = "is_zero")]
    pub runs: usize,
    /// Number of kept results that it lacked.
    #[serde(skip_serializing_if = "is_zero")]
    pub results: usize,
    /// Number of blobs that the store lacked.
    pub blobs: usize,
    /// Their size in bytes.
    pub bytes: u64,
}

impl Imported {
    /// Returns the summary of an import into a store that lacks the blobs in `missing`.
    pub(super) fn of(opened: &Opened, missing: &BTreeMap<Digest, u64>) -> Self {
        let tasks = opened.description.tasks();
        Self {
            schema: 1,
            audience: opened.description.audience(),
            count: tasks.len(),
            tasks: tasks.into_iter().collect(),
            signer: opened.signer.clone(),
            runs: 0,
            results: 0,
            blobs: missing.len(),
            bytes: missing.values().sum(),
        }
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}
