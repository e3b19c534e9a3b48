use super::*;

/// Returns the directory of a file's module in a tree with these POMs.
fn module(poms: &[(&str, &str)], file: &str) -> Option<String> {
    location(poms, file).map(|module| module.directory)
}

fn location(poms: &[(&str, &str)], file: &str) -> Option<ModuleLocation> {
    let texts = poms.iter().map(|(path, text)| ((*path).to_owned(), format!("<project>{text}</project>")));
    let files: BTreeMap<String, Option<Vec<u8>>> = texts.map(|(path, text)| (path, Some(text.into()))).collect();
    let parsed = |content: &Option<Vec<u8>>| PomFacts::parse(content.as_deref().unwrap());
    let poms: BTreeMap<_, _> = files.iter().map(|(path, content)| (path.clone(), parsed(content))).collect();
    let reactor = reached(&poms, "");
    BuildFiles { files, poms, reactor }.module_of(&file.parse().unwrap())
}

#[test]
fn a_module_or_a_parent_of_it_switches_tests_off() {
    let set = |value: &str| format!("<properties><maven.test.skip>{value}</maven.test.skip></properties>");
    let (on, off) = (set("false"), set(" True "));
    let profile = format!("<profiles><profile>{off}</profile></profiles>");
    let skips = |root: &str, module: &str| {
        let module = format!("<parent><artifactId>up</artifactId></parent>{module}");
        let root = format!("<packaging>pom</packaging><modules><module>a</module></modules>{root}");
        let poms = [("pom.xml", root.as_str()), ("a/pom.xml", module.as_str())];
        location(&poms, "a/src/test/java/ATest.java").unwrap().skips_tests
    };
    for (root, module, expected) in
        [("", "", false), (&off, "", true), ("", &off, true), (&off, &on, false), (&profile, &profile, false)]
    {
        assert_eq!(skips(root, module), expected, "{root} {module}");
    }
}

#[test]
fn a_file_of_a_module_without_a_pom_lies_in_none() {
    let file = "core/src/test/java/p/ATest.java";
    assert_eq!(module(&[("pom.xml", "")], file), None);
    assert_eq!(module(&[("pom.xml", "<packaging>jar</packaging>")], file), None);
    assert_eq!(module(&[("pom.xml", ""), ("core/pom.xml", "")], file).as_deref(), Some("core"));
    assert_eq!(module(&[("app/pom.xml", "")], "app/a/b/src/test/java/ATest.java"), None);
    let own = "<build><testSourceDirectory>${project.basedir}/test</testSourceDirectory></build>";
    assert_eq!(module(&[("pom.xml", own)], file), None);
}

#[test]
fn what_a_module_may_compile_lies_in_it() {
    let with = |directory: &str| format!("<build><testSourceDirectory>{directory}</testSourceDirectory></build>");
    let root = |pom: &str, file: &str| assert_eq!(module(&[("pom.xml", pom)], file).as_deref(), Some(""), "{pom}");
    let file = "core/src/test/java/p/ATest.java";
    for own in ["src/test/java/ATest.java", "src/test/java/p/src/test/java/ATest.java", "test/ATest.java"] {
        root("", own);
    }
    for directory in
        ["core/src/test/java", "./core/src/test", "${basedir}/core", "${tests}", "../core", "core//src", ".", ""]
    {
        root(&with(directory), file);
    }
    // Goals that add sources, and a phase that is for goals that do.
    root("<build><plugins><plugin><goal>add-test-source</goal></plugin></plugins></build>", file);
    root("<profiles><profile><phase>generate-test-sources</phase></profile></profiles>", file);
    root("<properties><more>${basedir}/core/src/test/java</more></properties>", file);
    let inherited = with("core/src/test/java");
    let parent = [("pom.xml", ""), ("parent/pom.xml", inherited.as_str())];
    assert_eq!(module(&parent, file).as_deref(), Some(""), "it may be inherited");
    assert_eq!(module(&[("pom.xml", "<broken>")], file).as_deref(), Some(""), "Maven has the last word");
}
