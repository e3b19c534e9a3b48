//! Locks that name nothing but what a test puts into them.

use testevo_sandbox::digest::Digest;
use testevo_sandbox::lock::{DebianPackage, JdkLock, LOCK_SCHEMA, MavenFile, RepositoryLock, ToolchainLock};

/// A toolchain of one development kit that consists of nothing: images of it are what the recipe generates.
pub(crate) fn toolchain() -> ToolchainLock {
    ToolchainLock { jdks: vec![JdkLock { major: 8, packages: Vec::new() }], ..ToolchainLock::empty() }
}

/// A toolchain that has all parts, a package in each, of which nobody has the bytes.
pub(crate) fn whole_toolchain(majors: &[u32]) -> ToolchainLock {
    let package = |name: String| DebianPackage {
        version: "1".to_owned(),
        architecture: "all".to_owned(),
        suite: "trixie".to_owned(),
        path: format!("pool/{name}.deb"),
        sha256: Digest::of(name.as_bytes()),
        size: 1,
        name,
    };
    let jdk = |major: &u32| JdkLock { major: *major, packages: vec![package(format!("jdk{major}"))] };
    ToolchainLock {
        base: vec![package("base".to_owned())],
        jdks: majors.iter().map(jdk).collect(),
        tools_packages: vec![package("tools".to_owned())],
        ..ToolchainLock::empty()
    }
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
        whole_sets: Vec::new(),
        unresolved: Vec::new(),
        extension_jars: Vec::new(),
    }
}
