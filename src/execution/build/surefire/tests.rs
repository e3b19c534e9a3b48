use super::*;

fn settings(line: &str) -> TestSettings {
    TestSettings {
        project: "g:a".into(),
        execution: "default-test".into(),
        default: true,
        phase: None,
        arg_line: Some(line.into()),
        system_properties: [("p".to_owned(), "a b".to_owned()), (String::new(), "x".to_owned())].into(),
        environment: [("E".to_owned(), "1".to_owned()), ("A=B".to_owned(), "x".to_owned())].into(),
        working_directory: Some("target/w".into()),
        use_module_path: None,
    }
}

#[test]
fn agents_placeholders_and_what_the_sandbox_decides_are_left_out() {
    for (line, expected) in [
        ("", ""),
        ("-Da=1  -Db='x y' \"-Dc=z w\"", "-Da=1|-Db=x y|-Dc=z w"),
        ("@{argLine} -Da=1 ${surefireArgLine}", "-Da=1"),
        ("-javaagent:/x.jar=destfile=y -Da=1 -agentlib:jdwp=z -Xdebug -Xrunjdwp:a", "-Da=1"),
        ("-Xmx512m -Xms2g -Da=1", "-Xmx512m|-Da=1"),
        ("-Xmx4g -Da=1 -XX:MaxRAMPercentage=80", "-Da=1"),
        ("-Xmx1024M", "-Xmx1024M"),
        ("--add-opens java.base/java.lang=ALL-UNNAMED -Da", "--add-opens|java.base/java.lang=ALL-UNNAMED|-Da"),
        ("--add-modules g.main,java.sql --limit-modules=g.main -Da", "--add-modules|java.sql|-Da"),
        ("--limit-modules java.base -Da --limit-modules=java.base", "-Da"),
        ("--add-modules javafx.controls,java.sql -Da", "--add-modules|java.sql|-Da"),
        ("--add-modules=ALL-MODULE-PATH,g.main --add-modules g.main -Da", "--add-modules=ALL-MODULE-PATH|-Da"),
        ("-cp /evil -Da Main -jar x.jar", "-Da"),
        ("-Da=\n  1", "-Da="),
    ] {
        assert_eq!(arguments(line, 17, 1024).join("|"), expected, "{line}");
    }
}

#[test]
fn what_keeps_this_jvm_from_starting_is_left_out() {
    let opens = "--add-opens=java.base/java.lang=ALL-UNNAMED";
    for (jdk, line, expected) in [
        (8, "--add-opens java.base/java.lang=ALL-UNNAMED -Da --illegal-access=permit", "-Da"),
        (8, opens, ""),
        (11, opens, opens),
        (8, "--enable-preview --add-modules java.sql -Xlog:gc -Xloggc:gc.log", "-Xloggc:gc.log"),
        (8, "-Xbootclasspath/p:a.jar -d64 -d32 -Xincgc", "-Xbootclasspath/p:a.jar|-d64"),
        (11, "--enable-native-access ALL-UNNAMED -Da", "-Da"),
        (17, "--enable-native-access ALL-UNNAMED -Da", "--enable-native-access|ALL-UNNAMED|-Da"),
        (17, "-version --module=m/c -Xshare:dump --list-modules -Da", "-Da"),
        (17, "--add-modules jdk.incubator.concurrent,jdk.jpackage,jdk.snmp", "--add-modules|jdk.jpackage"),
        (11, "--add-modules jdk.scripting.nashorn,jdk.jpackage", "--add-modules|jdk.scripting.nashorn"),
        (11, "-XX:+UseConcMarkSweepGC -XX:+UseZGC", "-XX:+UseConcMarkSweepGC"),
        (21, "-XX:+UseZGC -XX:+UseParNewGC", "-XX:+UseZGC"),
        (11, "-Xbootclasspath/p:a.jar -d64 -Xbootclasspath/a:b.jar -Xlog:gc", "-Xbootclasspath/a:b.jar|-Xlog:gc"),
        (11, "--add-modules java.xml.bind,java.sql", "--add-modules|java.sql"),
        (11, "--add-modules=java.xml.bind --add-modules java.se.ee -Da", "-Da"),
        (
            17,
            "--add-modules jdk.incubator.vector,jdk.incubator.foreign",
            "--add-modules|jdk.incubator.vector,jdk.incubator.foreign",
        ),
        (21, "--add-modules jdk.incubator.vector,jdk.incubator.foreign", "--add-modules|jdk.incubator.vector"),
        (17, "-Djava.endorsed.dirs=target/endorsed -Djava.security.manager=allow", "-Djava.security.manager=allow"),
        (11, "-Djava.security.manager=allow -Djava.security.manager", "-Djava.security.manager"),
        (8, "-Djava.endorsed.dirs=target/endorsed", "-Djava.endorsed.dirs=target/endorsed"),
        (17, "-XX:MaxPermSize=64m -XX:+UseConcMarkSweepGC", "-XX:MaxPermSize=64m"),
    ] {
        assert_eq!(arguments(line, jdk, 1024).join("|"), expected, "{jdk} {line}");
    }
    let mut own = settings("");
    own.system_properties.insert("java.ext.dirs".into(), "target".into());
    assert_eq!(JvmSettings::of(&own, PROJECT, 11, 1024).arguments, ["-Dp=a b"]);
    assert_eq!(JvmSettings::of(&own, PROJECT, 8, 1024).arguments, ["-Djava.ext.dirs=target", "-Dp=a b"]);
}

#[test]
fn properties_environment_and_directory_apply() {
    let jvm = JvmSettings::of(&settings("-Da=1"), &format!("{PROJECT}/m"), 17, 1024);
    assert_eq!(jvm.arguments, ["-Da=1", "-Dp=a b"]);
    assert_eq!(jvm.environment, [("E".to_owned(), "1".to_owned())]);
    assert_eq!(jvm.working_directory.as_deref(), Some("/work/project/m/target/w"));
    for outside in ["/etc", "../..", "/work/projects", "/work/project/../x"] {
        assert_eq!(inside(outside, "/work/project/m"), None, "{outside}");
    }
    for (path, expected) in
        [("..", "/work/project"), ("./a/../b/", "/work/project/m/b"), ("/work/project/./m", "/work/project/m")]
    {
        assert_eq!(inside(path, "/work/project/m").as_deref(), Some(expected), "{path}");
    }
    assert!(JvmSettings::of(&settings("-XX:+UseG1GC"), PROJECT, 17, 1).chooses_collector());
    assert!(!jvm.chooses_collector());
}

#[test]
fn the_number_of_the_forked_jvm_is_one() {
    let own = TestSettings {
        system_properties: [("schema".to_owned(), "S_${surefire.forkNumber}".to_owned())].into(),
        environment: [("N".to_owned(), "${surefire.threadNumber}".to_owned())].into(),
        working_directory: Some("target/f${surefire.forkNumber}".into()),
        ..settings("-Da=${surefire.forkNumber}")
    };
    let jvm = JvmSettings::of(&own, PROJECT, 17, 1024);
    assert_eq!(jvm.arguments, ["-Da=1", "-Dschema=S_1"]);
    assert_eq!(jvm.environment, [("N".to_owned(), "1".to_owned())]);
    assert_eq!(jvm.working_directory.as_deref(), Some("/work/project/target/f1"));
}
