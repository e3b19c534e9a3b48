//! A bundle is enough: validated and scored from an empty data directory and without a network, its tasks come out as
//! they do where they were locked, and Maven compiles nothing.

use std::path::Path;
use std::process::Command;

use fs_err as fs;
use serde_json::Value;

use super::demonstration;

/// Returns a run's verdicts without what differs between equal runs.
fn verdicts(data_dir: &Path, run: &str) -> Value {
    let bytes = fs::read(data_dir.join("runs").join(run).join("verdicts.json")).unwrap();
    let mut verdicts: Value = serde_json::from_slice(&bytes).unwrap();
    assert!(verdicts.as_object_mut().unwrap().remove("volatile").is_some());
    verdicts
}

#[test]
fn a_bundle_is_all_that_validating_and_scoring_need() {
    let (repository, workshop) = demonstration::given();
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (bundle, empty) = (directory.path().join("bundle"), directory.path().join("data"));
    let name = repository.name.to_string();
    let validate = ["validate", "--engine", "native", "--format", "json", "--run-id"];
    let score = ["score", "--engine", "native", "--predictions", "gold", "--no-mutation", "--format", "json"];
    let (executed, kept) = (
        [&score[..], &["--no-cache", "--run-id"]].concat(),
        [&score[..], &["--certified-by", "bundled-validate", "--run-id"]].concat(),
    );
    for (command, run) in [(&validate[..], "bundled-validate"), (&executed, "bundled-score")] {
        let earlier = workshop.data_dir.join("runs").join(run);
        if earlier.exists() {
            fs::remove_dir_all(earlier).unwrap();
        }
        workshop.run(&[command, &[run, &name, "--limit", "2"]].concat());
    }
    let create = ["bundle", "create", "--audience", "scorer", &name, "--limit", "2", "--run", "bundled-validate"];
    workshop.run(&[&create[..], &["--run", "bundled-score", "-o", bundle.to_str().unwrap()]].concat());

    for (command, run, expected) in [
        // The first one finds nothing but the bundle.
        (&kept[..], "kept", "bundled-score"),
        (&validate, "validate", "bundled-validate"),
        (&executed, "executed", "bundled-score"),
    ] {
        let mut alone = Command::new("unshare");
        // Root keeps its own rights, because the engine needs no user namespace then.
        if !rustix::process::geteuid().is_root() {
            alone.args(["--user", "--map-root-user"]);
        }
        alone
            .arg("--net")
            .arg(env!("CARGO_BIN_EXE_testevo-sandbox"))
            .args(command)
            .arg(run)
            .arg("--bundle")
            .arg(&bundle);
        alone.args(["--jobs", "1", "--data-dir"]).arg(&empty);
        let output = alone.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(verdicts(&empty, run), verdicts(&workshop.data_dir, expected), "{run}");
        // Logs of Maven would lie there.
        assert!(!empty.join("runs").join(run).join("logs/prepared").exists(), "{run}: Maven compiled a revision");
    }
    // The developers' tests were not executed again.
    let records = |run: &str| fs::read_to_string(empty.join("runs").join(run).join("records.jsonl")).unwrap();
    let (kept, executed) = (records("kept"), records("executed"));
    assert!(kept.contains(r#""cached":true"#) && !kept.contains(r#""cached":false"#), "{kept}");
    assert!(executed.contains(r#""cached":false"#) && !executed.contains(r#""cached":true"#), "{executed}");
    let archives = |data_dir: &Path| -> Vec<_> {
        fs::read_dir(data_dir.join("store/class-archives")).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    let here = archives(&workshop.data_dir);
    assert!(archives(&empty).iter().all(|archive| here.contains(archive)), "a class archive was made again");
}

/// The bill of materials of a bundle with a real toolchain and a real Maven cache fits CycloneDX's schema, and names licences.
#[test]
#[ignore = "installs PyPI's cyclonedx-python-lib"]
fn full_the_bill_of_materials_fits_the_schema() {
    let (repository, workshop) = demonstration::given();
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bundle = directory.path().join("bundle");
    let create = ["bundle", "create", "--audience", "scorer", repository.name.as_str(), "--limit", "1", "-o"];
    workshop.run(&[&create[..], &[bundle.to_str().unwrap()]].concat());
    let blobs =
        fs::read_dir(bundle.join("blobs/sha256")).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
    let bill = blobs.filter_map(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    let bills: Vec<Value> = bill.filter(|bill| bill["bomFormat"] == "CycloneDX").collect();
    let [bill] = &bills[..] else { panic!("{bills:?}") };
    let licences = |bill: &Value, name: &str| {
        let component = bill["components"].as_array().unwrap().iter().find(|one| one["name"] == name);
        component.unwrap_or_else(|| panic!("no {name} in {bill}"))["licenses"][0]["license"]["name"].clone()
    };
    assert_eq!(licences(bill, "org.junit.jupiter:junit-jupiter-api"), "Eclipse Public License v2.0");
    // Its parent names it.
    assert!(
        licences(bill, "org.apache.maven.plugins:maven-surefire-plugin").as_str().unwrap().contains("Apache"),
        "{bill}"
    );

    let fine = |command: &mut Command| {
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success(), "{said}");
    };
    let (python, file) = (directory.path().join("python"), directory.path().join("bill.json"));
    fs::write(&file, bill.to_string()).unwrap();
    fine(Command::new("python3").args(["-m", "venv"]).arg(&python));
    let library = "cyclonedx-python-lib[json-validation]";
    fine(Command::new(python.join("bin/pip")).args(["install", "--quiet", library]));
    let check = "import sys; from cyclonedx.validation.json import JsonStrictValidator; from cyclonedx.schema import SchemaVersion; \
                 error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read()); sys.exit(str(error) if error else 0)";
    fine(Command::new(python.join("bin/python")).args(["-c", check]).arg(&file));
}
