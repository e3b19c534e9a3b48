use super::*;

#[test]
fn the_facts_are_read() {
    let facts = PomFacts::parse(
            br#"<?xml version="1.0" encoding="ISO-8859-1"?>
            <project xmlns="x"><!-- <packaging>war</packaging> -->
              <parent><artifactId>up</artifactId><relativePath/></parent>
              <artifactId> a&amp;b </artifactId><packaging>pom</packaging>
              <modules><module>core</module><module><![CDATA[web]]></module></modules>
              <description>caf&eacute; <artifactId>no</artifactId></description>
              <build><testSourceDirectory>src/test</testSourceDirectory>
                <plugins><plugin><artifactId>p</artifactId><executions><execution><goals><goal>g</goal></goals></execution>
                </executions></plugin></plugins></build>
              <dependencies><dependency><artifactId>d</artifactId>
                <exclusions><exclusion><artifactId>no</artifactId></exclusion></exclusions><groupId>g</groupId>
              </dependency></dependencies>
              <profiles><profile><id>x</id><activation><activeByDefault>true</activeByDefault></activation><modules><module>more</module></modules>
                <pluginRepositories><pluginRepository><id>r</id><url>u</url></pluginRepository></pluginRepositories>
              </profile></profiles>
              <repositories><repository><releases><id>no</id></releases><url>v</url></repository></repositories>
              <distributionManagement><repository><id>no</id></repository></distributionManagement>
            </project>"#,
        )
        .unwrap();
    assert_eq!(facts.artifact_id.as_deref(), Some("a&b"));
    assert_eq!(facts.packaging.as_deref(), Some("pom"));
    let parent =
        Parent { group_id: None, artifact_id: Some("up".into()), version: None, relative_path: Some(String::new()) };
    assert_eq!(facts.parent, Some(parent));
    let module = |path: &str, profile| DeclaredModule { path: path.into(), profile };
    assert_eq!(facts.modules, [module("core", None), module("web", None), module("more", Some(0))]);
    assert_eq!(facts.profiles, [Profile { id: "x".into(), activation: Activation::ByDefault }]);
    assert_eq!(facts.dependencies, [Dependency { group_id: "g".into(), artifact_id: "d".into() }]);
    assert_eq!(facts.goals, BTreeSet::from(["g".to_owned()]));
    assert_eq!(facts.test_source_directory.as_deref(), Some("src/test"));
    let repository = |id: &str, url: &str, plugins| DeclaredRepository { id: id.into(), url: url.into(), plugins };
    assert_eq!(facts.repositories, [repository("r", "u", true), repository("", "v", false)]);
}

#[test]
fn repositories_inside_the_tree_are_told_from_others() {
    let path = |url: &str| {
        let declared = DeclaredRepository { url: url.to_owned(), ..DeclaredRepository::default() };
        declared.path_in_tree().map(str::to_owned)
    };
    for url in ["file://${project.basedir}/a/b", "file:${basedir}/a/b", "file:///${user.dir}/a/b"] {
        assert_eq!(path(url).as_deref(), Some("a/b"), "{url}");
    }
    assert_eq!(path("file://${project.parent.basedir}/../x").as_deref(), Some("../x"));
    for url in ["file:///etc", "file://${user.home}/.m2", "https://${basedir}/a", "${basedir}/a", "file://${basedir"] {
        assert_eq!(path(url), None, "{url}");
    }
}

#[test]
fn what_is_no_pom_is_refused() {
    for (text, expected) in [
        ("", "no element `project`"),
        ("<x/>", "no element `project`"),
        ("<project><a>", "ends early"),
        ("<project></a>", "expected"),
        ("<!DOCTYPE p [<!ENTITY a \"b\">]><project>&a;</project>", "document type"),
        (&"<project>".repeat(200), "too deep"),
    ] {
        let error = PomFacts::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
