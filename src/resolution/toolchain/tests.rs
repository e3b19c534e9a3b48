#![expect(clippy::print_stderr, reason = "what the ignored tests measure is for people")]

use super::*;
use crate::artifact::origin::{Machine, OriginOptions, Origins};
use crate::artifact::store::Store;
use crate::digest::Digest;
use crate::event::{Event, EventSink};
use crate::lock::LockFile;
use crate::resolution::debian::archive::tests::TestArchive;

/// An archive with everything that [`policy`] names.
fn archive() -> TestArchive {
    let mut archive = TestArchive::new();
    for line in ["base 1; Depends: libc (>= 1), dropped; Provides: shell (= 5)", "libc 1", "python 3; Depends: libc"] {
        archive.add("main", line);
    }
    archive.add("main", "git 2; Depends: python (>= 3), libc, perl");
    archive.add("main", "perl 5");
    archive.add("main", "jdk21 21; Depends: libc, shell (>= 4)");
    archive.add("new", "jdk8 8; Depends: jre8 (= 8), libc, shell, font");
    for line in ["jre8 8", "libc 2", "font 1"] {
        archive.add("new", line);
    }
    archive.write("g/maven.tar.gz", b"maven");
    archive.write("files/um-1-py3-none-any.whl", &wheel("um", "Requires-Dist: dep\nRequires-Dist: unneeded\n"));
    archive.write("files/dep-1-py3-none-any.whl", &wheel("dep", ""));
    for project in ["um", "dep"] {
        let page = format!("<a href=\"../files/{project}-1-py3-none-any.whl#sha256=0\">x</a>");
        archive.write(&format!("{project}/index.html"), page.as_bytes());
    }
    archive.publish(Timestamp::now());
    archive
}

fn wheel(name: &str, requirements: &str) -> Vec<u8> {
    let mut wheel = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    wheel.start_file(format!("{name}-1.dist-info/METADATA"), options).unwrap();
    std::io::Write::write_all(&mut wheel, format!("Name: {name}\n{requirements}\n").as_bytes()).unwrap();
    wheel.finish().unwrap().into_inner()
}

fn policy(archive: &TestArchive) -> ToolchainPolicy {
    let digest = |path: &str| Digest::of(&fs_err::read(archive.root.path().join(path)).unwrap());
    let mut text = format!(
        "schema = 1\n[debian]\nkeys = {:?}\nsuite = \"main\"\ndropped = [\"dropped\"]\n\
         [base]\npackages = [\"base\"]\n[tools]\npackages = [\"python\"]\n\
         [agent]\npackages = [\"base\", \"git\"]\n\
         [[jdk]]\nmajor = 8\nsuite = \"new\"\npackages = [\"jdk8\"]\n\
         [[jdk]]\nmajor = 21\nsuite = \"main\"\npackages = [\"jdk21\"]\n\
         [[tool]]\nrole = \"maven\"\nname = \"maven\"\nversion = \"3\"\norigin = \"central\"\npath = \"g/maven.tar.gz\"\n\
         sha256 = \"{}\"\n",
        archive.fingerprints(),
        digest("g/maven.tar.gz")
    );
    for (name, left_out) in [("um", "[\"unneeded\"]"), ("dep", "[]")] {
        let file = format!("{name}-1-py3-none-any.whl");
        text += &format!(
            "[[tool]]\nrole = \"python\"\nname = \"{name}\"\nversion = \"1\"\norigin = \"pypi\"\npath = \"{file}\"\n\
             sha256 = \"{}\"\nleft_out = {left_out}\n",
            digest(&format!("files/{file}"))
        );
    }
    ToolchainPolicy::parse(&text).unwrap()
}

fn request<'a>(policy: &'a ToolchainPolicy, jdks: &[u32], mode: LockMode) -> ToolchainRequest<'a> {
    ToolchainRequest { policy, jdks: jdks.iter().copied().collect(), agent: false, mode, jobs: NonZeroUsize::MIN }
}

fn names(packages: &[DebianPackage]) -> String {
    packages.iter().map(|p| format!("{}={}", p.name, p.version)).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn a_lock_grows_and_keeps_what_it_has() {
    let (mut archive, directory) = (archive(), tempfile::tempdir().unwrap());
    let policy = policy(&archive);
    let client = archive.client(directory.path(), None);
    let first = lock_toolchain(&client, &request(&policy, &[21], LockMode::Keep), None).await.unwrap();
    assert_eq!(names(&first.base), "base=1 libc=1");
    assert_eq!(names(&first.tools_packages), "python=3");
    assert_eq!(names(&first.jdks[0].packages), "jdk21=21");
    let tools: Vec<&str> = first.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["maven", "dep", "um"]);
    for item in toolchain_items(&first, None).unwrap() {
        client.store().verify(&item.digest).unwrap();
    }

    // The archive moves on: the locked base is no longer in it, nor in the store.
    archive.forget("main", "base");
    archive.add("main", "base 2; Depends: libc");
    archive.publish(Timestamp::now());
    let grown = lock_toolchain(&client, &request(&policy, &[8], LockMode::Keep), Some(&first)).await.unwrap();
    assert_eq!(grown.base, first.base);
    assert_eq!(names(&grown.jdks[0].packages), "font=1 jdk8=8 jre8=8");
    assert_eq!(grown.jdks[1], first.jdks[0]);
    assert_eq!(grown.indexes.iter().filter(|index| index.suite == "main").count(), 2);

    // The tools of agents are added on request, without what base and tools bring.
    assert!(!grown.render().contains("agent_packages"));
    let agent = ToolchainRequest { agent: true, ..request(&policy, &[8], LockMode::Keep) };
    let grown = lock_toolchain(&client, &agent, Some(&grown)).await.unwrap();
    assert_eq!((&grown.base, names(&grown.agent_packages)), (&first.base, "git=2 perl=5".to_owned()));

    // With nothing missing nothing is fetched, not even an index.
    fs_err::remove_dir_all(archive.root.path().join("dists")).unwrap();
    let same = lock_toolchain(&client, &request(&policy, &[8], LockMode::Keep), Some(&grown)).await.unwrap();
    assert_eq!(same.render(), grown.render());

    archive.publish(Timestamp::now());
    let updated = lock_toolchain(&client, &request(&policy, &[], LockMode::Update), Some(&grown)).await;
    // The new base provides no `shell`, and nothing else does.
    assert!(matches!(updated, Err(ToolchainError::Resolve { .. })));
    archive.add("main", "shell 9");
    archive.publish(Timestamp::now());
    let updated = lock_toolchain(&client, &request(&policy, &[], LockMode::Check), Some(&grown)).await.unwrap();
    assert_eq!((names(&updated.base), updated.jdks.len()), ("base=2 libc=1".to_owned(), 2));
    assert_eq!(names(&updated.agent_packages), "git=2 perl=5", "what was asked for once is resolved anew");
}

#[tokio::test]
async fn two_machines_lock_alike() {
    let archive = archive();
    let policy = policy(&archive);
    let mut texts = BTreeSet::new();
    for _ in 0..2 {
        let directory = tempfile::tempdir().unwrap();
        let client = archive.client(directory.path(), None);
        let lock = lock_toolchain(&client, &request(&policy, &[8, 21], LockMode::Keep), None).await.unwrap();
        texts.insert(lock.render());
    }
    assert_eq!(texts.len(), 1);
}

#[tokio::test]
async fn what_is_gone_wrong_or_unknown_is_named() {
    let (archive, directory) = (archive(), tempfile::tempdir().unwrap());
    let mut policy = policy(&archive);
    let client = archive.client(directory.path(), None);
    let error = lock_toolchain(&client, &request(&policy, &[7], LockMode::Keep), None).await.unwrap_err();
    assert!(matches!(error, ToolchainError::UnknownJdk { major: 7, .. }));

    let lock = lock_toolchain(&client, &request(&policy, &[21], LockMode::Keep), None).await.unwrap();
    client.store().remove(&lock.base[0].sha256).unwrap();
    fs_err::remove_file(archive.root.path().join(&lock.base[0].path)).unwrap();
    let error = lock_toolchain(&client, &request(&policy, &[21], LockMode::Keep), Some(&lock)).await.unwrap_err();
    assert!(error.hint().unwrap().contains("store export"), "{error}");

    let um = policy.tool_files.iter_mut().find(|tool| tool.name == "um").unwrap();
    um.left_out.clear();
    let error = lock_toolchain(&client, &request(&policy, &[21], LockMode::Check), None).await.unwrap_err();
    assert!(error.to_string().contains("`unneeded`"), "{error}");
}

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
    let mut request =
        ToolchainRequest { policy: &policy, jdks: BTreeSet::from([8]), agent: true, mode: LockMode::Keep, jobs };
    let mut previous = None;
    for (jdks, mode) in [
        (vec![8], LockMode::Keep),
        (vec![8], LockMode::Keep),
        (crate::manifest::JDK_MAJORS.to_vec(), LockMode::Keep),
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
