//! What agents leave and what they are given: files that an audit looks into, archives of workspaces, trials of Harbor.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::OnceLock;
use std::time::Duration;

use fs_err as fs;
use testevo_sandbox::agent::harbor::trials;
use testevo_sandbox::agent::packing;
use testevo_sandbox::audit::{AuditLimits, Hunt, Scanner, Secret};
use testevo_sandbox::task::TaskId;

use super::archives::{TAR_WORDS, tree_archive};
use crate::Target;
use crate::scratch::{Fresh, done, root};

const START: &str = "class ATest {\n    @Test void one() {\n        assertEquals(1, new A().one());\n    }\n}\n";
const ANSWER: &str =
    "class ATest {\n    @Test void one() {\n        assertEquals(\"two and a half\", new A().one(2, 3));\n    }\n}\n";
const COMMIT: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
/// The one configuration that a workspace's repository can have.
const CONFIGURATION: &str =
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";

/// A file that an audit looks into: any archive, encoding, patch or file of git.
pub(super) const AUDIT: Target = Target {
    name: "audit",
    run: |input| {
        let own = BTreeSet::from([task()]);
        let limits = AuditLimits {
            depth: 4,
            entries: 2000,
            entry_bytes: 1 << 20,
            total_bytes: 8 << 20,
            listed: 100,
            time: Duration::from_secs(60),
        };
        let directory = Fresh::new("audit");
        let mut scanner = Scanner::new(hunt(), &own, limits, directory.path());
        for place in ["file", "w/.git/objects/pack/pack-1.pack", "w/.git/logs/HEAD"] {
            scanner.reader(place, &mut &*input);
        }
        let report = scanner.finish();
        assert!(report.findings.len() <= 300 && report.not_looked_at.len() <= 100, "lists are bounded");
        assert_eq!(done(fs::read_dir(directory.path())).count(), 0, "indexes of packs are removed");
    },
    seeds: || {
        let zlib = |bytes: &[u8]| {
            let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            done(packed.write_all(bytes));
            done(packed.finish())
        };
        let long = format!("{}/ATest.java", "d".repeat(150));
        let mut library = b"!<arch>\n".to_vec();
        for (name, content) in [("//", "a long name/\n"), ("/0", ANSWER), ("/99", START)] {
            library.extend(format!("{name:<48}{:<10}`\n{content}", content.len()).into_bytes());
            library.resize(library.len().next_multiple_of(2), b'\n');
        }
        vec![
            tree_archive(&[("ATest.java", ANSWER.as_bytes()), (&long, b"x")]),
            library,
            zlib(format!("blob {}\0{ANSWER}", ANSWER.len()).as_bytes()),
            done(zstd::encode_all(ANSWER.as_bytes(), 1)),
            format!("@@ -1,3 +1,3 @@\n-{START}+{ANSWER}\\n&#x22;").into_bytes(),
            format!("{} {COMMIT} A <a@b> 1 +0000\tclone\n[remote \"x\"]\n", "0".repeat(40)).into_bytes(),
        ]
    },
    words: &[
        b"ustar  \0",
        b"././@LongLink",
        b"x",
        b"L",
        b"30 path=target/classes/A.class\n",
        b"20 size=99999999999\n",
        b"!<arch>\n",
        b"/99             ",
        b"#1/4294967295   ",
        b"`\n",
        b"\x1f\x8b\x08",
        b"\x78\x9c",
        b"PK\x03\x04",
        b"PK\x05\x06",
        b"PACK\0\0\0\x02",
        b"\x28\xb5\x2f\xfd",
        b"\xfd7zXZ\0",
        b"\n-",
        b"\n+",
        b"&#x",
    ],
    runs: 800,
    most_bytes: 32 << 10,
    memory: 400,
};

/// The archive of a workspace, before it is compressed.
pub(super) const WORKSPACE: Target = Target {
    name: "workspace",
    run: |input| {
        let packed = done(zstd::encode_all(input, 1));
        let directory = Fresh::new("workspace");
        let checked = packing::unpack(&task(), COMMIT, &packed[..], None);
        let written = packing::unpack(&task(), COMMIT, &packed[..], Some(directory.path()));
        assert!(checked.is_ok() || written.is_err(), "what is refused must not be written as whole");
        for entry in done(fs::read_dir(directory.path())) {
            let name = done(entry).file_name();
            assert!(["TASK.md", "task.json", "project", "home"].iter().any(|known| name == *known), "{name:?}");
        }
    },
    seeds: || vec![workspace()],
    words: TAR_WORDS,
    runs: 800,
    most_bytes: 64 << 10,
    memory: 400,
};

/// The result of one of Harbor's trials.
pub(super) const TRIAL: Target = Target {
    name: "trial",
    run: |input| {
        let directory = Fresh::new("trial");
        done(fs::write(directory.path().join("result.json"), input));
        let Ok(job) = trials::find(directory.path()) else { return };
        for trial in job.trials {
            assert!(trial.task(&[]).is_err() && trial.cost_usd.is_none_or(|cost| cost.is_finite() && cost >= 0.0));
            assert!(trial.is_lost(), "nothing was collected");
        }
    },
    seeds: || {
        let result = serde_json::json!({
            "trial_name": "t", "task_name": "a/b", "task_id": {"path": "tasks/x"},
            "agent_info": {"name": "agent", "model_info": {"name": "model", "provider": "p"}},
            "agent_result": {"n_input_tokens": 7, "n_output_tokens": 5, "cost_usd": 0.5},
            "agent_execution": {"started_at": "2026-01-01T00:00:00Z"},
            "exception_info": {"exception_type": "AgentTimeoutError"},
        });
        vec![result.to_string().into_bytes()]
    },
    words: &[b"null", b"-1e999", b"18446744073709551615", b"\"trial_name\":", b"{}", b"[]"],
    runs: 1000,
    most_bytes: 16 << 10,
    memory: 400,
};

fn task() -> TaskId {
    done("t1".parse())
}

fn hunt() -> &'static Hunt {
    static HUNT: OnceLock<Hunt> = OnceLock::new();
    HUNT.get_or_init(|| {
        done(Hunt::new(vec![Secret {
            task: task(),
            test: ANSWER.as_bytes().to_vec(),
            start: Some(START.as_bytes().to_vec()),
            class: "ATest".to_owned(),
            commit: COMMIT.to_owned(),
            artifacts: Vec::new(),
        }]))
    })
}

/// Returns the archive of a workspace with the files that each one has.
fn workspace() -> Vec<u8> {
    let directory = root().join("workspace-seed");
    let facts = serde_json::json!({
        "schema": 1, "task_id": "t1", "repository": "o/n", "track": "test_update", "test_file": "ATest.java",
        "test_methods": ["ATest#one"], "start_sha256": null, "image": null, "project": "/work/project", "commands": null,
    });
    let main = format!("{COMMIT}\n");
    let facts = facts.to_string();
    for (path, text) in [
        ("TASK.md", "a task"),
        ("task.json", facts.as_str()),
        ("project/ATest.java", START),
        ("project/.git/HEAD", "ref: refs/heads/main\n"),
        ("project/.git/config", CONFIGURATION),
        ("project/.git/refs/heads/main", main.as_str()),
    ] {
        let path = directory.join(path);
        done(fs::create_dir_all(path.parent().unwrap_or(root())));
        done(fs::write(path, text));
    }
    done(packing::plain(&directory, "", 1000, Vec::new()))
}
