#![expect(clippy::print_stderr, reason = "what the ignored tests measure is for people")]

use super::*;
use crate::artifact::origin::{Machine, OriginOptions, Origins};
use crate::artifact::store::Store;
use crate::event::{Event, EventSink};
use crate::lock::LockFile;

fn this_machines_client() -> (std::path::PathBuf, Client) {
    let directory = match std::env::var_os("TESTEVO_SANDBOX_TEST_DIRECTORY") {
        Some(directory) => std::path::PathBuf::from(directory),
        None => tempfile::tempdir().unwrap().keep(),
    };
    let origins = Origins::new(OriginOptions::default(), Machine::current(), &directory);
    let store = Store::open(&directory.join("store"), &directory.join("tmp")).unwrap();
    let events = EventSink::new(|event| match event {
        Event::Warning { text } | Event::Message { text } => eprintln!("{text}"),
        Event::StageFinished { stage, elapsed_ms } => eprintln!("{stage}: {elapsed_ms} ms"),
        _ => {}
    });
    let client = Client::new(origins, store, events).unwrap();
    (directory, client)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the network and a machine whose clients know all origins; downloads about 500 MB"]
async fn this_machine_locks_the_builtin_policy() {
    let (directory, client) = this_machines_client();
    let policy = ToolchainPolicy::builtin().unwrap();
    let jobs = NonZeroUsize::new(4).unwrap();
    let mut request = ToolchainRequest { policy: &policy, jdks: BTreeSet::from([8]), mode: LockMode::Keep, jobs };
    let mut previous = None;
    for (jdks, mode) in [
        (vec![8], LockMode::Keep),
        (vec![8], LockMode::Keep),
        (vec![8, 11, 17, 21], LockMode::Keep),
        (vec![8], LockMode::Check),
        (vec![8], LockMode::Update),
    ] {
        let start = std::time::Instant::now();
        request.jdks = jdks.into_iter().collect();
        request.mode = mode;
        let lock = lock_toolchain(&client, &request, previous.as_ref()).await.unwrap();
        let items = toolchain_items(&lock, None).unwrap();
        let bytes: u64 = items.iter().map(|item| item.size).sum();
        eprintln!("{:?} {mode:?}: {} files, {bytes} bytes, {:?}", request.jdks, items.len(), start.elapsed());
        eprintln!("  base {} tools {}", lock.base.len(), lock.tools_packages.len());
        for jdk in &lock.jdks {
            let names: Vec<String> = jdk.packages.iter().map(|p| format!("{}/{}", p.name, p.suite)).collect();
            eprintln!("  JDK {}: {} packages: {}", jdk.major, names.len(), names.join(" "));
        }
        if let (Some(previous), LockMode::Check | LockMode::Update) = (&previous, mode) {
            assert_eq!(&lock, previous);
        }
        lock.store(&directory.join("toolchain.lock")).unwrap();
        previous = Some(lock);
    }
}

/// Returns `name=version` of what apt would install on an empty system, without recommendations.
fn apt_installs(root: &std::path::Path, roots: &[&str]) -> BTreeSet<String> {
    let output = std::process::Command::new("apt-get")
        .env("APT_CONFIG", root.join("apt.conf"))
        .args(["install", "--simulate", "--no-install-recommends"])
        .args(roots)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("Inst "));
    let installed = lines.map(|line| {
        let (name, rest) = line.split_once(' ').unwrap();
        format!("{name}={}", rest.trim_start_matches('(').split(' ').next().unwrap())
    });
    installed.collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the network and apt"]
async fn closures_are_those_of_apt() {
    let (directory, client) = this_machines_client();
    let mut policy = ToolchainPolicy::builtin().unwrap();
    policy.debian.dropped.clear();
    let mut archive = Archive::new(&client, &policy.debian, Timestamp::now());
    let trixie = archive.suite("trixie").await.unwrap();
    let sid = archive.suite("sid").await.unwrap();

    let root = directory.join("apt");
    for part in ["lists/partial", "archives/partial", "etc"] {
        fs_err::create_dir_all(root.join(part)).unwrap();
    }
    fs_err::write(root.join("status"), "").unwrap();
    let address = client.origin(&OriginName::debian()).await.unwrap().addresses[0].url().to_string();
    let sources = ["trixie", "sid"].map(|suite| format!("deb [trusted=yes] {address} {suite} main\n")).concat();
    fs_err::write(root.join("etc/sources.list"), sources).unwrap();
    let configuration = format!(
        "Dir::Etc \"{0}/etc\";\nDir::Etc::sourceparts \"-\";\nDir::State::status \"{0}/status\";\n\
         Dir::State::lists \"{0}/lists\";\nDir::Cache \"{0}\";\nDir::Cache::archives \"{0}/archives\";\n\
         APT::Architecture \"amd64\";\nAPT::Architectures {{ \"amd64\"; }};\nAPT::Default-Release \"trixie\";\n\
         Acquire::Check-Valid-Until \"false\";\nAcquire::Languages \"none\";\n\
         pkgCacheGen::ForceEssential \",\";\n",
        root.display()
    );
    fs_err::write(root.join("apt.conf"), configuration).unwrap();
    let update =
        std::process::Command::new("apt-get").env("APT_CONFIG", root.join("apt.conf")).arg("update").output().unwrap();
    assert!(update.status.success(), "{}", String::from_utf8_lossy(&update.stderr));

    let mut sets: Vec<Vec<&str>> = policy.jdks.iter().map(|jdk| vec![jdk.packages[0].as_str()]).collect();
    sets.push(policy.base.packages.iter().map(String::as_str).collect());
    sets.push(policy.tools.packages.iter().map(String::as_str).collect());
    // Larger ones, to see the resolver at work beyond what images need.
    sets.extend(["git", "maven", "gnome-core", "postgresql", "texlive", "build-essential"].map(|name| vec![name]));
    let mut different = 0;
    for roots in sets {
        let wanted = roots.iter().map(|name| Root { name, suite: None }).collect();
        let (installed, dropped) = (BTreeMap::new(), BTreeSet::new());
        let request = Request { roots: wanted, installed: &installed, dropped: &dropped };
        let found = resolve(&[&trixie.index, &sid.index], &request);
        let ours: BTreeSet<String> = match found {
            Ok(found) => found.iter().map(|package| format!("{}={}", package.name, package.version_text)).collect(),
            Err(error) => BTreeSet::from([error.to_string()]),
        };
        let theirs = apt_installs(&root, &roots);
        let only_ours: Vec<&String> = ours.difference(&theirs).collect();
        let only_theirs: Vec<&String> = theirs.difference(&ours).collect();
        eprintln!("{roots:?}: {} packages, only ours {only_ours:?}, only apt's {only_theirs:?}", ours.len());
        different += only_ours.len() + only_theirs.len();
    }
    assert_eq!(different, 0);
}
