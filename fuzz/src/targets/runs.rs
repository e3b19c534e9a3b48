//! What programs in containers write of a build or a launch: events, coverage, traces, recordings, mutants.

use std::collections::BTreeSet;
use std::hash::Hasher as _;

use siphasher::sip::SipHasher24;
use testevo_sandbox::engine::session::{Captured, StepOutput};
use testevo_sandbox::engine::spec::CommandEnd;
use testevo_sandbox::execution::build::recording::Recording;
use testevo_sandbox::execution::build::surefire::JvmSettings;
use testevo_sandbox::execution::container::places::PROJECT;
use testevo_sandbox::execution::launch::coverage::{SourceFile, read_xml};
use testevo_sandbox::execution::launch::tracing::read_trace;
use testevo_sandbox::execution::mutation::emission::{numbered, texts};
use testevo_sandbox::outcome::Outcome;
use testevo_sandbox::outcome::compile::{self, Compilation, CompileFacts, main_sources};
use testevo_sandbox::outcome::launch::seal::Seal;
use testevo_sandbox::outcome::launch::{LaunchFacts, classify};

use super::archives::tree_archive;
use crate::Target;

/// The runner's events, with signatures and without.
pub(super) const EVENTS: Target = Target {
    name: "events",
    run: events,
    seeds: event_seeds,
    words: &[
        b"{\"event\":\"run_started\",\"schema\":1,\"class\":\"p.ATest\",\"method\":\"m\"}\n",
        b"{\"event\":\"discovered\"}\n",
        b"{\"event\":\"started\"}\n",
        b"{\"event\":\"finished\",\"status\":\"FAILED\"}\n",
        b"\"throwable\":{\"class\":\"java.lang.Error\"}",
        b"\"causes\":[",
        b"\"kind\":\"assertion\"",
        b"\"leaves\":",
    ],
    runs: 3000,
    most_bytes: 32 << 10,
    memory: 120,
};

/// JaCoCo's XML.
pub(super) const COVERAGE: Target = Target {
    name: "coverage",
    run: coverage,
    seeds: coverage_seeds,
    words: &[
        b"<package name=\"p/q\">",
        b"<sourcefile name=\"A.java\">",
        b"<line nr=\"3\" mi=\"0\" ci=\"2\"/>",
        b"</sourcefile>",
        b"</package>",
        b"<!DOCTYPE x [<!ENTITY a \"b\">]>",
        b"&a;",
        b"<![CDATA[",
        b" a=\"b\"",
    ],
    runs: 2500,
    most_bytes: 64 << 10,
    memory: 120,
};

/// The tracer's lines.
pub(super) const TRACE: Target = Target {
    name: "trace",
    run: |input| {
        if let Ok(trace) = read_trace(input) {
            let lineage = trace.lineage("p.ATest");
            assert!(lineage.len() <= input.len() + 1);
        }
    },
    seeds: || {
        let text = "test\tp.ATest\tp.Base,java.lang.Object\ntest\tp.Base\t\nuntraced\tp/q/B\n\
                    entered\tp/q/A$I\tp/q/A.java\tm\t(I)V\t3,5\tp.ATest#m,p.ATest#n\nend\n";
        vec![text.as_bytes().to_vec(), b"end\n".to_vec()]
    },
    words: &[b"test\t", b"untraced\t", b"entered\tA\tA.java\tm\t()V\t3\tATest#m\n", b"end\n", b"\t", b","],
    runs: 4000,
    most_bytes: 32 << 10,
    memory: 200,
};

/// The recorder's lines about a build: what is compiled again from them, and how a compilation ended.
pub(super) const RECORDING: Target = Target {
    name: "recording",
    run: recording,
    seeds: recording_seeds,
    words: &[
        b"{\"event\":\"recording_started\",\"schema\":2}\n",
        b"{\"event\":\"session_ended\",\"success\":false,\"failures\":[]}\n",
        b"{\"event\":\"mojo_failed\",\"project\":\"g:a\",\"plugin\":\"org.apache.maven.plugins:maven-compiler-plugin:3\",\
          \"goal\":\"testCompile\"",
        b"\"messages\":[{\"file\":\"/work/project/src/test/java/ATest.java\",\"line\":1,\"column\":2,\"text\":\"x\"}]",
        b"\"causes\":[{\"class\":\"x\",\"message\":\"y\"}]",
        b"\"output\":\"[ERROR] /a/B.java:[1,2] x\"",
        b"\"arg_line\":\"-Da='b c' @{x} -javaagent:y\"",
    ],
    runs: 2000,
    most_bytes: 32 << 10,
    memory: 250,
};

/// The mutator's archive of mutants.
pub(super) const MUTANTS: Target = Target {
    name: "mutants",
    run: mutants,
    seeds: || {
        vec![tree_archive(&[
            ("mutants/A.mutant.0.java", b"class A { int i = 1; }"),
            ("mutants/A.mutant.1.java", b"class A { int i = 2; }"),
            ("mutants/record", b"1 1\n1 0\n2 1\n"),
        ])]
    },
    words: super::archives::TAR_WORDS,
    runs: 2000,
    most_bytes: 64 << 10,
    memory: 60,
};

const CLASS: &str = "p.ATest";

fn end() -> CommandEnd {
    CommandEnd {
        exit_code: Some(0),
        signal: None,
        limit: None,
        cpu_ms: 1,
        peak_resident_bytes: 1,
        dropped_bytes: 0,
        leftover_processes: 0,
        process_limit_hits: Some(0),
        memory_limit_kills: Some(0),
    }
}

/// The runner's signatures, written down a second time.
struct Signer(u64, u64);

impl Signer {
    fn of(text: &str) -> Self {
        let half = |text| u64::from_str_radix(text, 16).unwrap_or_else(|error| panic!("{error}"));
        Self(half(&text[..16]), half(&text[16..]))
    }

    fn sign(&mut self, line: &[u8]) -> Vec<u8> {
        let hash = |bytes: &[u8]| {
            let mut hasher = SipHasher24::new_with_keys(self.0, self.1);
            hasher.write(bytes);
            hasher.finish()
        };
        let (signature, next) = (hash(line), Self(hash(&[1]), hash(&[2])));
        *self = next;
        [line, format!(" {signature:016x}\n").as_bytes()].concat()
    }
}

fn events(input: &[u8]) {
    let end = end();
    let facts = |events, seal| LaunchFacts {
        end: &end,
        oom_killed: false,
        events,
        seal,
        class: CLASS,
        declared_in: CLASS,
        method: "m",
    };
    let (verdict, plain) = classify(&facts(input, None));
    assert_eq!(plain.forged, 0);
    assert!(verdict.detail.chars().count() <= 2000);
    assert!(!verdict.detail.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')));

    let seal = done(Seal::random());
    let (verdict, facts_of_all) = classify(&facts(input, Some(seal)));
    assert_ne!(verdict.outcome, Outcome::Pass, "nothing is signed");
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let (last, whole) = lines.split_last().unwrap_or_else(|| panic!("there is one"));
    assert_eq!(facts_of_all.forged, whole.len() as u64);

    // Every other line is the runner's, the rest are another's, and of some the signature is used again.
    let (mut signer, mut own, mut others, mut said) = (Signer::of(&seal.text()), Vec::new(), 0, Vec::new());
    for (number, line) in whole.iter().enumerate() {
        if number % 2 == 0 {
            let signed = signer.sign(line);
            said.extend(&signed);
            own.push(*line);
            if line.len() % 3 == 0 {
                said.extend(&signed);
                others += 1;
            }
        } else {
            said.extend([*line, b"\n"].concat());
            others += 1;
        }
    }
    said.extend(*last);
    assert_eq!(seal.own_lines(&said), (own.clone(), others));
    let of_own = [own.join(&b'\n'), b"\n".to_vec()].concat();
    let (verdict, sealed) = classify(&facts(&said, Some(seal)));
    assert_eq!(sealed.forged, others);
    if own.iter().all(|line| !line.is_empty()) {
        assert_eq!(verdict, classify(&facts(&of_own, None)).0, "others' lines decide nothing");
    }
}

fn done<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

fn event_seeds() -> Vec<Vec<u8>> {
    let passed = r#"{"event":"run_started","schema":1,"class":"p.ATest","method":"m"}
{"event":"discovered","id":"x"}
{"event":"discovery_finished"}
{"event":"started","id":"x"}
{"event":"finished","id":"x","status":"SUCCESSFUL","throwable":null}
{"event":"run_finished","status":0,"leaves":{"discovered":1,"registered":0,"started":1,"successful":1,"failed":0,"aborted":0,"skipped":0,"not_run":0},"containers_not_successful":0,"report_complete":true}
"#;
    let failed = r#"{"event":"run_started","schema":1,"class":"p.ATest","method":"m"}
{"event":"finished","status":"FAILED","throwable":{"class":"org.opentest4j.AssertionFailedError","message":"expected: <1>","kind":"assertion","stack":["p.ATest.m(ATest.java:3)"],"causes":[{"class":"java.io.IOException","message":"No space left on device"}]}}
{"event":"skipped","reason":"why"}
{"event":"class_not_loaded","throwable":{"class":"java.lang.ClassNotFoundException","message":"p.ATest"}}
{"event":"torn"#;
    vec![passed.into(), failed.into(), b"\n\n".to_vec()]
}

fn coverage(input: &[u8]) {
    let file = SourceFile { package: "p/q".to_owned(), name: "A.java".to_owned() };
    if let Ok(found) = read_xml(input, std::slice::from_ref(&file)) {
        assert!(found.keys().all(|found| *found == file));
        assert!(found.values().all(|lines| lines.len() <= input.len()));
    }
}

fn coverage_seeds() -> Vec<Vec<u8>> {
    let report = r#"<?xml version="1.0"?><!DOCTYPE report PUBLIC "-//JACOCO//DTD Report 1.1//EN" "report.dtd">
<report name="x"><sessioninfo id="a" start="1" dump="2"/><package name="p/q"><class name="p/q/A" sourcefilename="A.java">
<method name="m" desc="()V" line="3"><counter type="LINE" missed="1" covered="1"/></method></class>
<sourcefile name="A.java"><line nr="3" mi="0" ci="2" mb="0" cb="0"/><line nr="4" mi="2" ci="0" mb="0" cb="0"/></sourcefile>
<sourcefile name="B.java"/></package></report>"#;
    let attributes: String = (0..20_000).map(|number| format!(" a{number}=\"\"")).collect();
    vec![report.into(), format!("<report><package{attributes} name=\"p/q\"/></report>").into_bytes()]
}

fn recording(input: &[u8]) {
    let recording = Recording::read(input);
    for module in &recording.modules {
        let calls = recording.calls(&module.project, "testCompile");
        assert!(calls.len() <= recording.compilations.len());
    }
    for (settings, jdk) in recording.tests.iter().flat_map(|settings| [(settings, 8), (settings, 17)]) {
        let jvm = JvmSettings::of(settings, &format!("{PROJECT}/module"), jdk, 512);
        assert!(jvm.environment.iter().all(|(name, _)| !name.is_empty() && !name.contains('=')));
        assert!(jvm.working_directory.is_none_or(|path| path.starts_with("/work/project")));
    }
    let end = end();
    for changes_main in [false, true] {
        let facts = CompileFacts {
            end: &end,
            oom_killed: false,
            recording: input,
            module: "/work/project",
            target_file: "/work/project/src/test/java/ATest.java",
            changes_main,
        };
        if let Compilation::Failed { detail, places, .. } = compile::classify(&facts) {
            assert!(detail.chars().count() <= 2000);
            assert!(places.iter().all(|(line, column)| *line > 0 && *column != Some(0)));
        }
    }
    main_sources(&end, false, input);
}

fn recording_seeds() -> Vec<Vec<u8>> {
    let good = r#"{"event":"recording_started","schema":2,"maven":"3.9.11","java":"17","ms":0}
{"event":"session_started","projects":[{"project":"g:a","version":"1","packaging":"jar","basedir":"/work/project","pom":"p","output":"/o","test_output":"/t","source_roots":[],"test_source_roots":[],"resource_roots":[],"test_resource_roots":[]}],"ms":1}
{"event":"mojo_started","project":"g:a","plugin":"x:y:1","goal":"testCompile","execution":"e","phase":"test-compile","ms":1}
{"event":"compiler_call","project":"g:a","plugin":"x:y:1","goal":"testCompile","execution":"e","phase":"p","compiler":"javac","arguments":["-d","/t","-g"],"sources":["/work/project/src/test/java/A.java"],"source_roots":[],"generated_sources":null,"output":"/t","class_path":["/t","/o"],"module_path":[],"processor_path":[],"processors":[],"proc":null,"fork":false,"working_directory":"/work/project","ms":2}
{"event":"test_settings","project":"g:a","plugin":"x:s:1","execution":"default-test","default":true,"phase":"test","arg_line":"-Da=1 '-Db=c d' \"-De\\\"f\" --add-opens x/y=z -Xmx9g","system_properties":{"k":"v"},"environment":{"E":"1"},"working_directory":"sub/../x","use_module_path":null,"enable_assertions":null,"failures":[],"ms":3}
{"event":"session_ended","success":true,"failures":[],"ms":9}
"#;
    let bad = r#"{"event":"recording_started","schema":2}
{"event":"session_started","projects":[{"project":"g:a","version":"1","packaging":"jar","basedir":"/work/project","output":"/o","test_output":"/t"}]}
{"event":"mojo_failed","project":"g:a","plugin":"org.apache.maven.plugins:maven-compiler-plugin:3.1","goal":"testCompile","causes":[{"class":"x.CompilationFailureException","message":"m"}],"messages":[{"file":"/work/project/src/test/java/ATest.java","line":3,"column":7,"text":"cannot find symbol"}],"output":"[ERROR] /work/project/src/test/java/ATest.java:[3,7] x"}
{"event":"session_ended","success":false,"failures":[{"causes":[{"class":"java.lang.OutOfMemoryError","message":"Java heap space"}]}]}
"#;
    vec![good.into(), bad.into()]
}

fn mutants(input: &[u8]) {
    let empty = || Captured::Memory(Vec::new());
    let content = Captured::Memory(input.to_vec());
    let step = StepOutput { index: 0, report: None, stdout: empty(), stderr: empty(), events: empty(), content };
    let Ok(files) = texts(&step) else { return };
    assert!(files.values().map(String::len).sum::<usize>() <= input.len());
    assert!(files.keys().all(|name| !name.contains('/')));
    let mutants = numbered(&files, "A.java");
    assert!(mutants.len() <= files.len());
    assert_eq!(mutants.keys().collect::<BTreeSet<_>>().len(), mutants.len());
}
