//! Locks, as archives and other data directories hand them on.

use std::path::Path;

use testevo_sandbox::artifact::origin::OriginName;
use testevo_sandbox::digest::Digest;
use testevo_sandbox::lock::policy::ToolchainPolicy;
use testevo_sandbox::lock::{
    DebianPackage, FrozenMetadata, JdkLock, LOCK_SCHEMA, LockFile, LockedJar, MavenFile, RepositoryLock, SignedIndex,
    ToolFile, ToolRole, ToolchainLock, blobs_of,
};

use super::files::TOML_WORDS;
use crate::Target;
use crate::scratch::done;

/// Locks of both kinds.
pub(super) const LOCKS: Target = Target {
    name: "locks",
    run: |input| {
        let Ok(text) = std::str::from_utf8(input) else { return };
        let path = Path::new("x.lock");
        lock::<ToolchainLock>(path, text);
        lock::<RepositoryLock>(path, text);
        let _ = blobs_of(path, text);
        let _ = ToolchainPolicy::parse(text);
    },
    seeds: || {
        let deep = |open: &str, close: &str| format!("schema = 1\na = {}{}\n", open.repeat(3000), close.repeat(3000));
        vec![
            toolchain_lock().render().into_bytes(),
            repository_lock().render().into_bytes(),
            include_bytes!("../../../manifests/toolchains.toml").to_vec(),
            deep("[", "]").into(),
            deep("{a=", "}").into(),
            format!("{}b = 1\n", "a.".repeat(20_000)).into(),
            format!("[{}b]\n", "a.".repeat(20_000)).into(),
        ]
    },
    words: TOML_WORDS,
    runs: 750,
    most_bytes: 48 << 10,
    memory: 1000,
};

fn lock<L: LockFile + PartialEq + std::fmt::Debug>(path: &Path, text: &str) {
    if let Ok(lock) = L::parse(path, text) {
        let written = lock.render();
        assert_eq!(L::parse(path, &written).unwrap_or_else(|error| panic!("{error}")), lock);
        assert_eq!(lock.digest(), Digest::of(written.as_bytes()));
        assert_eq!(blobs_of(path, &written).is_ok(), lock.origins().all(|origin| origin.parse::<OriginName>().is_ok()));
    }
}

pub(super) fn toolchain_lock() -> ToolchainLock {
    let text = str::to_owned;
    let package = |name: &str| DebianPackage {
        name: text(name),
        version: text("1:2~3-4"),
        architecture: text("amd64"),
        suite: text("trixie"),
        path: format!("pool/main/{name}.deb"),
        sha256: Digest::of(name.as_bytes()),
        size: 12,
    };
    let tool = ToolFile {
        role: ToolRole::JacocoAgent,
        name: text("agent"),
        version: text("0.8"),
        origin: text("central"),
        path: text("org/jacoco/agent.jar"),
        sha256: Digest::of(b"agent"),
        size: 3,
    };
    let index = SignedIndex {
        suite: text("trixie"),
        in_release: Digest::of(b"index"),
        date: text("Sat, 12 Sep 2026 07:55:41 UTC"),
        signed_by: vec!["A".repeat(40)],
    };
    ToolchainLock {
        base: vec![package("base-files"), package("libc6")],
        jdks: vec![JdkLock { major: 17, packages: vec![package("openjdk-17")] }],
        tools_packages: vec![package("python3")],
        tools: vec![tool],
        // Archives of locks would need the index itself.
        indexes: vec![index],
        agent_packages: vec![package("git")],
        ..ToolchainLock::empty()
    }
}

pub(super) fn repository_lock() -> RepositoryLock {
    let text = str::to_owned;
    RepositoryLock {
        schema: LOCK_SCHEMA,
        repository: done("o/n".parse()),
        jdk: 17,
        maven_arguments: Some(Digest::of(b"arguments")),
        files: vec![MavenFile {
            path: text("g/a/1-SNAPSHOT/a-1-SNAPSHOT.jar"),
            origin: text("central"),
            sha256: Digest::of(b"jar"),
            size: 9,
            own: true,
            released: true,
        }],
        metadata: vec![FrozenMetadata {
            path: text("g/a/maven-metadata-central.xml"),
            rule: text("newest"),
            chosen: Some(text("1")),
            content: text("<metadata/>\n\"'''\\"),
        }],
        build_sets: vec!["b".repeat(64)],
        whole_sets: Vec::new(),
        extension_jars: vec![LockedJar { sha256: Digest::of(b"extension"), size: 9 }],
        unresolved: Vec::new(),
    }
}
