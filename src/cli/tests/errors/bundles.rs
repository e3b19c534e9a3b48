//! The errors of bundles.

use super::{digest, disk, path, repository, stores, task, text, within};
use crate::bundle::registry::{RegistryError, TransferError};
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
        BundleError::LackingWorkspace { name: name(), task: task() },
        BundleError::Unsigned { name: name() },
        BundleError::Signature { name: name(), reason: text("it is not of this bundle") },
        BundleError::OtherTask { name: name(), task: task() },
        BundleError::OtherAudience { name: name(), found: Audience::Agent, needed: Audience::Scorer },
        BundleError::OtherImage { name: name(), repository: repository() },
        BundleError::ImageName {
            name: name(),
            manifest: digest().to_string(),
            found: text("owner/other:1"),
            expected: text("owner/name:1"),
        },
        BundleError::OtherRun { name: name(), run: text("gold") },
        BundleError::Run { run: text("gold"), reason: text("it has not finished") },
        BundleError::NoSpace { path: path(), free: 1, needed: 2 },
        BundleError::Signing(text("no such key")),
        BundleError::Git { repository: repository(), doing: "read", reason: text("no commit") },
        BundleError::Io { name: name(), doing: "read", source: disk() },
    ]);
    errors.extend(within(stores(), BundleError::Store));
    let reference = || text("registry.example.org/bundle:one");
    let of_registries = [
        RegistryError::Reference { text: text("bundle"), reason: text("it names no registry") },
        RegistryError::Unauthorized { registry: text("registry.example.org"), reason: text("unauthorized") },
        RegistryError::Missing(reference()),
        RegistryError::Exchange { reference: reference(), doing: text("sending a blob"), reason: text("broken") },
        RegistryError::Lies { reference: reference(), digest: digest().to_string() },
        RegistryError::TooLarge { reference: reference(), what: digest().to_string(), limit: 7 },
        RegistryError::NoBundle { reference: reference(), reason: text("no JSON") },
        RegistryError::Write { path: path(), source: disk() },
        RegistryError::NoSpace { path: path(), free: 1, needed: 2 },
    ];
    errors.extend(super::all(of_registries.map(TransferError::Registry)));
    errors
}
