//! What recordings and ends of Maven come to.

use super::*;

const START: &str = r#"{"event":"recording_started","schema":2,"maven":"3.9.11","java":"1.8"}"#;
const SESSION: &str = r#"{"event":"session_started","projects":[
    {"project":"g:a","basedir":"/work/project","output":"/work/project/target/classes","test_output":"/work/project/target/test-classes"},
    {"project":"g:b","basedir":"/work/project/b","output":"/o","test_output":"/t"}]}"#;
const TARGET: &str = "/work/project/src/test/java/ATest.java";

fn mojo(event: &str, project: &str, goal: &str, more: &str) -> String {
    format!(
        r#"{{"event":"{event}","project":"{project}","plugin":"org.apache.maven.plugins:maven-compiler-plugin:3.8.1","goal":"{goal}","execution":"x","phase":"y"{more}}}"#
    )
}

#[test]
fn a_line_that_only_announces_others_brings_them() {
    for (message, told) in [
        ("Compilation failure\n/A.java:[1,2] one\n\n  /B.java:[3,4] two\nthree\nfour", 4),
        ("Some problems were encountered:\n[FATAL] one\n", 2),
        ("Could not resolve\nmore", 1),
        ("", 1),
    ] {
        assert_eq!(beginning(message).lines().count().max(1), told, "{message}");
    }
    assert_eq!(beginning("Compilation failure\n  one\n"), "Compilation failure\n    one");
    assert_eq!(beginning(&"x".repeat(500)).len(), 400);
}

fn ended(success: bool) -> String {
    format!(r#"{{"event":"session_ended","success":{success},"failures":[]}}"#)
}

fn end(exit_code: i32) -> CommandEnd {
    CommandEnd {
        exit_code: Some(exit_code),
        signal: None,
        limit: None,
        cpu_ms: 0,
        peak_resident_bytes: 0,
        dropped_bytes: 0,
        leftover_processes: 0,
        process_limit_hits: None,
        memory_limit_kills: None,
    }
}

fn outcome(end: &CommandEnd, events: &[&str]) -> Result<String, Outcome> {
    match compilation(end, events) {
        Compilation::Compiled { test_output, .. } => Ok(test_output),
        Compilation::Failed { outcome, .. } => Err(outcome),
    }
}

/// Returns what people read of a compiler that ran out.
fn spent(end: &CommandEnd, events: &[&str]) -> String {
    match compilation(end, events) {
        Compilation::Failed { outcome: Outcome::CompileFail(CompileReason::Resource), detail, .. } => detail,
        other => panic!("it did not run out: {other:?}"),
    }
}

fn compilation(end: &CommandEnd, events: &[&str]) -> Compilation {
    compilation_of(end, events, false)
}

fn compilation_of(end: &CommandEnd, events: &[&str], changes_main: bool) -> Compilation {
    let session = SESSION.replace('\n', "");
    let mut lines = vec![START, &session];
    lines.extend(events);
    let recording = lines.join("\n");
    let facts = CompileFacts {
        end,
        oom_killed: false,
        recording: recording.as_bytes(),
        module: "/work/project",
        target_file: TARGET,
        changes_main,
    };
    classify(&facts)
}

fn messages(files: &[&str]) -> String {
    let messages: Vec<String> =
        files.iter().map(|file| format!(r#"{{"file":"{file}","line":3,"text":"cannot find symbol"}}"#)).collect();
    format!(r#","causes":[],"compiler_messages":[{}]"#, messages.join(","))
}

#[test]
fn success_needs_the_exit_status_and_the_recording() {
    assert_eq!(outcome(&end(0), &[&ended(true)]), Ok("/work/project/target/test-classes".to_owned()));
    assert!(outcome(&end(0), &[]).is_err());
    assert!(outcome(&end(1), &[&ended(true)]).is_err());
}

#[test]
fn only_errors_in_test_sources_of_the_module_are_compile_failures() {
    let other = "/work/project/src/test/java/BTest.java";
    for (project, goal, files, expected) in [
        ("g:a", "testCompile", vec![TARGET, other], Outcome::CompileFail(CompileReason::TargetFile)),
        ("g:a", "testCompile", vec![other], Outcome::CompileFail(CompileReason::OtherTestFile)),
        ("g:a", "testCompile", vec![], Outcome::InfraFail(InfraReason::Build)),
        ("g:a", "compile", vec![TARGET], Outcome::InfraFail(InfraReason::Build)),
        ("g:b", "testCompile", vec![TARGET], Outcome::InfraFail(InfraReason::Build)),
    ] {
        let failed = mojo("mojo_failed", project, goal, &messages(&files));
        assert_eq!(outcome(&end(1), &[&failed, &ended(false)]), Err(expected), "{project} {goal} {files:?}");
    }
}

#[test]
fn tests_of_every_module_may_fail_to_compile_by_a_changed_main_source() {
    let failed = mojo("mojo_failed", "g:b", "testCompile", &messages(&["/work/project/b/src/test/java/BTest.java"]));
    let of = |changes_main| match compilation_of(&end(1), &[&failed, &ended(false)], changes_main) {
        Compilation::Failed { outcome, .. } => outcome,
        Compilation::Compiled { .. } => panic!("it compiled"),
    };
    assert_eq!(of(true), Outcome::CompileFail(CompileReason::OtherTestFile));
    assert_eq!(of(false), Outcome::InfraFail(InfraReason::Build));
}

#[test]
fn a_compiler_that_runs_out_is_a_resource() {
    let started = mojo("mojo_started", "g:a", "testCompile", "");
    let timeout = CommandEnd { exit_code: None, signal: Some(9), limit: Some(LimitReached::Wall), ..end(0) };
    assert_eq!(spent(&timeout, &[&started]), "Maven reached the limit of wall time while compiling tests");
    assert_eq!(outcome(&timeout, &[]), Err(Outcome::InfraFail(InfraReason::Build)));
    let unplaced = r#""compiler_messages":[{"text":"An unknown compilation problem occurred"}]"#;
    let heap = "the test compiler ran out of resources: java.lang.OutOfMemoryError: Java heap space";
    let thrown = r#","causes":[{"class":"java.lang.OutOfMemoryError","message":"Java heap space\nmore"}],"#;
    let failed = mojo("mojo_failed", "g:a", "testCompile", &format!("{thrown}{unplaced}"));
    assert_eq!(spent(&end(1), &[&started, &failed]), heap);
    let output =
        r#""compiler_output":"An exception has occurred.\njava.lang.OutOfMemoryError: Java heap space\n\tat java.""#;
    let failed = mojo("mojo_failed", "g:a", "testCompile", &format!(r#","causes":[],{unplaced},{output}"#));
    assert_eq!(spent(&end(1), &[&started, &failed]), heap);
}

#[test]
fn main_sources_compile_unless_their_compiler_finds_errors() {
    let of = |end: &CommandEnd, oom_killed, events: &[&str]| {
        let lines: Vec<String> = [START, SESSION].iter().chain(events).map(|line| line.replace('\n', "")).collect();
        main_sources(end, oom_killed, lines.join("\n").as_bytes())
    };
    let failed = |goal: &str, files: &[&str]| mojo("mojo_failed", "g:b", goal, &messages(files));
    let (well, badly) = (ended(true), ended(false));
    let is_ended = |said| matches!(said, MainSources::Ended(_));
    let is_spent = |said| matches!(said, MainSources::Spent(_));
    let is_unclear = |said| matches!(said, MainSources::Unclear(_));
    assert_eq!(of(&end(0), false, &[&well]), MainSources::Compile);
    assert_eq!(of(&end(1), false, &[&failed("compile", &["/A.java"]), &badly]), MainSources::Errors);
    assert_eq!(of(&end(1), false, &[&failed("testCompile", &[TARGET]), &badly]), MainSources::Compile);
    assert!(is_ended(of(&end(1), false, &[&failed("compile", &[]), &badly])), "no error of a source");
    assert!(is_ended(of(&end(1), false, &[&failed("check", &[]), &badly])));
    assert!(is_ended(of(&end(1), false, &[&failed("testCompile", &[]), &badly])), "tests that no error is told of");
    assert_eq!(of(&end(1), false, &[&failed("test-compile", &[]), &badly]), MainSources::Compile, "another language");
    assert!(is_unclear(of(&end(1), false, &[&badly])));
    assert!(is_unclear(of(&end(0), false, &[])), "an exit status alone says nothing");
    let limited = CommandEnd { exit_code: None, signal: Some(9), limit: Some(LimitReached::Wall), ..end(0) };
    let killed = CommandEnd { limit: None, ..limited };
    // What was told of sources before says nothing then.
    for events in [vec![], vec![failed("compile", &["/A.java"])], vec![failed("testCompile", &[TARGET])]] {
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        assert!(is_spent(of(&limited, false, &events)), "{events:?}");
        assert!(is_spent(of(&end(137), true, &events)), "{events:?}");
        assert!(is_unclear(of(&killed, false, &events)), "{events:?}");
    }
    let spent = r#","causes":[],"compiler_messages":[{"file":"/A.java","line":3,"text":"no"},
        {"text":"java.lang.OutOfMemoryError: Java heap space"}]"#;
    assert!(is_spent(of(&end(1), false, &[&mojo("mojo_failed", "g:b", "compile", spent), &badly])));
}

#[test]
fn a_source_that_names_an_error_is_no_resource() {
    let text = r#"incompatible types: java.lang.OutOfMemoryError cannot be converted to int"#;
    let messages = format!(
        r#","causes":[{{"class":"X","message":"{text}"}}],"compiler_messages":[{{"file":"{TARGET}","text":"{text}"}}]"#
    );
    let failed = mojo("mojo_failed", "g:a", "testCompile", &messages);
    assert_eq!(outcome(&end(1), &[&failed]), Err(Outcome::CompileFail(CompileReason::TargetFile)));
}

#[test]
fn errors_that_a_foreign_compiler_writes_are_errors_in_sources() {
    let other = "/work/project/src/test/java/BTest.java";
    let output = |lines: &[String]| {
        let text = serde_json::to_string(&lines.join("\n")).unwrap();
        mojo("mojo_failed", "g:a", "testCompile", &format!(r#","causes":[],"compiler_output":{text}"#))
    };
    let warning = format!("{other}:1: warning: [x] old");
    let quoted = "    throw new java.lang.OutOfMemoryError(); // a:1: error: no".to_owned();
    for (lines, expected) in [
        (
            vec![warning.clone(), format!("{TARGET}:7: error: cannot find symbol"), quoted.clone()],
            CompileReason::TargetFile,
        ),
        (vec![warning.clone(), format!("{other}:7: error: cannot find symbol"), quoted], CompileReason::OtherTestFile),
    ] {
        assert_eq!(outcome(&end(1), &[&output(&lines), &ended(false)]), Err(Outcome::CompileFail(expected)));
    }
    assert_eq!(outcome(&end(1), &[&output(&[warning]), &ended(false)]), Err(Outcome::InfraFail(InfraReason::Build)));
}

#[test]
fn what_does_not_resolve_is_ours() {
    let ended = r#"{"event":"session_ended","success":false,"failures":[{"causes":[
        {"class":"org.apache.maven.plugin.PluginResolutionException","message":"no"}]}]}"#
        .replace('\n', "");
    assert_eq!(outcome(&end(1), &[&ended]), Err(Outcome::InfraFail(InfraReason::Resolution)));
}

#[test]
fn errors_of_the_target_file_have_places() {
    let other = "/work/project/src/test/java/BTest.java";
    let messages = format!(
        r#","causes":[],"compiler_messages":[{{"file":"{TARGET}","line":3,"column":7,"text":"a"}},
        {{"file":"{other}","line":4,"text":"b"}},{{"file":"{TARGET}","line":5,"column":-1,"text":"c"}},
        {{"file":"{TARGET}","text":"d"}},{{"text":"e"}}]"#
    );
    let failed = mojo("mojo_failed", "g:a", "testCompile", &messages.replace('\n', ""));
    let Compilation::Failed { outcome, places, .. } = compilation(&end(1), &[&failed, &ended(false)]) else {
        panic!("it compiled");
    };
    assert_eq!(outcome, Outcome::CompileFail(CompileReason::TargetFile));
    assert_eq!(places, [(3, Some(7)), (5, None)]);
}

/// Returns the detail of a failed compilation.
fn detail(recording: &[&str]) -> String {
    let Compilation::Failed { detail, .. } = compilation(&end(1), recording) else { panic!("it compiled") };
    detail
}

#[test]
fn an_artifact_that_does_not_resolve_is_said_first_with_what_wants_it() {
    let unresolved =
        r#"{"event":"artifact_unresolved","artifact":"g:lost:jar:1","project":"g:a","mojo":"g:plugin:1:run"}"#;
    let ended = r#"{"event":"session_ended","success":false,"failures":[{"causes":[
        {"class":"org.apache.maven.lifecycle.LifecycleExecutionException","message":"Failed to execute"},
        {"class":"org.eclipse.aether.resolution.ArtifactResolutionException","message":"Could not find"}]}]}"#
        .replace('\n', "");
    let told = detail(&[unresolved, &ended]);
    assert!(told.starts_with("g:lost:jar:1 did not resolve; it is wanted by g:plugin:1:run in g:a\n"), "{told}");
    assert!(!told.contains("without saying why"), "{told}");

    // A parent is asked for before any module is built.
    let unresolved =
        r#"{"event":"artifact_unresolved","artifact":"g:parent:pom:1-SNAPSHOT","project":null,"mojo":null}"#;
    let ended = r#"{"event":"session_ended","success":false,"failures":[{"causes":[
        {"class":"org.apache.maven.project.ProjectBuildingException",
         "message":"Some problems:\\n[FATAL] Non-resolvable parent POM for g:child:1: Could not find"}]}]}"#
        .replace('\n', "");
    let recording = [unresolved, &ended];
    assert!(detail(&recording).starts_with("g:parent:pom:1-SNAPSHOT did not resolve\n"), "{}", detail(&recording));
    assert_eq!(outcome(&end(1), &recording), Err(Outcome::InfraFail(InfraReason::Resolution)));
    let (artifacts, pom) = super::unresolved(recording.join("\n").as_bytes());
    assert_eq!(artifacts.iter().map(|one| one.artifact.as_str()).collect::<Vec<_>>(), ["g:parent:pom:1-SNAPSHOT"]);
    assert_eq!(pom.as_deref(), Some("the POM of g:child:1"));
}

#[test]
fn errors_of_main_sources_are_told() {
    let messages = r#"{"text":"Source option 5 is no longer supported. Use 7 or later."},
        {"file":"/work/project/src/main/java/A.java","line":3,"text":"cannot find symbol"}"#;
    let failed = format!(
        r#","causes":[{{"class":"a.CompilationFailureException","message":"Compilation failure"}}],"compiler_messages":[{messages}]"#
    );
    let told = detail(&[&mojo("mojo_failed", "g:a", "compile", &failed.replace('\n', "")), &ended(false)]);
    assert!(
        told.ends_with(
            ":compile failed in g:a\nSource option 5 is no longer supported. Use 7 or later.\n\
             src/main/java/A.java:3: cannot find symbol\n  CompilationFailureException: Compilation failure"
        ),
        "{told}"
    );
}

#[test]
fn a_jdk_that_is_too_old_is_named() {
    let first = |text: &str, cause: &str| {
        let causes = format!(r#"[{{"class":"a.MojoExecutionException","message":"{cause}"}}]"#);
        let messages = format!(r#"[{{"text":"{text}"}}]"#);
        let more = format!(r#","causes":{causes},"compiler_messages":{messages}"#);
        let started = r#"{"event":"recording_started","schema":2,"java":"11.0.30"}"#;
        let told = detail(&[started, &mojo("mojo_failed", "g:a", "compile", &more), &ended(false)]);
        told.lines().next().unwrap().to_owned()
    };
    let needs = |jdk: u32| {
        format!("the build needs JDK {jdk}, and has JDK 11.0.30; the manifest's overrides may name another `jdk`")
    };
    let wrong = "cannot access a.B\\n  bad class file: /x/b.jar(/a/B.class)\\n    class file has wrong version 61.0, should be 55.0";
    assert_eq!(first(wrong, "Compilation failure"), needs(17));
    for said in ["Fatal error compiling: error: release version 25 not supported", "error: invalid target release: 25"]
    {
        assert_eq!(first("", said), needs(25), "{said}");
    }
    let newer =
        "a/B has been compiled by a more recent version of the Java Runtime (class file version 65.0), this version";
    assert_eq!(first("", newer), needs(21));
    // A build may run another JDK than Maven's, which is recent enough.
    for other in [
        "release version 11 not supported",
        "release version 5 not supported",
        "class file has wrong version x",
        "release version 17",
    ] {
        assert!(first("", other).contains(":compile failed in"), "{other}");
    }
}

#[test]
fn packages_of_other_jdks_are_named() {
    let main = "/work/project/src/main/java/A.java";
    let failed = |texts: &[&str]| {
        let messages: Vec<String> =
            texts.iter().map(|text| format!(r#"{{"file":"{main}","line":3,"text":"{text}"}}"#)).collect();
        mojo("mojo_failed", "g:a", "compile", &format!(r#","causes":[],"compiler_messages":[{}]"#, messages.join(",")))
    };
    let texts =
        ["package javafx.scene does not exist", "cannot find symbol", "package com.sun.tools.javac does not exist"];
    let told =
        detail(&[r#"{"event":"recording_started","schema":2,"java":"1.8.0_402"}"#, &failed(&texts), &ended(false)]);
    assert!(
        told.starts_with("the JDK 1.8.0_402 lacks com.sun.tools.javac, javafx.scene, which other JDKs have"),
        "{told}"
    );
    // A library's package is no JDK's.
    let told =
        detail(&[&failed(&["package com.sun.jna does not exist", "package sunny does not exist"]), &ended(false)]);
    assert!(!told.contains("JDK"), "{told}");
}
