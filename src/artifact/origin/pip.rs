//! Finds the address of Python's package index: in pip's configuration, else the default in an installed pip's source.

use std::path::{Path, PathBuf};

use fs_err as fs;

use super::{Machine, OriginAddress, netrc};

/// Returns the address of the simple index as the machine's pip would use it.
pub(super) fn index(machine: &Machine) -> Option<OriginAddress> {
    let configured = match machine.variable("PIP_INDEX_URL") {
        Some(address) => address.parse().ok(),
        None => configurations(machine).iter().find_map(|path| index_url(&machine.read(path)?)?.parse().ok()),
    };
    let address =
        configured.or_else(|| installed(machine).iter().find_map(|path| index_of_source(&machine.read(path)?)))?;
    let logins = machine.home.as_ref().and_then(|home| machine.read(&home.join(".netrc")));
    Some(netrc::with_login(address, &logins.unwrap_or_default()))
}

/// Returns pip's configuration files, the one with the highest priority first.
fn configurations(machine: &Machine) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    paths.extend(machine.variable("PIP_CONFIG_FILE").map(PathBuf::from));
    paths.extend(machine.variable("VIRTUAL_ENV").map(|directory| Path::new(directory).join("pip.conf")));
    let configuration = match machine.variable("XDG_CONFIG_HOME") {
        Some(directory) => Some(PathBuf::from(directory)),
        None => machine.home.as_ref().map(|home| home.join(".config")),
    };
    paths.extend(configuration.map(|directory| directory.join("pip/pip.conf")));
    paths.extend(machine.home.as_ref().map(|home| home.join(".pip/pip.conf")));
    paths.push(machine.path("/etc/pip.conf"));
    paths.push(machine.path("/etc/xdg/pip/pip.conf"));
    paths
}

/// Returns the `index-url` of the sections `global`, `install` or `download`.
fn index_url(text: &str) -> Option<String> {
    let mut section = "";
    let mut found = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.trim();
        } else if let Some((key, value)) = line.split_once(['=', ':'])
            && ["global", "install", "download"].contains(&section)
            && ["index-url", "index_url"].contains(&key.trim())
        {
            found = Some(value.trim().to_owned());
        }
    }
    found
}

/// Returns the files of installed pips that name the default index.
fn installed(machine: &Machine) -> Vec<PathBuf> {
    let mut libraries: Vec<PathBuf> = Vec::new();
    let mut prefixes = vec![machine.path("/usr"), machine.path("/usr/local")];
    prefixes.extend(machine.home.as_ref().map(|home| home.join(".local")));
    prefixes.extend(machine.variable("VIRTUAL_ENV").map(PathBuf::from));
    for library in prefixes.iter().map(|prefix| prefix.join("lib")) {
        let Ok(entries) = fs::read_dir(&library) else { continue };
        libraries.extend(entries.flatten().map(|entry| entry.path()).filter(|path| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("python3"))
        }));
    }
    libraries.sort();
    let mut files = Vec::new();
    for library in libraries {
        for packages in ["site-packages", "dist-packages"] {
            files.push(library.join(packages).join("pip/_internal/models/index.py"));
        }
    }
    files
}

/// Returns the default index in the source of pip's `models/index.py`: the first argument of `PyPI = PackageIndex(…`
/// and `simple` below it.
pub(crate) fn index_of_source(source: &str) -> Option<OriginAddress> {
    let (_, call) = source.split_once("\nPyPI = PackageIndex(")?;
    let quote = call.trim_start().chars().next().filter(|quote| *quote == '"' || *quote == '\'')?;
    let address: OriginAddress = call.trim_start()[1..].split(quote).next()?.parse().ok()?;
    address.join("simple/")?.as_str().parse().ok()
}
