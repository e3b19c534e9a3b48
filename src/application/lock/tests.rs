use std::sync::Mutex;

use super::*;
use crate::application::Options;
use crate::application::context::tests::offline;
use crate::application::import::{ImportRequest, import};
use crate::artifact::origin::{Machine, OriginOptions, Origins};
use crate::artifact::store::Store;
use crate::error::ExitStatus;
use crate::event::{Event, EventSink};
use crate::sample::SampleRepository;
use crate::task::selector::SelectorError;
use crate::umask::Umask;

#[tokio::test]
async fn a_selection_is_checked_without_a_command_line() {
    let directory = tempfile::tempdir().unwrap();
    let sample = SampleRepository::demo().unwrap();
    let sources = directory.path().join("sources");
    let revisions = sample.write_git(&sources.join(sample.name.file_stem())).unwrap();
    let data = directory.path().join("sample.json");
    fs_err::write(&data, sample.published(&revisions)).unwrap();
    let options = Options {
        git_mirror: Some(format!("{}/{{owner}}__{{name}}", sources.display())),
        ..offline(&directory.path().join("data"))
    };
    let context = Context::new(options, EventSink::none(), Umask::take());
    let request = ImportRequest { data: vec![data], ..ImportRequest::default() };
    let imported = import(&request, &context).unwrap();
    assert_eq!(imported.summary.tasks, sample.miniatures.len());
    let request = LockRequest { mode: Mode::Check, ..LockRequest::default() };
    let report = lock(&request, &context).await.unwrap().unwrap();
    let [one] = report.locked.as_slice() else { panic!("one repository was imported") };
    assert_eq!((&one.repository, one.jdk_locked, one.build_sets), (&sample.name, false, 0));
    assert!(one.missing_build_sets > 0);
    let missing = report.verdict().unwrap_err();
    assert!(matches!(missing, CommandError::CheckFailed { summary } if summary.contains("not covered by a lock")));
    let selector = Selector { patterns: vec!["nobody/nothing".to_owned()], ..Selector::default() };
    let nothing = lock(&LockRequest { selector, mode: Mode::Check, agent: false }, &context).await;
    assert!(nothing.is_err_and(|error| error.failure::<SelectorError>().is_some()));
}

#[test]
fn an_artifact_that_no_origin_has_decides_the_exit_code_of_one_or_many() {
    let directory = tempfile::tempdir().unwrap();
    let context = Context::new(offline(directory.path()), EventSink::none(), Umask::take());
    let set = lock::UnresolvedSet {
        build_set: "b".to_owned(),
        artifact: "g:lost:jar:1".to_owned(),
        wanted_by: None,
        origins: vec!["central".to_owned(), "gone".to_owned()],
        cause: "none of them has it".to_owned(),
    };
    let locked = |name: &str, sets: usize| Locked {
        repository: name.parse().unwrap(),
        jdk: 8,
        jdk_locked: true,
        files: 0,
        bytes: 0,
        metadata: 0,
        build_sets: 1,
        missing_build_sets: sets,
        unresolved: (0..sets)
            .map(|_| UnresolvedSet {
                revision: "r".to_owned(),
                module: String::new(),
                cause: "c".to_owned(),
                artifacts: vec![set.clone()],
            })
            .collect(),
    };
    let verdict = |locked: Vec<Locked>, failed: usize| {
        let mut failures = Failures::new(locked.len() + failed, &context);
        for _ in 0..failed {
            let missing = crate::manifest::ManifestError::Missing { path: "manifests/o__c.toml".into() };
            failures.unless::<()>(&"o/c".parse().unwrap(), Err(missing.into())).unwrap();
        }
        LockReport { locked, mode: Mode::Complete, failures }.verdict()
    };
    verdict(vec![locked("o/a", 0)], 0).unwrap();
    let one = verdict(vec![locked("o/a", 1)], 0).unwrap_err();
    assert_eq!(one.exit_status(), ExitStatus::Origin);
    assert!(one.to_string().contains("g:lost:jar:1") && one.hint().unwrap().contains("--origin gone="), "{one}");
    let many = verdict(vec![locked("o/a", 1), locked("o/b", 0)], 1).unwrap_err();
    assert_eq!(many.exit_status(), ExitStatus::Origin, "it outranks a missing manifest");
    let text = many.render(false);
    let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("o/c: ")).collect();
    assert!(rows.len() == 4 && rows[2].starts_with("o/a: "), "{text}");
    assert!(rows[1].contains("testevo-sandbox import") && rows[3].contains("--origin gone="), "{text}");
}

#[test]
fn what_poms_declare_is_asked_or_told_of() {
    let directory = tempfile::tempdir().unwrap();
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&told);
    let events = EventSink::new(move |event| {
        if let Event::Warning { text } = event {
            kept.lock().unwrap().push(text);
        }
    });
    let given = ("inner".to_owned(), "file:///mirror".to_owned());
    let options = OriginOptions::new([(&given.0, &given.1)], false, None).unwrap();
    let origins = Origins::new(options, Machine::at(directory.path(), None, &[]), directory.path());
    let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
    let client = Client::new(origins, store, events).unwrap();
    let declared = |id: &str, url: &str| {
        [false, true].map(|plugins| DeclaredRepository { id: id.to_owned(), url: url.to_owned(), plugins })
    };
    let repositories: BTreeSet<DeclaredRepository> = [
        declared("central", "file:///"),
        declared("evil", "file:///"),
        declared("inner", "http://10.0.0.1/"),
        declared("metadata", "http://user:secret@169.254.169.254/"),
        declared("odd\u{1b}[2J", "https://public.test/"),
        declared("open", "https://public.test/"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let names = declared_origins(&client, &repositories, true).unwrap();
    assert_eq!(names.iter().map(OriginName::as_str).collect::<Vec<_>>(), ["inner", "open"]);
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 3, "{told:?}");
    for (text, part) in told.iter().zip(["--origin evil=URL", "--origin metadata=URL", "no name of an origin"]) {
        assert!(text.contains(part) && !text.contains("secret") && !text.contains('\u{1b}'), "{text}");
    }
    let recorded = fs_err::read_to_string(directory.path().join("origins.toml")).unwrap();
    assert!(recorded.contains("open") && !["evil", "metadata", "inner"].iter().any(|id| recorded.contains(id)));
}
