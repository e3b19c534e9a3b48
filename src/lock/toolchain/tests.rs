use super::*;
use crate::artifact::origin::{Machine, OriginOptions, Origins};
use crate::artifact::store::Store;
use crate::event::{Event, EventSink};
use crate::lock::LockFile;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the network and a machine whose clients know all origins; downloads about 600 MB"]
async fn this_machine_locks_the_builtin_policy() {
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
