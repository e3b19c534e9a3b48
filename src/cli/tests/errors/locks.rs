//! Errors of locks and of how they are found.

use super::*;
use crate::lock::UnresolvedSet;
use crate::lock::archive::LockArchiveError;
use crate::lock::policy::ToolchainPolicy;
use crate::resolution::allowance::Exhausted;
use crate::resolution::debian::archive::ArchiveError;
use crate::resolution::debian::release::ReleaseError;
use crate::resolution::debian::resolve::ResolveError;
use crate::resolution::debian::signature::SignatureError;
use crate::resolution::door::DoorError;
use crate::resolution::repository::LockError;
use crate::resolution::toolchain::ToolchainError;
use crate::resolution::toolchain::requirement::RequirementError;

pub(super) fn of_locks() -> Vec<CommandError> {
    let mut errors = all(lock_files());
    errors.extend(all([
        LockArchiveError::Malformed { name: text("a.tar"), reason: text("it ends early") },
        LockArchiveError::UnknownSchema { name: text("a.tar"), found: 99 },
        LockArchiveError::Io { name: text("a.tar"), doing: "read", source: disk() },
    ]));
    errors.extend(within(lock_files(), LockArchiveError::Lock));
    errors.extend(within(stores(), LockArchiveError::Store));
    errors.extend(all(ToolchainPolicy::parse("schema = 1").err()));
    errors
}

pub(super) fn of_resolution() -> Vec<CommandError> {
    let mut errors = all([
        LockError::Door(DoorError::Socket { path: path(), source: disk() }),
        LockError::Io(disk()),
        LockError::Origin { repository: repository(), path: text("a.jar"), cause: text("no route") },
        LockError::Unresolved {
            repository: repository(),
            sets: 2,
            first: Box::new(UnresolvedSet {
                build_set: text("b"),
                artifact: text("g:lost:jar:1"),
                wanted_by: Some(text("the POM of g:a:1")),
                origins: vec![text("central"), text("gone")],
                cause: text("none of them has it"),
            }),
        },
        LockError::Exhausted { repository: repository(), cause: Exhausted::Paths },
        LockError::FileName { repository: repository(), path: text("g/\u{fffd}.jar") },
        LockError::Container { repository: repository(), cause: text("out of memory") },
    ]);
    errors.extend(within(stores().into_iter().map(DoorError::Store).collect(), LockError::Door));
    errors.extend(within(engines(), LockError::Engine));
    errors.extend(within(fetches(), LockError::Fetch));
    errors.extend(within(stores(), LockError::Store));
    errors.extend(within(lock_files(), LockError::LockFile));
    errors.extend(within(workspaces(), LockError::Workspace));
    errors.extend(within(fetches(), ToolchainError::Fetch));
    errors.extend(within(fetches_of_many(), ToolchainError::FetchMany));
    let release = |reason| ArchiveError::Release { suite: text("bookworm"), reason };
    let mut archives = vec![
        release(ReleaseError::Expired { until: text("yesterday") }),
        release(ReleaseError::Future { date: text("tomorrow") }),
        release(ReleaseError::OtherSuite { found: text("sid") }),
        ArchiveError::Signature { suite: text("bookworm"), reason: SignatureError::NoTrustedKey },
        ArchiveError::Packages { suite: text("bookworm"), reason: text("no paragraph") },
        ArchiveError::Keyring { reason: text("it is none") },
    ];
    archives.extend(fetches().into_iter().map(ArchiveError::Fetch));
    archives.extend(stores().into_iter().map(ArchiveError::Store));
    errors.extend(within(archives, ToolchainError::Archive));
    let missing = RequirementError::Missing { project: text("one"), requirement: text("another") };
    errors.extend(all([
        ToolchainError::Resolve { layer: text("base"), reason: Box::new(ResolveError::TooHard) },
        ToolchainError::UnknownJdk { major: 9, known: vec![8, 11] },
        ToolchainError::LockedPackage { package: text("a.deb"), reason: text("it is none") },
        ToolchainError::Requirement(missing),
    ]));
    errors
}
