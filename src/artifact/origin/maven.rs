//! Finds the address of Maven's central repository: a mirror in Maven's settings, else the super POM of an installed
//! Maven.

use std::io::Read;
use std::path::{Path, PathBuf};

use fs_err as fs;
use quick_xml::events::Event;

use super::{Machine, OriginAddress};

const SUPER_POM: &str = "org/apache/maven/model/pom-4.0.0.xml";
const SUPER_POM_LIMIT: u64 = 1 << 20;

/// Returns the address of `central` as the machine's Maven would use it.
pub(super) fn central(machine: &Machine) -> Option<OriginAddress> {
    let homes: Vec<PathBuf> = ["MAVEN_HOME", "M2_HOME"]
        .iter()
        .filter_map(|name| machine.variable(name).map(PathBuf::from))
        .chain([machine.path("/usr/share/maven")])
        .collect();
    let mut settings: Vec<PathBuf> = machine.home.iter().map(|home| home.join(".m2/settings.xml")).collect();
    settings.extend(homes.iter().map(|home| home.join("conf/settings.xml")));
    settings.push(machine.path("/etc/maven/settings.xml"));
    for path in settings {
        if let Some(text) = machine.read(&path)
            && let Some(address) = mirror_of_central(machine, &text)
        {
            return Some(address);
        }
    }
    homes.iter().find_map(|home| installed(&home.join("lib")))
}

fn installed(library: &Path) -> Option<OriginAddress> {
    let mut jars: Vec<PathBuf> = fs::read_dir(library).ok()?.flatten().map(|entry| entry.path()).collect();
    jars.sort();
    jars.iter().find_map(|jar| {
        let name = jar.file_name()?.to_str()?;
        (name.starts_with("maven-model-builder") && name.ends_with(".jar")).then_some(())?;
        central_of_super_pom(fs::File::open(jar).ok()?)
    })
}

/// Returns the address of `central` in the super POM inside the jar `maven-model-builder`.
pub(crate) fn central_of_super_pom(jar: impl Read + std::io::Seek) -> Option<OriginAddress> {
    let mut archive = zip::ZipArchive::new(jar).ok()?;
    let entry = archive.by_name(SUPER_POM).ok()?;
    let mut text = String::new();
    entry.take(SUPER_POM_LIMIT).read_to_string(&mut text).ok()?;
    let repositories = elements(&text, &["project", "repositories", "repository"]);
    repositories.iter().find(|repository| repository.get("id") == Some("central"))?.get("url")?.parse().ok()
}

fn mirror_of_central(machine: &Machine, text: &str) -> Option<OriginAddress> {
    let mirrors = elements(text, &["settings", "mirrors", "mirror"]);
    let mirror = mirrors.iter().find(|mirror| {
        let layout = mirror.get("layout").unwrap_or("default");
        mirror.get("blocked") != Some("true")
            && layout == "default"
            && matches_central(mirror.get("mirrorOf").unwrap_or(""))
    })?;
    let address: OriginAddress = interpolate(machine, mirror.get("url")?).parse().ok()?;
    let servers = elements(text, &["settings", "servers", "server"]);
    let server = servers.iter().find(|server| server.get("id").is_some() && server.get("id") == mirror.get("id"));
    let Some((user, password)) = server.and_then(|server| Some((server.get("username")?, server.get("password")?)))
    else {
        return Some(address);
    };
    let (user, password) = (interpolate(machine, user), interpolate(machine, password));
    // A password in braces is encrypted with Maven's own master password, which this program does not read.
    if password.starts_with('{') { Some(address) } else { Some(address.with_credentials(&user, &password)) }
}

/// Tells whether a `mirrorOf` includes `central`.
fn matches_central(pattern: &str) -> bool {
    let parts: Vec<&str> = pattern.split(',').map(str::trim).collect();
    !parts.contains(&"!central") && parts.iter().any(|part| matches!(*part, "central" | "*" | "external:*"))
}

/// Replaces `${env.NAME}` and `${user.home}`. An unknown variable stays, and makes the address invalid.
fn interpolate(machine: &Machine, text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((name, tail)) = after.split_once('}') else {
            out.push_str("${");
            rest = after;
            continue;
        };
        let value = match name.strip_prefix("env.") {
            Some(variable) => machine.variable(variable).map(str::to_owned),
            None if name == "user.home" => machine.home.as_ref().and_then(|home| home.to_str()).map(str::to_owned),
            None => None,
        };
        out.push_str(&value.unwrap_or_else(|| format!("${{{name}}}")));
        rest = tail;
    }
    out + rest
}

/// An element's direct children that contain only text.
struct Element(Vec<(String, String)>);

impl Element {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Returns the elements at `path` with their text children. Reading stops at malformed XML, and keeps the earlier
/// elements.
fn elements(text: &str, path: &[&str]) -> Vec<Element> {
    let mut reader = quick_xml::Reader::from_str(text);
    let mut open: Vec<String> = Vec::new();
    let mut found: Vec<Element> = Vec::new();
    let mut content = String::new();
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(tag) => {
                open.push(tag.local_name().as_ref().to_owned());
                if open.iter().map(String::as_str).eq(path.iter().copied()) {
                    found.push(Element(Vec::new()));
                }
                content.clear();
            }
            Event::Text(piece) => content.push_str(&piece),
            Event::CData(piece) => content.push_str(&piece),
            Event::GeneralRef(reference) => {
                let character = match &*reference {
                    "amp" => "&",
                    "lt" => "<",
                    "gt" => ">",
                    "quot" => "\"",
                    "apos" => "'",
                    _ => "",
                };
                content.push_str(character);
            }
            Event::End(_) => {
                let inside = open.len() == path.len() + 1 && open.iter().zip(path).all(|(name, wanted)| name == wanted);
                if let (true, Some(name), Some(element)) = (inside, open.last(), found.last_mut()) {
                    element.0.push((name.clone(), content.trim().to_owned()));
                }
                open.pop();
                content.clear();
            }
            Event::Eof => break,
            _ => {}
        }
    }
    found
}
