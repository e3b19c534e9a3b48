//! Files that others hand on, or that damage may have changed: manifests, settings, published data, run directories, what is kept.

use std::path::PathBuf;
use std::sync::LazyLock;

use fs_err as fs;
use serde::Serialize;
use serde::de::DeserializeOwned;
use testevo_sandbox::artifact::made;
use testevo_sandbox::artifact::origin::OriginName;
use testevo_sandbox::data_dir::DataDir;
use testevo_sandbox::digest::Digest;
use testevo_sandbox::execution::proof;
use testevo_sandbox::execution::run::directory::RunDirectory;
use testevo_sandbox::execution::run::inputs::{INPUTS_SCHEMA, RunInputs, images_of};
use testevo_sandbox::execution::run::list::for_each_record;
use testevo_sandbox::execution::run::record::CellRecord;
use testevo_sandbox::execution::scoring::cache::{CachedResult, ResultCache};
use testevo_sandbox::execution::scoring::inputs::{ModelInputs, ScoreInputs};
use testevo_sandbox::execution::scoring::record::ScoreRecord;
use testevo_sandbox::execution::time_class::{CLASSES, TimeClasses, Took};
use testevo_sandbox::image::{BuiltImage, TreePath};
use testevo_sandbox::manifest::RepositoryManifest;
use testevo_sandbox::report::leaderboard;
use testevo_sandbox::report::score::formats::{csv, html, junit, markdown};
use testevo_sandbox::report::score::{COMMAND, ScoredModel, figures, read};
use testevo_sandbox::sample::{RevisionPair, SampleRepository};
use testevo_sandbox::settings::Settings;
use testevo_sandbox::task::file::TaskFile;
use testevo_sandbox::task::{CloneUrl, MethodId, RepositoryName, RepositoryPath, Revision, TaskId, published};

use super::submissions::task;
use crate::Target;
use crate::scratch::{done, file, root};

pub(super) const TOML_WORDS: &[&[u8]] = &[
    b"schema = 1\n",
    b"[[files]]\n",
    b"[overrides]\n",
    b"[overrides.limits]\n",
    b"a.b.c = 1\n",
    b"{ a = 1 }",
    b"\"\"\"",
    b"'''",
    b"1979-05-27T07:32:00Z",
    b"0xffffffffffffffff",
    b"+inf",
    b"# ",
];

const JSON_WORDS: &[&[u8]] = &[
    b"{\"schema\":1,",
    b"\"record\":\"execution\"",
    b"\"outcome\":\"exec_fail\",\"reason\":\"timeout\"",
    b"\"task_id\":\"t1\"",
    b"\"repeat\":18446744073709551615",
    b"\"method\":\"ATest#m\"",
    b"\"model\":\"m\"",
    b"\"side\":\"new\"",
    b"\"lines\":[1,2]",
    b"\\ud800",
    b"\\u202e",
    b"<script>",
    b"]]>",
    b"1e308",
];

/// Manifests with overrides, read and written.
pub(super) const MANIFEST: Target = Target {
    name: "manifest",
    run: manifest,
    seeds: manifests,
    words: TOML_WORDS,
    runs: 1000,
    most_bytes: 32 << 10,
    memory: 1000,
};

/// `settings.toml`.
pub(super) const SETTINGS: Target = Target {
    name: "settings",
    run: |input| {
        let directory = root().join("settings");
        done(fs::create_dir_all(&directory));
        done(fs::write(directory.join("settings.toml"), input));
        if let Err(error) = Settings::load(&directory) {
            assert!(!error.to_string().is_empty());
        }
    },
    seeds: || {
        vec![
            b"engine = \"docker\"\njobs = 4\ngit_mirror = \"/srv/{owner}/{name}\"\noffline = true\ncolor = \"never\"\n\
              check_valid_until = false\n[origins]\ndebian = \"https://example.org/debian https://example.com\"\n"
                .to_vec(),
            b"\n".to_vec(),
        ]
    },
    words: TOML_WORDS,
    runs: 2000,
    most_bytes: 32 << 10,
    memory: 1000,
};

/// Published data, imported tasks, published leaderboards.
pub(super) const PUBLISHED: Target = Target {
    name: "published",
    run: published_files,
    seeds: published_seeds,
    words: JSON_WORDS,
    runs: 1000,
    most_bytes: 32 << 10,
    memory: 400,
};

/// A stranger's run directory: its records, and a report in every format.
pub(super) const RECORDS: Target = Target {
    name: "records",
    run: records,
    seeds: record_seeds,
    words: JSON_WORDS,
    runs: 750,
    most_bytes: 32 << 10,
    memory: 2000,
};

/// What is kept between runs: results, time classes, proofs, built images, descriptions.
pub(super) const KEPT: Target = Target {
    name: "kept",
    run: kept,
    seeds: kept_seeds,
    words: JSON_WORDS,
    runs: 750,
    most_bytes: 32 << 10,
    memory: 400,
};

/// Names: ids, paths, digests, addresses.
pub(super) const NAMES: Target = Target {
    name: "names",
    run: names,
    seeds: || {
        let names = [
            "t1",
            "o/n",
            "src/test/java/ATest.java",
            "p.A$B#m",
            "https://example.org/o/n.git",
            "ssh://git@example.org/o/n",
            "usr/bin/x",
            "central",
        ];
        let digests = [Digest::of(b"").to_string(), "0".repeat(40)];
        names.into_iter().map(str::to_owned).chain(digests).map(String::into_bytes).collect()
    },
    words: &[b"..", b"/", b".git", b"$", b"#", b"@", b"://", b"sha256:", b"-", b"__", b"%2f"],
    runs: 4000,
    most_bytes: 4 << 10,
    memory: 120,
};

fn manifest(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let path = file("manifest.toml", input);
    let parsed = RepositoryManifest::parse(&path, text);
    if parsed.is_ok() {
        assert!(RepositoryManifest::overridden_keys(&path, text).is_ok());
    }
    // An import keeps whatever is overridden, and says the same a second time.
    let Ok(known) = parsed else { return };
    let Ok((written, _)) = known.render_over(&path) else { return };
    let again = RepositoryManifest::parse(&path, &written).unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!((&again.repository, again.jdk, again.limits), (&known.repository, known.jdk, known.limits));
    assert_eq!(
        RepositoryManifest::overridden_keys(&path, &written).ok(),
        RepositoryManifest::overridden_keys(&path, text).ok()
    );
    let path = file("manifest-2.toml", written.as_bytes());
    assert_eq!(known.render_over(&path).map(|(text, _)| text).unwrap_or_else(|error| panic!("{error}")), written);
}

fn manifests() -> Vec<Vec<u8>> {
    let facts = r#"schema = 1
repository = "o/n"
clone_url = "https://example.org/o/n.git"
java_version = 11
jdk = 11

[build]
launcher = "auto"
skip_flags = ["-Dcheckstyle.skip"]
maven_arguments = []
debian_packages = []

[limits]
compile_memory_mib = 4096
compile_scratch_mib = 2048
compile_cpus = 2
compile_processes = 1024
compile_wall_seconds = 600
run_memory_mib = 4096
run_heap_mib = 2560
run_scratch_mib = 1024
run_cpus = 2
run_processes = 512
run_cpu_seconds = 300
run_wall_seconds = 600
output_mib = 8
"#;
    let overridden = "\n# Mine.\n[overrides]\njdk = 17\n[overrides.limits]\nrun_cpus = 1 # less\n[overrides.build]\nskip_flags = []\n";
    vec![facts.into(), format!("{facts}{overridden}").into()]
}

fn published_files(input: &[u8]) {
    for name in ["published.json", "published.jsonl"] {
        let path = file(name, input);
        if let Ok(repositories) = published::read(std::slice::from_ref(&path)) {
            for repository in repositories {
                let tasks = TaskFile { schema: 1, repository: repository.name.clone(), tasks: repository.tasks };
                let written = file("tasks.json", &done(tasks.render()));
                assert_eq!(done(TaskFile::load(&written)), tasks);
            }
        }
    }
    let path = root().join("published.json");
    if let Ok(tasks) = TaskFile::load(&path) {
        assert_eq!(done(TaskFile::load(&file("tasks.json", &done(tasks.render())))), tasks);
    }
    if let Ok(found) = leaderboard::read(&path) {
        for means in leaderboard::agents_means(&found) {
            assert!(!serde_json::to_string(&means).unwrap_or_else(|error| panic!("{error}")).is_empty());
        }
    }
}

fn published_seeds() -> Vec<Vec<u8>> {
    let tasks = TaskFile { schema: 1, repository: done("o/n".parse()), tasks: vec![task("t1"), task("t2")] };
    let mut seeds = vec![
        done(tasks.render()),
        br#"{"generated_at":"x","metric_definitions":null,"tracks":{"test_update":[{"agent":"a","model":"m","tasks":[{"d":"2024-05-01","s":1.0,"c":0.5}]}]}}"#.to_vec(),
        br#"{"groups":[{"track":"test_generation","date":"2024-05-01","agents":{"a / m":[{"s":1,"c":0.25}]}}]}"#.to_vec(),
    ];
    let sample = SampleRepository::demo().unwrap_or_else(|error| panic!("{error}"));
    let revision = |text: &str| done(text.repeat(40).parse::<Revision>());
    let pairs: Vec<RevisionPair> =
        sample.miniatures.iter().map(|_| RevisionPair { rev1: revision("0"), rev2: revision("1") }).collect();
    seeds.push(sample.published(&pairs).into_bytes());
    seeds
}

fn inputs() -> ScoreInputs {
    let tasks = vec![task("t1"), task("t2")];
    let models = ["m", "gold"].map(|model| {
        let missing = tasks.iter().map(|task| task.id.clone()).collect();
        (model.to_owned(), ModelInputs { missing, ..ModelInputs::default() })
    });
    ScoreInputs {
        jdks: [(tasks[0].repository.clone(), 17)].into(),
        run: RunInputs {
            schema: INPUTS_SCHEMA,
            tasks,
            images: Default::default(),
            maven_arguments: Default::default(),
            launchers: Default::default(),
            limits: Default::default(),
            surefire: Default::default(),
            paths: Vec::new(),
            repeats: 2,
            tools: None,
            shard: None,
        },
        seed: 7,
        coverage: true,
        mutation: true,
        controls: true,
        strip_fences: false,
        samples: [("m".to_owned(), "n".to_owned())].into(),
        models: models.into(),
        unknown: Vec::new(),
        not_selected: 0,
        repeated: 0,
    }
}

/// A run that ended, in which no record was written.
static RUN: LazyLock<PathBuf> = LazyLock::new(|| {
    let data_dir = done(DataDir::open(&root().join("data")));
    let inputs = done(serde_json::to_vec(&inputs()));
    let (run, _) = done(RunDirectory::open_of::<ScoreRecord>(&data_dir, COMMAND, &inputs, None, false));
    let path = run.path().to_owned();
    done(run.finish(b""));
    path
});

fn records(input: &[u8]) {
    let path = &*RUN;
    done(fs::write(path.join("records.jsonl"), input));
    let _ = for_each_record(path, |record: CellRecord| again(&record));
    let _ = for_each_record(path, |record: ScoreRecord| again(&record));
    // Inputs of a stranger's run, as the records of ours.
    let _ = (serde_json::from_slice::<ScoreInputs>(input), images_of(input));
    let Ok(models) = read(std::slice::from_ref(path)) else { return };
    report(&models);
}

fn report(models: &[ScoredModel]) {
    let report = figures(models);
    let json = serde_json::to_string(&report).unwrap_or_else(|error| panic!("{error}"));
    assert!(!json.is_empty());
    let (mut sheet, mut page, mut tests) = (Vec::new(), Vec::new(), Vec::new());
    done(csv::write(&mut sheet, models, None));
    done(junit::write(&mut tests, &report, models));
    // The page reads attachments, of which this run has none.
    done(html::write(&mut page, &report, models));
    let markdown = markdown::render(&report, models);
    for text in [&sheet, &tests, &page] {
        let text = std::str::from_utf8(text).unwrap_or_else(|error| panic!("{error}"));
        assert!(!text.contains(['\u{202e}', '\u{1b}', '\0']), "a character that steers is shown");
    }
    assert!(!markdown.contains(['\u{202e}', '\u{1b}', '\0']));
}

/// What is read can be written, and reads as the same.
fn again<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    let written = done(serde_json::to_vec(value));
    let read: T = serde_json::from_slice(&written).unwrap_or_else(|error| panic!("{error}: {value:?}"));
    assert_eq!(done(serde_json::to_vec(&read)), written);
}

fn record_seeds() -> Vec<Vec<u8>> {
    let records = r#"{"record":"submission","schema":1,"model":"m","task_id":"t1","kind":"patch","submitted":null,"start":null,"post_image":null,"fault":null,"dropped":[],"line_ends_adapted":false,"cost_usd":0.5,"tokens":3}
{"record":"focal","schema":1,"task_id":"t1","focal":[]}
{"record":"execution","schema":1,"model":"m","task_id":"t1","repository":"o/n","track":"test_generation","method":"ATest#m","code":"new","repeat":1,"outcome":"pass","detail":"","attempts":1,"key":null,"cached":false,"measured":{}}
{"record":"execution","schema":1,"model":"m","task_id":"t1","repository":"o/n","track":"test_generation","method":"ATest#m","code":"old","repeat":1,"outcome":"exec_fail","reason":"assertion","detail":"x \u202e y","attempts":1,"key":null,"cached":false,"measured":{}}
{"record":"coverage","schema":1,"model":"m","task_id":"t1","method":"ATest#m","coverage":0.5,"coverage_range":0.5,"focal":[{"first_line":1,"last_line":3,"lines":[1,2],"covered":[1]}],"cause":null,"lost":false,"cached":false}
{"record":"mutation","schema":1,"model":"m","task_id":"t1","method":"ATest#m","kills":{"count":4,"killed":2,"killed_strict":1},"mutation_score":0.5,"mutants":[],"cause":null,"lost":false,"cached":false}
"#;
    let cell = r#"{"schema":1,"task_id":"t1","repository":"o/n","track":"test_generation","cell":"no","method":"ATest#m","repeat":1,"path":"direct","outcome":"compile_fail","reason":"target_file","detail":"x","attributed":true,"attempts":1,"key":null,"measured":{}}
"#;
    vec![records.into(), cell.into(), done(serde_json::to_vec(&inputs()))]
}

fn kept(input: &[u8]) {
    let directory = root().join("kept");
    static DATA: LazyLock<DataDir> = LazyLock::new(|| done(DataDir::open(&root().join("kept"))));
    let task = task("t1");
    let classes = TimeClasses::new(&DATA);
    done(fs::create_dir_all(directory.join("time-classes")));
    let path = directory.join("time-classes").join("o__n.json");
    done(fs::write(&path, input));
    let took = Took { launch_ms: Some(2000), build_ms: Some(9000) };
    if let Ok(found) = classes.get(&task) {
        let is_class = |seconds: Option<u64>| seconds.is_none_or(|seconds| CLASSES.contains(&seconds));
        assert!(found.as_ref().is_none_or(|class| is_class(class.launch_seconds)));
        let recorded = done(classes.record(&task, took));
        assert!(recorded.is_some());
        assert_eq!(done(classes.get(&task)), recorded);
    }
    let (results, key) = (ResultCache::new(directory.join("results"), true), Digest::of(b"key"));
    let path = directory.join("results").join(&key.hex()[..2]).join(format!("{}.json", key.hex()));
    done(fs::create_dir_all(path.parent().unwrap_or(&directory)));
    done(fs::write(&path, input));
    let found: Option<CachedResult> = done(results.value(key));
    assert!(found.is_none() || input.len() > 64, "a kept result has a digest");
    if let Ok(found) = proof::parse(input) {
        assert_eq!(proof::parse(&done(serde_json::to_vec(&found))), Ok(found));
    }
    if let Ok(found) = BuiltImage::parse(input) {
        assert_eq!(BuiltImage::parse(&done(serde_json::to_vec(&found))), Ok(found));
    }
    let _ = made::blobs_of(input);
}

fn kept_seeds() -> Vec<Vec<u8>> {
    let digest = Digest::of(b"x");
    let revision = "1".repeat(40);
    let layer = format!(r#"{{"kind":"base","digest":"{digest}","diff_id":"{digest}","size":3,"uncompressed_size":9}}"#);
    let image = format!(r#"{{"config_digest":"{digest}","manifest_digest":"{digest}","layers":[{layer}]}}"#);
    [
        format!(r#"{{"schema":1,"repository":"o/n","tasks":{{"t1":{{"revision":"{revision}","launch_seconds":30,"compile_seconds":60}}}}}}"#),
        format!(r#"{{"schema":1,"config_digest":"{digest}","executions":[{{"build_set":"b","task_id":"t1","cell":"nn","outcome":"pass"}}],"shown_for":["{digest}"]}}"#),
        format!(r#"{{"schema":1,"repository":"o/n","jdk":17,"image":{image},"locks":{{"toolchain":"{digest}","repository":"{digest}"}},"recipe_version":1}}"#),
        format!(r#"{{"schema":1,"key":"{digest}","blobs":["{digest}"],"value":{{"a":["{digest}"]}}}}"#),
        format!(r#"{{"value":[{{"a":"{digest}"}}]}}"#),
    ]
    .map(String::into_bytes)
    .into()
}

fn names(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    fn is_itself<T: std::str::FromStr + std::fmt::Display + PartialEq>(text: &str) -> bool {
        match text.parse::<T>() {
            Ok(name) => {
                let shown = name.to_string();
                assert!(shown.parse::<T>().is_ok_and(|again| again == name), "{shown}");
                assert!(!shown.contains(char::is_control));
                true
            }
            Err(_) => false,
        }
    }
    if is_itself::<TaskId>(text) || is_itself::<Revision>(text) {
        assert!(!text.contains('/') && !text.starts_with(['-', '.']));
    }
    if is_itself::<RepositoryPath>(text) || is_itself::<TreePath>(text) {
        assert!(text.split('/').all(|part| part != ".."), "{text}");
    }
    if is_itself::<RepositoryName>(text) {
        let name: RepositoryName = done(text.parse());
        assert_eq!(name.file_stem().replacen("__", "/", 1), text);
    }
    is_itself::<MethodId>(text);
    is_itself::<CloneUrl>(text);
    is_itself::<OriginName>(text);
    is_itself::<Digest>(text);
}
