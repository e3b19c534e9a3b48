use super::*;

fn poms(texts: &[(&str, &str)]) -> Poms {
    let parsed = |text: &str| PomFacts::parse(format!("<project>{text}</project>").as_bytes());
    texts.iter().map(|(path, text)| ((*path).to_owned(), parsed(text))).collect()
}

/// Tells where Maven starts for `a/app`, with which profiles, and whether everything is built.
fn is(texts: &[(&str, &str)], directory: &str, profiles: &str, whole: bool) {
    let poms = poms(texts);
    let found = start(&poms, &reached(&poms, ""), "a/app");
    let named: Vec<&str> = found.profiles.iter().map(String::as_str).collect();
    assert_eq!(
        (found.directory.as_str(), named.join(",").as_str(), found.whole),
        (directory, profiles, whole),
        "{texts:?}"
    );
}

fn modules(names: &[&str]) -> String {
    let modules: String = names.iter().map(|name| format!("<module>{name}</module>")).collect();
    format!("<packaging>pom</packaging><modules>{modules}</modules>")
}

fn profile(id: &str, activation: &str, names: &[&str]) -> String {
    let modules: String = names.iter().map(|name| format!("<module>{name}</module>")).collect();
    let activation =
        if activation.is_empty() { String::new() } else { format!("<activation>{activation}</activation>") };
    format!("<profile><id>{id}</id>{activation}<modules>{modules}</modules></profile>")
}

fn profiles(all: &[String]) -> String {
    format!("<profiles>{}</profiles>", all.concat())
}

const DEFAULT: &str = "<activeByDefault>true</activeByDefault>";
const LIB: &str = "<groupId>g</groupId><artifactId>lib</artifactId>";

fn app(group: &str) -> String {
    let dependency = format!("<dependency><groupId>{group}</groupId><artifactId>lib</artifactId></dependency>");
    format!("<parent><groupId>g</groupId></parent><dependencies>{dependency}</dependencies>")
}

#[test]
fn maven_starts_where_the_module_is_reached() {
    is(&[("pom.xml", &modules(&["a/app"])), ("a/app/pom.xml", "")], "", "", false);
    is(&[("pom.xml", &modules(&["a"])), ("a/pom.xml", &modules(&["app"])), ("a/app/pom.xml", "")], "", "", false);
    is(&[("pom.xml", ""), ("a/app/pom.xml", "")], "a/app", "", false);
    // Another POM than the root's is started from where it brings what the module depends on, and all that it names.
    let nested = modules(&["app", "lib"]);
    for (group, start) in [("g", "a"), ("${project.groupId}", "a"), ("other", "a/app")] {
        let app = app(group);
        let tree = [("pom.xml", ""), ("a/pom.xml", &*nested), ("a/lib/pom.xml", LIB), ("a/app/pom.xml", &*app)];
        is(&tree, start, "", false);
        is(&tree[1..], start, "", false);
    }
    let torn = modules(&["app", "lib", "gone"]);
    let app = app("g");
    is(&[("a/pom.xml", &torn), ("a/lib/pom.xml", LIB), ("a/app/pom.xml", &app)], "a/app", "", false);
}

#[test]
fn profiles_are_named_where_there_is_no_way_without() {
    let module = ("a/app/pom.xml", "");
    let root = |text: &str, expected: &str| is(&[("pom.xml", text), module], "", expected, false);
    root(&profiles(&[profile("more", "", &["a/app"])]), "more");
    // What Maven may switch on by itself is left to it.
    for activation in [DEFAULT, "<jdk>[1.8,)</jdk>", "<property><name>!x</name></property>"] {
        root(&profiles(&[profile("own", activation, &["a/app"])]), "");
        root(&profiles(&[profile("all", "", &["a/app"]), profile("own", activation, &["a/app"])]), "");
    }
    root(&profiles(&[profile("!x", "", &["a/app"])]), "");
    root(&profiles(&[profile(&"x".repeat(101), "", &["a/app"])]), "");
    root(&profiles(&[profile("default", DEFAULT, &["core"]), profile("more", "", &["a/app"])]), "default,more");
    let both = modules(&["a"]) + &profiles(&[profile("more", "", &["a/app"])]);
    is(&[("pom.xml", &both), ("a/pom.xml", &modules(&["app"])), module], "", "", false);
    // Too many on the way are as none.
    let mut chain: Vec<(String, String)> = Vec::new();
    for depth in 0..9 {
        let directory = "a/".repeat(depth);
        chain.push((format!("{directory}pom.xml"), profiles(&[profile(&format!("p{depth}"), "", &["a"])])));
    }
    chain.push((format!("{}pom.xml", "a/".repeat(9)), String::new()));
    let chain: Vec<(&str, &str)> = chain.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let found = reached(&poms(&chain), "");
    assert_eq!((found.len(), found.values().map(BTreeSet::len).max()), (9, Some(MOST_PROFILES)));
}

#[test]
fn a_crowd_of_poms_and_modules_is_soon_read() {
    let names: Vec<String> = (0..1_000).map(|number| format!("../m{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let id = "x".repeat(90);
    let texts: Vec<(String, String)> = (0..1_000)
        .map(|number| (format!("m{number}/pom.xml"), profiles(&[profile(&format!("{id}{number}"), "", &names)])))
        .collect();
    let texts: Vec<(&str, &str)> = texts.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let poms = poms(&texts);
    // A search that followed every path through them would not end.
    assert_eq!(reached(&poms, "m0").len(), 1_000);
}

#[test]
fn everything_is_built_where_the_build_looks_projects_up() {
    let execution = "<execution><goals><goal>directory-of</goal></goals></execution>";
    let plugin = format!("<plugin><executions>{execution}</executions></plugin>");
    let looks = format!("<build><plugins>{plugin}</plugins></build>");
    let root = modules(&["a/app", "b"]);
    is(&[("pom.xml", &root), ("a/app/pom.xml", &looks), ("b/pom.xml", "")], "", "", true);
    let highest = looks.replace("directory-of", "highest-basedir");
    is(&[("pom.xml", &root), ("a/app/pom.xml", &highest), ("b/pom.xml", "")], "", "", true);
    is(&[("pom.xml", &root), ("a/app/pom.xml", ""), ("b/pom.xml", &looks)], "", "", false);
    let child = "<parent><relativePath>../../pom.xml</relativePath></parent>";
    is(&[("pom.xml", &(looks.clone() + &root)), ("a/app/pom.xml", child)], "", "", true);
    is(&[("pom.xml", &root), ("a/app/pom.xml", &app("g")), ("b/pom.xml", &(looks.clone() + LIB))], "", "", true);
    is(&[("pom.xml", ""), ("a/app/pom.xml", &looks)], "a/app", "", false);
}

#[test]
fn a_lineage_ends() {
    let poms = poms(&[
        ("pom.xml", "<parent><relativePath>a/app</relativePath></parent>"),
        ("a/app/pom.xml", "<parent><relativePath>../../pom.xml</relativePath></parent>"),
        ("b/pom.xml", "<parent><relativePath/></parent>"),
        ("c/pom.xml", "<parent><relativePath>../../up</relativePath></parent>"),
    ]);
    assert_eq!(lineage(&poms, "a/app"), ["a/app", ""]);
    assert_eq!(lineage(&poms, "b"), ["b"]);
    assert_eq!(lineage(&poms, "c"), ["c"]);
}
