//! Manifest files: reads them with overrides applied, and writes them with overrides preserved.

use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use toml::{Table, Value};

use super::{
    Build, EXTENSIBLE_JDK, JDK_MAJORS, Limits, MANIFEST_SCHEMA, MOST_EXTENSION_JARS, RepositoryManifest, jdk_majors,
};
use crate::data_dir::write_atomically;
use crate::error::{ExitStatus, Failure};
use crate::output::without_types;
use crate::task::RepositoryName;

/// The largest manifest that is read, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The line where overrides begin. The user owns everything below it.
const OVERRIDES: &str = "[overrides]";

const EMPTY_OVERRIDES: &str = "\
[overrides]
# What stands here replaces what stands above, and an import keeps it. For example:
# jdk = 11
# build.maven_arguments = [\"-Pdefault\"]
# limits.compile_memory_mib = 6144
";

/// Errors of a manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A repository has no manifest.
    #[error("there is no manifest `{path}`")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The manifest can't be parsed.
    #[error("the manifest `{path}` can't be understood: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Why the file is malformed.
        reason: String,
    },
    /// A newer program wrote it.
    #[error("the manifest `{path}` has schema {found}, this program knows schema {MANIFEST_SCHEMA}")]
    UnknownSchema {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: i64,
    },
    /// The manifest requires an unsupported feature.
    #[error("the manifest `{path}` has `{key}`, which is not supported: nothing would come of it")]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The key.
        key: &'static str,
    },
    /// A limit is invalid or out of range.
    #[error("the manifest `{path}` has {value} as `limits.{limit}`, which must be from {least} to {most}")]
    Limit {
        /// The file.
        path: PathBuf,
        /// The limit's name.
        limit: &'static str,
        /// The limit's value.
        value: u64,
        /// The least allowed value.
        least: u64,
        /// The greatest allowed value.
        most: u64,
    },
    /// No development kit is new enough.
    #[error("{repository} needs Java {java_version}; there are development kits for {}", jdk_majors())]
    UnsupportedJava {
        /// The repository.
        repository: RepositoryName,
        /// The required Java version.
        java_version: u32,
    },
}

impl Failure for ManifestError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            Self::Missing { .. } => ExitStatus::Usage,
            Self::Io(_) => ExitStatus::Infrastructure,
            Self::UnknownSchema { .. } => ExitStatus::Mismatch,
            Self::Malformed { .. } | Self::Unsupported { .. } | Self::Limit { .. } | Self::UnsupportedJava { .. } => {
                ExitStatus::BadInput
            }
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Io(_) => "check permissions and free space",
            Self::Missing { .. } => "import the benchmark's data with `testevo-sandbox import DATA`",
            Self::Malformed { .. } => "correct it, or delete it and import the data again",
            Self::UnknownSchema { .. } => "use the program that wrote it, or delete it and import the data again",
            Self::Unsupported { .. } => "remove it from the manifest",
            Self::Limit { .. } => "correct it, or remove it from the overrides: there are defaults",
            Self::UnsupportedJava { .. } => "leave the repository's file out of the import",
        };
        Some(hint.to_owned())
    }
}

/// The result of writing a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Written {
    /// The file did not exist.
    New,
    /// The file was different.
    Updated,
    /// An equal manifest existed.
    Unchanged,
}

impl Limits {
    /// Checks that every limit is one that a manifest may have, for limits that come without their manifest.
    ///
    /// # Errors
    /// Which limit is out of bounds.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.out_of_bounds() {
            Some((limit, value, least, most)) => Err(format!("`{limit}` is {value}, not from {least} to {most}")),
            None => Ok(()),
        }
    }
}

impl RepositoryManifest {
    /// Reads a manifest and applies its overrides.
    ///
    /// # Errors
    /// [`ManifestError`].
    pub fn load(path: &Path) -> Result<Self, ManifestError> {
        let Some(text) = read(path)? else { return Err(ManifestError::Missing { path: path.to_owned() }) };
        Self::parse(path, &text)
    }

    /// Parses a manifest's text and applies its overrides; `path` is its name in errors.
    ///
    /// # Errors
    /// [`ManifestError::Malformed`], [`ManifestError::UnknownSchema`].
    pub fn parse(path: &Path, text: &str) -> Result<Self, ManifestError> {
        let mut table = parse(path, text)?;
        let overrides = table.remove("overrides");
        let written = arguments(&table);
        let malformed = |reason| ManifestError::Malformed { path: path.to_owned(), reason };
        match overrides {
            None => {}
            Some(Value::Table(overrides)) => {
                if let Some(key) = overrides.keys().find(|key| matches!(key.as_str(), "schema" | "repository")) {
                    return Err(malformed(format!("`overrides.{key}` can't be overridden")));
                }
                overlay(&mut table, overrides);
            }
            Some(_) => return Err(malformed("`overrides` is no table".into())),
        }
        let mut manifest: Self =
            table.try_into().map_err(|error: toml::de::Error| malformed(without_types(error.message())))?;
        manifest.check().map_err(malformed)?;
        if let Some((limit, value, least, most)) = manifest.limits.out_of_bounds() {
            return Err(ManifestError::Limit { path: path.to_owned(), limit, value, least, most });
        }
        if !manifest.build.debian_packages.is_empty() {
            return Err(ManifestError::Unsupported { path: path.to_owned(), key: "build.debian_packages" });
        }
        manifest.build.overridden = written.is_none_or(|written| written != manifest.build.arguments());
        Ok(manifest)
    }

    /// Returns the bytes that [`RepositoryManifest::store`] would write to `path`, and the result that it would have.
    /// An existing file's `[overrides]` are preserved, comments included.
    ///
    /// # Errors
    /// [`ManifestError`] if an existing file can't be parsed, so that no overrides get lost.
    pub fn render_over(&self, path: &Path) -> Result<(String, Written), ManifestError> {
        let malformed = |reason: String| ManifestError::Malformed { path: path.to_owned(), reason };
        let facts = toml::to_string(self).map_err(|error| malformed(error.to_string()))?;
        let head = format!("# Written by `testevo-sandbox import`; write only below {OVERRIDES}.\n{facts}\n");
        let Some(before) = read(path)? else { return Ok((head + EMPTY_OVERRIDES, Written::New)) };
        let overrides = match parse(path, &before)?.remove("overrides") {
            None => EMPTY_OVERRIDES.to_owned(),
            Some(overrides) => {
                let own = Table::from_iter([("overrides".to_owned(), overrides)]);
                match raw_overrides(&before).filter(|raw| toml::from_str::<Table>(raw).is_ok_and(|raw| raw == own)) {
                    Some(raw) => raw.to_owned(),
                    // Overrides in another form than one table at the end are written anew.
                    None => toml::to_string(&own).map_err(|error| malformed(error.to_string()))?,
                }
            }
        };
        let after = head + &overrides;
        let written = if after == before { Written::Unchanged } else { Written::Updated };
        Ok((after, written))
    }

    /// Writes the manifest; see [`RepositoryManifest::render_over`].
    ///
    /// # Errors
    /// [`ManifestError`].
    pub fn store(&self, path: &Path) -> Result<Written, ManifestError> {
        let (text, written) = self.render_over(path)?;
        if written != Written::Unchanged {
            write_atomically(path, text.as_bytes())?;
        }
        Ok(written)
    }

    /// Returns the keys that a manifest's text overrides, dotted and sorted.
    ///
    /// # Errors
    /// [`ManifestError::Malformed`], [`ManifestError::UnknownSchema`].
    pub fn overridden_keys(path: &Path, text: &str) -> Result<Vec<String>, ManifestError> {
        let mut keys = Vec::new();
        let mut tables = match parse(path, text)?.remove("overrides") {
            Some(Value::Table(overrides)) => vec![(String::new(), overrides)],
            _ => Vec::new(),
        };
        while let Some((parent, table)) = tables.pop() {
            for (key, value) in table {
                match value {
                    Value::Table(table) => tables.push((format!("{parent}{key}."), table)),
                    _ => keys.push(format!("{parent}{key}")),
                }
            }
        }
        keys.sort();
        Ok(keys)
    }

    fn check(&self) -> Result<(), String> {
        if !JDK_MAJORS.contains(&self.jdk) {
            return Err(format!("`jdk` is {}, not one of {}", self.jdk, jdk_majors()));
        }
        for argument in self.build.skip_flags.iter().chain(&self.build.maven_arguments) {
            if argument.is_empty() || argument.len() > 1000 || argument.chars().any(char::is_control) {
                return Err("an argument of Maven is empty, too long or has control characters".into());
            }
        }
        let jars = &self.extension_jars;
        if !jars.is_empty() && self.jdk != EXTENSIBLE_JDK {
            return Err(format!("`extension_jars` need `jdk = {EXTENSIBLE_JDK}`, and `jdk` is {}", self.jdk));
        }
        if jars.len() > MOST_EXTENSION_JARS {
            return Err(format!("there are {} `extension_jars`, more than {MOST_EXTENSION_JARS}", jars.len()));
        }
        if let Some(twice) =
            jars.iter().enumerate().find(|(i, jar)| jars[..*i].iter().any(|one| one.sha256 == jar.sha256))
        {
            return Err(format!("two of `extension_jars` have the digest {}", twice.1.sha256.hex()));
        }
        Ok(())
    }
}

/// Returns the file's text; `None` if there is no file.
fn read(path: &Path) -> Result<Option<String>, ManifestError> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.len() > MOST_BYTES => {
            Err(ManifestError::Malformed { path: path.to_owned(), reason: "it is too large".into() })
        }
        Ok(_) => Ok(Some(fs::read_to_string(path)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn parse(path: &Path, text: &str) -> Result<Table, ManifestError> {
    let malformed = |reason: String| ManifestError::Malformed { path: path.to_owned(), reason };
    let table: Table = toml::from_str(text).map_err(|error| malformed(error.to_string()))?;
    match table.get("schema").and_then(Value::as_integer) {
        Some(schema) if schema == i64::from(MANIFEST_SCHEMA) => Ok(table),
        Some(found) => Err(ManifestError::UnknownSchema { path: path.to_owned(), found }),
        None => Err(malformed("it has no `schema`".into())),
    }
}

/// Returns all arguments of Maven in the table; `None` if its `build` is malformed.
fn arguments(table: &Table) -> Option<Vec<String>> {
    let build: Build = table.get("build")?.clone().try_into().ok()?;
    Some(build.arguments())
}

/// Returns the file's text from the line that starts the overrides.
fn raw_overrides(text: &str) -> Option<&str> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end() == OVERRIDES {
            return Some(&text[start..]);
        }
        start += line.len();
    }
    None
}

/// Replaces values by those of `overrides`, table by table.
fn overlay(base: &mut Table, overrides: Table) {
    for (key, value) in overrides {
        match (base.get_mut(&key), value) {
            (Some(Value::Table(base)), Value::Table(overrides)) => overlay(base, overrides),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
