//! From events to outcomes: a launch's and a compilation's.

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{Criterion, Throughput};
use testevo_sandbox::outcome::compile::{self, Compilation, CompileFacts};
use testevo_sandbox::outcome::launch::{self, LaunchFacts};
use testevo_sandbox::outcome::{CompileReason, ExecReason, Outcome};

use crate::ended;

const CLASS: &str = "org.example.project.text.StringFormatterTest";
const METHOD: &str = "formatsEveryKnownPattern";
const TARGET: &str = "/work/project/module7/src/test/java/org/example/project/text/StringFormatterTest.java";

pub(crate) fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("outcome");
    for (name, events, exit_code, expected) in [
        ("launch, 1 leaf passes", launch_events(1, false), 0, Outcome::Pass),
        ("launch, 1 leaf fails with 60 frames", launch_events(1, true), 1, Outcome::ExecFail(ExecReason::Assertion)),
        ("launch, 2,000 leaves pass", launch_events(2_000, false), 0, Outcome::Pass),
        ("launch, 2,000 leaves fail", launch_events(2_000, true), 1, Outcome::ExecFail(ExecReason::Assertion)),
    ] {
        let end = ended(exit_code);
        let facts = LaunchFacts {
            end: &end,
            oom_killed: false,
            events: events.as_bytes(),
            seal: None,
            class: CLASS,
            declared_in: CLASS,
            method: METHOD,
        };
        assert_eq!(launch::classify(&facts).0.outcome, expected, "{name}");
        group.throughput(Throughput::Bytes(events.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| launch::classify(black_box(&facts))));
    }
    let failed = Some(Outcome::CompileFail(CompileReason::TargetFile));
    for (name, recording, exit_code, expected) in [
        ("compilation, 8 modules, compiled", recording(8, 0), 0, None),
        ("compilation, 60 modules, compiled", recording(60, 0), 0, None),
        ("compilation, 8 modules, 100 errors", recording(8, 100), 1, failed),
    ] {
        let end = ended(exit_code);
        let facts = CompileFacts {
            end: &end,
            oom_killed: false,
            recording: recording.as_bytes(),
            module: "/work/project/module7",
            target_file: TARGET,
            changes_main: false,
        };
        let outcome = match compile::classify(&facts) {
            Compilation::Compiled { .. } => None,
            Compilation::Failed { outcome, .. } => Some(outcome),
        };
        assert_eq!(outcome, expected, "{name}");
        group.throughput(Throughput::Bytes(recording.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| compile::classify(black_box(&facts))));
    }
    group.finish();
}

/// What the runner writes of a method with so many leaves.
pub(crate) fn launch_events(leaves: usize, fails: bool) -> String {
    let mut events = format!(
        r#"{{"event":"run_started","schema":1,"class":"{CLASS}","method":"{METHOD}","platform":"1.13.4","java":"17.0.17","ms":41}}"#
    );
    let id =
        |leaf: usize| format!("[engine:junit-jupiter]/[class:{CLASS}]/[test-template:{METHOD}]/[invocation:#{leaf}]");
    let stack: Vec<String> =
        (0..60).map(|frame| format!("\"{CLASS}.step{frame}(StringFormatterTest.java:{})\"", 100 + frame)).collect();
    let throwable = format!(
        r#","throwable":{{"class":"org.opentest4j.AssertionFailedError","message":"expected: <{{0}}> but was: <>","frames":71,"stack":[{}],"kind":"assertion","causes":[]}}"#,
        stack.join(",")
    );
    for leaf in 1..=leaves {
        let id = id(leaf);
        write!(
            events,
            "\n{{\"event\":\"discovered\",\"id\":\"{id}\",\"leaf\":true,\"match\":\"method\",\"class\":\"{CLASS}\",\"method\":\"{METHOD}\",\"parameters\":\"java.lang.String\",\"name\":\"[{leaf}] %s\",\"ms\":{leaf}}}"
        )
        .unwrap();
    }
    write!(
        events,
        "\n{{\"event\":\"discovery_finished\",\"selection\":\"methods\",\"found\":1,\"leaves\":{leaves},\"ms\":200}}"
    )
    .unwrap();
    for leaf in 1..=leaves {
        let id = id(leaf);
        let (status, throwable) = if fails { ("FAILED", throwable.as_str()) } else { ("SUCCESSFUL", "") };
        write!(
            events,
            "\n{{\"event\":\"started\",\"id\":\"{id}\",\"leaf\":true,\"ms\":{leaf}}}\n\
             {{\"event\":\"finished\",\"id\":\"{id}\",\"leaf\":true,\"status\":\"{status}\"{throwable},\"ms\":{leaf}}}"
        )
        .unwrap();
    }
    let (failed, successful, status) = if fails { (leaves, 0, 1) } else { (0, leaves, 0) };
    write!(
        events,
        "\n{{\"event\":\"run_finished\",\"status\":{status},\"leaves\":{{\"discovered\":{leaves},\"registered\":0,\"started\":{leaves},\
         \"successful\":{successful},\"failed\":{failed},\"aborted\":0,\"skipped\":0,\"not_run\":0}},\
         \"containers_not_successful\":0,\"report_complete\":true,\"ms\":400}}\n"
    )
    .unwrap();
    events
}

/// What the recorder writes of a reactor whose eighth module has so many errors in its tests.
fn recording(modules: usize, errors: usize) -> String {
    let projects: Vec<String> = (0..modules)
        .map(|number| {
            let at = format!("/work/project/module{number}");
            format!(
                r#"{{"project":"org.example:module{number}","basedir":"{at}","output":"{at}/target/classes","test_output":"{at}/target/test-classes"}}"#
            )
        })
        .collect();
    let mut lines = vec![
        r#"{"event":"recording_started","schema":2,"maven":"3.9.11","java":"17.0.17"}"#.to_owned(),
        format!(r#"{{"event":"session_started","projects":[{}]}}"#, projects.join(",")),
    ];
    let mojo = |event: &str, number: usize, plugin: &str, goal: &str, more: &str| {
        format!(
            r#"{{"event":"{event}","project":"org.example:module{number}","plugin":"org.apache.maven.plugins:{plugin}","goal":"{goal}","execution":"default-{goal}","phase":"{goal}"{more}}}"#
        )
    };
    let goals = [
        ("maven-resources-plugin:3.3.1", "resources"),
        ("maven-compiler-plugin:3.13.0", "compile"),
        ("maven-resources-plugin:3.3.1", "testResources"),
        ("maven-compiler-plugin:3.13.0", "testCompile"),
        ("maven-dependency-plugin:3.6.1", "build-classpath"),
    ];
    'modules: for number in 0..modules {
        for (plugin, goal) in goals {
            lines.push(mojo("mojo_started", number, plugin, goal, ""));
            if errors > 0 && number == 7 && goal == "testCompile" {
                let messages: Vec<String> = (1..=errors)
                    .map(|line| {
                        format!(r#"{{"file":"{TARGET}","line":{line},"text":"cannot find symbol\n  symbol:   method pattern{line}()\n  location: class Formatter"}}"#)
                    })
                    .collect();
                let more = format!(
                    r#","causes":[{{"class":"org.apache.maven.plugin.compiler.CompilationFailureException","message":"Compilation failure"}}],"compiler_messages":[{}]"#,
                    messages.join(",")
                );
                lines.push(mojo("mojo_failed", number, plugin, goal, &more));
                break 'modules;
            }
            lines.push(mojo("mojo_succeeded", number, plugin, goal, ""));
        }
    }
    lines.push(format!(r#"{{"event":"session_ended","success":{},"failures":[]}}"#, errors == 0));
    lines.join("\n")
}
