//! What this machine offers for the work, and what to do about what it lacks.
//!
//! Every check is a value: what was looked at, how it is, what was seen, and advice where something is wrong. Checks
//! look and never change anything but that the data directory is made. No address of an origin, credential or proxy
//! ever stands in a check.

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

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Work goes on, with less than there could be.
    Warn,
    /// Something can't be done.
    Fail,
}

impl Status {
    /// Returns the name, as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What, in a word. Several checks may have one name.
    pub check: &'static str,
    /// How it is.
    pub status: Status,
    /// What was seen, in a line.
    pub detail: String,
    /// What to do, where something is to do.
    pub advice: Option<String>,
    /// What was seen, for machines; an object or `null`.
    pub facts: Value,
}

impl Check {
    /// Returns a check of something that is as it should be.
    pub fn ok(check: &'static str, detail: impl Into<String>) -> Self {
        Self { check, status: Status::Ok, detail: detail.into(), advice: None, facts: Value::Null }
    }

    /// Returns a check of something that could be better.
    pub fn warn(check: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { status: Status::Warn, advice: Some(advice.into()), ..Self::ok(check, detail) }
    }

    /// Returns a check of something that is missing or wrong.
    pub fn fail(check: &'static str, detail: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { status: Status::Fail, advice: Some(advice.into()), ..Self::ok(check, detail) }
    }

    /// Returns the check with facts for machines.
    pub fn with(self, facts: Value) -> Self {
        Self { facts, ..self }
    }
}

/// An origin that is needed for locking and can't be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct MissingOrigin {
    /// Its name.
    pub name: OriginName,
    /// Why, without its address.
    pub cause: String,
    /// What the user can do.
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

/// All that was looked at.
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
