use super::*;

const METADATA: &str = "<?xml version=\"1.0\"?><metadata><groupId>g</groupId><artifactId>a</artifactId>
        <versioning><latest>4.0.0-beta-1</latest><release>4.0.0-beta-1</release><versions>
        <version>2.0</version><version>2.0-beta-1</version><version>3.1</version><version>3.11.0</version>
        <version>4.0.0-beta-1</version></versions></versioning></metadata>";

#[test]
fn newest_final_releases_come_first() {
    let metadata = parse(METADATA).unwrap();
    assert_eq!((metadata.group.as_str(), metadata.artifact.as_str()), ("g", "a"));
    assert_eq!(candidates(&metadata), ["3.11.0", "3.1", "2.0"]);
}

#[test]
fn what_maven_gets_ends_with_the_chosen_version() {
    let metadata = parse(METADATA).unwrap();
    let rendered = parse(&render(&metadata, "3.1")).unwrap();
    assert_eq!(rendered.versions, ["2.0", "2.0-beta-1", "3.1"]);
}

#[test]
fn prereleases_are_told_by_their_names() {
    for (version, prerelease) in [
        ("1.0", false),
        ("1.0.Final", false),
        ("2.0.RELEASE", false),
        ("31.1-jre", false),
        ("1.0-alpha-1", true),
        ("1.0-M2", true),
        ("3.0.0-rc1", true),
        ("1.0b3", true),
        ("4.0.0-beta-1", true),
        ("1.0-SNAPSHOT", true),
    ] {
        assert_eq!(is_prerelease(version), prerelease, "{version}");
    }
}

#[test]
fn hostile_metadata_is_an_error_or_harmless() {
    assert!(parse("<!DOCTYPE x [<!ENTITY a 'b'>]><metadata/>").is_err());
    assert!(parse(&format!("<metadata>{}", "<a>".repeat(50))).is_err());
    assert!(parse("<html/>").is_err() && parse("<html></html>").is_err() && parse("").is_err());
    let odd = parse("<metadata><versioning><versions><version>../../x</version></versions></versioning></metadata>");
    assert!(odd.unwrap().versions.is_empty());
}
