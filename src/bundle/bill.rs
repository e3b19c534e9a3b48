//! The software bill of materials of a bundle, in CycloneDX's JSON: Debian packages, tools and Maven artifacts of the
//! locks. It has neither a serial number nor a time, so that equal locks give equal bytes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::licenses::Licenses;
use crate::canonical_json::canonical_json;
use crate::digest::Digest;
use crate::lock::{MavenFile, RepositoryLock, ToolRole, ToolchainLock};

/// The licence of a component whose licence is not known here, in SPDX's word for that.
const UNKNOWN: &str = "NOASSERTION";

/// A component: its name and version, how others call it, and its digest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Component {
    purl: String,
    name: String,
    version: String,
    sha256: Digest,
    /// Its directory in a Maven repository.
    directory: Option<String>,
}

/// Returns the bill of images of these repositories.
///
/// # Errors
/// Errors of serialisation, which plain data never causes.
pub fn bill<'a>(
    toolchain: &ToolchainLock,
    repositories: impl IntoIterator<Item = &'a RepositoryLock>,
    licenses: &Licenses,
) -> serde_json::Result<Vec<u8>> {
    let (mut components, mut majors) = (BTreeSet::new(), BTreeSet::new());
    for lock in repositories {
        majors.insert(lock.jdk);
        components.extend(lock.files.iter().filter_map(component_of));
    }
    let kits = toolchain.jdks.iter().filter(|kit| majors.contains(&kit.major)).flat_map(|kit| &kit.packages);
    let packages = toolchain.base.iter().chain(&toolchain.tools_packages).chain(&toolchain.agent_packages);
    for package in packages.chain(kits) {
        let (name, version) = (package.name.clone(), package.version.clone());
        let purl =
            format!("pkg:deb/debian/{}@{}?arch={}", escaped(&name), escaped(&version), escaped(&package.architecture));
        components.insert(Component { purl, name, version, sha256: package.sha256, directory: None });
    }
    for tool in &toolchain.tools {
        let component = match tool.role {
            ToolRole::Python => Some(Component {
                purl: format!("pkg:pypi/{}@{}", escaped(&tool.name), escaped(&tool.version)),
                name: tool.name.clone(),
                version: tool.version.clone(),
                sha256: tool.sha256,
                directory: None,
            }),
            _ => maven(&tool.path, tool.sha256),
        };
        components.extend(component);
    }
    let mut named = BTreeSet::new();
    let listed: Vec<Value> = components
        .iter()
        .map(|component| {
            let mut value = json!({
                "type": "library", "name": component.name, "version": component.version, "purl": component.purl,
                "hashes": [{"alg": "SHA-256", "content": component.sha256.hex()}],
            });
            // The same artifact may have other bytes at another origin. References must differ.
            let first = named.insert(&component.purl);
            let suffix = if first { String::new() } else { format!("#{}", component.sha256.hex()) };
            value["bom-ref"] = format!("{}{suffix}", component.purl).into();
            if component.purl.starts_with("pkg:deb/") {
                let property = |file: &String| json!({"name": "testevo-sandbox:license-file", "value": file});
                let files: Vec<Value> = licenses.files(&component.name).map(property).collect();
                if !files.is_empty() {
                    value["properties"] = files.into();
                }
            }
            let named = component.directory.as_ref().map(|directory| licenses.of_artifact(directory));
            let named = named.unwrap_or_default();
            if !named.is_empty() {
                value["licenses"] = named.into();
            } else if value.get("properties").is_none() {
                // Who reads the bill must not take silence for freedom.
                value["licenses"] = json!([{"license": {"name": UNKNOWN}}]);
            }
            value
        })
        .collect();
    canonical_json(&json!({"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "components": listed}))
}

/// Returns the artifact of a file of the cache. A release's file that stands in for a snapshot's is the release, and its
/// licence is read where the cache has it.
fn component_of(file: &MavenFile) -> Option<Component> {
    let directory = file.path.rsplit_once('/').map(|(directory, _)| directory.to_owned());
    maven(&file.path_at_origin(), file.sha256).map(|component| Component { directory, ..component })
}

/// Returns the artifact at a path of a Maven repository; `None` for files beside artifacts.
fn maven(path: &str, sha256: Digest) -> Option<Component> {
    let mut parts = path.rsplitn(4, '/');
    let (file, version, artifact, group) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let rest = file.strip_prefix(artifact)?.strip_prefix('-')?.strip_prefix(version)?;
    let (classifier, kind) = rest.split_once('.')?;
    let group = group.replace('/', ".");
    let classifier = classifier.strip_prefix('-').map(|text| format!("&classifier={}", escaped(text)));
    let (classifier, kind) = (classifier.unwrap_or_default(), escaped(kind));
    let (names, release) = (format!("{}/{}", escaped(&group), escaped(artifact)), escaped(version));
    let purl = format!("pkg:maven/{names}@{release}?type={kind}{classifier}");
    let directory = path.rsplit_once('/').map(|(directory, _)| directory.to_owned());
    Some(Component { purl, name: format!("{group}:{artifact}"), version: version.to_owned(), sha256, directory })
}

/// Returns a text as a part of a package URL.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b'~' | b':' => escaped.push(byte as char),
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::{DebianPackage, LOCK_SCHEMA};

    #[test]
    fn no_component_is_silent_about_its_licence() {
        let package = |name: &str| DebianPackage {
            name: name.to_owned(),
            version: "1".to_owned(),
            architecture: "all".to_owned(),
            suite: "trixie".to_owned(),
            path: format!("pool/{name}.deb"),
            sha256: Digest::of(name.as_bytes()),
            size: 1,
        };
        let toolchain = ToolchainLock { base: vec![package("known"), package("unknown")], ..ToolchainLock::empty() };
        let file = |path: &str| MavenFile {
            path: path.to_owned(),
            origin: "central".to_owned(),
            sha256: Digest::of(path.as_bytes()),
            size: 1,
            own: false,
            released: false,
        };
        let lock = RepositoryLock {
            schema: LOCK_SCHEMA,
            repository: "owner/name".parse().unwrap(),
            jdk: 8,
            maven_arguments: None,
            files: vec![
                file("org/a/known/1/known-1.jar"),
                file("org/a/unknown/1/unknown-1.jar"),
                MavenFile { released: true, ..file("org/b/parent/2-SNAPSHOT/parent-2-SNAPSHOT.pom") },
            ],
            metadata: Vec::new(),
            build_sets: Vec::new(),
            whole_sets: Vec::new(),
            unresolved: Vec::new(),
            extension_jars: Vec::new(),
        };
        let mut licenses = Licenses::default();
        licenses.add_files("known".to_owned(), ["usr/share/doc/known/copyright".to_owned()]);
        let pom = b"<project><licenses><license><name>MIT</name></license></licenses></project>";
        licenses.add_pom("org/a/known/1/known-1.pom", pom);
        licenses.add_pom("org/b/parent/2-SNAPSHOT/parent-2-SNAPSHOT.pom", pom);
        let bill: Value = serde_json::from_slice(&bill(&toolchain, [&lock], &licenses).unwrap()).unwrap();
        let told = |component: &Value| match component["licenses"][0]["license"]["name"].as_str() {
            Some(name) => name.to_owned(),
            None => component["properties"][0]["value"].as_str().unwrap().to_owned(),
        };
        let told: Vec<String> = bill["components"].as_array().unwrap().iter().map(told).collect();
        assert_eq!(told, ["usr/share/doc/known/copyright", UNKNOWN, "MIT", UNKNOWN, "MIT"]);
        assert_eq!(bill["components"][4]["purl"], "pkg:maven/org.b/parent@2?type=pom");
    }
}
