//! Addresses for cloning sources. `git` accepts many more addresses, some of which are unsafe.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An address of the form `https:`, `ssh:`, `git:` or `file:` that `git` can't take for an option, a helper or a local
/// path. It contains no password.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct CloneUrl(String);

/// A text that is not an acceptable clone address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` can't be cloned from: {reason}")]
pub struct InvalidCloneUrl {
    /// The text, shortened, without control characters, and without a possible password.
    pub text: String,
    /// Why it is refused.
    pub reason: &'static str,
}

impl CloneUrl {
    /// The accepted schemes; `git` may use only these.
    pub const SCHEMES: [&str; 4] = ["https", "ssh", "git", "file"];

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the scheme.
    pub fn scheme(&self) -> &str {
        self.0.split_once("://").map_or("", |(scheme, _)| scheme)
    }
}

impl FromStr for CloneUrl {
    type Err = InvalidCloneUrl;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match check(text) {
            Ok(()) => Ok(Self(text.to_owned())),
            Err(reason) => {
                let shown = text.rsplit_once('@').map_or(text, |(_, rest)| rest);
                let shown = shown.chars().take(120).map(crate::output::visible);
                Err(InvalidCloneUrl { text: shown.collect(), reason })
            }
        }
    }
}

fn check(text: &str) -> Result<(), &'static str> {
    if text.len() > 2048 {
        return Err("it is too long");
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err("it has spaces, backslashes or control characters");
    }
    let (scheme, rest) = text.split_once("://").ok_or("it is not of the form scheme://host/path")?;
    if !CloneUrl::SCHEMES.contains(&scheme) {
        return Err("only https, ssh, git and file are allowed");
    }
    let (authority, path) = rest.split_once('/').ok_or("it has no path")?;
    if path.is_empty() || path.split('/').any(|part| part == ".." || part.starts_with('-')) {
        return Err("its path is empty or has `..` or a part that looks like an option");
    }
    if scheme == "file" {
        return if authority.is_empty() { Ok(()) } else { Err("a file is named as file:///path") };
    }
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    if user.contains(':') {
        return Err("it holds a password; use a credential helper");
    }
    if !user.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.')) {
        return Err("its user has unusual characters");
    }
    let host_ok = host.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '[')
        && host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']' | '_'));
    if host_ok { Ok(()) } else { Err("its host is missing or has unusual characters") }
}

impl TryFrom<String> for CloneUrl {
    type Error = InvalidCloneUrl;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<CloneUrl> for String {
    fn from(url: CloneUrl) -> Self {
        url.0
    }
}

impl fmt::Display for CloneUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_that_do_what_they_look_like() {
        for good in [
            "https://example.org/owner/name.git",
            "https://example.org:8443/a",
            "ssh://git@example.org/owner/name",
            "git://[::1]/a",
            "file:///srv/mirror/a.git",
        ] {
            good.parse::<CloneUrl>().unwrap();
        }
        for bad in [
            "",
            "-x",
            "--upload-pack=touch x",
            "ext::sh -c touch% x",
            "ext::https://example.org/a",
            "http://example.org/a",
            "file://host/a",
            "ssh://-oProxyCommand=x/a",
            "ssh://-u@example.org/a",
            "ssh://example.org/-x",
            "git@example.org:a/b",
            "/srv/a",
            "https://example.org",
            "https:///a",
            "https://example.org/../a",
            "https://example.org/a\n",
            "https://example.org/a\0",
            "HTTPS://example.org/a",
        ] {
            assert!(bad.parse::<CloneUrl>().is_err(), "{bad:?}");
        }
        let error = "https://user:secret@example.org/a".parse::<CloneUrl>().unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
