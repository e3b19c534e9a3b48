//! The licences of what a bundle holds: files of images for Debian packages, and what POMs name for Maven artifacts.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use serde_json::{Value, json};

use crate::digest::Digest;
use crate::image::recipe::MAVEN_REPOSITORY;
use crate::member::Described;
use crate::workspace::pom::{DeclaredLicense, PomFacts};

/// How far a POM's parents are followed.
const MOST_PARENTS: usize = 32;
/// The largest POM that is looked at, in bytes.
const MOST_POM_BYTES: u64 = 16 << 20;

/// Licences by component.
#[derive(Default)]
pub struct Licenses {
    files: BTreeMap<String, BTreeSet<String>>,
    /// POMs by their directory in a Maven repository, `group/as/path/artifact/version`.
    poms: BTreeMap<String, Pom>,
}

struct Pom {
    licenses: Vec<DeclaredLicense>,
    /// The parent's directory.
    parent: Option<String>,
}

impl Licenses {
    /// Adds files of an image that have the licences of a Debian package.
    pub fn add_files(&mut self, package: String, files: impl IntoIterator<Item = String>) {
        self.files.entry(package).or_default().extend(files);
    }

    /// Adds a POM by its path in a Maven repository. What can't be read names no licence.
    pub fn add_pom(&mut self, path: &str, bytes: &[u8]) {
        let (Some((directory, _)), Ok(facts)) = (path.rsplit_once('/'), PomFacts::parse(bytes)) else { return };
        let parent = facts.parent.and_then(|parent| {
            let (group, artifact, version) = (parent.group_id?, parent.artifact_id?, parent.version?);
            Some(format!("{}/{artifact}/{version}", group.replace('.', "/")))
        });
        self.poms.insert(directory.to_owned(), Pom { licenses: facts.licenses, parent });
    }

    /// Adds POMs from an image's layer, a gzip blob of at most `most` bytes when unpacked. `wanted` has their digests, by their path in a
    /// Maven repository; other files and other bytes are passed over.
    ///
    /// # Errors
    /// I/O errors, also for a damaged layer.
    pub fn add_layer(&mut self, layer: impl Read, most: u64, wanted: &BTreeMap<String, Digest>) -> io::Result<()> {
        let unpacked = flate2::read::MultiGzDecoder::new(io::BufReader::new(layer)).take(most);
        let mut described = Described::default();
        for member in tar::Archive::new(unpacked).entries()?.raw(true) {
            let mut member = member?;
            if described.take_from(&mut member)? {
                continue;
            }
            let Described { path, .. } = std::mem::take(&mut described);
            let path = path.unwrap_or_else(|| member.path_bytes().into_owned());
            let path = String::from_utf8_lossy(&path).into_owned();
            let below = path.strip_prefix(MAVEN_REPOSITORY).and_then(|rest| rest.strip_prefix('/'));
            let Some((below, digest)) = below.and_then(|below| wanted.get_key_value(below)) else { continue };
            let mut bytes = Vec::new();
            member.take(MOST_POM_BYTES).read_to_end(&mut bytes)?;
            if Digest::of(&bytes) == *digest {
                self.add_pom(below, &bytes);
            }
        }
        Ok(())
    }

    /// Returns the files that have the licences of a Debian package.
    pub(super) fn files(&self, package: &str) -> impl Iterator<Item = &String> {
        self.files.get(package).into_iter().flatten()
    }

    /// Returns the licences of the artifact in a directory of a Maven repository, in CycloneDX's form. As for Maven, a POM without
    /// any has its parent's.
    pub(super) fn of_artifact(&self, directory: &str) -> Vec<Value> {
        let above = |pom: &&Pom| pom.parent.as_ref().and_then(|parent| self.poms.get(parent));
        let line = std::iter::successors(self.poms.get(directory), above).take(MOST_PARENTS);
        let named = line.map(|pom| &pom.licenses).find(|licenses| !licenses.is_empty());
        let shown: BTreeSet<(&str, Option<&str>)> = named.into_iter().flatten().filter_map(shown).collect();
        let value = |(name, url)| match url {
            Some(url) => json!({"license": {"name": name, "url": url}}),
            None => json!({"license": {"name": name}}),
        };
        shown.into_iter().map(value).collect()
    }
}

/// Returns the name of a licence, which may be its address, and its address; `None` where it has neither.
fn shown(license: &DeclaredLicense) -> Option<(&str, Option<&str>)> {
    let is_address = |url: &&str| {
        let plain = |byte: u8| byte.is_ascii_graphic() && !br#"<>"{}|\^`"#.contains(&byte);
        ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) && url.bytes().all(plain)
    };
    let name = Some(license.name.as_str()).filter(|name| !name.is_empty());
    let name = name.or(Some(license.url.as_str()).filter(|url| !url.is_empty()))?;
    Some((name, Some(license.url.as_str()).filter(is_address)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pom_without_licences_has_its_parents() {
        let mut licenses = Licenses::default();
        let pom = |text: &str| format!("<project>{text}</project>").into_bytes();
        let parent = "<parent><groupId>org.a</groupId><artifactId>up</artifactId><version>1</version></parent>";
        licenses.add_pom("org/a/one/2/one-2.pom", &pom(parent));
        let two = "<license><name>B &amp; C</name><url>https://example.org/b c</url></license><license><url>http://example.org/d</url></license>";
        licenses.add_pom("org/a/up/1/up-1.pom", &pom(&format!("<licenses>{two}<license/></licenses>")));
        let expected = json!([
            {"license": {"name": "B & C"}},
            {"license": {"name": "http://example.org/d", "url": "http://example.org/d"}},
        ]);
        assert_eq!(Value::from(licenses.of_artifact("org/a/one/2")), expected);
        assert_eq!(licenses.of_artifact("org/a/other/2"), Vec::<Value>::new());

        // An image's layer has them where the store has no POMs.
        let layer = |members: &[(&str, &[u8])]| {
            let mut layer = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
            for (path, bytes) in members {
                let mut header = tar::Header::new_ustar();
                header.set_size(bytes.len() as u64);
                layer.append_data(&mut header, format!("opt/maven-repository/{path}"), *bytes).unwrap();
            }
            layer.into_inner().unwrap().finish().unwrap()
        };
        let named = pom("<licenses><license><name>E</name></license></licenses>");
        let (right, wrong) = ("org/a/right/1/right-1.pom", "org/a/wrong/1/wrong-1.pom");
        let bytes = layer(&[(right, &named), (wrong, &named), ("org/a/right/1/right-1.jar", b"jar")]);
        let wanted = BTreeMap::from([
            (right.to_owned(), Digest::of(&named)),
            (wrong.to_owned(), Digest::of(b"other")),
            ("org/a/none/1/none-1.pom".to_owned(), Digest::of(b"none")),
        ]);
        licenses.add_layer(&*bytes, 1 << 20, &wanted).unwrap();
        assert_eq!(Value::from(licenses.of_artifact("org/a/right/1")), json!([{"license": {"name": "E"}}]));
        assert_eq!(licenses.of_artifact("org/a/wrong/1"), Vec::<Value>::new());
        assert!(licenses.add_layer(&bytes[..bytes.len() / 2], 1 << 20, &wanted).is_err());
        assert!(licenses.add_layer(&*bytes, 600, &wanted).is_err());

        // Parents that go in a circle end somewhere, and what is no POM is passed over.
        let itself = "<parent><groupId>c</groupId><artifactId>c</artifactId><version>1</version></parent>";
        licenses.add_pom("c/c/1/c-1.pom", &pom(itself));
        licenses.add_pom("org/a/one/3/one-3.pom", b"<html>");
        assert_eq!(licenses.of_artifact("c/c/1"), Vec::<Value>::new());
    }
}
