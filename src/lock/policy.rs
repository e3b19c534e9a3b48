//! The toolchain policy, `manifests/toolchains.toml`: the packages and tools of images, and their versions.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::ToolRole;
use crate::artifact::origin::OriginName;
use crate::digest::Digest;
use crate::error::{ExitStatus, Failure};

/// Version of the policy's schema.
const POLICY_SCHEMA: u32 = 1;

/// Why a policy can't be used.
#[derive(Debug, thiserror::Error)]
#[error("the toolchain policy can't be used: {reason}")]
pub struct PolicyError {
    reason: String,
}

impl Failure for PolicyError {
    fn exit_status(&self) -> ExitStatus {
        ExitStatus::BadInput
    }

    fn hint(&self) -> Option<String> {
        Some("the program carries its policy, so report it".to_owned())
    }
}

/// The inputs of a toolchain lock's resolution.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolchainPolicy {
    schema: u32,
    /// Debian's archive.
    pub debian: DebianPolicy,
    /// Packages of the base layer.
    pub base: PackagesPolicy,
    /// Java development kits.
    #[serde(rename = "jdk")]
    pub jdks: Vec<JdkPolicy>,
    /// Packages of the tools layer.
    pub tools: PackagesPolicy,
    /// Packages of the agent layer.
    pub agent: PackagesPolicy,
    /// Files of the tools layer.
    #[serde(rename = "tool")]
    pub tool_files: Vec<ToolPolicy>,
}

/// The packages from Debian's archive, and the trusted keys.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DebianPolicy {
    /// Primary fingerprints of trusted keys, upper-case hexadecimal.
    pub keys: Vec<String>,
    /// The preferred suite.
    pub suite: String,
    /// Packages that count as installed but are never installed.
    pub dropped: BTreeSet<String>,
}

/// The packages of a layer, to which their dependencies are added.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackagesPolicy {
    /// Their names.
    pub packages: Vec<String>,
}

/// A Java development kit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JdkPolicy {
    /// Its major version.
    pub major: u32,
    /// The suite that has it.
    pub suite: String,
    /// Its packages.
    pub packages: Vec<String>,
}

/// A pinned file of the tools layer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolPolicy {
    /// The tool's role.
    pub role: ToolRole,
    /// Project name.
    pub name: String,
    /// Version.
    pub version: String,
    /// `central` or `pypi`.
    pub origin: OriginName,
    /// Path below the origin; for `pypi` the file's name.
    pub path: String,
    /// Digest of the file.
    pub sha256: Digest,
    /// Requirements of a Python project that images omit.
    #[serde(default)]
    pub left_out: BTreeSet<String>,
}

impl ToolchainPolicy {
    /// Returns the policy that this program embeds.
    ///
    /// # Errors
    /// [`PolicyError`], which a test rules out.
    pub fn builtin() -> Result<Self, PolicyError> {
        Self::parse(include_str!("../../manifests/toolchains.toml"))
    }

    /// Reads a policy.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let policy: Self = toml::from_str(text).map_err(|error| PolicyError { reason: error.message().to_owned() })?;
        let check = |good: bool, reason: String| if good { Ok(()) } else { Err(PolicyError { reason }) };
        check(policy.schema == POLICY_SCHEMA, format!("its schema is {}, not {POLICY_SCHEMA}", policy.schema))?;
        for key in &policy.debian.keys {
            let hexadecimal = key.len() == 40 && key.chars().all(|c| matches!(c, '0'..='9' | 'A'..='F'));
            check(hexadecimal, format!("`{key}` is no fingerprint"))?;
        }
        for suite in policy.jdks.iter().map(|jdk| &jdk.suite).chain([&policy.debian.suite]) {
            let name = suite.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            check(name && !suite.is_empty(), format!("`{suite}` is no suite"))?;
        }
        let majors: BTreeSet<u32> = policy.jdks.iter().map(|jdk| jdk.major).collect();
        check(majors.len() == policy.jdks.len(), "a JDK stands there twice".to_owned())?;
        Ok(policy)
    }

    /// Returns the policy for a Java development kit.
    pub fn jdk(&self, major: u32) -> Option<&JdkPolicy> {
        self.jdks.iter().find(|jdk| jdk.major == major)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_builtin_policy_is_sound() {
        let policy = ToolchainPolicy::builtin().unwrap();
        let majors: Vec<u32> = policy.jdks.iter().map(|jdk| jdk.major).collect();
        assert_eq!(majors, crate::manifest::JDK_MAJORS);
        for tool in &policy.tool_files {
            assert!(tool.path.contains(&tool.version), "{}", tool.path);
        }
        let roles: BTreeSet<ToolRole> = policy.tool_files.iter().map(|tool| tool.role).collect();
        assert_eq!(roles.len(), 6);
    }

    #[test]
    fn unknown_keys_schemas_and_fingerprints_are_refused() {
        let text = include_str!("../../manifests/toolchains.toml");
        for (from, to) in [
            ("schema = 1", "schema = 2"),
            ("major = 11", "major = 8"),
            ("B8B80B5B", "b8b80b5b"),
            ("suite = \"sid\"", "suite = \"../sid\""),
            ("[tools]", "[tools]\nother = 1"),
        ] {
            assert!(ToolchainPolicy::parse(&text.replacen(from, to, 1)).is_err(), "{to}");
        }
    }
}
