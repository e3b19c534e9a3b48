//! `lock` where no container is needed: whether locks cover their tasks.

use insta::assert_snapshot;
use testevo_sandbox::data_dir::DataDir;
use testevo_sandbox::execution::module::ModuleArguments;
use testevo_sandbox::lock::{LockFile as _, RepositoryLock};
use testevo_sandbox::resolution::sets::find_sets;
use testevo_sandbox::sample::SampleRepository;
use testevo_sandbox::task::published;
use testevo_sandbox::workspace::Repository;

use crate::support::command::CommandLine;
use crate::support::locks;

/// Where the sources of [`imported`] are.
pub(super) const MIRROR: [&str; 2] = ["--git-mirror", "mirror/{name}"];

/// Imports the program's own sample, whose sources lie in a mirror.
pub(super) fn imported() -> CommandLine {
    let line = CommandLine::new();
    let sample = SampleRepository::demo().unwrap();
    let pairs = sample.write_git(&line.path().join("mirror/sample")).unwrap();
    line.write("sample.json", &sample.published(&pairs));
    let text = line.run(&["import", "sample.json"]);
    assert!(text.starts_with("exit 0\n") && !text.contains("warning"), "{text}");
    line
}

/// Writes a toolchain lock with these development kits, and a lock of the sample that covers all of its sets.
pub(super) fn write_locks(line: &CommandLine, majors: &[u32]) {
    let [sample] = published::read(&[line.path().join("sample.json")]).unwrap().try_into().unwrap();
    let repository = Repository::open(sample.name.clone(), &line.path().join("mirror/sample")).unwrap();
    let found = find_sets(&repository, &sample.tasks, None, &ModuleArguments::of).unwrap();
    let sets: Vec<&str> = found.sets.iter().map(|set| set.id.as_str()).collect();
    let data_dir = DataDir::open(&line.path().join("data")).unwrap();
    locks::whole_toolchain(majors).store(&data_dir.join("locks/toolchain.lock")).unwrap();
    let lock =
        RepositoryLock { jdk: sample.java_version, ..locks::repository(sample.name.as_str(), Vec::new(), &sets) };
    lock.store(&data_dir.join("locks/testevo__sample.lock")).unwrap();
}

#[test]
fn sources_come_before_downloads() {
    let line = imported();
    let nowhere = ["--git-mirror", "nowhere/{name}", "--origin", "debian=http://127.0.0.1:1", "--engine", "native"];
    let text = line.run(&[&["lock"][..], &nowhere].concat());
    assert!(text.contains("there is no git repository of testevo/sample"), "{text}");
    assert!(!text.contains("Debian") && !text.contains("toolchain"), "{text}");
}

#[test]
fn a_check_names_what_no_lock_covers() {
    let line = imported();
    let check = |more: &[&str]| line.run(&[&["lock", "--check"], &MIRROR[..], more].concat());
    assert_snapshot!(check(&[]), @r"
    exit 1
    ---- stdout
    repository      jdk             files  MiB  build sets  missing
    testevo/sample  21, not locked  0      0.0  0           1
    ---- stderr
    error: the toolchain lock has no Java 21; 1 set of build files is not covered by a lock
    ");
    write_locks(&line, &[8, 17]);
    assert_snapshot!(check(&["--format", "json"]), @r#"
    exit 1
    ---- stdout
    {"repository":"testevo/sample","jdk":21,"jdk_locked":false,"files":0,"bytes":0,"metadata":0,"build_sets":1,"missing_build_sets":0,"unresolved":[]}
    ---- stderr
    error: the toolchain lock has no Java 21
    "#);
    write_locks(&line, &[21]);
    assert_snapshot!(check(&[]), @r"
    exit 0
    ---- stdout
    repository      jdk  files  MiB  build sets  missing
    testevo/sample  21   0      0.0  1           0
    ");
    // A lock for another Java covers nothing.
    let path = line.path().join("data/locks/testevo__sample.lock");
    let lock = RepositoryLock { jdk: 17, ..RepositoryLock::load(&path).unwrap() };
    lock.store(&path).unwrap();
    assert_snapshot!(check(&[]), @r"
    exit 1
    ---- stdout
    repository      jdk  files  MiB  build sets  missing
    testevo/sample  21   0      0.0  0           1
    ---- stderr
    error: 1 set of build files is not covered by a lock
    ");
}
