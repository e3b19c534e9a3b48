//! `doctor`: what is there, what is missing, and the exit codes for it.

use std::process::Command;

use fs_err as fs;
use insta::assert_snapshot;
use serde_json::Value;
use testevo_sandbox::sample::SampleRepository;

use super::import::write_published;
use crate::support::command::CommandLine;

/// Returns the exit code, the lines of these checks, and stderr.
fn checks(text: &str, names: &[&str]) -> String {
    let (stdout, stderr) = text.split_once("---- stderr\n").unwrap_or((text, ""));
    let mut kept = Vec::new();
    let mut keep = true;
    for line in stdout.lines() {
        if line.starts_with("exit") {
            kept.push(line);
            continue;
        }
        if !line.starts_with("    ") {
            keep = names.iter().any(|name| line.get(6..).is_some_and(|rest| rest.starts_with(name)));
        }
        if keep {
            kept.push(line);
        }
    }
    format!("{}\n{stderr}", kept.join("\n"))
}

/// Makes directories that look like origins, and returns the arguments that name them.
fn origins(line: &CommandLine) -> Vec<String> {
    line.write("debian/dists/trixie/InRelease", "");
    line.write("central/junit/junit/maven-metadata.xml", "");
    line.write("pypi/universalmutator/index.html", "");
    ["debian", "central", "pypi"]
        .iter()
        .flat_map(|name| ["--origin".to_owned(), format!("{name}=file://{}/{name}", line.path().display())])
        .collect()
}

fn run(line: &CommandLine, more: &[&str], origins: &[String]) -> String {
    let mut arguments = vec!["doctor"];
    arguments.extend(more);
    arguments.extend(origins.iter().map(String::as_str));
    let socket = format!("unix://{}/none.sock", line.path().display());
    line.run_with(&[("DOCKER_HOST", &socket)], &arguments)
}

#[test]
fn a_missing_engine_is_named_with_what_to_do() {
    let line = CommandLine::new();
    let origins = origins(&line);
    assert_snapshot!(checks(&run(&line, &["--engine", "docker"], &origins), &["engine", "limits", "data", "origin", "work"]), @r"
    exit 7
    fail  engine          not at unix://[DIRECTORY]/none.sock: Socket not found: [DIRECTORY]/none.sock
                          → install and start Docker or Podman (`podman system service` opens Podman's socket), or name its socket in DOCKER_HOST
    ok    data directory  `[DIRECTORY]/data` can be used
    ok    origin          debian: address by flag, environment or settings; it answers
    ok    origin          central: address by flag, environment or settings; it answers
    ok    origin          pypi: address by flag, environment or settings; it answers
    ok    work            0 repositories imported, 0 locked, 0 with an image
                          → next: `testevo-sandbox import DATA`, or `testevo-sandbox demo`
    error: no container engine answers at unix://[DIRECTORY]/none.sock (Socket not found: [DIRECTORY]/none.sock)
    hint: start Docker or Podman (its socket must be open to this user: group `docker`, or the user's own podman.socket), or name the socket in DOCKER_HOST; `doctor` shows what was found
    ");
    let text = run(&line, &["--engine", "docker", "--format", "json"], &origins);
    let values: Vec<Value> =
        text.lines().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(values.len(), 1);
    assert_eq!((&values[0]["schema"], &values[0]["status"]), (&1.into(), &"fail".into()));
    assert!(values[0]["checks"].as_array().unwrap().iter().all(|check| check["facts"] != "x" && check["check"] != ""));
}

#[test]
fn the_built_in_engine_makes_up_for_a_missing_daemon() {
    let line = CommandLine::new();
    let origins = origins(&line);
    for engine in ["auto", "native"] {
        let text = run(&line, &["--engine", engine], &origins);
        assert!(text.contains("ok    engine          native") && text.contains("a container was made"), "{text}");
        assert!(!text.contains("fail  engine"), "{text}");
        let text = run(&line, &["--engine", engine, "--dry-run"], &origins);
        assert!(text.contains("this is a dry run: no container was made"), "{text}");
    }
}

#[test]
fn a_step_that_the_kernel_refuses_is_named() {
    let line = CommandLine::new();
    let refusal = "echo 0 >/proc/sys/user/max_user_namespaces";
    let text = line.run_confined(refusal, &["doctor", "--engine", "native", "--offline"]);
    assert!(text.starts_with("exit 7\n"), "{text}");
    let step = "making a process in namespaces of its own (clone3): No space left on device (os error 28)";
    let remedy = "user namespaces are switched off or used up: `sysctl -w user.max_user_namespaces=15000`";
    let check = checks(&text, &["engine"]);
    let (found, advice) = check.split_once("→ ").unwrap_or_else(|| panic!("no advice: {text}"));
    assert!(found.contains("fail  engine") && found.contains(step), "{text}");
    assert!(advice.starts_with(remedy), "{text}");
    // And once more where the program ends.
    assert!(text.contains(&format!("{step}\nhint: {remedy}")), "{text}");
}

#[test]
fn containers_do_not_depend_on_the_callers_umask() {
    for umask in ["077", "027", "002"] {
        let line = CommandLine::new();
        let socket = format!("unix://{}/none.sock", line.path().display());
        let arguments = ["doctor", "--engine", "native", "--offline"];
        let text = line.run_under(umask, &[("DOCKER_HOST", &socket)], &arguments);
        assert!(text.contains("a container was made"), "{umask}: {text}");
    }
}

#[test]
fn a_missing_origin_is_named_and_its_address_is_not() {
    let line = CommandLine::new();
    let mut origins = origins(&line);
    fs_err::remove_dir_all(line.path().join("debian")).unwrap();
    origins.push("--origin".to_owned());
    origins.push("central=http://user:secret@127.0.0.1:1/maven".to_owned());
    // A container engine, if there is one, is asked for by its usual address: only the origins are looked at here.
    let mut arguments = vec!["doctor"];
    arguments.extend(origins.iter().map(String::as_str));
    let text = line.run(&arguments);
    assert!(!text.contains("secret") && !text.contains("127.0.0.1"), "{text}");
    assert_snapshot!(checks(&text, &["origin"]), @r"
    exit 5
    fail  origin          debian: address by flag, environment or settings; the origin `debian` does not have `dists/trixie/InRelease`
                          → the address is no root of such an origin: give `--origin debian=URL`
    fail  origin          central: address by flag, environment or settings; the origin `central` could not be reached for `junit/junit/maven-metadata.xml`: Connection refused (os error 111)
                          → check the network, the proxy variables and SSL_CERT_FILE, or give `--origin central=URL`
    ok    origin          pypi: address by flag, environment or settings; it answers
    error: the origin `debian` does not have `dists/trixie/InRelease`
    hint: the address is no root of such an origin: give `--origin debian=URL`
    ");
    let wrong = line.run(&[&arguments[..], &["--origin", "central=ftp://user:secret@a.test/"]].concat());
    assert!(wrong.starts_with("exit 2\n") && wrong.contains("`--origin NAME=URL`"), "{wrong}");
    assert!(!wrong.contains("secret"), "{wrong}");
    arguments.push("--offline");
    assert_snapshot!(checks(&line.run(&arguments), &["origin"]), @r"
    exit 0
    ok    origin          debian: address by flag, environment or settings; not asked, because fetching is off
    ok    origin          central: address by flag, environment or settings; not asked, because fetching is off
    ok    origin          pypi: address by flag, environment or settings; not asked, because fetching is off
    ");
}

#[test]
fn mirror_and_progress_are_told() {
    let line = CommandLine::new();
    write_published(&line);
    line.run(&["import", "published"]);
    line.write("mirror/first/one.git/HEAD", "");
    line.write("data/locks/first__one.lock", "");
    let template = format!("{}/mirror/{{owner}}/{{name}}.git", line.path().display());
    let text = line.run(&["doctor", "--offline", "--git-mirror", &template]);
    assert_snapshot!(checks(&text, &["git mirror", "work"]), @r"
    exit 0
    warn  git mirror      it has 1 of 2 imported repositories; second/two is missing
                          → correct `--git-mirror`, or complete the mirror
    ok    work            2 repositories imported, 1 locked, 0 with an image
                          → next: `testevo-sandbox lock`
    ");
    let text = line.run(&["doctor", "--offline", "--git-mirror", "/srv/git"]);
    assert_snapshot!(checks(&text, &["git mirror"]), @r"
    exit 1
    fail  git mirror      the template `/srv/git` of git mirrors does not have {name} in it
                          → write for example `--git-mirror '/srv/mirrors/{owner}/{name}.git'`
    error: 1 check failed
    ");
}

#[test]
fn an_unusable_data_directory_is_no_end_of_the_examination() {
    let line = CommandLine::new();
    line.write("data/version", "99\n");
    assert_snapshot!(checks(&line.run(&["doctor", "--offline", "--engine", "native"]), &["data", "origin"]), @r"
    exit 6
    fail  data directory  the data directory `[DIRECTORY]/data` has version `99`, this program knows version 1
                          → use the program that wrote it, or name another directory with `--data-dir`
    warn  origin          not asked, because the data directory can't be used
                          → what origins answer is kept there: make it usable first
    error: the data directory `[DIRECTORY]/data` has version `99`, this program knows version 1
    hint: use the program that wrote it, or name another directory with `--data-dir`
    ");
}

/// Before anything runs, the tasks are named whose trees lack a file's contents.
#[test]
fn what_trees_lack_is_told_by_task() {
    let line = CommandLine::new();
    let sample = SampleRepository::demo().unwrap();
    let git = line.path().join("mirror").join(sample.name.name());
    let revisions = sample.write_git(&git).unwrap();
    line.write("sample.json", &sample.published(&revisions));
    line.run(&["import", "sample.json"]);
    let mirror = format!("{}/mirror/{{name}}", line.path().display());
    let look = |more: &[&str]| line.run(&[&["doctor", "--sources", "--git-mirror", &mirror], more].concat());
    let said = look(&[]);
    assert!(said.starts_with("exit 0\n"), "{said}");

    let miniature = &sample.miniatures[1];
    let file = format!("{}:{}", revisions[1].rev2, miniature.focal[0].file);
    let output = Command::new("git").arg("-C").arg(&git).args(["rev-parse", &file]).output().unwrap();
    let id = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    fs::remove_file(git.join("objects").join(&id[..2]).join(&id[2..])).unwrap();
    let said = look(&["--format", "json"]);
    assert!(said.starts_with("exit 1\n"), "{said}");
    let (_, stdout) = said.split_once("---- stdout\n").unwrap();
    let gaps: Value = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
    let named = gaps["lacking"].as_array().unwrap().iter().flat_map(|tree| tree["tasks"].as_array().unwrap());
    let task = format!("{}__{}", sample.name.file_stem(), miniature.name);
    assert!(named.clone().any(|named| named.as_str() == Some(&*task)), "{gaps}");
    assert!(!named.clone().any(|named| named.as_str().unwrap().ends_with(&*sample.miniatures[0].name)), "{gaps}");
    let said = look(&[]);
    assert!(said.contains(miniature.focal[0].file.as_str()) && said.contains("contents"), "{said}");
}
