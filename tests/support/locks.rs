//! Locks that name nothing but what a test puts into them.

use testevo_sandbox::lock::{JdkLock, LOCK_SCHEMA, MavenFile, RepositoryLock, ToolchainLock};

/// A toolchain of one development kit that consists of nothing: images of it are what the recipe generates.
pub(crate) fn toolchain() -> ToolchainLock {
    ToolchainLock { jdks: vec![JdkLock { major: 8, packages: Vec::new() }], ..ToolchainLock::empty() }
}

/// A repository's lock of these files.
pub(crate) fn repository(name: &str, files: Vec<MavenFile>, build_sets: &[&str]) -> RepositoryLock {
    RepositoryLock {
        schema: LOCK_SCHEMA,
        repository: name.parse().unwrap(),
        jdk: 8,
        maven_arguments: None,
        files,
        metadata: Vec::new(),
        build_sets: build_sets.iter().map(|set| (*set).to_owned()).collect(),
    }
}
