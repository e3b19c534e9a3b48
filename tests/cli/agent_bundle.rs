//! `bundle create --audience agent`: what agents get, and nothing of what scorers have.

use std::path::Path;
use std::process::Command;

use fs_err as fs;
use serde_json::{Value, json};
use testevo_sandbox::bundle::agents::AgentDescription;
use testevo_sandbox::bundle::{Description, Layout};
use testevo_sandbox::manifest::Limits;
use testevo_sandbox::sample::SampleRepository;

use super::bundle::{Maker, copy, largest, refused};
use crate::support::command::CommandLine;

fn create(maker: &Maker, output: &str) -> std::path::PathBuf {
    maker.fine(&["bundle", "create", "--audience", "agent", "-o", output]);
    maker.line.path().join(output)
}

/// Reads the description of a bundle for agents.
fn read(bundle: &Path) -> (Layout, AgentDescription) {
    let layout = Layout::open(bundle).unwrap();
    let (description, _) = Description::read(&layout, &fs::read(bundle.join("index.json")).unwrap()).unwrap();
    match description {
        Description::Agent(description) => (layout, *description),
        Description::Scorer(_) => panic!("it is for scorers"),
    }
}

/// Returns the output of a command that ends well.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

#[test]
fn agents_get_workspaces_and_an_image_and_no_answers() {
    let maker = Maker::new();
    let (directory, archive) = (create(&maker, "made"), create(&maker, "made.tar"));
    assert_eq!(fs::read(&archive).unwrap(), fs::read(create(&maker, "again.tar")).unwrap());
    for bundle in [&directory, &archive] {
        let bundle = bundle.to_str().unwrap();
        let said = maker.line.run(&["bundle", "verify", bundle]);
        assert!(said.starts_with("exit 0") && said.contains("not audited: the answers are not here"), "{said}");
        let said = maker.fine(&["bundle", "verify", bundle]);
        assert!(said.contains("audited for the answers of its tasks"), "{said}");
        let said = CommandLine::new().run(&["bundle", "verify", bundle]);
        assert!(said.starts_with("exit 0"), "{said}");
        assert!(said.contains("not audited: the answers of 5 of its 5 tasks are not known here"), "{said}");
        let said = maker.fine(&["audit", bundle]);
        assert!(!said.contains("gold_"), "{said}");
        // What scorers have is not there to be found: nothing names it.
        let line = CommandLine::new();
        let said = line.run(&["validate", "--bundle", bundle, "--unsigned"]);
        assert!(said.starts_with("exit 2\n") && said.contains("is for agents"), "{said}");

        // Without tasks' data or a mirror, the workspaces are those that are written where these are.
        let there = line.path().join("there");
        let arguments = ["workspace", "--bundle", bundle, "-o", there.to_str().unwrap(), "--offline"];
        let said = line.run(&[&arguments[..], &["--dry-run"]].concat());
        assert!(said.starts_with("exit 0") && said.contains("would write 5 tasks to") && !there.exists(), "{said}");
        let said = line.run(&arguments);
        assert!(said.starts_with("exit 0"), "{said}");
        let here = maker.line.path().join("here");
        if !here.exists() {
            maker.fine(&["workspace", "-o", here.to_str().unwrap()]);
        }
        output(Command::new("diff").args(["-r", "--no-dereference"]).args([&here, &there]));
        for entry in fs::read_dir(&there).unwrap() {
            let project = entry.unwrap().path().join("project");
            let git = |arguments: &[&str]| {
                // The files belong to the user of containers.
                output(Command::new("git").args(["-c", "safe.directory=*", "-C"]).arg(&project).args(arguments))
            };
            git(&["fsck", "--strict"]);
            assert_eq!(git(&["status", "--short"]), "");
        }

        // What an agent left there is collected without them as well; its other changes are told.
        let workspace = fs::read_dir(&there).unwrap().next().unwrap().unwrap().path();
        let id = workspace.file_name().unwrap().to_str().unwrap().to_owned();
        let facts: Value = serde_json::from_slice(&fs::read(workspace.join("task.json")).unwrap()).unwrap();
        let target = workspace.join("project").join(facts["test_file"].as_str().unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(target, "class Left {}\n").unwrap();
        fs::write(workspace.join("project/pom.xml"), "<project/>").unwrap();
        let collect = ["workspace", &id, "--bundle", bundle, "--collect", workspace.to_str().unwrap(), "--model", "m"];
        let said = line.run(&collect);
        let (told, prediction) = said.split_once("---- stdout\n").unwrap_or_else(|| panic!("{said}"));
        let expected = json!({ "instance_id": id, "model_name_or_path": "m", "model_file": "class Left {}\n" });
        assert_eq!(serde_json::from_str::<Value>(prediction.lines().next().unwrap()).unwrap(), expected, "{said}");
        assert!(told.contains("exit 0"), "{said}");
        assert_eq!(said.matches("ignored: ").count(), 1, "{said}");
        assert!(said.contains("ignored: changed: pom.xml"), "{said}");
        let said = line.run(&["workspace", "--bundle", bundle, "--collect", workspace.to_str().unwrap()]);
        assert!(said.starts_with("exit 2\n") && said.contains("5 tasks are selected"), "{said}");

        let import = ["bundle", "import", bundle, "--unsigned", "--format", "json"];
        let said = line.run(&import);
        assert!(said.starts_with("exit 0") && said.contains(r#""audience":"agent""#), "{said}");
        let files = line.files();
        let image = format!("data/images/{}.json", maker.repository.file_stem());
        assert!(files.contains(&image), "{files:?}");
        assert!(
            !files.iter().any(|file| file.starts_with("data/tasks/") || file.starts_with("data/locks/t")),
            "{files:?}"
        );
        let said = line.run(&import);
        assert!(said.starts_with("exit 0") && said.contains(r#""blobs":0"#), "{said}");
    }
}

#[test]
fn a_developers_test_in_a_bundle_for_agents_is_found() {
    let maker = Maker::new();
    let directory = create(&maker, "made");
    let sample = SampleRepository::demo().unwrap();
    let miniature = &sample.miniatures[0];
    let gold = &miniature.files(testevo_sandbox::task::Side::New)[&miniature.test_file];
    // A blob that nothing names is refused before it is searched, and a file beside the blobs is searched.
    let stranger = maker.line.path().join("stranger");
    copy(&directory, &stranger);
    fs::write(stranger.join("blobs/sha256").join("0".repeat(64)), gold).unwrap();
    let said = maker.run(&["audit", stranger.to_str().unwrap()]);
    assert!(said.starts_with("exit 4\n") && said.contains("does not name the blob"), "{said}");
    let said = CommandLine::new().run(&["bundle", "verify", stranger.to_str().unwrap()]);
    assert!(said.starts_with("exit 1\n") && said.contains("unknown: "), "{said}");

    // So is what lies beside the blobs, and after an archive's end.
    let beside = maker.line.path().join("beside");
    copy(&directory, &beside);
    fs::write(beside.join("notes.md"), gold).unwrap();
    fs::create_dir(beside.join("blobs/sha512")).unwrap();
    let longer = create(&maker, "longer.tar");
    let bytes = fs::read(&longer).unwrap();
    fs::write(&longer, [bytes.as_slice(), gold].concat()).unwrap();
    for (bundle, expected) in [
        (&beside, &["unknown: notes.md", "unknown: blobs/sha512"][..]),
        (&longer, &["unknown: bytes after the archive's end"]),
    ] {
        let said = CommandLine::new().run(&["bundle", "verify", bundle.to_str().unwrap()]);
        assert!(said.starts_with("exit 1\n") && expected.iter().all(|expected| said.contains(expected)), "{said}");
        let said = maker.run(&["audit", bundle.to_str().unwrap()]);
        assert!(said.starts_with("exit 4\n") && said.contains("does not belong into it"), "{said}");
    }

    // What a killed command left is no workspace. A workspace that already has the answer never becomes a bundle.
    let there = maker.line.path().join("there");
    maker.fine(&["workspace", "-o", there.to_str().unwrap()]);
    let workspace = fs::read_dir(&there).unwrap().next().unwrap().unwrap().path();
    let left = format!(".{}.unfinished-1", workspace.file_name().unwrap().display());
    fs::create_dir(there.join(&left)).unwrap();
    fs::write(there.join(&left).join("notes.md"), gold).unwrap();
    assert!(!maker.fine(&["audit", there.to_str().unwrap()]).contains("notes.md"));
    // Links beside workspaces are looked at, not followed; one that leads nowhere is no fault.
    let outside = maker.line.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("notes.md"), gold).unwrap();
    std::os::unix::fs::symlink(&outside, there.join("link")).unwrap();
    std::os::unix::fs::symlink("nowhere", there.join("dangling")).unwrap();
    assert!(!maker.fine(&["audit", there.to_str().unwrap()]).contains("notes.md"));
    fs::write(workspace.join("project/notes.md"), gold).unwrap();
    let said = maker.run(&["audit", workspace.to_str().unwrap()]);
    assert!(said.starts_with("exit 1\n") || is_of_another_task(&said, &workspace, &miniature.name), "{said}");

    // A `task.json` of another task hides nothing.
    let forged = maker.line.path().join("forged");
    maker.fine(&["workspace", "-o", forged.to_str().unwrap()]);
    let workspaces = fs::read_dir(&forged).unwrap().map(|entry| entry.unwrap().path());
    let (own, others): (Vec<_>, Vec<_>) =
        workspaces.partition(|path| path.to_str().unwrap().ends_with(&miniature.name));
    fs::write(own[0].join("task.json"), fs::read(others[0].join("task.json")).unwrap()).unwrap();
    fs::write(own[0].join("project/notes.md"), gold).unwrap();
    for audited in [&own[0], &forged] {
        let said = maker.run(&["audit", audited.to_str().unwrap()]);
        assert!(said.starts_with("exit 1\n") && said.contains("project/notes.md"), "{said}");
    }
}

/// Tells whether the workspace belongs to another task than the planted answer.
fn is_of_another_task(said: &str, workspace: &Path, miniature: &str) -> bool {
    said.contains("cross_task") && !workspace.to_str().unwrap().ends_with(miniature)
}

#[test]
fn a_pull_is_kept_and_a_link_to_no_signers_accepts_no_bundle() {
    let maker = Maker::new();
    // What an interrupted pull of the same name left is not in the way, and stays.
    let left = maker.line.path().join(".made.unfinished/blobs");
    fs::create_dir_all(&left).unwrap();
    let bundle = create(&maker, "made");
    assert!(left.is_dir());
    std::os::unix::fs::symlink("nowhere", maker.line.path().join("data/allowed_signers")).unwrap();
    let said = maker.run(&["bundle", "verify", bundle.to_str().unwrap()]);
    assert!(said.starts_with("exit 6\n") && said.contains("is not signed"), "{said}");
}

#[test]
fn the_image_for_agents_is_audited_as_well() {
    let maker = Maker::new();
    let repository = maker.repository.to_string();
    let said = maker.fine(&["audit", &repository]);
    assert!(said.contains("1 clean, 0 with leaks"), "{said}");
    // The sample has no locked tools, so its image stands for the one for agents.
    let path = maker.line.path().join(format!("data/images/{}.json", maker.repository.file_stem()));
    let mut built: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    built["agent"] = built["image"].clone();
    fs::write(&path, built.to_string()).unwrap();
    let said = maker.fine(&["audit", &repository]);
    assert!(said.contains(": image for agents: clean") && said.contains("2 clean, 0 with leaks"), "{said}");
}

#[test]
fn damaged_bundles_for_agents_are_refused() {
    let maker = Maker::new();
    let (directory, archive) = (create(&maker, "made"), create(&maker, "made.tar"));
    let path = |name: &str| maker.line.path().join(name);
    let bytes = fs::read(&archive).unwrap();
    fs::write(path("short.tar"), &bytes[..bytes.len() / 2]).unwrap();
    refused(&path("short.tar"), &["--unsigned"], 4, "truncated");
    let blobs = fs::read_dir(directory.join("blobs/sha256")).unwrap().map(|one| one.unwrap());
    let mut written_before_a_failure = 0;
    for blob in blobs.filter(|blob| blob.metadata().unwrap().len() > 0).map(|blob| blob.file_name()) {
        let tampered = path(&format!("tampered-{}", blob.display()));
        copy(&directory, &tampered);
        let file = tampered.join("blobs/sha256").join(&blob);
        let mut bytes = fs::read(&file).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(file, bytes).unwrap();
        let said = CommandLine::new().run(&["bundle", "verify", tampered.to_str().unwrap()]);
        assert!(!said.starts_with("exit 0") && said.contains(blob.to_str().unwrap()), "{said}");
        let line = CommandLine::new();
        let said = line.run(&["workspace", "--bundle", tampered.to_str().unwrap(), "--unsigned", "-o", "out"]);
        let unpacked = line.files().iter().filter(|file| file.ends_with("TASK.md")).count();
        // Each archive is compared before it is unpacked; a damaged record is seen before all of them.
        assert!(said.starts_with("exit 0") || said.starts_with("exit 6\n"), "{said}");
        assert!(said.starts_with("exit 0") || unpacked < maker.tasks(), "{said}");
        // Each workspace that was written before a failure is told.
        assert_eq!(said.lines().filter(|line| line.starts_with("out/")).count(), unpacked, "{said}");
        written_before_a_failure += if said.starts_with("exit 0") { 0 } else { unpacked };
    }
    assert!(written_before_a_failure > 0);
    // Blobs of another size are listed like those with other bytes.
    let longer = path("longer");
    copy(&directory, &longer);
    let mut archives = 0;
    for blob in fs::read_dir(longer.join("blobs/sha256")).unwrap().map(|blob| blob.unwrap().path()) {
        let mut bytes = fs::read(&blob).unwrap();
        if bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            archives += 1;
            bytes.push(0);
            fs::write(blob, bytes).unwrap();
        }
    }
    let said = CommandLine::new().run(&["bundle", "verify", longer.to_str().unwrap()]);
    assert!(said.starts_with("exit 1\n") && said.matches("bytes instead of").count() >= archives, "{said}");
    assert!(archives >= maker.tasks() && said.contains("not audited: the bundle is not whole"), "{said}");
    let gone = path("gone");
    copy(&directory, &gone);
    fs::remove_file(largest(&gone)).unwrap();
    let said = CommandLine::new().run(&["bundle", "verify", gone.to_str().unwrap()]);
    assert!(said.starts_with("exit 1") && said.contains("missing: "), "{said}");
}

#[test]
fn an_image_under_another_name_is_refused() {
    let maker = Maker::new();
    for audience in ["agent", "scorer"] {
        maker.fine(&["bundle", "create", "--audience", audience, "-o", audience]);
        let bundle = maker.line.path().join(audience);
        let index = bundle.join("index.json");
        let mut changed: Value = serde_json::from_slice(&fs::read(&index).unwrap()).unwrap();
        let name = &mut changed["manifests"][1]["annotations"]["org.opencontainers.image.ref.name"];
        assert!(name.as_str().unwrap().starts_with("testevo-sandbox/"), "{name}");
        *name = "testevo-sandbox/another/project:0123456789ab".into();
        fs::write(&index, changed.to_string()).unwrap();
        let expected = "`testevo-sandbox/another/project:0123456789ab` in its index.json";
        refused(&bundle, &["--unsigned"], 6, expected);
        for command in [&["bundle", "verify", audience][..], &["bundle", "push", audience, "127.0.0.1:1/a:b"]] {
            let said = maker.line.run(command);
            assert!(said.starts_with("exit 6\n") && said.contains(expected), "{said}");
        }
    }
}

#[test]
fn a_bundle_for_agents_with_a_base_has_only_what_the_base_lacks() {
    let maker = Maker::new();
    let path = |name: &str| maker.line.path().join(name);
    let listed = maker.fine(&["tasks", "list", "--format", "json"]);
    let tasks = listed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let first = tasks.filter_map(|task| Some(task["id"].as_str()?.to_owned())).next().unwrap();
    maker.fine(&["bundle", "create", "--audience", "agent", "-o", "base", &first]);
    maker.fine(&["bundle", "create", "--audience", "agent", "-o", "more", "--base", "base"]);
    let (layout, description) = read(&path("more"));
    let lacking = description.workspaces().filter(|(_, _, packed)| !layout.has(&packed.archive).unwrap());
    let lacking: Vec<_> = lacking.map(|(_, task, packed)| (task.to_string(), packed.archive)).collect();
    let [(lacking, archive)] = &lacking[..] else { panic!("{lacking:?}") };
    assert_eq!(*lacking, first, "the base has its workspace");
    let said = maker.line.run(&["bundle", "verify", "more"]);
    assert!(said.starts_with("exit 1\n") && said.contains("missing: "), "{said}");
    let said = maker.fine(&["bundle", "verify", "more", "--base", "base"]);
    assert!(said.contains("in its base") && said.contains("audited for the answers of its tasks"), "{said}");

    // Without the base, nothing is written, and it is said what is missing.
    let line = CommandLine::new();
    let (more, base) = (path("more"), path("base"));
    let workspaces = ["workspace", "--unsigned", "--offline", "-o", "there", "--bundle", more.to_str().unwrap()];
    let said = line.run(&workspaces);
    assert!(
        said.starts_with("exit 6\n") && said.contains(&format!("lacks the workspace of the task {first}")),
        "{said}"
    );
    assert!(said.contains("with `--base` here, too") && !line.path().join("there").exists(), "{said}");
    let with_base = ["--base", base.to_str().unwrap()];
    let said = line.run(&[&workspaces[..], &with_base].concat());
    assert!(said.starts_with("exit 0\n"), "{said}");
    maker.fine(&["workspace", "-o", path("here").to_str().unwrap()]);
    output(Command::new("diff").args(["-r", "--no-dereference"]).arg(path("here")).arg(line.path().join("there")));
    let workspace = line.path().join("there").join(&first);
    let collect = ["workspace", &first, "--unsigned", "--collect", workspace.to_str().unwrap(), "--bundle"];
    let said = line.run(&[&collect[..], &[more.to_str().unwrap()], &with_base].concat());
    assert!(said.starts_with("exit 0\n") && !said.contains("ignored: "), "{said}");

    // What is taken of the base is compared with the bundle's digests.
    let archive = base.join("blobs/sha256").join(archive.hex());
    let mut bytes = fs::read(&archive).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&archive, bytes).unwrap();
    let there = CommandLine::new();
    let said = there.run(&[&workspaces[..], &with_base].concat());
    assert!(said.starts_with("exit 6\n") && said.contains("other bytes than its name says"), "{said}");
    assert!(!there.files().iter().any(|file| file.contains(&first) && file.ends_with("TASK.md")), "{said}");
    let said = maker.line.run(&["bundle", "verify", "more", "--base", "base"]);
    assert!(said.starts_with("exit 1\n") && said.contains("damaged: "), "{said}");

    // Nothing is based on what is no bundle.
    let said = there.run(&[&workspaces[..], &["--base", "/dev/null"]].concat());
    assert!(said.starts_with("exit 4\n"), "{said}");
}

#[test]
fn a_bundle_for_agents_has_the_limits_of_its_repositories() {
    let maker = Maker::new();
    let manifest = maker.line.path().join(format!("data/manifests/{}.toml", maker.repository.file_stem()));
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, format!("{text}\n[overrides.limits]\ncompile_memory_mib = 6000\n")).unwrap();
    let bundle = create(&maker, "made");
    let (_, description) = read(&bundle);
    let limits = description.limits_of(&maker.repository);
    assert_eq!(limits, Limits { compile_memory_mib: 6000, ..Limits::default() });
    assert_eq!(description.limits_of(&"another/project".parse().unwrap()), Limits::default());
    // Without tools of agents in it, nobody opens a shell or loads an image from a bundle.
    for what in ["--shell", "--load"] {
        let said = CommandLine::new().run(&[
            "workspace",
            "--limit",
            "1",
            what,
            "--unsigned",
            "--bundle",
            bundle.to_str().unwrap(),
        ]);
        assert!(said.starts_with("exit 2\n") && said.contains("has no image for agents of"), "{what}: {said}");
    }
    let said = CommandLine::new().run(&[
        "workspace",
        "--load",
        "--dry-run",
        "--unsigned",
        "--bundle",
        bundle.to_str().unwrap(),
    ]);
    assert!(said.starts_with("exit 2\n") && said.contains("has no image for agents of"), "{said}");
    let line = CommandLine::new();
    line.run(&["workspace", "--limit", "1", "--load", "--unsigned", "--bundle", bundle.to_str().unwrap()]);
    assert!(line.files().iter().all(|file| !file.contains("images/")), "nothing was imported: {:?}", line.files());
}
