//! `lock`: resolves, once and online, every byte that images are made from.

mod preview;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde::Serialize;

use super::Context;
use super::failures::Failures;
use super::locks::LockInProgress;
use super::selector::SelectorArguments;
use super::workbench::{Workbench, blocking, by_repository, sets_of};
use crate::artifact::fetch::Client;
use crate::artifact::origin::{Declared, LeftOut, OriginError, OriginName, printable};
use crate::engine::Engine;
use crate::error::CommandError;
use crate::image::recipe::java_home;
use crate::lock::{LockFile as _, MavenFile, RepositoryLock, ToolchainLock};
use crate::manifest::RepositoryManifest;
use crate::output::{OutputFormat, Table, counted};
use crate::resolution::in_tree::Collector;
use crate::resolution::repository::{BuildSet, LockError, Locking, Unresolved};
use crate::resolution::sets::FoundSets;
use crate::task::{RepositoryName, Task};
use crate::workspace::cells::write_to;
use crate::workspace::pom::DeclaredRepository;
use crate::workspace::{Repository, WorkspaceError};

/// Arguments of `lock`.
#[derive(Debug, Args)]
pub(super) struct LockArguments {
    #[command(flatten)]
    selector: SelectorArguments,
    /// Resolve everything anew; the present lock stays until that is done, and is kept in locks/history
    #[arg(long, conflicts_with = "check")]
    update: bool,
    /// Resolve nothing; fail where a lock is missing or does not cover its tasks
    #[arg(long)]
    check: bool,
    /// How results are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: OutputFormat,
}

/// What came of one repository.
#[derive(Debug, Serialize)]
struct Locked {
    repository: RepositoryName,
    jdk: u32,
    jdk_locked: bool,
    files: usize,
    bytes: u64,
    metadata: usize,
    build_sets: usize,
    missing_build_sets: usize,
    unresolved: Vec<UnresolvedSet>,
}

#[derive(Debug, Serialize)]
struct UnresolvedSet {
    revision: String,
    module: String,
    cause: String,
}

pub(super) fn run(arguments: &LockArguments, context: &Context) -> Result<(), CommandError> {
    let tasks = arguments.selector.tasks(context)?;
    if context.options.dry_run && !arguments.check {
        return context.block_on(preview::lock(arguments.update, &tasks, context));
    }
    let (locked, failures) = context.block_on(lock(arguments, &tasks, context))?;
    if !locked.is_empty() {
        write(&locked, arguments.format, context)?;
    }
    failures.settle(if arguments.check { "checked" } else { "locked" })?;
    let mut failed = Vec::new();
    let kits: BTreeSet<u32> = locked.iter().filter(|locked| !locked.jdk_locked).map(|locked| locked.jdk).collect();
    if !kits.is_empty() {
        failed.push(format!("the toolchain lock has no {}", java(&kits)));
    }
    let missing: usize = locked.iter().map(|locked| locked.missing_build_sets).sum();
    if missing > 0 {
        let sets = counted(missing, "set of build files is", "sets of build files are");
        failed.push(format!("{sets} not covered by a lock"));
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(CommandError::CheckFailed { summary: failed.join("; ") }),
    }
}

/// Returns development kits in words: `Java 8, 11`.
pub(super) fn java(majors: &BTreeSet<u32>) -> String {
    let majors: Vec<String> = majors.iter().map(u32::to_string).collect();
    format!("Java {}", majors.join(", "))
}

/// Locks one repository after another: one that fails keeps no other from being locked, only an interrupt does.
async fn lock<'a>(
    arguments: &LockArguments,
    tasks: &[Task],
    context: &'a Context,
) -> Result<(Vec<Locked>, Failures<'a>), CommandError> {
    let workbench = Workbench::open(context)?;
    let groups = by_repository(tasks);
    let mut failures = Failures::new(groups.len(), context);
    let mut wanted = Vec::new();
    for (repository, tasks) in &groups {
        let manifest = failures.unless(repository, workbench.manifest(repository))?;
        wanted.extend(manifest.map(|manifest| (manifest, tasks.as_slice())));
    }
    let mut locked = Vec::new();
    if arguments.check {
        let jdks = workbench.locked_jdks()?;
        for (manifest, tasks) in &wanted {
            let one = context.until_interrupted(check(&workbench, manifest, tasks, &jdks)).await;
            locked.extend(failures.unless(&manifest.repository, one)?);
        }
        return Ok((locked, failures));
    }
    if wanted.is_empty() {
        return Ok((locked, failures));
    }
    let client = workbench.client()?;
    let majors: BTreeSet<u32> = wanted.iter().map(|(manifest, _)| manifest.jdk).collect();
    let toolchain = workbench.lock_toolchain(&client, &majors, arguments.update).await?;
    let engine = workbench.engine().await?;
    let means = LockContext { workbench: &workbench, engine: &engine, client: &client, toolchain: &toolchain };
    for (manifest, tasks) in &wanted {
        let one = context.until_interrupted(lock_repository(&means, manifest, tasks, arguments.update)).await;
        match failures.unless(&manifest.repository, one) {
            Ok(one) => locked.extend(one),
            Err(error) => {
                engine.close().await?;
                return Err(error);
            }
        }
    }
    engine.close().await?;
    Ok((locked, failures))
}

async fn check(
    workbench: &Workbench<'_>,
    manifest: &RepositoryManifest,
    tasks: &[&Task],
    jdks: &BTreeSet<u32>,
) -> Result<Locked, CommandError> {
    let opened = workbench.repository(manifest, tasks).await?;
    let found = sets_of(&opened, manifest, tasks).await?;
    let lock = workbench.covering_lock(manifest)?;
    Ok(summary(&lock, jdks.contains(&manifest.jdk), &found.sets, Vec::new()))
}

/// What repositories are locked with.
#[derive(Clone, Copy)]
struct LockContext<'a> {
    workbench: &'a Workbench<'a>,
    engine: &'a Arc<dyn Engine>,
    client: &'a Client,
    toolchain: &'a ToolchainLock,
}

async fn lock_repository(
    means: &LockContext<'_>,
    manifest: &RepositoryManifest,
    tasks: &[&Task],
    update: bool,
) -> Result<Locked, CommandError> {
    let (workbench, repository) = (means.workbench, &manifest.repository);
    let _held = workbench.hold(&format!("lock-{}", repository.file_stem())).await?;
    let opened = workbench.repository(manifest, tasks).await?;
    let found = sets_of(&opened, manifest, tasks).await?;
    let in_tree = in_tree(workbench, &opened, &found).await?;
    let mut growing = workbench.growing_lock(manifest, update)?;
    let unresolved = match found.sets.iter().all(|set| growing.lock.build_sets.contains(&set.id)) {
        true => Vec::new(),
        false => complete(means, manifest, &opened, &found, in_tree, &mut growing).await?,
    };
    workbench.finish_lock(&growing, manifest, &found.sets)?;
    Ok(summary(&growing.lock, true, &found.sets, unresolved))
}

/// Returns the files of Maven repositories inside the trees of sets, by set, and brings them into the store, every time: nobody
/// else can where it lost them.
async fn in_tree(
    workbench: &Workbench<'_>,
    opened: &Repository,
    found: &FoundSets,
) -> Result<BTreeMap<String, BTreeMap<String, MavenFile>>, CommandError> {
    let (name, path, store) = (opened.name().clone(), opened.path().to_owned(), workbench.store.clone());
    let directories = found.in_tree.clone();
    let revisions = found.revisions.clone();
    blocking(move || {
        let mut files = BTreeMap::new();
        let repository = Repository::open(name.clone(), &path)?;
        let mut collector = Collector::new(&store);
        for (set, directories) in directories {
            let collected = collector.collect(&repository.tree(&revisions[&set])?, &directories);
            files.insert(set, collected.map_err(|error| LockError::in_tree(&name, error))?);
        }
        Ok(files)
    })
    .await
}

/// Resolves the sets that the lock does not have yet; it is saved after each.
async fn complete(
    means: &LockContext<'_>,
    manifest: &RepositoryManifest,
    opened: &Repository,
    found: &FoundSets,
    in_tree: BTreeMap<String, BTreeMap<String, MavenFile>>,
    growing: &mut LockInProgress,
) -> Result<Vec<Unresolved>, CommandError> {
    let (LockContext { workbench, engine, client, toolchain }, repository) = (*means, &manifest.repository);
    let jars = workbench.jars(engine.as_ref(), toolchain).await?;
    let image = workbench.compose(toolchain, manifest.jdk, None).await?;
    workbench.load(engine.as_ref(), &image, None, manifest.jdk).await?;
    let arguments = manifest.build.arguments();
    let locking = Locking {
        engine: Arc::clone(engine),
        client: client.clone(),
        store: workbench.store.clone(),
        jars,
        image: image.config_digest,
        jdk: manifest.jdk,
        java_home: java_home(manifest.jdk),
        repository: repository.clone(),
        maven_arguments: &arguments,
        origins: declared_origins(client, &found.repositories, !found.in_tree.is_empty())?,
        in_tree,
        own: found.own.clone(),
        cutoff: found.cutoff,
        temporary: workbench.data_dir.temporary(),
        events: workbench.context.events.clone(),
    };
    let revisions = found.revisions.clone();
    let git = opened.path().to_owned();
    let archive = workbench.data_dir.temporary().join(format!("lock-{}.tar", repository.file_stem()));
    let write_tree = |set: &BuildSet| -> Result<PathBuf, WorkspaceError> {
        let opened = Repository::open(repository.clone(), &git)?;
        write_to(&opened.tree(&revisions[&set.id])?, None, &archive, &workbench.notices)?;
        Ok(archive.clone())
    };
    let LockInProgress { lock, path, .. } = growing;
    let save = |lock: &RepositoryLock| -> Result<(), LockError> { Ok(lock.store(path)?) };
    Ok(locking.run(lock, &found.sets, &write_tree, &save).await?)
}

/// Remembers where the repositories that POMs declare are, and returns their names. What is left out is told of, but for
/// repositories inside the tree, where some were found there.
fn declared_origins(
    client: &Client,
    repositories: &BTreeSet<DeclaredRepository>,
    some_in_tree: bool,
) -> Result<Vec<OriginName>, OriginError> {
    let mut names = Vec::new();
    let mut left_out = BTreeSet::new();
    for declared in repositories {
        match client.origins().declare(&declared.id, &declared.url)? {
            Declared::Known(name) if name == OriginName::central() || names.contains(&name) => {}
            Declared::Known(name) => names.push(name),
            // Maven has repositories for plugins and for the rest; one that is both is told of once.
            Declared::LeftOut(_) if some_in_tree && declared.path_in_tree().is_some() => {}
            Declared::LeftOut(reason) => {
                left_out.insert((printable(&declared.id), reason));
            }
        }
    }
    for (id, reason) in left_out {
        let meant = match reason {
            LeftOut::Id => String::new(),
            LeftOut::Address | LeftOut::Private => format!("; if it is needed, give `--origin {id}=URL`"),
        };
        client
            .events()
            .warning(format!("the repository `{id}`, which a POM declares, {reason}: it is not asked{meant}"));
    }
    Ok(names)
}

/// Returns how many of the sets a lock does not cover.
pub(super) fn missing_sets(lock: &RepositoryLock, sets: &[BuildSet]) -> usize {
    sets.iter().filter(|set| !lock.build_sets.contains(&set.id)).count()
}

fn summary(lock: &RepositoryLock, jdk_locked: bool, sets: &[BuildSet], unresolved: Vec<Unresolved>) -> Locked {
    Locked {
        repository: lock.repository.clone(),
        jdk: lock.jdk,
        jdk_locked,
        files: lock.files.len(),
        bytes: lock.files.iter().map(|file| file.size).sum(),
        metadata: lock.metadata.len(),
        build_sets: lock.build_sets.len(),
        missing_build_sets: missing_sets(lock, sets),
        unresolved: unresolved
            .into_iter()
            .map(|one| UnresolvedSet { revision: one.revision, module: one.module, cause: one.cause })
            .collect(),
    }
}

fn write(locked: &[Locked], format: OutputFormat, context: &Context) -> Result<(), CommandError> {
    match format {
        OutputFormat::Json => locked.iter().try_for_each(|one| context.output.json(one)),
        OutputFormat::Text => {
            let mut table = Table::new(["repository", "jdk", "files", "MiB", "build sets", "missing"]);
            for one in locked {
                table.row([
                    one.repository.to_string(),
                    if one.jdk_locked { one.jdk.to_string() } else { format!("{}, not locked", one.jdk) },
                    one.files.to_string(),
                    (one.bytes >> 20).to_string(),
                    one.build_sets.to_string(),
                    one.missing_build_sets.to_string(),
                ]);
            }
            context.output.table(&table)?;
            for one in locked {
                for set in &one.unresolved {
                    let text = format!("unresolved: {} {} {}\n{}", one.repository, set.revision, set.module, set.cause);
                    context.output.lines(&format!("{text}\n"))?;
                }
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::artifact::origin::{Machine, OriginOptions, Origins};
    use crate::artifact::store::Store;
    use crate::event::{Event, EventSink};

    #[test]
    fn what_poms_declare_is_asked_or_told_of() {
        let directory = tempfile::tempdir().unwrap();
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&told);
        let events = EventSink::new(move |event| {
            if let Event::Warning { text } = event {
                kept.lock().unwrap().push(text);
            }
        });
        let given = ("inner".to_owned(), "file:///mirror".to_owned());
        let options = OriginOptions::new([(&given.0, &given.1)], false, None).unwrap();
        let origins = Origins::new(options, Machine::at(directory.path(), None, &[]), directory.path());
        let store = Store::open(&directory.path().join("store"), &directory.path().join("tmp")).unwrap();
        let client = Client::new(origins, store, events).unwrap();
        let declared = |id: &str, url: &str| {
            [false, true].map(|plugins| DeclaredRepository { id: id.to_owned(), url: url.to_owned(), plugins })
        };
        let repositories: BTreeSet<DeclaredRepository> = [
            declared("central", "file:///"),
            declared("evil", "file:///"),
            declared("inner", "http://10.0.0.1/"),
            declared("metadata", "http://user:secret@169.254.169.254/"),
            declared("odd\u{1b}[2J", "https://public.test/"),
            declared("open", "https://public.test/"),
        ]
        .into_iter()
        .flatten()
        .collect();
        let names = declared_origins(&client, &repositories, true).unwrap();
        assert_eq!(names.iter().map(OriginName::as_str).collect::<Vec<_>>(), ["inner", "open"]);
        let told = told.lock().unwrap();
        assert_eq!(told.len(), 3, "{told:?}");
        for (text, part) in told.iter().zip(["--origin evil=URL", "--origin metadata=URL", "no name of an origin"]) {
            assert!(text.contains(part) && !text.contains("secret") && !text.contains('\u{1b}'), "{text}");
        }
        let recorded = fs_err::read_to_string(directory.path().join("origins.toml")).unwrap();
        assert!(recorded.contains("open") && !["evil", "metadata", "inner"].iter().any(|id| recorded.contains(id)));
    }
}
