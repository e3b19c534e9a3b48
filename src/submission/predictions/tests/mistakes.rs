//! Mistakes that people make with predictions. Each has a message that names the remedy.

use std::os::unix::fs::symlink;

use super::*;

/// Returns an error's message and hint as one text.
fn told(error: &PredictionsError) -> String {
    format!("{error} | {}", error.hint().unwrap())
}

#[test]
fn ids_that_are_all_unknown_are_an_error_with_the_nearest_one() {
    let fixture = Fixture::new();
    let line = |id: &str| format!("{{\"instance_id\":\"{id}\",\"model_patch\":\"x\"}}\n");
    let error = fixture.text(line("T1") + &line("other")).unwrap_err();
    assert_eq!((kind(&error), error.exit_status()), ("unmatched", ExitStatus::BadInput));
    let said = told(&error);
    assert!(said.contains("line 1 names `T1` (and 1 prediction more like this) | did you mean `t1`?"), "{said}");
    let said = told(&fixture.text(line("something else")).unwrap_err());
    assert!(said.contains("`something else` | `testevo-sandbox tasks list`"), "{said}");
    // A task that is imported and not selected is known.
    assert_eq!(fixture.text(line("t3") + &line("other")).unwrap().not_selected, 1);

    fixture.write("models/a/t1.patch", "x");
    fixture.write("models/b/t1.patch", "x");
    let said = told(&fixture.read(&fixture.directory.path().join("models")).unwrap_err());
    assert!(said.contains("a directory has one model's predictions: name `") && said.contains("models/a`"), "{said}");
}

#[test]
fn a_task_that_is_not_named_is_told_with_the_nearest_key() {
    let fixture = Fixture::new();
    let object = "{\"id\":\"t1\",\"model_patch\":\"--- a\"}";
    for text in [object.to_owned(), format!("{object}\n{object}\n"), format!("[{object}]"), object.replace(',', ",\n")]
    {
        let said = told(&fixture.text(&text).unwrap_err());
        assert!(said.contains("line 1 has no `instance_id`, but the unknown key `id` | rename `id` to"), "{said}");
    }
    let said = told(&fixture.text("{\"instance_id\":\"t1\",\n\"model_patch\":\"x\"}").unwrap_err());
    assert!(said.contains("it is one prediction on several lines"), "{said}");
    let said = told(&fixture.text("{\"m\":{\"t1\":\"--- a\"}}").unwrap_err());
    assert!(
        said.contains("the task `t1` stands below the key `m`") && said.contains("\"model_name_or_path\": \"m\""),
        "{said}"
    );
}

#[test]
fn nothing_may_be_handed_in_by_null() {
    let fixture = Fixture::new();
    let predictions = fixture.text("{\"t1\": null, \"t2\": {\"model_patch\": null}}").unwrap();
    assert_eq!(["t1", "t2"].map(|id| patch_of(&predictions, "unnamed", id)), [Content::Nothing, Content::Nothing]);
}

#[test]
fn errors_of_values_name_the_key_and_the_columns_of_the_line() {
    let fixture = Fixture::new();
    let line = |field: &str| format!("{{\"instance_id\":\"t1\",{field}}}");
    for (text, expected) in [
        (
            line("\"cost_usd\":\"0.5\""),
            "line 1 can't be read: there is the text \"0.5\", expected a number or null for `cost_usd`, column ",
        ),
        (
            line("\"tokens\":1.5"),
            "there is the number `1.5`, expected a whole number from 0 to 18446744073709551615, or null, for `tokens`",
        ),
        (line("\"model_patch\":[\"x\"]"), "there is a list, expected a text or null for `model_patch`"),
        (line("\"model_patch\":{\"diff\":\"x\"}"), "there is an object, expected a text or null for `model_patch`"),
        (line("\"model_file\":true"), "there is `true`, expected a text or null for `model_file`"),
        (
            "{\"predictions\":[]}".to_owned(),
            "there is a list, expected an object with `model_patch`, the text of a diff, or null, column ",
        ),
        ("{\"predictions\":[]}".to_owned(), ", under the key `predictions`"),
    ] {
        let said = fixture.text(&text).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}");
        assert!(!said.contains("expected f64") && !said.contains("expected u64"), "{said}");
    }
    let long = fixture.text(line(&format!("\"tokens\":\"{}\"", "x".repeat(500)))).unwrap_err().to_string();
    assert!(long.contains("\u{2026}, expected a whole number"), "{long}");
    // The value that is missing stands in the same column of each form.
    let column = |text: &str| {
        let said = fixture.text(text).unwrap_err().to_string();
        let (line, column) = (said.split("line ").nth(1).unwrap(), said.split("column ").nth(1).unwrap());
        let number = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
        (number(line), number(column))
    };
    let good = line("\"model_patch\":\"x\"");
    let at = |line: u32, column: usize| (line.to_string(), column.to_string());
    assert_eq!(column(&format!("[{good}, ?]")), at(1, good.len() + 4));
    assert_eq!(column(&format!("[\n{good},\n{good}, ?]")), at(3, good.len() + 3));
    assert_eq!(column(&format!("{good}\n  ?\n")), at(2, 3));
    assert_eq!(column("{\"t1\": {\"model_patch\": ?}}"), at(1, 24));
    assert_eq!(column("{\"t1\": {\n\"model_patch\":\n ?}}"), at(3, 2));
}

#[test]
fn unknown_keys_are_named_once_with_the_key_that_they_mean() {
    let fixture = Fixture::new();
    let line = |id: &str| {
        format!(
            "{{\"instance_id\":\"{id}\",\"model_patch\":\"x\",\"model\":\"gpt\",\"cost\":1.5,\"patch\":\"y\",\"more\":[1]}}\n"
        )
    };
    let predictions = fixture.text(line("t1") + &line("t2")).unwrap();
    let found: Vec<_> = predictions.unknown_keys.iter().map(|key| (key.key.as_str(), key.meant)).collect();
    let expected = [("cost", Some("cost_usd")), ("model", Some("model_name_or_path")), ("more", None), ("patch", None)];
    assert_eq!(found, expected);
    assert!(predictions.unknown_keys.iter().all(|key| key.place.line == Some(1)));
    let within = fixture.text("{\"t1\":{\"id\":\"t1\",\"model_patch\":\"x\"}}").unwrap();
    assert!(within.unknown_keys.iter().all(|key| key.key == "id" && key.meant.is_none()));
}

#[test]
fn what_is_no_prediction_in_a_directory_is_listed() {
    let fixture = Fixture::new();
    let agent = fixture.directory.path().join("agent");
    fixture.write("agent/t1.patch", "p");
    fixture.write("agent/t2/trajectory.json", "{}");
    fixture.write("agent/readme.txt", "x");
    fixture.write("agent/preds.json", "{}");
    symlink("/etc/passwd", agent.join("notes")).unwrap();
    let strays: Vec<_> =
        fixture.read(&agent).unwrap().strays.into_iter().map(|stray| (stray.path, stray.kind)).collect();
    let expected = [
        ("notes", StrayKind::Link),
        ("preds.json", StrayKind::Json),
        ("readme.txt", StrayKind::OtherName),
        ("t2", StrayKind::NoTestFile),
    ];
    assert_eq!(strays, expected.map(|(name, kind)| (agent.join(name), kind)));

    // Empty submissions are submissions, whatever JSON file is there.
    fs::remove_file(agent.join("t1.patch")).unwrap();
    assert_eq!(patch_of(&fixture.read(&agent).unwrap(), "agent", "t2"), Content::Nothing);
    fs::remove_file(agent.join("t2/trajectory.json")).unwrap();
    assert_eq!(patch_of(&fixture.read(&agent).unwrap(), "agent", "t2"), Content::Nothing);
    // Without a known task only the file has predictions.
    fs::remove_dir_all(agent.join("t2")).unwrap();
    let said = told(&fixture.read(&agent).unwrap_err());
    assert!(
        said.contains("has no predictions | name the file itself after `--predictions`: `")
            && said.contains("preds.json`"),
        "{said}"
    );
    fixture.write("agent/logs/a.log", "x");
    assert_eq!(told(&fixture.read(&agent).unwrap_err()), said);
}

#[test]
fn other_names_in_a_tasks_directory_are_told_with_the_test_files() {
    let fixture = Fixture::new();
    let agent = fixture.directory.path().join("agent");
    for name in ["Wrong.java", "patch.diff", "src/test/java/deep/ATest.java"] {
        fixture.write(&format!("agent/t1/{name}"), "x");
        fixture.write("agent/t1/a.log", "x");
        let error = fixture.read(&agent).unwrap_err();
        let said = told(&error);
        assert_eq!((kind(&error), error.exit_status()), ("other name", ExitStatus::BadInput));
        assert!(said.contains(name) && said.contains("of its task, `src/test/java/ATest.java`"), "{said}");
        assert!(said.contains("as `ATest.java`, or replace the directory by `<task id>.patch`"), "{said}");
        // Both remedies work.
        fs::rename(agent.join("t1").join(name), agent.join("t1/ATest.java")).unwrap();
        assert_eq!(patch_of(&fixture.read(&agent).unwrap(), "agent", "t1"), Content::File(b"x".to_vec()));
        fs::remove_dir_all(agent.join("t1")).unwrap();
        fixture.write("agent/t1.patch", "x");
        assert_eq!(patch_of(&fixture.read(&agent).unwrap(), "agent", "t1"), Content::Patch(b"x".to_vec()));
        fs::remove_dir_all(&agent).unwrap();
    }
}

#[test]
fn a_copy_of_the_project_without_the_test_file_is_handed_in_empty() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = Fixture::new();
    let agent = fixture.directory.path().join("agent");
    fixture.write("agent/t1/src/main/java/Foo.java", "class Foo {}");
    fixture.write("agent/t1/fixes/a.patch", "x");
    fixture.write("agent/t1/target/x", "x");
    // A file where the test file's path has a directory.
    fixture.write("agent/t1/src/test", "x");
    fixture.write("agent/t2.patch", "p");
    let unreadable = agent.join("t1/target");
    fs::set_permissions(&unreadable, std::fs::Permissions::from_mode(0o000)).unwrap();
    let read = fixture.read(&agent);
    fs::set_permissions(&unreadable, std::fs::Permissions::from_mode(0o700)).unwrap();
    let predictions = read.unwrap();
    assert_eq!(patch_of(&predictions, "agent", "t1"), Content::Nothing);
    assert_eq!(patch_of(&predictions, "agent", "t2"), Content::Patch(b"p".to_vec()));
    let mut expected = vec![Stray { path: agent.join("t1"), kind: StrayKind::NoTestFile }];
    // Root reads every directory.
    if !rustix::process::geteuid().is_root() {
        expected.push(Stray { path: unreadable, kind: StrayKind::Unreadable });
    }
    assert_eq!(predictions.strays, expected);
}

#[test]
fn paths_that_nothing_has_are_told() {
    let fixture = Fixture::new();
    for (path, expected) in [
        ("nosuch", "there is no file or directory `nosuch` | `--predictions` takes a JSON file, a directory"),
        ("Gold", "there is no file or directory `Gold` | write `gold` in small letters"),
        ("EMPTY", "there is no file or directory `EMPTY` | write `empty` in small letters"),
        ("/etc/passwd/x", "there is no file or directory `/etc/passwd/x` | `--predictions` takes a JSON file"),
        ("-", "predictions can't be read from stdin | write them to a file"),
    ] {
        let error = fixture.read(Path::new(path)).unwrap_err();
        assert_eq!(error.exit_status(), ExitStatus::Usage);
        assert!(told(&error).starts_with(expected), "{}", told(&error));
    }
}

#[test]
fn fenced_test_files_are_stripped_on_request() {
    let fixture = Fixture::new();
    let file = |text: &str| serde_json::json!({ "model_file": text });
    let text = serde_json::json!({
        "t1": file("```java\nclass A {}\n```"),
        "t2": file("Here:\n\n```java\nclass A {}\n```\nThat is all.\n"),
    });
    let mut predictions = fixture.text(text.to_string()).unwrap();
    assert_eq!(predictions.strip_fences(), 2);
    let class = Content::File(b"class A {}\n".to_vec());
    assert_eq!(["t1", "t2"].map(|id| patch_of(&predictions, "unnamed", id)), [class.clone(), class]);
}
