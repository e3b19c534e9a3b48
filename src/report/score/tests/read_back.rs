//! CSV and JUnit XML, read back.

use super::*;

/// Returns what an RFC 4180 reader finds.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut characters = text.chars().peekable();
    let mut quoted = false;
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => field.extend(characters.next()),
            '"' if quoted => quoted = false,
            c if quoted => field.push(c),
            '"' => {
                assert!(field.is_empty(), "a quote within a field: {field}");
                quoted = true;
            }
            ',' => record.push(std::mem::take(&mut field)),
            '\r' => {
                assert_eq!(characters.next(), Some('\n'));
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            '\n' => panic!("a line break that is no record's end"),
            c => field.push(c),
        }
    }
    assert!(!quoted && field.is_empty() && record.is_empty(), "the last record has its end");
    records
}

#[test]
fn csv_is_read_back_as_it_is_meant() {
    let mut run = fixture();
    // Of t2 it could not be told.
    for (task, start_compiles) in [("t2", None), ("t4", Some(false))] {
        let (task_id, lost) = (task.parse().unwrap(), start_compiles.is_none());
        let start = StartRecord { schema: SCORE_SCHEMA, task_id, start_compiles, detail: None, lost };
        run.records.push(ScoreRecord::Start(start));
    }
    let models = run.read(true);
    let mut text = Vec::new();
    let excluded = |method: Option<&str>, reason| Excluded {
        task: if method.is_some() { "t1" } else { "t5" }.parse().unwrap(),
        method: method.map(|method| method.parse().unwrap()),
        reason,
    };
    let certified = Certified {
        validation: "v".to_owned(),
        tasks: 5,
        certified: 4,
        excluded: vec![excluded(Some("A#m2"), "not_discriminating"), excluded(None, "differing")],
        runs: Vec::new(),
    };
    csv::write(&mut text, &models, Some(&certified)).unwrap();
    let records = records(&String::from_utf8(text).unwrap());
    let (headings, rows) = records.split_first().unwrap();
    assert_eq!(rows.len(), 2 * 7, "a row for each model and method");
    assert!(rows.iter().all(|row| row.len() == headings.len()));
    let cell = |row: &[String], heading: &str| row[headings.iter().position(|one| one == heading).unwrap()].clone();
    let found = |model: &str, method: &str| {
        let row = rows.iter().find(|row| cell(row, "model") == model && cell(row, "method") == method).unwrap();
        [
            "task_id",
            "category",
            "new_outcome",
            "coverage_pred",
            "coverage_gold",
            "mutation_score_pred",
            "missing",
            "flaky",
            "start_compiles",
            "old_attributed",
        ]
        .map(|heading| cell(row, heading))
    };
    assert_eq!(found("one", "A#m1"), ["t1", "Success", "pass", "60", "80", "0.75", "false", "1 of 2", "", ""]);
    assert_eq!(found(TWO, "A#m2"), ["t1", "CmplFail", "compile_fail(target_file)", "", "80", "", "false", "", "", ""]);
    assert_eq!(found(TWO, "B#m"), ["t2", "", "infra_fail(engine)", "", "80", "", "false", "", "", ""]);
    assert_eq!(found(TWO, "E#m"), ["t5", "HrnsFail", "harness_fail(empty)", "", "", "", "true", "", "", ""]);
    assert_eq!(found("one", "D#m2"), ["t4", "Redundant", "pass", "20", "80", "0", "false", "", "false", ""]);
    let reason = |method: &str| {
        let row = rows.iter().find(|row| cell(row, "method") == method).unwrap();
        cell(row, "not_certified")
    };
    assert_eq!(["A#m1", "A#m2", "E#m"].map(reason), ["", "not_discriminating", "differing"]);
    assert_eq!(headings.last().map(String::as_str), Some("sample_of"), "columns are added at the end");
}

/// A suite as a reader of JUnit XML finds it.
#[derive(Debug, Default)]
struct Suite {
    name: String,
    /// Tests, failures, errors and skipped ones by its own account.
    said: [usize; 4],
    /// Likewise as its elements are.
    found: [usize; 4],
    properties: BTreeMap<String, String>,
    output: String,
}

fn suites(xml: &str) -> Vec<Suite> {
    use quick_xml::events::Event;
    let mut reader = quick_xml::Reader::from_str(xml);
    let mut suites: Vec<Suite> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    loop {
        let (event, has_end) = match reader.read_event().unwrap() {
            Event::Start(event) => (event, true),
            Event::Empty(event) => (event, false),
            Event::End(event) => {
                assert_eq!(open.pop().as_deref(), Some(event.name().as_ref()));
                continue;
            }
            Event::Text(text) => {
                if open.last().is_some_and(|name| name == "system-out") {
                    suites.last_mut().unwrap().output.push_str(&text);
                }
                continue;
            }
            Event::Eof => break,
            _ => continue,
        };
        let attribute = |name: &str| -> String {
            let found =
                event.attributes().map(Result::unwrap).find(|attribute| attribute.key.as_ref() == name).unwrap();
            quick_xml::escape::unescape(&found.value).unwrap().into_owned()
        };
        let name = event.name().as_ref().to_owned();
        match name.as_str() {
            "testsuite" => {
                let said = ["tests", "failures", "errors", "skipped"].map(|name| attribute(name).parse().unwrap());
                suites.push(Suite { name: attribute("name"), said, ..Suite::default() });
            }
            "property" => {
                suites.last_mut().unwrap().properties.insert(attribute("name"), attribute("value"));
            }
            "testcase" | "failure" | "error" | "skipped" => {
                let names = ["testcase", "failure", "error", "skipped"];
                let index = names.iter().position(|one| *one == name).unwrap();
                suites.last_mut().unwrap().found[index] += 1;
            }
            "testsuites" | "properties" | "system-out" => {}
            other => panic!("an element `{other}`"),
        }
        if has_end {
            open.push(name);
        }
    }
    assert!(open.is_empty());
    suites
}

#[test]
fn junit_counts_what_it_holds() {
    let models = fixture().read(true);
    let report = figures(&models);
    let mut text = Vec::new();
    junit::write(&mut text, &report, &models).unwrap();
    let suites = suites(&String::from_utf8(text).unwrap());
    assert_eq!(suites.len(), 2 * (1 + 5), "a suite about each model, and one for each of its tasks");
    for suite in &suites {
        assert_eq!(suite.said, suite.found, "{}", suite.name);
    }
    let named = |name: &str| suites.iter().find(|suite| suite.name == name).unwrap();
    assert_eq!(named("r1 one t1").found, [2, 1, 0, 0]);
    assert_eq!(named("r1 one t4").found, [2, 1, 0, 0], "Redundant is no success");
    assert_eq!(named(&format!("r1 {TWO} t2")).found, [1, 0, 1, 0], "what could not be judged is an error");
    for run in &report.runs {
        let of_run = format!("r1 {}", run.model);
        let all = suites.iter().filter(|suite| suite.name.starts_with(&format!("{of_run} ")));
        let sum = all.fold([0; 3], |sum, suite| [0, 1, 2].map(|index: usize| sum[index] + suite.found[index]));
        let methods: usize = run.tracks.values().map(|figures| figures.all.methods).sum();
        let unscored: usize = run.tracks.values().map(|figures| figures.all.unscored).sum();
        assert_eq!((sum[0], sum[2]), (methods, unscored));
        let about = named(&of_run);
        assert_eq!(about.properties["missing"], run.missing_count.to_string());
        assert_eq!(about.properties["unknown"], run.unknown_count.to_string());
        assert_eq!((about.properties["not_selected"].as_str(), about.properties["repeated"].as_str()), ("2", "1"));
        assert!(about.output.contains("which count"), "{}", about.output);
    }
}
