//! `--help` and wrong arguments.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;

use crate::support::command::CommandLine;

/// Returns a subcommand's help without the options that all have.
fn own_help(command: &[&str]) -> String {
    let arguments: Vec<&str> = command.iter().copied().chain(["-h"]).collect();
    let text = CommandLine::new().run(&arguments);
    let (own, _) = text.split_once("\nGlobal options:").unwrap();
    own.to_owned()
}

#[test]
fn every_subcommand_has_help() {
    assert_snapshot!("doctor", own_help(&["doctor"]));
    assert_snapshot!("import", own_help(&["import"]));
    assert_snapshot!("tasks", own_help(&["tasks"]));
    assert_snapshot!("tasks-list", own_help(&["tasks", "list"]));
    assert_snapshot!("tasks-focal", own_help(&["tasks", "focal"]));
    assert_snapshot!("tasks-show", own_help(&["tasks", "show"]));
    assert_snapshot!("score", own_help(&["score"]));
    assert_snapshot!("report", own_help(&["report"]));
    assert_snapshot!("runs-list", own_help(&["runs", "list"]));
    assert_snapshot!("runs-show", own_help(&["runs", "show"]));
    assert_snapshot!("runs-rm", own_help(&["runs", "rm"]));
    for command in ["verify", "gc", "export", "import"] {
        assert_snapshot!(format!("store-{command}"), own_help(&["store", command]));
    }
    for command in ["create", "verify", "import"] {
        assert_snapshot!(format!("bundle-{command}"), own_help(&["bundle", command]));
    }
    assert_snapshot!("explain", own_help(&["explain"]));
    assert_snapshot!("completions", own_help(&["completions"]));
}

#[test]
fn global_options_are_explained() {
    let text = CommandLine::new().run(&["-h"]);
    let (_, global) = text.split_once("\nGlobal options:").unwrap();
    assert_snapshot!(global);
}

#[test]
fn variables_that_are_told_of_are_read() {
    let words = |text: &str| -> BTreeSet<String> {
        let name = |word: &&str| word.starts_with("TESTEVO_SANDBOX_");
        let of_a_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        text.split(|c: char| !of_a_name(c)).filter(name).map(str::to_owned).collect()
    };
    let read = |path: &Path| fs_err::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let known = words(&read(Path::new("src/cli/options.rs")));
    let docs = fs_err::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")).unwrap();
    let docs = docs.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let pages = ["README.md", "ARCHITECTURE.md", "GLOSSARY.md", "CHANGELOG.md"].map(PathBuf::from);
    for page in docs.chain(pages) {
        let unknown: Vec<String> = words(&read(&page)).difference(&known).cloned().collect();
        assert_eq!(unknown, Vec::<String>::new(), "{}", page.display());
    }
    // And what is read is told of.
    let help = words(&CommandLine::new().run(&["-h"]));
    assert_eq!(help, known);
}

#[test]
fn manual_pages_are_for_the_program_and_its_subcommands() {
    let line = CommandLine::new();
    let page = line.run(&["man"]);
    assert!(page.starts_with("exit 0") && page.contains(".TH TESTEVO-SANDBOX 1"), "{page}");
    let page = line.run(&["man", "store", "export"]);
    assert!(
        page.contains(".TH TESTEVO-SANDBOX-STORE-EXPORT 1") && page.contains("every byte that they name"),
        "{page}"
    );
    assert_snapshot!(line.run(&["man", "store", "sell"]), @"
    exit 2
    ---- stderr
    error: `testevo-sandbox store` has no subcommand `sell`
    hint: `testevo-sandbox store --help` lists them
    ");
}

#[test]
fn machines_get_events_and_errors_as_json() {
    let line = CommandLine::new();
    assert_snapshot!(line.run(&["--events", "json", "tasks", "show", "x"]), @r#"
    exit 2
    ---- stderr
    {"causes":[],"event":"error","exit_code":2,"hint":"import the benchmark's data with `testevo-sandbox import DATA`","text":"there are no tasks yet"}
    "#);
    line.write("data.json", "{}");
    assert_snapshot!(line.run(&["import", "data.json", "--events=json"]), @r#"
    exit 4
    ---- stderr
    {"causes":[],"event":"error","exit_code":4,"hint":"nothing was imported; compare the file with the one published, and correct or leave out the task","text":"`data.json`: the field `display_name` is missing"}
    "#);
}

#[test]
fn wrong_arguments_are_explained() {
    let line = CommandLine::new();
    assert_snapshot!(line.run(&["import", "--jobs", "0", "x"]), @r"
    exit 2
    ---- stderr
    error: invalid value '0' for '--jobs <N>': number would be zero for non-zero type

    For more information, try '--help'.
    ");
    assert_snapshot!(line.run(&["tasks", "list", "--origin", "central"]), @r"
    exit 2
    ---- stderr
    error: invalid value 'central' for '--origin <NAME=URL>': it has not the form NAME=URL

    For more information, try '--help'.
    ");
    assert_snapshot!(line.run(&["tasks", "list", "--track", "x"]), @r"
    exit 2
    ---- stderr
    error: invalid value 'x' for '--track <TRACK>': it is neither `update` nor `generation`

    For more information, try '--help'.
    ");
    line.write("data/settings.toml", "job = 3\n");
    assert_snapshot!(line.run(&["tasks", "list"]), @r"
    exit 2
    ---- stderr
    error: the settings `data/settings.toml` can't be understood: TOML parse error at line 1, column 1
      |
    1 | job = 3
      | ^^^
    unknown field `job`, expected one of `engine`, `jobs`, `git_mirror`, `offline`, `color`, `check_valid_until`, `origins`

    hint: known keys: engine, jobs, git_mirror, offline, color, check_valid_until, and a table [origins]
    ");
    line.write("data/settings.toml", "");
    line.write("data/version", "99\n");
    assert_snapshot!(line.run(&["tasks", "list"]), @r"
    exit 6
    ---- stderr
    error: the data directory `[DIRECTORY]/data` has version `99`, this program knows version 1
    hint: use the program that wrote it, or name another directory with `--data-dir`
    ");
}
