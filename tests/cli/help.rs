//! `--help` and wrong arguments.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
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
    for command in ["merge", "compare", "cancel", "rm"] {
        assert_snapshot!(format!("runs-{command}"), own_help(&["runs", command]));
    }
    for command in ["verify", "gc", "export", "import"] {
        assert_snapshot!(format!("store-{command}"), own_help(&["store", command]));
    }
    for command in ["create", "verify", "import"] {
        assert_snapshot!(format!("bundle-{command}"), own_help(&["bundle", command]));
    }
    assert_snapshot!("export-dataset", own_help(&["export", "dataset"]));
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
    let known: BTreeSet<String> =
        ["src/cli/options.rs", "src/cli/scratch.rs"].iter().flat_map(|file| words(&read(Path::new(file)))).collect();
    let docs = fs_err::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")).unwrap();
    let docs = docs.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let pages = ["README.md", "ARCHITECTURE.md", "GLOSSARY.md", "CHANGELOG.md"].map(PathBuf::from);
    for page in docs.chain(pages) {
        let unknown: Vec<String> = words(&read(&page)).difference(&known).cloned().collect();
        assert_eq!(unknown, Vec::<String>::new(), "{}", page.display());
    }
    // And what is read is told of.
    let helps = [&["-h"][..], &["score", "-h"]];
    let help: BTreeSet<String> = helps.iter().flat_map(|help| words(&CommandLine::new().run(help))).collect();
    assert_eq!(help, known);
}

/// Every command in a code block of the README or the documentation has the subcommands and options that it names.
#[test]
fn commands_of_the_documentation_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs_err::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let line = CommandLine::new();
    let mut seen = 0;
    for page in docs.filter(|path| path.is_file()).chain([root.join("README.md")]) {
        let text = fs_err::read_to_string(&page).unwrap();
        let blocks = text.split("\n```").skip(1).step_by(2).flat_map(str::lines);
        for command in blocks.filter_map(|line| line.trim_start_matches("$ ").strip_prefix("testevo-sandbox ")) {
            let words = command.split_whitespace().take_while(|word| !word.starts_with('#'));
            let words: Vec<&str> = words.map(|word| word.trim_matches(['[', ']'])).collect();
            let is_name =
                |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-');
            // Subcommands of subcommands: as many words as there is help for.
            let names: Vec<&str> = words.iter().take_while(is_name).copied().take(2).collect();
            let help = |names: &[&str]| line.run(&[names, &["--help"]].concat());
            let text = [&names[..], &names[..1]].map(help).into_iter().find(|text| text.starts_with("exit 0"));
            let text = text.unwrap_or_else(|| panic!("{}: {command}", page.display()));
            for option in words.iter().filter(|word| word.starts_with("--")) {
                let option = option.split('=').next().unwrap();
                let global = line.run(&["-h"]).contains(option);
                assert!(text.contains(option) || global, "{}: `{option}` of `{command}`", page.display());
            }
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen} commands");
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
    error: invalid value '0' for '--jobs <N>': it is no whole number from 1 on

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
    unknown field `job`, expected one of `engine`, `jobs`, `max_disk`, `git_mirror`, `offline`, `color`, `check_valid_until`, `origins`, `slurm`

    hint: known keys: engine, jobs, max_disk, git_mirror, offline, color, check_valid_until, and the tables [origins] and [slurm]
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

#[test]
fn a_usage_line_has_only_options_that_were_typed() {
    let variables = [("TESTEVO_SANDBOX_JOBS", "2"), ("TESTEVO_SANDBOX_ENGINE", "native")];
    let text = CommandLine::new().run_with(&variables, &["runs", "show", "--offline"]);
    assert!(text.starts_with("exit 2\n") && text.contains("<RUN>"), "{text}");
    let usage = text.lines().find(|line| line.starts_with("Usage: ")).unwrap();
    assert!(!["--jobs", "--engine", "--data-dir"].iter().any(|option| usage.contains(option)), "{usage}");
    // What is wrong in the environment is still told.
    let text = CommandLine::new().run_with(&[("TESTEVO_SANDBOX_JOBS", "many")], &["runs", "list"]);
    assert!(text.starts_with("exit 2\n") && text.contains("'many' for '--jobs <N>'"), "{text}");
}

#[test]
fn zero_is_refused_in_words() {
    for arguments in
        [&["--jobs", "0", "runs", "list"][..], &["validate", "--repeat", "0"], &["validate", "--repeat", "x"]]
    {
        let text = CommandLine::new().run(arguments);
        assert!(text.contains("it is no whole number from 1 on"), "{text}");
        assert!(!text.contains("non-zero type"), "{text}");
    }
}

#[test]
fn numbers_and_days_are_refused_in_words() {
    let large = "99999999999999999999999";
    for (arguments, expected) in [
        (["tasks", "list", "--limit", large], "the number is too large"),
        (["tasks", "list", "--limit", "0"], "it is no whole number from 1 on"),
        (["tasks", "list", "--since", "2020-13-01"], "it is no date (YYYY-MM-DD)"),
        (["tasks", "list", "--until", "tomorrow"], "it is no date (YYYY-MM-DD)"),
        (["report", "r1", "--since", "2020-02-30"], "it is no date (YYYY-MM-DD)"),
        (["validate", "x", "--repeat", large], "the number is too large"),
        (["store", "gc", "--min-age", large], "the number is too large"),
        (["store", "gc", "--min-age", "x"], "it is no whole number from 0 on"),
    ] {
        let text = CommandLine::new().run(&arguments);
        assert!(text.starts_with("exit 2\n") && text.contains(&format!(": {expected}\n")), "{text}");
    }
    let text = CommandLine::new().run(&["score", "--predictions", "gold", "--seed", large]);
    assert!(text.contains("the number is too large"), "{text}");
}

/// Runs the program on a terminal of its own, with programs of this directory only.
fn on_terminal(line: &CommandLine, path: &str, arguments: &str) -> (Option<i32>, String) {
    let command = format!("{} {arguments}", env!("CARGO_BIN_EXE_testevo-sandbox"));
    let output = std::process::Command::new("/usr/bin/script")
        .args(["-qec", &command, "/dev/null"])
        .env("PATH", line.path().join(path))
        .env("SHELL", "/bin/sh")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_terminal_gets_a_rendered_page() {
    let line = CommandLine::new();
    line.write("bin/man", "#!/bin/sh\nread first\necho \"man $*: $first\"\n");
    let man = line.path().join("bin/man");
    fs_err::set_permissions(&man, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (code, text) = on_terminal(&line, "bin", "man lock");
    // The page's source begins with definitions, and with the title after them.
    assert!(code == Some(0) && text.starts_with("man -l -: .ie"), "{code:?} {text}");
    let (code, text) = on_terminal(&line, "nowhere", "man lock");
    assert!(
        code == Some(2) && text.contains("`man` can't show the page") && text.contains("redirecting stdout"),
        "{text}"
    );
}
