//! The commands of the README and the documentation, run against the demonstration's repository: every line of every code
//! block is a command that succeeds here, or stands in a list with the reason why it is not run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fs_err as fs;
use serde_json::{Value, json};
use testevo_sandbox::sample::SampleRepository;
use testevo_sandbox::task::Side;

use super::demonstration;
use super::workshop::Workshop;

/// The one task that the commands get, with one of its methods: a generation task takes the fewest executions.
const TASK: &str = "testevo__sample__new-class";
const METHOD: &str = "VoucherTest#valid";

const NO_COMMAND: &str = "a part of a file, or a drawing";
const DEVELOPERS: &str = "builds or tests the project itself";
const SYNOPSIS: &str = "a synopsis; `selftest` is run by tests/mutations and by the ignored tests";
const AGENT_IMAGE: &str =
    "downloads the tools of agents; tests/miniature/agents.rs and tests/cli/agent_bundle.rs use such images";
const AGENT_BUNDLE: &str = "takes minutes of processor time; tests/cli/agent_bundle.rs has such bundles";
const CONTAINED: &str = "what the program runs in containers";

/// What is not run: a part of the line, or of its block where that has no command, and the reason.
const LISTED: [(&str, &str); 27] = [
    ("cargo ", DEVELOPERS),
    ("fuzz/guided/run", DEVELOPERS),
    ("published data ──import──▶", NO_COMMAND),
    ("[[unresolved]]", NO_COMMAND),
    ("whole_sets =", NO_COMMAND),
    ("[overrides]", NO_COMMAND),
    ("[[extension_jars]]", NO_COMMAND),
    ("mvn -o -pl MODULE", CONTAINED),
    ("java FLAGS", CONTAINED),
    ("selftest [CASE…]", SYNOPSIS),
    ("lock OWNER/NAME --agent", AGENT_IMAGE),
    ("images load OWNER/NAME --agent", AGENT_IMAGE),
    ("docker run", AGENT_IMAGE),
    ("workspace TASK --shell", AGENT_IMAGE),
    ("bundle create --audience agent", AGENT_BUNDLE),
    ("audit for-agents.tar", AGENT_BUNDLE),
    ("workspace --bundle for-agents.tar", AGENT_BUNDLE),
    ("bundle import for-agents.tar", AGENT_BUNDLE),
    ("export harbor", AGENT_IMAGE),
    ("harbor run", "needs Harbor"),
    ("import harbor", "needs a job of Harbor's; tests/miniature/harbor.rs has one"),
    ("ssh-keygen -Y verify", "verifies an unpacked bundle; tests/cli/bundle.rs runs it"),
    ("bundle push", "needs a registry; tests/cli/registry.rs has one"),
    ("bundle pull", "needs a registry; tests/cli/registry.rs has one"),
    ("bundle import jcasbin", "takes what `bundle pull` left; tests/cli/registry.rs runs it"),
    ("docs/schedulers/ssh-shards", "needs machines to log in to; tests/cli/schedulers.rs runs it"),
    ("--on slurm", "needs a cluster; tests/miniature/slurm.rs has one"),
];

/// Placeholders and names of the documentation, and what stands for them here. Longer ones come first.
const STAND_INS: [(&str, &str); 16] = [
    ("RUN-OR-DIRECTORY...", "part-1 part-2 part-3 part-4"),
    ("--predictions FILE", "--predictions predictions.jsonl"),
    ("--published FILE", "--published leaderboard.json"),
    ("RUN OTHER", "gold other"),
    ("RUN...", "gold"),
    ("RUN…", "gold"),
    ("RUN", "gold"),
    ("VALIDATION", "validation"),
    ("casbin/jcasbin", "testevo/sample"),
    ("OWNER/NAME", "testevo/sample"),
    ("REPOSITORY", "testevo/sample"),
    ("DATA...", "data.json"),
    ("DATA", "data.json"),
    ("TASK", TASK),
    // The sample's tasks are of early 2024.
    ("2025-01-01", "2024-01-01"),
    ("'…/{owner}/{name}'", "\"$TESTEVO_SANDBOX_GIT_MIRROR\""),
];

/// A directory to run commands in, with a data directory of its own.
struct Place {
    directory: PathBuf,
    mirror: String,
}

impl Place {
    /// Copies what the demonstration found and made, so that nothing is made again.
    fn new(repository: &SampleRepository, workshop: &Workshop) -> Self {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("documentation");
        if directory.exists() {
            fs::remove_dir_all(&directory).unwrap();
        }
        let data_dir = directory.join("data");
        fs::create_dir_all(&data_dir).unwrap();
        for part in ["version", "images", "locks", "proofs", "time-classes", "repositories", "results"] {
            let copied =
                Command::new("cp").arg("-a").arg(workshop.data_dir.join(part)).arg(&data_dir).status().unwrap();
            assert!(copied.success(), "{part}");
        }
        let store = fs::canonicalize(workshop.data_dir.join("store")).unwrap();
        fs::os::unix::fs::symlink(store, data_dir.join("store")).unwrap();

        let published = workshop.data_dir.join(format!("{}.json", repository.name.file_stem()));
        let mut published: Value = serde_json::from_slice(&fs::read(published).unwrap()).unwrap();
        let tasks = published["tracks"]["test_generation"].as_array().unwrap();
        let mut task = tasks.iter().find(|task| task["task_id"] == TASK).unwrap().clone();
        task["test_methods"] = json!([METHOD]);
        task["test_method_urls"].as_object_mut().unwrap().retain(|method, _| method == METHOD);
        published["tracks"] = json!({ "test_generation": [task], "test_update": [] });
        fs::write(directory.join("data.json"), published.to_string()).unwrap();

        let miniature = repository.miniatures.iter().find(|miniature| miniature.name == "new-class").unwrap();
        let text = String::from_utf8_lossy(&miniature.files(Side::New)[&miniature.test_file]);
        let line = json!({ "instance_id": TASK, "model_name_or_path": "sample", "model_file": text });
        fs::write(directory.join("predictions.jsonl"), format!("{line}\n")).unwrap();
        let mirror = workshop.sources.join("{owner}__{name}").display().to_string();
        let place = Self { directory, mirror };
        place.run("mkdir .ssh && ssh-keygen -q -t ed25519 -N '' -f .ssh/id_ed25519");
        place.run("echo \"NAME $(cat .ssh/id_ed25519.pub)\" > signers");
        place.run("testevo-sandbox import data.json");
        place.run("testevo-sandbox build-images");
        place.run("testevo-sandbox score --predictions gold --run-id gold");
        // It has the same results, which are kept.
        place.run("testevo-sandbox score --predictions gold --run-id other");
        place.run("testevo-sandbox validate --run-id validation");
        place.run("testevo-sandbox report gold --format leaderboard > leaderboard.json");
        place
    }

    /// Runs a line of a shell, which must succeed.
    fn run(&self, line: &str) {
        let program = Path::new(env!("CARGO_BIN_EXE_testevo-sandbox")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(&self.directory).stdin(Stdio::null());
        shell.env("PATH", path).env("HOME", &self.directory);
        shell.env("TESTEVO_SANDBOX_DATA_DIR", self.directory.join("data"));
        shell.env("TESTEVO_SANDBOX_GIT_MIRROR", &self.mirror).env("TESTEVO_SANDBOX_ENGINE", "native");
        let output = shell.output().unwrap();
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(output.status.success(), "{line}: {}\n{stdout}{stderr}", output.status);
    }
}

/// Returns the code blocks of the README and the documentation, each with its page.
fn blocks() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> = docs.filter(|path| path.is_file()).collect();
    pages.sort();
    pages.insert(0, root.join("README.md"));
    let blocks = pages.into_iter().flat_map(|page| {
        let text = fs::read_to_string(&page).unwrap();
        // What stands after the fence is the block's language.
        let blocks = text.split("\n```").skip(1).step_by(2).filter_map(|block| Some(block.split_once('\n')?.1));
        blocks.map(|block| (page.clone(), block.to_owned())).collect::<Vec<_>>()
    });
    blocks.collect()
}

/// Replaces words, but not parts of words.
fn replaced(line: &str, word: &str, by: &str) -> String {
    let of_a_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut text = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        text.push_str(before);
        let whole = !text.ends_with(of_a_word) && !after.starts_with(of_a_word);
        text.push_str(if whole { by } else { word });
        rest = after;
    }
    text + rest
}

/// Returns what is run for a line: without its remark, which two blanks or a hash begin, and with the stand-ins.
fn command(line: &str, block: usize) -> String {
    let line = line.split("  ").next().unwrap_or(line).split(" # ").next().unwrap_or(line);
    let line = STAND_INS.iter().fold(line.to_owned(), |line, (word, by)| replaced(&line, word, by));
    // Each block has directories of its own, which must be new.
    replaced(&replaced(&line, "DIR", &format!("directory-{block}")), "-o report", &format!("-o report-{block}"))
}

#[test]
fn commands_of_the_documentation_are_run_or_listed() {
    let (repository, workshop) = demonstration::given_alone();
    let place = Place::new(&repository, &workshop);
    let mut used = [false; LISTED.len()];
    let mut run = 0;
    for (number, (page, block)) in blocks().iter().enumerate() {
        for name in ["part-1", "part-2", "part-3", "part-4", "whole"] {
            let path = place.directory.join("data/runs").join(name);
            if path.exists() {
                fs::remove_dir_all(path).unwrap();
            }
        }
        let has_commands = block.contains("testevo-sandbox ");
        for line in block.lines().filter(|line| !line.trim().is_empty()) {
            let text = if has_commands { line } else { block };
            if let Some(place) = LISTED.iter().position(|(part, _)| text.contains(part)) {
                used[place] = true;
                continue;
            }
            assert!(line.contains("testevo-sandbox "), "{}: `{line}` is neither run nor listed", page.display());
            let command = command(line, number);
            place.run(&command);
            run += 1;
            // "And so on" stands for the other shards.
            if command.contains("--shard 2/4 --run-id part-2") {
                for other in ["3", "4"] {
                    place.run(
                        &command.replace("2/4", &format!("{other}/4")).replace("part-2", &format!("part-{other}")),
                    );
                }
            }
        }
    }
    let unused: Vec<&str> = LISTED.iter().zip(used).filter(|(_, used)| !used).map(|((part, _), _)| *part).collect();
    assert_eq!(unused, Vec::<&str>::new(), "stands in no page");
    assert!(run > 30, "{run} commands");
}
