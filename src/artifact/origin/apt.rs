//! Reads apt's configuration: the Debian archive's address, and how strictly its indexes are checked.

use std::path::PathBuf;

use fs_err as fs;

use super::{Machine, OriginAddress, netrc};

/// apt's settings for checking indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AptSettings {
    /// Whether an index past its `Valid-Until` is refused.
    pub check_valid_until: bool,
}

/// Returns the address of the first source that looks like Debian's main archive.
pub(super) fn debian(machine: &Machine) -> Option<OriginAddress> {
    let address = entries(machine).into_iter().find_map(|entry| entry.debian_archive())?;
    let mut logins = parts(machine, "/etc/apt/auth.conf.d", &["conf", ""]);
    logins.push(machine.path("/etc/apt/auth.conf"));
    let with_login = |address, path: PathBuf| netrc::with_login(address, &machine.read(&path).unwrap_or_default());
    Some(logins.into_iter().fold(address, with_login))
}

/// Reads apt's options, and those of the source itself.
pub(super) fn settings(machine: &Machine) -> AptSettings {
    let mut check = true;
    for path in
        parts(machine, "/etc/apt/apt.conf.d", &["conf", ""]).into_iter().chain([machine.path("/etc/apt/apt.conf")])
    {
        for (name, value) in options(&machine.read(&path).unwrap_or_default()) {
            if name.eq_ignore_ascii_case("acquire::check-valid-until") {
                check = truth(&value).unwrap_or(check);
            }
        }
    }
    let source = entries(machine).into_iter().find(|entry| entry.debian_archive().is_some());
    AptSettings { check_valid_until: source.and_then(|entry| entry.check_valid_until).unwrap_or(check) }
}

fn truth(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "yes" | "true" | "with" | "on" | "enable" | "1" => Some(true),
        "no" | "false" | "without" | "off" | "disable" | "0" => Some(false),
        _ => None,
    }
}

/// One source: addresses, suites, components.
#[derive(Debug, Default)]
struct Entry {
    addresses: Vec<String>,
    suites: Vec<String>,
    components: Vec<String>,
    check_valid_until: Option<bool>,
}

impl Entry {
    /// Returns the address if this is Debian's main archive: component `main`, a path ending in `debian`, and no suite
    /// of the security archive.
    fn debian_archive(&self) -> Option<OriginAddress> {
        if !self.components.iter().any(|component| component == "main")
            || self.suites.iter().any(|suite| suite.contains("security") || suite.ends_with("/updates"))
        {
            return None;
        }
        self.addresses.iter().find_map(|text| {
            let address: OriginAddress = text.parse().ok()?;
            let mut segments = address.url().path_segments()?;
            segments.any(|segment| segment == "debian").then_some(address)
        })
    }
}

fn entries(machine: &Machine) -> Vec<Entry> {
    let list = machine.path("/etc/apt/sources.list");
    let mut entries = lines(&machine.read(&list).unwrap_or_default());
    for path in parts(machine, "/etc/apt/sources.list.d", &["list", "sources"]) {
        let text = machine.read(&path).unwrap_or_default();
        if path.extension().is_some_and(|extension| extension == "sources") {
            entries.extend(stanzas(&text));
        } else {
            entries.extend(lines(&text));
        }
    }
    entries
}

/// Returns the directory's files with one of these extensions, sorted as apt does. apt ignores other files.
fn parts(machine: &Machine, directory: &str, extensions: &[&str]) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(machine.path(directory)) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or(".");
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
        !name.starts_with('.') && extensions.contains(&extension)
    });
    paths.sort();
    paths
}

/// Reads the one-line form: `deb [options] address suite component…`.
fn lines(text: &str) -> Vec<Entry> {
    text.lines().filter_map(line).collect()
}

fn line(text: &str) -> Option<Entry> {
    let text = text.split('#').next().unwrap_or("").trim();
    let mut rest = text.strip_prefix("deb")?;
    if !rest.starts_with([' ', '\t']) {
        return None;
    }
    rest = rest.trim_start();
    let mut entry = Entry::default();
    if let Some(bracketed) = rest.strip_prefix('[') {
        let (options, after) = bracketed.split_once(']')?;
        for option in options.split_whitespace() {
            if let Some((name, value)) = option.split_once('=')
                && name.eq_ignore_ascii_case("check-valid-until")
            {
                entry.check_valid_until = truth(value);
            }
        }
        rest = after;
    }
    let mut words = rest.split_whitespace().map(str::to_owned);
    entry.addresses.push(words.next()?);
    entry.suites.push(words.next()?);
    entry.components = words.collect();
    Some(entry)
}

/// Reads the deb822 form.
fn stanzas(text: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    for stanza in crate::artifact::control::paragraphs(text) {
        let words = |name: &str| -> Vec<String> {
            stanza.get(name).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
        };
        let enabled = stanza.get("Enabled").and_then(|value| truth(&value)).unwrap_or(true);
        if enabled && words("Types").iter().any(|kind| kind == "deb") {
            entries.push(Entry {
                addresses: words("URIs"),
                suites: words("Suites"),
                components: words("Components"),
                check_valid_until: stanza.get("Check-Valid-Until").and_then(|value| truth(&value)),
            });
        }
    }
    entries
}

/// Reads apt.conf's syntax, `A::B "value";` and `A { B "value"; };`, as pairs of full name and value.
fn options(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut scopes: Vec<String> = Vec::new();
    let mut words: Vec<String> = Vec::new();
    for token in tokens(text) {
        match token {
            Token::Word(word) => words.push(word),
            Token::Open => scopes.push(std::mem::take(&mut words).join("")),
            Token::Close => {
                scopes.pop();
                words.clear();
            }
            Token::End => {
                if let [name, value] = words.as_slice() {
                    let mut full: Vec<&str> = scopes.iter().map(String::as_str).collect();
                    full.push(name);
                    pairs.push((full.join("::"), value.clone()));
                }
                words.clear();
            }
        }
    }
    pairs
}

enum Token {
    Word(String),
    Open,
    Close,
    End,
}

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("//") || first == '#' {
            rest = rest.split_once('\n').map_or("", |(_, after)| after);
        } else if rest.starts_with("/*") {
            rest = rest.split_once("*/").map_or("", |(_, after)| after);
        } else if first == '"' {
            let (word, after) = rest[1..].split_once('"').unwrap_or((&rest[1..], ""));
            tokens.push(Token::Word(word.to_owned()));
            rest = after;
        } else if let Some(token) = match first {
            '{' => Some(Token::Open),
            '}' => Some(Token::Close),
            ';' => Some(Token::End),
            _ => None,
        } {
            tokens.push(token);
            rest = &rest[1..];
        } else if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || "{};\"".contains(c)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        }
    }
    tokens
}
