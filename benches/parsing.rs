//! What strangers wrote: patches, predictions, class files.

use std::fmt::Write as _;
use std::hint::black_box;

use criterion::{Criterion, Throughput};
use testevo_sandbox::submission::patch;
use testevo_sandbox::submission::predictions::{self, Selection, Several};
use testevo_sandbox::task::{Task, Track};
use testevo_sandbox::workspace::class_file::ClassFacts;

use crate::Numbers;

pub(crate) fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parsing");
    for (name, files, hunks) in [
        ("patch, 1 file, 4 hunks", 1, 4),
        ("patch, 300 files, 6 hunks each", 300, 6),
        ("patch, 1 file, 5,000 hunks", 1, 5_000),
    ] {
        let text = patch_of(files, hunks);
        assert_eq!(patch::parse(text.as_bytes()).unwrap().len(), files);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| patch::parse(black_box(text.as_bytes())).unwrap()));
    }
    predictions(&mut group);
    let (small, large) = (class_file(60, 8), class_file(4_000, 400));
    for (name, class) in
        [("class file, 60 constants, 8 methods", &small), ("class file, 4,000 constants, 400 methods", &large)]
    {
        assert_eq!(ClassFacts::read(class).unwrap().source_file.as_deref(), Some("FormatterTest.java"));
        group.throughput(Throughput::Bytes(class.len() as u64));
        group.bench_function(name, |bencher| bencher.iter(|| ClassFacts::read(black_box(class)).unwrap()));
    }
    group.finish();
}

fn predictions(group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>) {
    let tasks: Vec<Task> = (0..275).map(task).collect();
    let text = patch_of(1, 4);
    let lines: Vec<String> = ["first", "second", "third", "fourth"]
        .into_iter()
        .flat_map(|model| tasks.iter().map(move |task| (model, task)))
        .map(|(model, task)| {
            let prediction = serde_json::json!({
                "instance_id": task.id.as_str(), "model_name_or_path": model, "model_patch": text, "cost_usd": 0.5,
            });
            prediction.to_string()
        })
        .collect();
    let directory = tempfile::tempdir().unwrap();
    let selection = Selection { known: &tasks, selected: &tasks };
    let list = format!("[{}]", lines.join(",\n"));
    for (name, file, bytes) in [
        ("predictions, 4 models of 275 tasks, lines", "predictions.jsonl", lines.join("\n")),
        ("predictions, 4 models of 275 tasks, list", "predictions.json", list),
    ] {
        let path = directory.path().join(file);
        fs_err::write(&path, &bytes).unwrap();
        let read = predictions::read(&path, selection, Several::default()).unwrap();
        assert!(read.models.len() == 4 && read.models.values().all(|tasks| tasks.len() == 275));
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| predictions::read(black_box(&path), selection, Several::default()).unwrap());
        });
    }
}

fn task(number: usize) -> Task {
    let revision = |side: usize| format!("{:040x}", 2 * number + side).parse().unwrap();
    Task {
        id: format!("owner__repository{}-{number}", number % 40).parse().unwrap(),
        repository: format!("owner/repository{}", number % 40).parse().unwrap(),
        track: Track::TestUpdate,
        rev1: revision(0),
        rev2: revision(1),
        rev1_date: "2024-03-01".to_owned(),
        rev2_date: "2024-03-02".to_owned(),
        test_file: "src/test/java/org/example/FormatterTest.java".parse().unwrap(),
        test_methods: vec!["org.example.FormatterTest#formats".parse().unwrap()],
        focal_methods: Vec::new(),
    }
}

/// A patch as git writes it: each hunk has six lines of context and replaces three lines by five.
fn patch_of(files: usize, hunks: usize) -> String {
    let mut patch = String::new();
    let mut numbers = Numbers(5);
    for file in 0..files {
        let name = format!("src/test/java/org/example/package{}/Formatter{file}Test.java", file % 20);
        write!(patch, "diff --git a/{name} b/{name}\nindex 3f1a2b4..9c8d7e6 100644\n--- a/{name}\n+++ b/{name}\n")
            .unwrap();
        for hunk in 0..hunks {
            let (old, new) = (1 + 40 * hunk, 1 + 42 * hunk);
            writeln!(patch, "@@ -{old},9 +{new},11 @@ void formats{hunk}() {{").unwrap();
            for (sign, lines) in [(' ', 3), ('-', 3), ('+', 5), (' ', 3)] {
                for _ in 0..lines {
                    let value = numbers.next();
                    writeln!(patch, "{sign}        assertEquals(\"{value:016x}\", formatter.format({}));", value % 977)
                        .unwrap();
                }
            }
        }
    }
    patch
}

/// A class file with so many constants of the usual kinds, and methods that have code of a few hundred bytes.
fn class_file(constants: u16, methods: u16) -> Vec<u8> {
    const FIRST: [&str; 3] = ["org/example/FormatterTest", "SourceFile", "FormatterTest.java"];
    let mut numbers = Numbers(7);
    let mut bytes = vec![0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 61];
    bytes.extend((constants + 6).to_be_bytes());
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.push(1);
        bytes.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
        bytes.extend(text.bytes());
    };
    FIRST.iter().for_each(|name| text(&mut bytes, name));
    // The class, and the name of methods' code.
    bytes.extend([7, 0, 1]);
    text(&mut bytes, "Code");
    for constant in 0..constants {
        match constant % 5 {
            // Half of a real pool is text, the rest refers to it.
            0..=2 => text(&mut bytes, &format!("(Ljava/lang/String;I)Lorg/example/Type{:x};", numbers.next())),
            3 => bytes.extend([12, 0, 1, 0, 2]),
            _ => bytes.extend([10, 0, 4, 0, 5]),
        }
    }
    // Access, class, superclass, no interface, no field.
    bytes.extend([0, 0x21, 0, 4, 0, 4, 0, 0, 0, 0]);
    bytes.extend(methods.to_be_bytes());
    for _ in 0..methods {
        let length = 100 + numbers.below(400);
        let code = numbers.bytes(length);
        bytes.extend([0, 1, 0, 1, 0, 2, 0, 1, 0, 5]);
        bytes.extend(u32::try_from(code.len()).unwrap().to_be_bytes());
        bytes.extend(code);
    }
    bytes.extend([0, 1, 0, 2, 0, 0, 0, 2, 0, 3]);
    bytes
}
