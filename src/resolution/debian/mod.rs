//! Debian's archive: signed indexes, packages, and dependency resolution.

pub mod archive;
pub mod defaults;
pub mod index;
pub mod relation;
pub mod release;
pub mod resolve;
pub mod signature;

pub(crate) use crate::artifact::origin::printable;

/// Returns whether a text is a valid package name by Debian's policy.
pub(crate) fn is_package_name(text: &str) -> bool {
    (2..=200).contains(&text.len()) | (text.len() == 1)
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c))
}
