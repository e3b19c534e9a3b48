use std::collections::BTreeMap;
use std::path::Path;

use fs_err as fs;
use jiff::{SignedDuration, Timestamp};
use pgp::composed::{ArmorOptions, SignedPublicKey, SignedSecretKey};

use super::*;
use crate::artifact::origin::{Machine, OriginOptions, Origins};
use crate::event::EventSink;
use crate::image::debian_package;
use crate::resolution::debian::signature::tests::{new_key, pinned, sign};

/// A small archive on disk, signed with a key of its own, with a keyring package in its suite `main`.
pub(crate) struct TestArchive {
    pub(crate) root: tempfile::TempDir,
    key: SignedSecretKey,
    packages: BTreeMap<String, String>,
}

impl TestArchive {
    pub(crate) fn new() -> Self {
        let (root, key) = (tempfile::tempdir().unwrap(), new_key());
        let mut archive = Self { root, key, packages: BTreeMap::new() };
        let keyring = SignedPublicKey::from(archive.key.clone()).to_armored_string(ArmorOptions::default()).unwrap();
        archive.add_with_file("main", "debian-archive-keyring 1", KEYRINGS[0], &keyring);
        archive
    }

    /// Adds `name version; Field: value; …` to a suite.
    pub(crate) fn add(&mut self, suite: &str, line: &str) {
        self.add_with_file(suite, line, "usr/share/doc/x/copyright", line);
    }

    fn add_with_file(&mut self, suite: &str, line: &str, path: &str, content: &str) {
        let mut parts = line.split("; ");
        let (name, version) = parts.next().unwrap().split_once(' ').unwrap();
        let mut control = format!("Package: {name}\nVersion: {version}\nArchitecture: all\n");
        for field in parts {
            control += &format!("{field}\n");
        }
        let bytes = debian_package(&control, &[(path, 0o644, content)], ".xz");
        let pool = format!("pool/main/{name}_{version}_all.deb");
        self.write(&pool, &bytes);
        let (digest, size) = (Digest::of(&bytes).hex(), bytes.len());
        *self.packages.entry(suite.to_owned()).or_default() +=
            &format!("{control}Filename: {pool}\nSize: {size}\nSHA256: {digest}\n\n");
    }

    pub(crate) fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Takes a suite's packages away, as if the archive had moved on.
    pub(crate) fn forget(&mut self, suite: &str, name: &str) {
        let packages = self.packages.get_mut(suite).unwrap();
        let kept = packages.split_inclusive("\n\n").filter(|text| !text.starts_with(&format!("Package: {name}\n")));
        *packages = kept.collect();
    }

    /// Writes the indexes, signed, dated `date` and valid for a week.
    pub(crate) fn publish(&self, date: Timestamp) {
        for (suite, packages) in &self.packages {
            let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
            std::io::Write::write_all(&mut encoder, packages.as_bytes()).unwrap();
            let bytes = encoder.finish().unwrap();
            self.write(&format!("dists/{suite}/{PACKAGES}"), &bytes);
            let form = |time: Timestamp| time.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string();
            let release = format!(
                "Suite: {suite}\nAcquire-By-Hash: yes\nDate: {}\nValid-Until: {}\nSHA256:\n {} {} {PACKAGES}\n",
                form(date),
                form(date + SignedDuration::from_hours(7 * 24)),
                Digest::of(&bytes).hex(),
                bytes.len()
            );
            self.write(&format!("dists/{suite}/InRelease"), sign(&self.key, &release).as_bytes());
        }
    }

    pub(crate) fn address(&self) -> String {
        format!("file://{}", self.root.path().display())
    }

    pub(crate) fn fingerprints(&self) -> Vec<String> {
        pinned(&self.key)
    }

    pub(crate) fn client(&self, data_dir: &Path, check_valid_until: Option<bool>) -> Client {
        let given = ["debian", "central", "pypi"].map(|name| (name.to_owned(), self.address()));
        let given = BTreeMap::from(given);
        let options = OriginOptions::new(&given, false, check_valid_until).unwrap();
        let origins = Origins::new(options, Machine::at(data_dir, None, &[]), data_dir);
        let store = Store::open(&data_dir.join("store"), &data_dir.join("tmp")).unwrap();
        Client::new(origins, store, EventSink::none()).unwrap()
    }

    fn policy(&self) -> DebianPolicy {
        DebianPolicy { keys: self.fingerprints(), suite: "main".to_owned(), dropped: Default::default() }
    }
}

async fn open(archive: &TestArchive, policy: &DebianPolicy, suite: &str) -> Result<Suite, ArchiveError> {
    let directory = tempfile::tempdir().unwrap();
    let client = archive.client(directory.path(), None);
    Archive::new(&client, policy, Timestamp::now()).suite(suite).await
}

#[tokio::test]
async fn a_signed_suite_is_read_by_digest_or_by_name() {
    let mut archive = TestArchive::new();
    archive.add("main", "a 1");
    archive.add("other", "b 2");
    archive.publish(Timestamp::now());
    let suite = open(&archive, &archive.policy(), "other").await.unwrap();
    assert_eq!(suite.index.named("b").unwrap()[0].version_text, "2");
    assert_eq!((suite.signed.suite.as_str(), suite.signed.signed_by), ("other", archive.fingerprints()));
    let packages = fs::read(archive.root.path().join("dists/main").join(PACKAGES)).unwrap();
    let by_hash = format!("dists/main/main/binary-amd64/by-hash/SHA256/{}", Digest::of(&packages).hex());
    archive.write(&by_hash, &packages);
    archive.write(&format!("dists/main/{PACKAGES}"), b"the mirror is being changed");
    let suite = open(&archive, &archive.policy(), "main").await.unwrap();
    assert_eq!(suite.index.named("a").unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_not_trusted_is_refused() {
    let mut archive = TestArchive::new();
    archive.add("other", "a 1");
    archive.publish(Timestamp::now());
    let stranger = DebianPolicy { keys: pinned(&new_key()), ..archive.policy() };
    assert!(matches!(open(&archive, &stranger, "main").await, Err(ArchiveError::Keyring { .. })));

    // The index of packages is replaced: the release's digest tells.
    let path = format!("dists/other/{PACKAGES}");
    let packages = fs::read(archive.root.path().join(&path)).unwrap();
    archive.write(&path, &vec![b'x'; packages.len()]);
    let error = open(&archive, &archive.policy(), "other").await.unwrap_err();
    assert!(matches!(error, ArchiveError::Fetch(FetchError::Garbage { .. })), "{error}");
    archive.write(&path, &packages);

    // One suite's release is served as another's.
    let other = fs::read(archive.root.path().join("dists/other/InRelease")).unwrap();
    archive.write("dists/third/InRelease", &other);
    let error = open(&archive, &archive.policy(), "third").await.unwrap_err();
    assert!(matches!(error, ArchiveError::Release { reason: ReleaseError::OtherSuite { .. }, .. }), "{error}");

    let text = String::from_utf8(other).unwrap().replacen("Suite: other", "Suite: third", 1);
    archive.write("dists/third/InRelease", text.as_bytes());
    let error = open(&archive, &archive.policy(), "third").await.unwrap_err();
    assert!(matches!(error, ArchiveError::Signature { .. }), "{error}");

    archive.write("dists/third/InRelease", b"<html>login</html>");
    let error = open(&archive, &archive.policy(), "third").await.unwrap_err();
    assert!(matches!(error, ArchiveError::Signature { .. }) && error.hint().is_some(), "{error}");
}

#[tokio::test]
async fn an_old_index_is_refused_unless_the_user_says_otherwise() {
    let archive = TestArchive::new();
    archive.publish(Timestamp::now() - SignedDuration::from_hours(30 * 24));
    let error = open(&archive, &archive.policy(), "main").await.unwrap_err();
    assert!(matches!(error, ArchiveError::Release { reason: ReleaseError::Expired { .. }, .. }), "{error}");
    assert!(error.hint().unwrap().contains("check_valid_until"));
    let directory = tempfile::tempdir().unwrap();
    let client = archive.client(directory.path(), Some(false));
    let policy = archive.policy();
    assert!(Archive::new(&client, &policy, Timestamp::now()).suite("main").await.is_ok());
}

#[test]
fn the_index_is_of_the_architecture_of_images() {
    assert!(PACKAGES.contains(&format!("binary-{}/", crate::lock::ARCHITECTURE)));
}
