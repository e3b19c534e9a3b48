//! Reads a suite's signed index of indexes: `InRelease`.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::artifact::control::paragraphs;
use crate::digest::Digest;

/// How far a `Date` may be ahead of this machine's clock, in seconds.
const CLOCK_TOLERANCE: i64 = 24 * 3600;
const MAX_FILES: usize = 100_000;

/// Errors of a release.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// A field is missing or malformed.
    #[error("its field `{0}` is missing or malformed")]
    Field(&'static str),
    /// It describes another suite.
    #[error("it describes `{found}`")]
    OtherSuite {
        /// Its suite and code name.
        found: String,
    },
    /// Its date is in the future.
    #[error("its date {date} lies in the future of this machine's clock")]
    Future {
        /// Its date.
        date: String,
    },
    /// It has expired.
    #[error("it was valid until {until}")]
    Expired {
        /// End of its validity.
        until: String,
    },
    /// It does not list a file.
    #[error("it does not list `{0}` by SHA-256")]
    NotListed(String),
}

/// The content of a release.
#[derive(Debug)]
pub struct Release {
    /// The `Date` field, unchanged.
    pub date: String,
    /// The end of its validity, unchanged.
    pub valid_until: Option<String>,
    /// Whether files can be requested by digest.
    pub by_hash: bool,
    files: BTreeMap<String, (Digest, u64)>,
}

impl Release {
    /// Reads a release. Checks that it belongs to the suite (by suite or code name), and that its date is in the past.
    ///
    /// # Errors
    /// [`ReleaseError`], but never [`ReleaseError::Expired`]: see [`Release::check_validity`].
    pub fn parse(text: &str, suite: &str, now: Timestamp) -> Result<Self, ReleaseError> {
        let paragraph = paragraphs(text).next().ok_or(ReleaseError::Field("Suite"))?;
        let fields: BTreeMap<&str, _> = paragraph.fields().collect();
        let field = |name: &'static str| fields.get(name).map(|value| value.as_ref());
        let names = [field("Suite"), field("Codename")];
        if !names.contains(&Some(suite)) {
            let found: Vec<&str> = names.into_iter().flatten().collect();
            return Err(ReleaseError::OtherSuite { found: super::printable(&found.join(", ")) });
        }
        let date = field("Date").ok_or(ReleaseError::Field("Date"))?;
        if parse_date(date).ok_or(ReleaseError::Field("Date"))?.as_second() > now.as_second() + CLOCK_TOLERANCE {
            return Err(ReleaseError::Future { date: super::printable(date) });
        }
        let mut files = BTreeMap::new();
        for line in field("SHA256").ok_or(ReleaseError::Field("SHA256"))?.lines().take(MAX_FILES) {
            let mut words = line.split_whitespace();
            let (Some(hex), Some(size), Some(path)) = (words.next(), words.next(), words.next()) else { continue };
            let digest = Digest::from_hex(hex).map_err(|_| ReleaseError::Field("SHA256"))?;
            files.insert(path.to_owned(), (digest, size.parse().map_err(|_| ReleaseError::Field("SHA256"))?));
        }
        Ok(Self {
            date: date.to_owned(),
            valid_until: field("Valid-Until").map(str::to_owned),
            by_hash: field("Acquire-By-Hash") == Some("yes"),
            files,
        })
    }

    /// Checks that the release is still valid.
    ///
    /// # Errors
    /// [`ReleaseError::Expired`], [`ReleaseError::Field`].
    pub fn check_validity(&self, now: Timestamp) -> Result<(), ReleaseError> {
        let Some(until) = &self.valid_until else { return Ok(()) };
        let end = parse_date(until).ok_or(ReleaseError::Field("Valid-Until"))?;
        if end < now { Err(ReleaseError::Expired { until: super::printable(until) }) } else { Ok(()) }
    }

    /// Returns the digest and size in bytes of a file below the suite's directory.
    ///
    /// # Errors
    /// [`ReleaseError::NotListed`].
    pub fn file(&self, path: &str) -> Result<(Digest, u64), ReleaseError> {
        self.files.get(path).copied().ok_or_else(|| ReleaseError::NotListed(path.to_owned()))
    }
}

/// Reads `Sat, 12 Sep 2026 07:55:41 UTC`.
fn parse_date(text: &str) -> Option<Timestamp> {
    let text = text.strip_suffix("UTC").map(|start| format!("{start}+0000"))?;
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Suite: stable\nCodename: trixie\nDate: Sat, 12 Sep 2026 07:55:41 UTC\n\
        Valid-Until: Sat, 19 Sep 2026 07:55:41 UTC\nAcquire-By-Hash: yes\nSHA256:\n \
        ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad 3 main/binary-amd64/Packages.xz\n";

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn suite_date_validity_and_files_are_read() {
        let now = at("2026-09-13T00:00:00Z");
        let release = Release::parse(TEXT, "trixie", now).unwrap();
        assert!(Release::parse(TEXT, "stable", now).is_ok() && release.by_hash);
        assert_eq!(release.file("main/binary-amd64/Packages.xz").unwrap(), (Digest::of(b"abc"), 3));
        assert!(matches!(release.file("other"), Err(ReleaseError::NotListed(_))));
        assert!(release.check_validity(now).is_ok());
        assert!(matches!(release.check_validity(at("2026-09-20T00:00:00Z")), Err(ReleaseError::Expired { .. })));
    }

    #[test]
    fn another_suite_the_future_and_nonsense_are_refused() {
        let now = at("2026-09-13T00:00:00Z");
        assert!(matches!(Release::parse(TEXT, "sid", now), Err(ReleaseError::OtherSuite { .. })));
        assert!(matches!(Release::parse(TEXT, "trixie", at("2026-09-10T00:00:00Z")), Err(ReleaseError::Future { .. })));
        for (from, to) in [("Date: Sat", "Date: x"), ("ba78", "BA78"), (" 3 ", " -3 "), ("SHA256", "MD5")] {
            let text = TEXT.replacen(from, to, 1);
            assert!(matches!(Release::parse(&text, "trixie", now), Err(ReleaseError::Field(_))), "{from}");
        }
    }
}
