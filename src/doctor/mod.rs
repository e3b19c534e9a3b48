//! Checks of this machine: its abilities for the work, and remedies for what it lacks.
//!
//! Every check is a value: its name, its status, the observation, and advice if something is wrong. Checks change
//! nothing, except that the data directory is created. No check contains an origin's address, a credential or a proxy.

pub mod engines;
pub mod machine;
pub mod native;
pub mod origins;
pub mod sources;
pub mod work;

use serde::Serialize;
use serde_json::Value;

use crate::artifact::origin::OriginName;
use crate::error::{ExitStatus, Failure};

/// Version of [`Report`]'s schema.
pub const REPORT_SCHEMA: u32 = 1;

/// The status of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The check passed.
    Ok,
    /// Work can proceed with limitations.
    Warn,
    /// Something can't be done.
    Fail,
}

impl Status {
    /// Returns the name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// One check.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// The check's name. Several checks may share one.
    pub check: &'static str,
    /// The check's status.
    pub status: Status,
    /// The observation, in a line.
    pub detail: String,
    /// The remedy, if one is needed.
    pub advice: Option<String>,
    /// The observation for machines; an object or `null`.
    pub facts: Value,
}

impl Check {
    /// Returns a passed check.
    pub fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, status: Status::Ok, detail: detail.into(), advice: None, facts: Value::Null }
    }

    /// Returns a check with a warning.
    pub fn warn(check: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { status: Status::Warn, advice: Some(advice.into()), ..Self::ok(check, detail) }
    }

    /// Returns a failed check.
    pub fn fail(check: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { status: Status::Fail, advice: Some(advice.into()), ..Self::ok(check, detail) }
    }

    /// Returns the check with facts for machines.
    pub fn with(self, facts: Value) -> Self {
        Self { facts, ..self }
    }
}

/// An origin that locking needs and that can't be reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct MissingOrigin {
    /// Its name.
    pub name: OriginName,
    /// Why the origin can't be reached, without its address.
    pub cause: String,
    /// The user's remedy.
    pub advice: String,
}

impl Failure for MissingOrigin {
    fn exit_status(&self) -> ExitStatus {
        ExitStatus::Origin
    }

    fn hint(&self) -> Option<String> {
        Some(self.advice.clone())
    }
}

/// All checks.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`REPORT_SCHEMA`].
    pub schema: u32,
    /// The worst status of all checks.
    pub status: Status,
    /// In the order in which they were made.
    pub checks: Vec<Check>,
}

impl Report {
    /// Returns the report of these checks.
    pub fn new(checks: Vec<Check>) -> Self {
        let status = checks.iter().map(|check| check.status).max().unwrap_or(Status::Ok);
        Self { schema: REPORT_SCHEMA, status, checks }
    }
}

/// Returns a number of bytes for people.
pub(crate) fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
}
