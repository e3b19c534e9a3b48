//! What a shell completes, asked as a shell asks.

use std::process::Command;

use super::lock::imported;
use crate::support::command::CommandLine;
use crate::support::scored::ScoredRun;

/// Asks a bash that has read the program's script, as if the last word were being typed.
const ASK: &str = r#"
eval "$("$0" completions bash)"
COMP_WORDS=(testevo-sandbox "$@"); COMP_CWORD=$#; COMP_TYPE=9
complete=$(complete -p testevo-sandbox); complete=${complete##*-F }; ${complete%% *} testevo-sandbox "${COMP_WORDS[COMP_CWORD]}" ''
printf '%s\n' "${COMPREPLY[@]}"
"#;

fn ask(line: &CommandLine, words: &[&str]) -> Vec<String> {
    let program = env!("CARGO_BIN_EXE_testevo-sandbox");
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", ASK, program]).args(words).current_dir(line.path()).env("HOME", line.path());
    let said = bash.env_remove("TESTEVO_SANDBOX_DATA_DIR").env_remove("XDG_DATA_HOME").output().unwrap();
    assert!(said.status.success() && said.stderr.is_empty(), "{words:?}: {}", String::from_utf8_lossy(&said.stderr));
    String::from_utf8(said.stdout).unwrap().lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_completes_options_runs_tasks_and_repositories() {
    let line = imported();
    let data = line.path().join("data");
    for run_id in ["small", "large"] {
        ScoredRun { run_id, models: vec!["m".to_owned()], tasks: 1, strange: "" }.write(&data);
    }
    let data = data.to_str().unwrap();
    let names = |words: &[&str]| -> Vec<String> {
        let words = [&["--data-dir", data], words].concat();
        ask(&line, &words).into_iter().filter(|word| !word.starts_with('-')).collect()
    };
    assert_eq!(ask(&line, &["report", "--fo"]), ["--format"]);
    assert_eq!(names(&["report", "s"]), ["small"]);
    let mut runs = names(&["runs", "compare", "small", ""]);
    assert_eq!(runs.remove(0), "latest");
    runs.sort();
    assert_eq!(runs, ["large", "small"]);
    let repositories = names(&["validate", ""]);
    assert_eq!(repositories, ["testevo/sample"]);
    let tasks = names(&["validate", "testevo"]);
    assert!(tasks.len() > 1 && tasks.contains(&repositories[0]), "{tasks:?}");
    assert!(names(&["explain", "small", "testevo"]).iter().all(|task| tasks.contains(task)));
    // A place without data has no names, and asking makes none.
    assert_eq!(ask(&line, &["--data-dir=none", "runs", "show", "l"]), Vec::<String>::new());
    assert!(!line.path().join("none").exists());
}
