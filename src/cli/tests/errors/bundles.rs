//! The errors of bundles.

use super::{digest, disk, repository, stores, task, text, within};
use crate::bundle::{Audience, BundleError};
use crate::error::CommandError;

pub(super) fn of_bundles() -> Vec<CommandError> {
    let name = || text("bundle.tar");
    let mut errors = super::all([
        BundleError::Malformed { name: name(), reason: text("it is truncated") },
        BundleError::UnknownSchema { name: name(), found: 99 },
        BundleError::Damaged { name: name(), digest: digest() },
        BundleError::Lacking { name: name(), count: 2, first: digest() },
        BundleError::LackingSources { name: name(), repository: repository(), reason: text("no commit") },
        BundleError::Unsigned { name: name() },
        BundleError::Signature { name: name(), reason: text("it is not of this bundle") },
        BundleError::OtherTask { name: name(), task: task() },
        BundleError::OtherAudience { name: name(), found: Audience::Agent, needed: Audience::Scorer },
        BundleError::OtherImage { name: name(), repository: repository() },
        BundleError::Signing(text("no such key")),
        BundleError::Git { repository: repository(), doing: "read", reason: text("no commit") },
        BundleError::Io { name: name(), doing: "read", source: disk() },
    ]);
    errors.extend(within(stores(), BundleError::Store));
    errors
}
