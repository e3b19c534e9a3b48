//! Compares the requirements of Python projects with the policy's projects.

use std::collections::BTreeSet;
use std::io::Read;

use crate::artifact::origin::printable;
use crate::artifact::pypi::normalize;
use crate::artifact::store::Store;
use crate::lock::ToolFile;
use crate::lock::policy::ToolchainPolicy;

const MAX_METADATA: u64 = 1 << 20;
/// The images' Python is 3.13 or newer.
const PYTHON_MINOR: u32 = 13;

/// Errors of a Python project of the toolchain.
#[derive(Debug, thiserror::Error)]
pub enum RequirementError {
    /// The wheel can't be read.
    #[error("the Python project `{project}` can't be read: {reason}")]
    Unreadable {
        /// The project.
        project: String,
        /// The problem.
        reason: String,
    },
    /// The toolchain lacks a requirement.
    #[error("the Python project `{project}` needs `{requirement}`, which the policy neither has nor leaves out")]
    Missing {
        /// The project.
        project: String,
        /// The requirement.
        requirement: String,
    },
}

/// Checks that every requirement of the wheels is among them or deliberately left out.
///
/// # Errors
/// [`RequirementError`].
pub(crate) fn check_requirements(
    store: &Store,
    wheels: &[&ToolFile],
    policy: &ToolchainPolicy,
) -> Result<(), RequirementError> {
    let present: BTreeSet<String> = wheels.iter().map(|wheel| normalize(&wheel.name)).collect();
    for wheel in wheels {
        let left_out: BTreeSet<String> = policy
            .tool_files
            .iter()
            .filter(|tool| tool.name == wheel.name)
            .flat_map(|tool| tool.left_out.iter().map(|name| normalize(name)))
            .collect();
        let unreadable = |reason: String| RequirementError::Unreadable { project: wheel.name.clone(), reason };
        let metadata = metadata(store, wheel).map_err(unreadable)?;
        for requirement in requirements(&metadata) {
            if !present.contains(&requirement) && !left_out.contains(&requirement) {
                return Err(RequirementError::Missing { project: wheel.name.clone(), requirement });
            }
        }
    }
    Ok(())
}

fn metadata(store: &Store, wheel: &ToolFile) -> Result<String, String> {
    let file = store.open_verified(&wheel.sha256).map_err(|error| error.to_string())?;
    let mut archive = zip::ZipArchive::new(file).map_err(|error| error.to_string())?;
    let is_metadata = |name: &str| name.ends_with(".dist-info/METADATA") && name.matches('/').count() == 1;
    let mut names = archive.file_names().filter_map(Result::ok);
    let name = names.find(|name| is_metadata(name)).ok_or("it is no wheel")?.into_owned();
    drop(names);
    let mut text = String::new();
    let entry = archive.by_name(&name).map_err(|error| error.to_string())?;
    entry.take(MAX_METADATA).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

/// Returns the normalized names of requirements on Linux with the images' Python. Extras are never installed.
fn requirements(metadata: &str) -> Vec<String> {
    let fields = metadata.lines().take_while(|line| !line.trim().is_empty());
    let required = fields.filter_map(|line| line.strip_prefix("Requires-Dist:"));
    let applying = required.filter(|text| {
        let marker = text.split_once(';').map_or("", |(_, marker)| marker).replace([' ', '\'', '"'], "");
        let older = marker.split_once("python_version<3.").is_some_and(|(_, rest)| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u32>().is_ok_and(|minor| minor <= PYTHON_MINOR)
        });
        !(older || marker.contains("extra==") || marker.contains("sys_platform==win32"))
    });
    let names = applying.map(|text| {
        let text = text.trim();
        let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).unwrap_or(text.len());
        normalize(&printable(&text[..end]))
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extras_and_other_platforms_are_no_requirements() {
        let metadata = "Name: x\nRequires-Dist: attrs (>=19.2.0)\nRequires-Dist: Zope.Interface>=1\n\
            Requires-Dist: win ; sys_platform=='win32'\nRequires-Dist: old>=1 ; python_version < \"3.7\"\n\
            Requires-Dist: test[a] ; extra == 'dev'\nRequires-Dist: more[x]>2; os_name != \"nt\"\n\n\
            Requires-Dist: in-the-description\n";
        assert_eq!(requirements(metadata), ["attrs", "zope-interface", "more"]);
    }
}
