//! What origins and repositories serve: Debian's indexes, POMs and metadata of Maven.

use std::sync::LazyLock;

use jiff::Timestamp;
use testevo_sandbox::artifact::control::paragraphs;
use testevo_sandbox::resolution::debian::index::PackageIndex;
use testevo_sandbox::resolution::debian::relation::{accepts, parse_relations};
use testevo_sandbox::resolution::debian::release::Release;
use testevo_sandbox::resolution::debian::signature::TrustedKeys;
use testevo_sandbox::resolution::metadata::{candidates, compare_versions, parse, preferred, render};
use testevo_sandbox::workspace::pom::PomFacts;

use crate::Target;
use crate::scratch::done;

const CONTROL_WORDS: &[&[u8]] = &[
    b"Package: x\n",
    b"Version: 1:2.0~rc1-3+b1\n",
    b"Depends: a (>= 1) | b, c:any\n",
    b"Provides: v (= 2), w\n",
    b"Filename: pool/x.deb\n",
    b"Size: 18446744073709551615\n",
    b"Architecture: amd64\n",
    b"SHA256:\n",
    b"\n\n",
    b"\n ",
    b"\n .\n",
    b"(<< 1)",
    b"99999999999999999999",
];

/// Paragraphs of control files.
pub(super) const CONTROL: Target = Target {
    name: "control",
    run: |input| {
        let text = String::from_utf8_lossy(input);
        let mut length = 0;
        for paragraph in paragraphs(&text) {
            length += paragraph.text().len();
            for (name, value) in paragraph.fields() {
                assert!(name.len() + value.len() <= 2 * paragraph.text().len());
                assert!(paragraph.get(name).is_some());
            }
        }
        assert!(length <= text.len());
    },
    seeds: || vec![packages().into_bytes(), release().into_bytes(), b"A:\n\n\n \nB: c\n d\n".to_vec()],
    words: CONTROL_WORDS,
    runs: 2000,
    most_bytes: 32 << 10,
    memory: 60,
};

/// A suite's packages and their relations.
pub(super) const PACKAGES: Target = Target {
    name: "packages",
    run: index,
    seeds: || vec![packages().into_bytes(), packages().repeat(20).into_bytes()],
    words: CONTROL_WORDS,
    runs: 1500,
    most_bytes: 32 << 10,
    memory: 400,
};

/// A suite's list of files, signed and not.
pub(super) const RELEASE: Target = Target {
    name: "release",
    run: release_file,
    seeds: || vec![release().into_bytes(), signed().into_bytes()],
    words: &[
        b"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\n",
        b"-----BEGIN PGP SIGNATURE-----\n\n",
        b"-----END PGP SIGNATURE-----\n",
        b"- ",
        b"Suite: stable\n",
        b"Date: Sat, 12 Sep 2026 07:55:41 UTC\n",
        b"Valid-Until: ",
        b"SHA256:\n ",
        b"Acquire-By-Hash: yes\n",
    ],
    runs: 1250,
    most_bytes: 32 << 10,
    memory: 120,
};

/// POMs.
pub(super) const POM: Target = Target {
    name: "pom",
    run: pom,
    seeds: poms,
    words: &[
        b"<project>",
        b"</project>",
        b"<modules><module>m</module></modules>",
        b"<profiles><profile><id>p</id><activation><activeByDefault>true</activeByDefault></activation></profile></profiles>",
        b"<dependencies><dependency>",
        b"<repositories><repository><url>file://${basedir}/lib</url></repository></repositories>",
        b"<![CDATA[",
        b"<!DOCTYPE x>",
        b"<?xml version=\"1.0\"?>",
        b"&#65;",
        b"&amp;",
        b"<!--",
        b"-->",
        b"<x/>",
    ],
    runs: 2500,
    most_bytes: 64 << 10,
    memory: 200,
};

/// `maven-metadata.xml`, read and written.
pub(super) const METADATA: Target = Target {
    name: "metadata",
    run: metadata,
    seeds: || {
        vec![
            b"<metadata><groupId>g</groupId><artifactId>a</artifactId><versioning><versions><version>1.0</version>\
              <version>1.1-rc1</version><version>2.22.2</version></versions></versioning></metadata>"
                .to_vec(),
            b"<metadata><groupId>org.apache.maven.plugins</groupId><artifactId>maven-surefire-plugin</artifactId>\
              <versioning><versions><version>2.22.2</version><version>3</version></versions></versioning></metadata>"
                .to_vec(),
            b"<metadata/>".to_vec(),
        ]
    },
    words: &[
        b"<metadata>",
        b"<versioning><versions><version>",
        b"</version></versions></versioning>",
        b"<version>1.0-beta-2</version>",
        b"18446744073709551616",
        b"&lt;",
        b"<!DOCTYPE x>",
        b"<![CDATA[",
    ],
    runs: 2500,
    most_bytes: 32 << 10,
    memory: 200,
};

fn index(input: &[u8]) {
    let text = String::from_utf8_lossy(input).into_owned();
    for line in text.lines() {
        let Some((_, relations)) = line.split_once(": ") else { continue };
        if let Ok(groups) = parse_relations(relations) {
            let version = done("1:2.0-3".parse());
            for relation in groups.iter().flatten() {
                accepts(relation, &version);
                // What is read can be written, and means the same.
                let written = relation.to_string();
                assert_eq!(parse_relations(&written).ok().as_deref(), Some(&[vec![relation.clone()]][..]), "{written}");
            }
        }
    }
    let Ok(index) = PackageIndex::parse(text.clone(), "sid") else { return };
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("Package:").map(str::trim)
            && let Ok(found) = index.named(name)
        {
            assert!(found.iter().all(|package| package.name == name && package.suite == "sid"));
            assert!(found.is_sorted_by(|a, b| a.version >= b.version));
        }
    }
    let _ = index.providing("v");
}

fn packages() -> String {
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    format!(
        "Package: x\nVersion: 1:2.0~rc1-3+b1\nArchitecture: amd64\nDepends: libc6 (>= 2.34), python3:any | perl\n\
         Pre-Depends: y\nBreaks: z (<< 2)\nProvides: v (= 2), w\nPriority: optional\nFilename: pool/main/x/x_1.deb\n\
         Size: 1234\nSHA256: {digest}\nDescription: one\n two\n .\n three\n\nPackage: y\nVersion: 3\nArchitecture: all\n\
         Filename: pool/y.deb\nSize: 1\nSHA256: {digest}\n\n"
    )
}

fn release() -> String {
    "Suite: stable\nCodename: trixie\nDate: Sat, 12 Sep 2026 07:55:41 UTC\nValid-Until: Sat, 19 Sep 2026 07:55:41 UTC\n\
     Acquire-By-Hash: yes\nSHA256:\n ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad 3 main/Packages.xz\n"
        .to_owned()
}

fn now() -> Timestamp {
    done("2026-09-13T00:00:00Z".parse())
}

/// A key that was made for this program, what it signed, and its fingerprint: `fuzz/keys/README.md`.
static KEYS: LazyLock<TrustedKeys> = LazyLock::new(|| {
    let fingerprint = include_str!("../../keys/fingerprint").trim().to_owned();
    done(TrustedKeys::read(include_bytes!("../../keys/public.pgp"), &[fingerprint]))
});

fn signed() -> String {
    include_str!("../../keys/InRelease").to_owned()
}

fn release_file(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(release) = Release::parse(&text, "trixie", now()) {
        let _ = release.check_validity(now());
        for word in text.split_whitespace() {
            if let Ok((_, size)) = release.file(word) {
                assert!(text.contains(&size.to_string()) || text.contains(&format!("+{size}")) || text.contains('0'));
            }
        }
    }
    // Nobody but the key's owner signs: what is believed is what was signed.
    if let Ok(found) = KEYS.verify(&text, now()) {
        assert_eq!(found.text.trim_end(), release().trim_end());
    }
    let _ = TrustedKeys::read(input, &[]);
}

fn pom(input: &[u8]) {
    let Ok(facts) = PomFacts::parse(input) else { return };
    let text = 3 * input.len();
    assert!(facts.modules.iter().map(|module| module.path.len()).sum::<usize>() <= text);
    for module in &facts.modules {
        assert!(module.profile.is_none_or(|profile| profile < facts.profiles.len()));
    }
    for repository in &facts.repositories {
        assert!(repository.path_in_tree().is_none_or(|path| !path.starts_with('/')));
    }
    let _ = (facts.group(), facts.artifact_directory());
}

fn poms() -> Vec<Vec<u8>> {
    let whole = r#"<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<parent><groupId>g</groupId><artifactId>p</artifactId><relativePath/></parent>
<artifactId>a &amp; b</artifactId><packaging>pom</packaging>
<modules><module>one</module><module>two/pom.xml</module></modules>
<repositories><repository><id>r</id><url>file://${project.basedir}/lib</url></repository></repositories>
<pluginRepositories><pluginRepository><id>s</id><url>https://example.org</url></pluginRepository></pluginRepositories>
<dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId></dependency></dependencies>
<build><testSourceDirectory>src/it</testSourceDirectory><pluginManagement><plugins><plugin><executions><execution><goals>
<goal>directory-of</goal></goals></execution></executions></plugin></plugins></pluginManagement></build>
<profiles><profile><id>x</id><activation><activeByDefault>true</activeByDefault></activation><modules><module>three</module>
</modules></profile><profile><activation><jdk>[9,)</jdk></activation></profile></profiles>
</project>"#;
    vec![whole.into(), b"<project/>".to_vec(), [b"<project>".repeat(99), b"</project>".repeat(99)].concat()]
}

fn metadata(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok(found) = parse(&text) else { return };
    let chosen = candidates(&found);
    assert!(chosen.is_sorted_by(|a, b| compare_versions(a, b).is_ge()), "{chosen:?}");
    let Some(newest) = chosen.first() else { return };
    let preferred = preferred(&found).unwrap_or(newest);
    let written = parse(&render(&found, preferred)).unwrap_or_else(|error| panic!("{error}"));
    let mut kept: Vec<&String> =
        found.versions.iter().filter(|version| compare_versions(version, preferred).is_le()).collect();
    kept.sort_by(|a, b| compare_versions(a, b));
    assert_eq!(written.versions.iter().collect::<Vec<_>>(), kept);
}
