use super::*;
use crate::execution::build::recording::UnknownCall;

#[test]
fn builds_that_a_part_can_not_stand_for_are_unfit() {
    let call = serde_json::json!({
        "project": "g:a", "goal": "testCompile", "compiler": "javac", "arguments": [],
        "sources": ["/work/project/src/ATest.java"], "generated_sources": null, "proc": null,
        "output": "/work/project/target/test-classes",
    });
    let fit = Recording { compilations: vec![serde_json::from_value(call).unwrap()], ..Recording::default() };
    let unfit = |change: &dyn Fn(&mut Recording)| {
        let mut recording = fit.clone();
        change(&mut recording);
        unfit(&recording, "g:a", &recording.compilations, "/work/project/target/test-classes")
    };
    assert_eq!(unfit(&|_| {}), None);
    let goal = |plugin: &str, phase: &str| crate::execution::build::recording::Goal {
        project: Some("g:a".into()),
        plugin: plugin.into(),
        goal: "x".into(),
        phase: Some(phase.into()),
    };
    assert_eq!(unfit(&|recording| recording.goals.push(goal("x:y:1", "compile"))), None);
    let enforcer = "org.apache.maven.plugins:maven-enforcer-plugin:3.5.0";
    assert_eq!(unfit(&|recording| recording.goals.push(goal(enforcer, "test-compile"))), None, "it is skipped");
    let kotlin = |order: &[&str]| {
        let goals: Vec<Goal> = order
            .iter()
            .map(|name| {
                let plugin = match *name {
                    "testCompile" => "org.apache.maven.plugins:maven-compiler-plugin:3",
                    _ => "org.jetbrains.kotlin:kotlin-maven-plugin:2",
                };
                Goal { goal: (*name).into(), ..goal(plugin, "test-compile") }
            })
            .collect();
        unfit(&move |recording| recording.goals.clone_from(&goals))
    };
    assert_eq!(kotlin(&["test-compile", "testCompile"]), None);
    assert!(kotlin(&["testCompile", "test-compile"]).is_some(), "Java's compiler does not see its classes");
    assert!(kotlin(&["test-kapt", "test-compile", "testCompile"]).is_some(), "it makes sources of the tests");
    let another = |recording: &mut Recording| {
        let mut another = recording.compilations[0].clone();
        another.sources = vec!["/work/project/other/BTest.java".into()];
        recording.compilations.push(another);
    };
    assert_eq!(unfit(&another), None, "other sources, compiled apart");
    let forked = |recording: &mut Recording, executable: Option<&str>, arguments: &[&str]| {
        let call = &mut recording.compilations[0];
        call.fork = true;
        call.executable = executable.map(str::to_owned);
        call.jvm_arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    };
    let harmless = [
        "-J-Xmx1g",
        "-J-Xms64m",
        "-J-XX:MaxPermSize=128m",
        "-J-Dfile.encoding=UTF-8",
        "-J--add-exports=jdk.compiler/com.sun.tools.javac.tree=ALL-UNNAMED",
        "-J--add-opens=jdk.compiler/com.sun.tools.javac.code=ALL-UNNAMED",
    ];
    assert_eq!(unfit(&|recording| forked(recording, None, &harmless)), None, "the same compiler elsewhere");
    let changes: [&dyn Fn(&mut Recording); 12] = [
        &|recording| recording.goals.push(goal("x:y:1", "process-test-sources")),
        &|recording| recording.compilations.push(recording.compilations[0].clone()),
        &|recording| recording.compilations.clear(),
        &|recording| recording.compilations[0].compiler = "eclipse".into(),
        &|recording| forked(recording, Some("/opt/jdk-9/bin/javac"), &[]),
        &|recording| forked(recording, None, &["-J-Xmx1g", "-J-Xss8m"]),
        &|recording| forked(recording, None, &["-J-Dfile.encoding=ISO-8859-1"]),
        &|recording| forked(recording, None, &["-J--add-opens=java.base/java.lang=ALL-UNNAMED"]),
        &|recording| recording.compilations[0].fail_on_error = false,
        &|recording| {
            recording.unknown.push(UnknownCall { project: "g:a".into(), goal: "testCompile".into() });
        },
        &|recording| recording.compilations[0].arguments.push("-g:lines".into()),
        &|recording| recording.compilations[0].sources.push("/work/project/src/module-info.java".into()),
    ];
    for change in changes {
        assert!(unfit(change).is_some());
    }
}

#[test]
fn rewritten_sources_and_other_compilers_are_told() {
    use crate::execution::direct::write_files;
    let directory = tempfile::tempdir().unwrap();
    let call = serde_json::json!({
        "project": "g:a", "goal": "testCompile", "compiler": "javac", "arguments": [], "generated_sources": null,
        "sources": ["/work/project/src/ATest.java", "/work/project/target/Made.java"], "proc": null, "output": "",
    });
    let calls = [serde_json::from_value(call).unwrap()];
    let tree = |name: &str, files: &[(&str, &[u8])]| {
        let path = directory.path().join(name);
        write_files(&path, files.iter().copied()).unwrap();
        path
    };
    let compiled: [(&str, &[u8]); 2] = [("src/ATest.java", b"class ATest {}"), ("target/Made.java", b"made")];
    let compiled = CompiledTree::open(&tree("compiled", &compiled)).unwrap();
    let told = |files: &[(&str, &[u8])]| rewritten(&tree("source", files), &compiled, &calls).unwrap();
    assert_eq!(told(&[("src/ATest.java", b"class ATest {}")]), None);
    assert!(told(&[("src/ATest.java", b"class  ATest{}")]).is_some());
    let options = |options: &'static [u8]| told(&[("src/ATest.java", b"class ATest {}"), (JVM_OPTIONS, options)]);
    assert_eq!(options(b"-Xmx2g"), None);
    assert!(options(b"-Xmx2g -Xss8m").is_some());
}
