//! Origins: names in locks, addresses on this machine.
//!
//! An origin is `debian`, `central`, `pypi`, the id of a repository that a POM declares, or `project-tree`. Its address
//! is never written into locks, images or messages. The first of these sources that knows an address decides: the
//! user's options, the machine's own clients (apt, Maven, pip), `origins.toml` in the data directory. Addresses in POMs
//! are untrusted, see [`Origins::declare`]. Addresses that must be fetched (the defaults inside Debian's own packages)
//! are found by `resolution::debian::defaults`.

mod apt;
mod declared;
mod maven;
mod netrc;
mod pip;
mod recorded;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use fs_err as fs;
use reqwest::Url;
use serde::{Deserialize, Serialize};

use crate::error::{ExitStatus, Failure};

pub use apt::AptSettings;
pub use declared::{Declared, LeftOut};
pub(crate) use declared::{is_public, is_public_address, meant};
pub(crate) use maven::central_of_super_pom;
pub(crate) use pip::index_of_source;
pub use recorded::RecordedOrigins;

/// The largest configuration file of another program that is read, in bytes.
const CONFIGURATION_LIMIT: u64 = 4 << 20;

/// Errors of origins.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// This machine knows no address of the origin.
    #[error("no address is known for the origin `{name}`")]
    Unknown {
        /// The origin.
        name: OriginName,
    },
    /// The text is not a valid name of an origin.
    #[error("`{text}` is no name of an origin: 1 to 100 letters, digits, `.`, `_`, `-`, the first a letter or digit")]
    InvalidName {
        /// The text, shortened.
        text: String,
    },
    /// The given address is malformed. It is not shown, because it may contain credentials.
    #[error("the origin `{name}`: {InvalidAddress}")]
    InvalidAddress {
        /// The origin.
        name: String,
    },
    /// A POM's repository has an address that only the user may choose.
    #[error("the origin `{name}`, which a POM declares, {}", LeftOut::Private)]
    Private {
        /// The origin.
        name: OriginName,
    },
    /// `origins.toml` can't be read.
    #[error("the origins `{path}` can't be read: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The parser's message.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("the origins could not be read or written: {0}")]
    Io(#[from] std::io::Error),
}

/// The text is no address of an origin. It is not shown, because it may contain credentials.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the address is not a complete http, https or file address")]
pub struct InvalidAddress;

impl Failure for OriginError {
    fn exit_status(&self) -> ExitStatus {
        match self {
            // Names in locks are checked with the lock, so this one comes from the command line or the settings.
            Self::InvalidName { .. } | Self::InvalidAddress { .. } => ExitStatus::Usage,
            _ => ExitStatus::Origin,
        }
    }

    fn hint(&self) -> Option<String> {
        let name = match self {
            Self::Unknown { name } => name,
            Self::Private { name } => return Some(format!("if that is meant, give `--origin {name}=URL`")),
            Self::InvalidName { .. } | Self::InvalidAddress { .. } => {
                return Some(
                    "write `--origin NAME=URL`, for example `--origin central=https://mirror.example/maven2`; in \
                     TESTEVO_SANDBOX_ORIGINS and below `[origins]` in settings.toml the same holds"
                        .to_owned(),
                );
            }
            Self::Malformed { .. } => return Some("correct the file, or remove it: `lock` writes it anew".to_owned()),
            Self::Io(_) => return Some("check the data directory's permissions and free space".to_owned()),
        };
        let client = match name.as_str() {
            "project-tree" => {
                return Some(
                    "the file lies in the repository's own tree: run `testevo-sandbox lock` for it, which reads that again, or \
                     bring the bytes with `store import`"
                        .to_owned(),
                );
            }
            "debian" => ", or have a Debian archive in apt's sources",
            "central" => ", or have a mirror of `central` in Maven's settings, or Maven installed",
            "pypi" => ", or set pip's index-url, or have pip installed",
            _ => "",
        };
        Some(format!(
            "give `--origin {name}=URL`, name it in TESTEVO_SANDBOX_ORIGINS or below `[origins]` in settings.toml{client}"
        ))
    }
}

/// An origin's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OriginName(String);

impl OriginName {
    /// Returns `debian`: the root of a Debian archive, with `dists` and `pool`.
    pub fn debian() -> Self {
        Self("debian".to_owned())
    }

    /// Returns `central`: the root of Maven's central repository.
    pub fn central() -> Self {
        Self("central".to_owned())
    }

    /// Returns `pypi`: the root of a simple index of Python packages.
    pub fn pypi() -> Self {
        Self("pypi".to_owned())
    }

    /// Returns `project-tree`: directories in the revisions of a lock's own repository. It has no address, because git
    /// has the bytes.
    pub fn project_tree() -> Self {
        Self("project-tree".to_owned())
    }

    /// Tells whether the name has the same meaning in every lock, whatever POMs declare.
    fn is_reserved(&self) -> bool {
        matches!(self.as_str(), "debian" | "central" | "pypi" | "project-tree")
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for OriginName {
    type Err = OriginError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let valid = text.len() <= 100
            && text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        if valid { Ok(Self(text.to_owned())) } else { Err(OriginError::InvalidName { text: printable(text) }) }
    }
}

impl TryFrom<String> for OriginName {
    type Error = OriginError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<OriginName> for String {
    fn from(name: OriginName) -> Self {
        name.0
    }
}

impl fmt::Display for OriginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

pub(crate) fn printable(text: &str) -> String {
    text.chars().take(100).map(crate::output::visible).collect()
}

/// A base address, always ending in `/`. Neither `Debug` nor any message shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct OriginAddress(Url);

impl OriginAddress {
    /// Returns the address with credentials, for requests only.
    pub fn url(&self) -> &Url {
        &self.0
    }

    /// Returns the address of `path` below this one. `path` must be relative, without `..`, and is escaped.
    pub(crate) fn join(&self, path: &str) -> Option<Url> {
        let mut url = self.0.clone();
        let directory = path.ends_with('/');
        {
            let mut segments = url.path_segments_mut().ok()?;
            segments.pop_if_empty();
            for segment in path.trim_end_matches('/').split('/') {
                let bad = segment.is_empty() || segment == "." || segment == "..";
                if bad || segment.chars().any(|c| c.is_control() || c == '\\') {
                    return None;
                }
                segments.push(segment);
            }
            if directory {
                segments.push("");
            }
        }
        Some(url)
    }

    /// Adds credentials, unless the address has some.
    fn with_credentials(mut self, user: &str, password: &str) -> Self {
        if self.0.username().is_empty() && self.0.scheme() != "file" {
            // Both calls fail only for addresses without a host, which `from_str` refuses for http.
            let _ = self.0.set_username(user);
            let _ = self.0.set_password(Some(password));
        }
        self
    }
}

impl FromStr for OriginAddress {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut url = Url::parse(text.trim()).map_err(|_| InvalidAddress)?;
        let usable = match url.scheme() {
            "http" | "https" => url.has_host(),
            "file" => url.to_file_path().is_ok(),
            _ => false,
        };
        if !usable || url.query().is_some() || url.fragment().is_some() {
            return Err(InvalidAddress);
        }
        if !url.path().ends_with('/') {
            let path = format!("{}/", url.path());
            url.set_path(&path);
        }
        Ok(Self(url))
    }
}

impl fmt::Debug for OriginAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OriginAddress(..)")
    }
}

/// The source of an origin's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressSource {
    /// A flag, a variable or `settings.toml`.
    Settings,
    /// The machine's apt, Maven or pip.
    Client,
    /// `origins.toml` in the data directory.
    Recorded,
    /// A default inside a Debian package.
    DebianPackage,
}

/// An origin with its addresses.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Its name.
    pub name: OriginName,
    /// Base addresses, tried in order; none if the user says that the origin is gone.
    pub addresses: Vec<OriginAddress>,
    /// The source of the addresses.
    pub source: AddressSource,
}

impl Origin {
    /// Tells whether a POM declared the address, which then must not lead into private networks.
    pub(crate) fn is_declared(&self) -> bool {
        self.source == AddressSource::Recorded && !self.name.is_reserved()
    }
}

/// The machine's configuration files and variables. Tests use other ones.
#[derive(Clone)]
pub struct Machine {
    root: PathBuf,
    home: Option<PathBuf>,
    variables: BTreeMap<String, String>,
}

impl Machine {
    /// Returns this machine.
    pub fn current() -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        // All of them, because Maven's settings may use any.
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self { root: PathBuf::from("/"), home, variables }
    }

    /// Returns the machine below `root`, for tests.
    pub fn at(root: &Path, home: Option<&Path>, variables: &[(&str, &str)]) -> Self {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { root: root.to_owned(), home: home.map(Path::to_owned), variables }
    }

    fn path(&self, absolute: &str) -> PathBuf {
        self.root.join(absolute.trim_start_matches('/'))
    }

    fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Reads a small file; `None` if it is missing, too large or not text. Broken configuration of other programs is no
    /// error of ours.
    fn read(&self, path: &Path) -> Option<String> {
        let metadata = fs::metadata(path).ok()?;
        if !metadata.is_file() || metadata.len() > CONFIGURATION_LIMIT {
            return None;
        }
        Some(String::from_utf8_lossy(&fs::read(path).ok()?).into_owned())
    }

    /// Returns apt's settings for checking indexes.
    pub fn apt(&self) -> AptSettings {
        apt::settings(self)
    }

    fn clients_address(&self, name: &OriginName) -> Option<OriginAddress> {
        match name.as_str() {
            "debian" => apt::debian(self),
            "central" => maven::central(self),
            "pypi" => pip::index(self),
            _ => None,
        }
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Variables may contain secrets.
        f.debug_struct("Machine").field("root", &self.root).finish_non_exhaustive()
    }
}

/// The user's options for origins, from flags, variables and settings.
#[derive(Clone, Debug, Default)]
pub struct OriginOptions {
    addresses: BTreeMap<OriginName, Vec<OriginAddress>>,
    /// Whether fetching is disabled.
    pub offline: bool,
    /// Whether signed indexes past their `Valid-Until` are refused; `None` leaves it to apt's configuration.
    pub check_valid_until: Option<bool>,
}

impl OriginOptions {
    /// Reads addresses by name. Blanks separate several addresses of one origin. An empty text says that a POM's origin
    /// is gone: it has no files, and is not asked.
    ///
    /// # Errors
    /// [`OriginError::InvalidName`], [`OriginError::InvalidAddress`].
    pub fn new<'a>(
        origins: impl IntoIterator<Item = (&'a String, &'a String)>,
        offline: bool,
        check_valid_until: Option<bool>,
    ) -> Result<Self, OriginError> {
        let mut options = Self { offline, check_valid_until, ..Self::default() };
        for (name, text) in origins {
            let name: OriginName = name.parse()?;
            let invalid = |_| OriginError::InvalidAddress { name: name.as_str().to_owned() };
            let addresses: Vec<OriginAddress> =
                text.split_whitespace().map(str::parse).collect::<Result<_, InvalidAddress>>().map_err(invalid)?;
            // No build does without these, and an empty variable is more likely a mistake.
            if addresses.is_empty() && name.is_reserved() {
                return Err(invalid(InvalidAddress));
            }
            options.addresses.insert(name, addresses);
        }
        Ok(options)
    }
}

/// Finds addresses of origins.
#[derive(Clone, Debug)]
pub struct Origins {
    options: OriginOptions,
    machine: Machine,
    recorded: RecordedOrigins,
}

impl Origins {
    /// Returns the origins that the user, the machine's clients, and `origins.toml` in `data_dir` know.
    pub fn new(options: OriginOptions, machine: Machine, data_dir: &Path) -> Self {
        Self { options, machine, recorded: RecordedOrigins::new(data_dir) }
    }

    /// Returns the origin's addresses, as far as they are known without fetching.
    ///
    /// # Errors
    /// [`OriginError`].
    pub fn resolve(&self, name: &OriginName) -> Result<Origin, OriginError> {
        let origin = |addresses, source| Origin { name: name.clone(), addresses, source };
        if let Some(addresses) = self.options.addresses.get(name) {
            return Ok(origin(addresses.clone(), AddressSource::Settings));
        }
        if let Some(address) = self.machine.clients_address(name) {
            return Ok(origin(vec![address], AddressSource::Client));
        }
        // A POM can never set the address of Debian's archive.
        let recorded = if *name == OriginName::debian() { None } else { self.recorded.find(name)? };
        match recorded {
            // An earlier program may have recorded an address that is not allowed any more.
            Some(address) if is_public(address.url()) => Ok(origin(vec![address], AddressSource::Recorded)),
            Some(_) => Err(OriginError::Private { name: name.clone() }),
            None => Err(OriginError::Unknown { name: name.clone() }),
        }
    }

    /// Tells whether the user or the machine's own clients give an address of the origin.
    fn is_given(&self, name: &OriginName) -> bool {
        self.options.addresses.contains_key(name) || self.machine.clients_address(name).is_some()
    }

    /// Returns the addresses in `origins.toml`.
    pub fn recorded(&self) -> &RecordedOrigins {
        &self.recorded
    }

    /// Returns whether indexes past their `Valid-Until` are refused: by the user's option, else by apt's if `debian`
    /// comes from apt, else yes.
    pub fn check_valid_until(&self, source: AddressSource) -> bool {
        match (self.options.check_valid_until, source) {
            (Some(check), _) => check,
            (None, AddressSource::Client) => self.machine.apt().check_valid_until,
            (None, _) => true,
        }
    }

    /// Returns whether fetching is disabled.
    pub fn offline(&self) -> bool {
        self.options.offline
    }
}

#[cfg(test)]
mod tests;
