//! `bundle`: what is written is equal for equal inputs, arrives whole, and a damaged or hostile bundle does no harm.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use fs_err as fs;
use serde_json::Value;
use testevo_sandbox::bundle::description::ImageReference;
use testevo_sandbox::bundle::runs::{PackedRun, RunArchive};
use testevo_sandbox::bundle::{Description, Layout, objects};
use testevo_sandbox::data_dir::DataDir;
use testevo_sandbox::digest::Digest;
use testevo_sandbox::lock::{JdkLock, LockFile as _, ToolchainLock};
use testevo_sandbox::sample::SampleRepository;
use testevo_sandbox::task::{RepositoryName, Revision};

use crate::support::command::CommandLine;
use crate::support::locks;

/// A data directory with a sample repository's tasks, locks and an image that holds nothing of the repository.
pub(super) struct Maker {
    pub(super) line: CommandLine,
    pub(super) repository: RepositoryName,
    mirror: String,
}

impl Maker {
    pub(super) fn new() -> Self {
        let line = CommandLine::new();
        let sample = SampleRepository::demo().unwrap();
        let mirror = line.path().join("mirror");
        let revisions = sample.write_git(&mirror.join(sample.name.name())).unwrap();
        line.write("sample.json", &sample.published(&revisions));
        line.run(&["import", "sample.json"]);
        let data_dir = DataDir::open(&line.path().join("data")).unwrap();
        let kit = JdkLock { major: sample.jdk, packages: Vec::new() };
        let toolchain = ToolchainLock { jdks: vec![kit], ..ToolchainLock::empty() };
        toolchain.store(&data_dir.join("locks/toolchain.lock")).unwrap();
        let mut lock = locks::repository(sample.name.as_str(), Vec::new(), &[]);
        lock.jdk = sample.jdk;
        lock.store(&data_dir.join("locks").join(format!("{}.lock", sample.name.file_stem()))).unwrap();
        let maker = Self { line, repository: sample.name, mirror: format!("{}/{{name}}", mirror.display()) };
        maker.fine(&["build-images", "--proof", "none", "--offline"]);
        maker
    }

    pub(super) fn run(&self, arguments: &[&str]) -> String {
        self.line.run(&[arguments, &["--git-mirror", &self.mirror]].concat())
    }

    pub(super) fn fine(&self, arguments: &[&str]) -> String {
        let said = self.run(arguments);
        assert!(said.starts_with("exit 0"), "{said}");
        said
    }

    /// Returns the number of its tasks.
    pub(super) fn tasks(&self) -> usize {
        SampleRepository::demo().unwrap().miniatures.len()
    }

    fn create(&self, output: &str, more: &[&str]) -> PathBuf {
        self.fine(&[&["bundle", "create", "--audience", "scorer", "-o", output], more].concat());
        self.line.path().join(output)
    }
}

/// Imports into a new data directory, which must stay without records if the import fails with `expected`.
pub(super) fn refused(bundle: &Path, more: &[&str], code: u8, expected: &str) {
    let line = CommandLine::new();
    let said = line.run(&[&["bundle", "import", bundle.to_str().unwrap()], more].concat());
    assert!(said.starts_with(&format!("exit {code}\n")) && said.contains(expected), "{said}");
    assert!(said.contains("\nhint: "), "{said}");
    // Blobs may be left: nobody uses one before a record names it.
    let parts = ["data/tasks/", "data/locks/", "data/manifests/", "data/images/", "data/store/prepared/", "escaped"];
    let records = line.files().into_iter().filter(|file| parts.iter().any(|part| file.contains(part)));
    let left: Vec<String> = records.filter(|file| !file.contains(".held/")).collect();
    assert_eq!(left, Vec::<String>::new());
}

pub(super) fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

/// Returns the largest blob of a bundle.
pub(super) fn largest(bundle: &Path) -> PathBuf {
    let blobs = fs::read_dir(bundle.join("blobs/sha256")).unwrap().map(|entry| entry.unwrap().path());
    blobs.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap()
}

#[test]
fn a_bundle_is_equal_arrives_whole_and_is_taken_once() {
    let maker = Maker::new();
    let (directory, archive) = (maker.create("made", &[]), maker.create("made.tar", &[]));
    assert_eq!(fs::read(&archive).unwrap(), fs::read(maker.create("again.tar", &[])).unwrap());
    let from_archive = tempfile::tempdir().unwrap();
    let unpacked = Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(from_archive.path()).status();
    assert!(unpacked.unwrap().success());
    let differ = Command::new("diff").arg("-r").arg(from_archive.path()).arg(&directory).output().unwrap();
    assert!(differ.status.success(), "{}", String::from_utf8_lossy(&differ.stdout));

    for bundle in [&directory, &archive] {
        let said = maker.line.run(&["bundle", "verify", bundle.to_str().unwrap()]);
        assert!(said.contains("exit 0") && said.contains("signature not checked"), "{said}");
        let line = CommandLine::new();
        let import = ["bundle", "import", bundle.to_str().unwrap(), "--format", "json"];
        let said = line.run(&import);
        assert!(said.starts_with("exit 0") && said.contains("who made the bundle"), "{said}");
        for part in ["manifests", "tasks", "locks", "images"] {
            let extension = if part == "manifests" {
                "toml"
            } else if part == "locks" {
                "lock"
            } else {
                "json"
            };
            let file = format!("data/{part}/{}.{extension}", maker.repository.file_stem());
            let there: Result<Value, _> = serde_json::from_slice(&fs::read(line.path().join(&file)).unwrap());
            let here = serde_json::from_slice(&fs::read(maker.line.path().join(&file)).unwrap());
            assert_eq!(there.ok(), here.ok(), "{file}");
        }
        // The sources are those of the mirror: without one, the methods under test are found.
        let focal = |said: &str| said.split_once("---- stdout\n").map(|(_, stdout)| stdout.to_owned());
        let expected = maker.fine(&["tasks", "focal", "--format", "json"]);
        let found = line.run(&["tasks", "focal", "--format", "json", "--offline"]);
        assert_eq!(focal(&found), focal(&expected), "{found}");
        assert!(focal(&found).is_some_and(|text| text.contains("focal")), "{found}");
        let git = line.path().join("data/repositories").join(format!("{}.git", maker.repository.file_stem()));
        let checked = Command::new("git").arg("-C").arg(&git).args(["fsck", "--strict"]).output().unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
        let said = line.run(&import);
        assert!(said.starts_with("exit 0") && said.contains(r#""blobs":0"#), "{said}");
    }
    // On a machine without the tasks a dry run says what it would take, and ends.
    let line = CommandLine::new();
    let said = line.run(&["validate", "--bundle", archive.to_str().unwrap(), "--dry-run", "--engine", "native"]);
    assert!(said.starts_with("exit 0\n") && said.contains("would take 5 tasks"), "{said}");
    assert!(!line.files().iter().any(|file| file.contains("data/tasks/")), "{said}");
    let bill =
        fs::read_dir(directory.join("blobs/sha256")).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
    let bills = bill.filter(|bytes| bytes.windows(9).any(|text| text == b"CycloneDX")).count();
    assert_eq!(bills, 1);
    assert!(maker.run(&["bundle", "create", "--audience", "scorer", "-o", "made"]).contains("has content already"));
}

#[test]
fn damaged_and_hostile_bundles_are_refused() {
    let maker = Maker::new();
    let (directory, archive) = (maker.create("made", &[]), maker.create("made.tar", &[]));
    let path = |name: &str| maker.line.path().join(name);

    let bytes = fs::read(&archive).unwrap();
    fs::write(path("short.tar"), &bytes[..bytes.len() / 2]).unwrap();
    refused(&path("short.tar"), &[], 4, "truncated");
    fs::write(path("text.tar"), "no archive at all").unwrap();
    refused(&path("text.tar"), &[], 4, "can't be used");
    refused(Path::new("/dev/null"), &[], 4, "neither a directory nor a file");
    refused(&path("nowhere"), &[], 3, "could not be read");

    let changed = |name: &str, change: &dyn Fn(&Path)| {
        let copied = path(name);
        copy(&directory, &copied);
        change(&copied);
        copied
    };
    // Bytes of each kind of blob: the largest belongs to the store or is sources.
    let mut blobs: Vec<_> = fs::read_dir(directory.join("blobs/sha256")).unwrap().map(|one| one.unwrap()).collect();
    // An empty one, such as the index of an empty layer, has no byte to change.
    blobs.retain(|blob| blob.metadata().unwrap().len() > 0);
    for (number, blob) in blobs.iter().map(|blob| blob.file_name()).enumerate() {
        let tampered = changed(&format!("tampered-{number}"), &|bundle| {
            let file = bundle.join("blobs/sha256").join(&blob);
            let mut bytes = fs::read(&file).unwrap();
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            fs::write(file, bytes).unwrap();
        });
        let said = CommandLine::new().run(&["bundle", "verify", tampered.to_str().unwrap()]);
        assert!(!said.starts_with("exit 0") && said.contains(blob.to_str().unwrap()), "{said}");
        let line = CommandLine::new();
        let said = line.run(&["bundle", "import", tampered.to_str().unwrap()]);
        assert!(said.starts_with("exit 6\n") && said.contains("other bytes than its name says"), "{said}");
        assert!(!line.files().iter().any(|file| file.contains("data/tasks/")), "{:?}", line.files());
    }
    let gone = changed("gone", &|bundle| fs::remove_file(largest(bundle)).unwrap());
    let said = CommandLine::new().run(&["bundle", "verify", gone.to_str().unwrap()]);
    assert!(said.starts_with("exit 1") && said.contains("missing: "), "{said}");
    let linked = changed("linked", &|bundle| {
        let blob = largest(bundle);
        fs::rename(&blob, path("elsewhere")).unwrap();
        symlink(path("elsewhere"), blob).unwrap();
    });
    refused(&linked, &[], 4, "reached by a link");
    // What is of two bundles is none, though each part is whole.
    let less = maker.create("less", &["--limit", "1"]);
    let mixed = changed("mixed", &|bundle| {
        fs::copy(less.join("index.json"), bundle.join("index.json")).unwrap();
    });
    refused(&mixed, &[], 4, "is missing");
    // An import that ended in the midst goes on: what it has taken is not taken again, and the rest is.
    let broken = changed("broken", &|_| ());
    let import = ["bundle", "import", broken.to_str().unwrap(), "--format", "json"];
    let mut names: Vec<_> = blobs.iter().map(|blob| broken.join("blobs/sha256").join(blob.file_name())).collect();
    names.sort();
    // Records are checked before anything is taken, and blobs are taken in the order of their digests.
    let (line, taken) = names
        .iter()
        .rev()
        .find_map(|blob| {
            let (line, whole) = (CommandLine::new(), fs::read(blob).unwrap());
            fs::write(blob, vec![0; whole.len()]).unwrap();
            let said = line.run(&import);
            assert!(!said.starts_with("exit 0\n"), "{said}");
            fs::write(blob, &whole).unwrap();
            let taken = line.files().iter().filter(|file| file.contains("data/store/blobs/")).count();
            (taken > 0).then_some((line, taken))
        })
        .unwrap();
    let blobs = |said: &str| {
        let (_, stdout) = said.split_once("---- stdout\n").unwrap_or_else(|| panic!("{said}"));
        let imported: Value = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
        usize::try_from(imported["blobs"].as_u64().unwrap()).unwrap()
    };
    let rest = blobs(&line.run(&import));
    assert_eq!(taken + rest, blobs(&CommandLine::new().run(&import)));
    let stranger = changed("stranger", &|bundle| fs::write(bundle.join("blobs/sha256/escaped"), "x").unwrap());
    let said = CommandLine::new().run(&["bundle", "verify", stranger.to_str().unwrap()]);
    assert!(said.starts_with("exit 1") && said.contains("unknown: escaped"), "{said}");
    let index = changed("index", &|bundle| {
        let index = fs::read_to_string(bundle.join("index.json")).unwrap();
        fs::write(bundle.join("index.json"), index.replacen("sha256:", "sha256:0", 1)).unwrap();
    });
    refused(&index, &[], 4, "index.json");
    refused(
        &changed("endless", &|bundle| {
            fs::remove_file(bundle.join("index.json")).unwrap();
            let file = fs::File::create(bundle.join("index.json")).unwrap();
            file.set_len(1 << 40).unwrap();
        }),
        &[],
        4,
        "more than",
    );

    // What tar can hold and a bundle does not.
    for (name, kind, member, target) in [
        ("link.tar", tar::EntryType::Symlink, "blobs/sha256/0", "/etc/passwd"),
        ("hard.tar", tar::EntryType::Link, "index.json", "/etc/passwd"),
        ("device.tar", tar::EntryType::Char, "index.json", ""),
        ("pipe.tar", tar::EntryType::Fifo, "index.json", ""),
        ("up.tar", tar::EntryType::Regular, "../escaped", ""),
        ("root.tar", tar::EntryType::Regular, "/escaped", ""),
        ("sparse.tar", tar::EntryType::GNUSparse, "index.json", ""),
    ] {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..member.len()].copy_from_slice(member.as_bytes());
        header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(kind);
        header.set_size(0);
        header.set_cksum();
        let mut made = header.as_bytes().to_vec();
        made.extend(&bytes);
        fs::write(path(name), made).unwrap();
        refused(&path(name), &[], 4, "can't be used");
    }
    let twice = [&bytes[..bytes.len() - 1024], &bytes[..]].concat();
    fs::write(path("twice.tar"), twice).unwrap();
    refused(&path("twice.tar"), &[], 4, "twice");
}

#[test]
fn a_task_of_another_version_is_refused_and_replaced_on_request() {
    let maker = Maker::new();
    let bundle = maker.create("made.tar", &[]);
    let line = CommandLine::new();
    let import = ["bundle", "import", bundle.to_str().unwrap()];
    line.run(&import);
    let file = line.path().join(format!("data/tasks/{}.json", maker.repository.file_stem()));
    let text = fs::read_to_string(&file).unwrap();
    let other = text.replacen("\"rev1_date\": \"2", "\"rev1_date\": \"1", 1);
    assert_ne!(other, text);
    fs::write(&file, &other).unwrap();
    let said = line.run(&import);
    assert!(said.starts_with("exit 6") && said.contains("has another version of the task"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), other);
    let said = line.run(&[&import[..], &["--replace"]].concat());
    assert!(said.starts_with("exit 0"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

/// Replaces the archive and the id of the one run in a bundle, so that every digest is right.
fn with_run(bundle: &Path, run_id: &str, archive: &[u8]) {
    let layout = Layout::open(bundle).unwrap();
    let index = layout.read("index.json", 1 << 20).unwrap().unwrap();
    let (mut description, _) = Description::read(&layout, &index).unwrap();
    let Description::Scorer(scorer) = &mut description else { panic!("it is for agents") };
    let blob = |bytes: &[u8]| bundle.join("blobs/sha256").join(Digest::of(bytes).hex());
    fs::write(blob(archive), archive).unwrap();
    scorer.runs =
        vec![PackedRun { run_id: run_id.to_owned(), archive: Digest::of(archive), size: archive.len() as u64 }];
    let index: Value = serde_json::from_slice(&index).unwrap();
    let image = |entry: &Value| ImageReference {
        manifest: entry["digest"].as_str().unwrap().parse().unwrap(),
        size: entry["size"].as_u64().unwrap(),
        name: entry["annotations"]["org.opencontainers.image.ref.name"].as_str().unwrap().to_owned(),
    };
    let images: Vec<ImageReference> = index["manifests"].as_array().unwrap().iter().skip(1).map(image).collect();
    let [text, manifest, index] = description.render(&images).unwrap();
    fs::write(blob(&text), &text).unwrap();
    fs::write(blob(&manifest), &manifest).unwrap();
    fs::write(bundle.join("index.json"), index).unwrap();
}

#[test]
fn strange_runs_are_refused() {
    let maker = Maker::new();
    maker.run(&["score", "--predictions", "empty", "--run-id", "all", "--engine", "native"]);
    let run = maker.line.path().join("data/runs/all");
    let packed = |change: &dyn Fn(Value) -> Value| {
        let mut archive = RunArchive::new(Vec::new()).unwrap();
        for name in ["inputs.json", "records.jsonl", "run.json", "verdicts.json"] {
            let mut bytes = fs::read(run.join(name)).unwrap();
            if name == "run.json" {
                bytes = change(serde_json::from_slice(&bytes).unwrap()).to_string().into_bytes();
            }
            archive.add(&Path::new("run").join(name), bytes.len() as u64, bytes.as_slice()).unwrap();
        }
        archive.finish().unwrap()
    };
    let without = |key: &'static str| {
        move |mut run: Value| {
            run.as_object_mut().unwrap().remove(key);
            run
        }
    };
    let mut more = RunArchive::new(Vec::new()).unwrap();
    more.add(Path::new("run/.lock"), 0, &b""[..]).unwrap();
    for (number, (run_id, archive, expected)) in [
        ("../escaped", packed(&|run| run), "`../escaped` is no run id"),
        ("other", packed(&|run| run), "its archive is of run `all`"),
        ("all", packed(&without("finished")), "it has not finished"),
        ("all", packed(&without("extent")), "did not record what it consists of"),
        ("all", packed(&|_| Value::from("text")), "can't be read"),
        // It has none of what was handed in.
        ("all", packed(&|run| run), "logs and other files"),
        ("all", more.finish().unwrap(), "is no file of a run"),
    ]
    .into_iter()
    .enumerate()
    {
        let bundle = maker.create(&format!("strange-{number}"), &["--run", "all"]);
        with_run(&bundle, run_id, &archive);
        refused(&bundle, &[], 4, expected);
    }
}

#[test]
fn what_does_not_fit_is_not_begun() {
    let maker = Maker::new();
    let bundle = maker.create("made.tar", &[]);
    let line = CommandLine::new();
    let small = |place: &str| format!("mkdir -p {place} && mount -t tmpfs -o size=12k none {place}");
    let place = line.path().join("data").display().to_string();
    let said = line.run_confined(&small(&place), &["bundle", "import", bundle.to_str().unwrap()]);
    assert!(said.starts_with("exit 3") && said.contains("are free on its disk"), "{said}");
    let place = maker.line.path().join("small").display().to_string();
    let mirror = maker.mirror.clone();
    let create = ["bundle", "create", "-o", "small/made.tar", "--git-mirror", &mirror];
    let said = maker.line.run_confined(&small(&place), &create);
    assert!(said.starts_with("exit 3") && said.contains("of free space, and the bundle needs"), "{said}");
}

#[test]
fn finished_runs_go_with_their_tasks() {
    let maker = Maker::new();
    let score = |more: &[&str]| maker.run(&[&["score", "--predictions", "empty", "--run-id"], more].concat());
    score(&["all", "--engine", "native"]);
    let bundle = maker.create("made", &["--run", "all"]);
    assert_eq!(
        fs::read(maker.create("one.tar", &["--run", "all"])).unwrap(),
        fs::read(maker.create("two.tar", &["--run", "latest"])).unwrap()
    );
    let said = maker.line.run(&["bundle", "verify", bundle.to_str().unwrap()]);
    assert!(said.starts_with("exit 0"), "{said}");
    let line = CommandLine::new();
    let import = ["bundle", "import", bundle.to_str().unwrap()];
    for more in [&["--dry-run"][..], &[]] {
        let said = line.run(&[&import[..], more].concat());
        assert!(said.starts_with("exit 0") && said.contains(", 1 run and "), "{said}");
    }
    let run = "data/runs/all";
    let mut differ = Command::new("diff");
    differ
        .args(["-r", "--exclude=.lock", "--exclude=result-keys", "--exclude=logs"])
        .args([maker.line.path().join(run), line.path().join(run)]);
    let differ = differ.output().unwrap();
    assert!(differ.status.success(), "{}", String::from_utf8_lossy(&differ.stdout));
    let report = ["report", "all", "--format", "json"];
    assert_eq!(line.run(&report), maker.line.run(&report));
    let said = line.run(&import);
    assert!(said.starts_with("exit 0") && !said.contains("1 run"), "{said}");

    // Another run of that name is neither replaced nor taken for the bundle's.
    let other = CommandLine::new();
    copy(&line.path().join("data"), &other.path().join("data"));
    let description = other.path().join("data/runs/all/run.json");
    let text = fs::read_to_string(&description).unwrap();
    fs::write(&description, text.replacen("\"started\": \"2", "\"started\": \"1", 1)).unwrap();
    let said = other.run(&import);
    assert!(said.starts_with("exit 6") && said.contains("has another run `all`"), "{said}");

    let refused = |more: &[&str], expected: &str| {
        let said = maker.run(&[&["bundle", "create", "-o", "refused.tar"], more].concat());
        assert!(said.starts_with("exit 2") && said.contains(expected) && said.contains("\nhint: "), "{said}");
        assert!(!maker.line.path().join("refused.tar").exists());
    };
    refused(&["--run", "all", "--limit", "1"], "is not among the bundle's");
    refused(&["--run", "none"], "there is no run `none`");
    refused(&["--run", "all", "--run", "latest"], "it was named twice");
    refused(&["--run", "all", "--audience", "agent"], "holds no runs");
    let records = maker.line.path().join("data/runs/all/records.jsonl");
    let text = fs::read_to_string(&records).unwrap();
    fs::write(&records, &text[..text.len() / 2]).unwrap();
    refused(&["--run", "all"], "of records.jsonl");
    let description = maker.line.path().join("data/runs/all/run.json");
    let text = fs::read_to_string(&description).unwrap();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    value["finished"] = Value::Null;
    fs::write(&description, value.to_string()).unwrap();
    refused(&["--run", "all"], "it has not finished");
}

#[test]
fn only_allowed_signers_are_accepted_where_some_are_configured() {
    let maker = Maker::new();
    let key = |name: &str, kind: &str| {
        let path = maker.line.path().join(name);
        let made = Command::new("ssh-keygen").args(["-q", "-N", "", "-C", "", "-t", kind, "-f"]).arg(&path).status();
        assert!(made.unwrap().success());
        path
    };
    for kind in ["ed25519", "ecdsa", "rsa"] {
        let (ours, theirs) = (key(&format!("ours-{kind}"), kind), key(&format!("theirs-{kind}"), kind));
        let public = |key: &Path| fs::read_to_string(key.with_extension("pub")).unwrap();
        let allowed = maker.line.path().join("allowed");
        let of = |namespace: &str, key: &Path| format!("maker@example.org namespaces=\"{namespace}\" {}", public(key));
        fs::write(&allowed, format!("# signers\n{}", of("testevo-sandbox-bundle", &ours))).unwrap();
        let signed = maker.create(&format!("{kind}.tar"), &["--sign", ours.to_str().unwrap()]);
        let trust = ["--allowed-signers", allowed.to_str().unwrap()];
        let verify =
            |bundle: &Path| maker.line.run(&[&["bundle", "verify", bundle.to_str().unwrap()], &trust[..]].concat());
        let said = verify(&signed);
        assert!(said.starts_with("exit 0") && said.contains("signed by maker@example.org"), "{said}");

        // OpenSSH says the same.
        let directory = maker.create(&format!("{kind}-directory"), &["--sign", ours.to_str().unwrap()]);
        let mut openssh = Command::new("ssh-keygen");
        openssh.args(["-Y", "verify", "-n", "testevo-sandbox-bundle", "-I", "maker@example.org", "-f"]).arg(&allowed);
        openssh.arg("-s").arg(directory.join("index.json.sig"));
        let index = fs::File::open(directory.join("index.json")).unwrap().into_parts().0;
        assert!(openssh.stdin(index).output().unwrap().status.success());

        refused(&maker.create(&format!("{kind}-unsigned.tar"), &[]), &trust, 6, "is not signed");
        let wrong = maker.create(&format!("{kind}-wrong.tar"), &["--sign", theirs.to_str().unwrap()]);
        refused(&wrong, &trust, 6, "is none that");
        // The right key, for another bundle.
        let mut index = fs::OpenOptions::new().append(true).open(directory.join("index.json")).unwrap();
        index.write_all(b"\n").unwrap();
        refused(&directory, &trust, 6, "is not of this bundle");
        fs::write(directory.join("index.json.sig"), "no signature").unwrap();
        refused(&directory, &trust, 6, "no signature of OpenSSH");
        fs::write(&allowed, of("git", &ours)).unwrap();
        refused(&signed, &trust, 6, "is none that");
        // A restriction that is not known must not be passed over.
        fs::write(&allowed, format!("maker@example.org valid-before=\"19990101\" {}", public(&ours))).unwrap();
        refused(&signed, &trust, 6, "is none that");
        let line = CommandLine::new();
        fs::create_dir_all(line.path().join("data")).unwrap();
        fs::copy(&allowed, line.path().join("data/allowed_signers")).unwrap();
        let import = ["bundle", "import", signed.to_str().unwrap()];
        let said = line.run(&import);
        assert!(said.starts_with("exit 6"), "{said}");
        let said = line.run(&[&import[..], &["--unsigned"]].concat());
        assert!(said.starts_with("exit 0"), "{said}");
    }
}

#[test]
fn a_bundle_with_a_base_has_only_what_the_base_lacks() {
    let maker = Maker::new();
    let all: Vec<String> = {
        let said = maker.fine(&["tasks", "list", "--format", "json"]);
        let ids = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        ids.filter_map(|task| Some(task.get("id").or(task.get("task_id"))?.as_str()?.to_owned())).collect()
    };
    assert!(all.len() > 1, "{all:?}");
    let base = maker.create("base.tar", &[&all[0]]);
    let whole = maker.create("whole.tar", &[]);
    let more = maker.create("more.tar", &["--base", base.to_str().unwrap()]);
    let size = |path: &Path| fs::metadata(path).unwrap().len();
    assert!(size(&more) < size(&whole), "{} {}", size(&more), size(&whole));
    let said = maker.line.run(&["bundle", "verify", more.to_str().unwrap()]);
    assert!(said.starts_with("exit 1") && said.contains("missing: "), "{said}");
    let said = maker.line.run(&["bundle", "verify", more.to_str().unwrap(), "--base", base.to_str().unwrap()]);
    assert!(said.starts_with("exit 0") && said.contains("in its base"), "{said}");
    refused(&more, &[], 6, "and so does the store");

    let line = CommandLine::new();
    for bundle in [&base, &more] {
        let said = line.run(&["bundle", "import", bundle.to_str().unwrap()]);
        assert!(said.starts_with("exit 0"), "{said}");
    }
    let mut tasks = String::new();
    let file = format!("data/tasks/{}.json", maker.repository.file_stem());
    fs::File::open(line.path().join(&file)).unwrap().read_to_string(&mut tasks).unwrap();
    assert_eq!(tasks, fs::read_to_string(maker.line.path().join(&file)).unwrap());
    let said = line.run(&["tasks", "focal", "--offline"]);
    assert!(said.starts_with("exit 0"), "{said}");
}

#[test]
fn hostile_sources_are_refused() {
    let stream = |objects: &[u8]| zstd::encode_all(objects, 1).unwrap();
    let object = |kind: u8, size: u64, content: &[u8]| [&[kind][..], &size.to_le_bytes(), content].concat();
    let whole = stream(&object(3, 4, b"four"));
    for (bytes, expected) in [
        (b"no stream at all".to_vec(), "damaged"),
        (whole[..whole.len() / 2].to_vec(), "damaged"),
        (stream(&object(3, u64::MAX, b"")), "larger than any repository"),
        (stream(&object(3, 1 << 30, b"")), "larger than any repository"),
        (stream(&object(3, 5, b"four")), "truncated"),
        (stream(&object(9, 0, b"")), "no known kind"),
    ] {
        let error = objects::ids(&*bytes).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    // A commit without its tree is no source of its revision.
    let commit = b"tree 0123456789012345678901234567890123456789\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\nx\n";
    let bytes = stream(&object(1, commit.len() as u64, commit));
    let id = git2::Oid::hash_object(git2::ObjectType::Commit, commit).unwrap();
    let revisions: [Revision; 1] = [id.to_string().parse().unwrap()];
    let directory = tempfile::tempdir().unwrap();
    let repository = directory.path().join("a.git");
    let taken = objects::take(&repository, vec![Box::new(&*bytes)], &revisions, tempfile::tempfile().unwrap());
    assert_eq!(taken.unwrap(), revisions);
}
