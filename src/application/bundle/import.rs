//! `bundle import`: takes what a data directory lacks from a bundle. One for agents brings images only (`bundle::images`).
//!
//! Everything is checked before anything but blobs is written. Blobs are named by their digests and in use by nobody
//! before a record names them. So an import that ends early leaves nothing that a command would take for whole, and the
//! next import resumes it.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use fs_err as fs;

use super::runs::UnpackedRuns;
use super::summary::Imported;
use super::{Opened, Trust, directory_of, images, open_with};
use crate::application::Context;
use crate::application::disk::Needs;
use crate::application::io_failure::IoFailure;
use crate::application::store::refuse_other;
use crate::application::workbench::{Workbench, blocking, present};
use crate::artifact::made;
use crate::artifact::store::Store;
use crate::bundle::description::{Described, RepositoryContent, ScorerDescription};
use crate::bundle::{Audience, BundleError, Description, Layout, objects};
use crate::data_dir::{DataDir, HeldLock, write_atomically};
use crate::digest::Digest;
use crate::error::CommandError;
use crate::execution::identity::identity;
use crate::execution::time_class::{self, TimeClasses};
use crate::image::{BuiltImage, Catalog, LayerRecord, keep_layer};
use crate::lock::{LockFile as _, RepositoryLock, ToolchainLock};
use crate::manifest::{ManifestError, RepositoryManifest};
use crate::task::file::{self, TASK_FILE_SCHEMA, TaskFile, TaskFileError};
use crate::task::{RepositoryName, Revision, TaskId};

/// A bundle, and how it is taken.
#[derive(Clone, Debug)]
pub struct ImportRequest {
    /// A directory or a tar archive.
    pub bundle: PathBuf,
    /// Whose bundles are accepted.
    pub trust: Trust,
    /// Whether locks, tasks and agents' images that differ are replaced.
    pub replace: bool,
    /// Whom the bundle must be for; `None` for anybody.
    pub audience: Option<Audience>,
    /// Bundles that have blobs of the store which this one lacks. Of one for scorers, sources and runs are not looked for there.
    pub bases: Vec<PathBuf>,
}

/// The checked content for one repository.
struct Repository {
    lock: RepositoryLock,
    manifest: String,
    tasks: TaskFile,
    built: BuiltImage,
    time_classes: Option<Vec<u8>>,
}

/// The checked content of a bundle.
struct Checked {
    toolchain: ToolchainLock,
    repositories: BTreeMap<RepositoryName, Repository>,
    made: Vec<(Described, Vec<u8>)>,
    layers: Vec<LayerRecord>,
}

/// Takes a bundle. A dry run checks it and tells what would be taken.
///
/// # Errors
/// [`BundleError`]; [`MismatchError::OtherLock`](crate::lock::MismatchError::OtherLock) for a lock that differs without [`ImportRequest::replace`]; errors of
/// locks, manifests and task files in the bundle; an interrupt.
pub async fn import(request: &ImportRequest, context: &Context) -> Result<Imported, CommandError> {
    let workbench = &Workbench::open(context)?;
    let opened = open_with(&request.bundle, &request.bases, &request.trust, context)?;
    if let Some(needed) = request.audience.filter(|needed| *needed != opened.description.audience()) {
        return Err(opened.not_for(needed).into());
    }
    if opened.signer.is_none() {
        let name = opened.layout.name();
        context
            .events
            .warning(format!("who made the bundle `{name}` was not checked, and what it holds will be executed"));
    }
    let description = match opened.description.clone() {
        Description::Scorer(description) => description,
        Description::Agent(description) => return images::take(opened, &description, request.replace, workbench).await,
    };
    if description.identity != identity() && !description.made.is_empty() {
        context.events.warning(
            "the bundle was made by another version of this program: its prepared revisions are of no use, and Maven \
             compiles them again",
        );
    }
    let checked = Checked::read(&opened, &description)?;
    let mut needs = Needs::new(workbench).await;
    needs.bundle(&opened.missing(&workbench.store)?, description.runs.iter().map(|run| run.size));
    needs.ensure().await?;
    // What no record names may have gone to make room.
    let missing = opened.missing(&workbench.store)?;
    UnpackedRuns::check_ids(&opened.layout, &description)?;
    let _held = hold(&checked, workbench).await?;
    let writes = writes(&checked, &opened.layout, request.replace, workbench)?;
    let mut imported = Imported::of(&opened, &missing);
    if context.options.dry_run {
        imported.runs = UnpackedRuns::lacking(&description, &workbench.data_dir);
        return Ok(imported);
    }
    let (store, data_dir, events) = (workbench.store.clone(), workbench.data_dir.clone(), context.events.clone());
    let take = move || {
        let runs = UnpackedRuns::of(&opened.layout, &description, &data_dir)?;
        opened.store(&missing, &store)?;
        for (name, content) in &description.repositories {
            sources(&opened.layout, name, content, &data_dir, &store)?;
        }
        for (made, bytes) in &checked.made {
            let kept = made::keep_raw(&store, directory_of(made.kind), &made.key, bytes);
            kept.map_err(IoFailure::of(format!("writing the description {}", made.key.hex())))?;
        }
        for layer in &checked.layers {
            keep_layer(&store, layer)?;
        }
        set_runner(&description, &missing, &store).map_err(IoFailure::of("setting the time of the runner's jar"))?;
        let classes = TimeClasses::new(&data_dir);
        for (name, repository) in &checked.repositories {
            let Some(bytes) = &repository.time_classes else { continue };
            for task in classes.adopt(name, bytes).map_err(IoFailure::of("recording time classes"))? {
                events.warning(format!("{task} keeps the time class that is recorded here, which is not the bundle's"));
            }
        }
        // Nobody looks for runs and results of tasks that are not there yet.
        Ok((checked, runs.take(&data_dir).map_err(IoFailure::of("moving runs into the data directory"))?))
    };
    let stage = context.events.stage("import bundle", None, 0);
    let (checked, taken) = context.until_interrupted(blocking(take)).await?;
    drop(stage);
    (imported.runs, imported.results) = taken;
    finish(&checked, writes, workbench)?;
    Ok(imported)
}

impl Checked {
    /// Reads and checks the records of a bundle.
    fn read(opened: &Opened, description: &ScorerDescription) -> Result<Self, CommandError> {
        let layout = &opened.layout;
        let record = |digest: &Digest| opened.record(digest);
        let malformed = |reason: String| CommandError::from(layout.malformed(reason));
        opened.check_records()?;
        opened.check_names()?;
        let text = |digest: &Digest, what: &str| -> Result<String, CommandError> {
            String::from_utf8(record(digest)?).map_err(|error| malformed(format!("{what}: {error}")))
        };
        let named = |what: String| PathBuf::from(format!("{}: {what}", layout.name()));
        let toolchain = ToolchainLock::parse(
            &named("toolchain lock".to_owned()),
            &text(&description.toolchain, "toolchain lock")?,
        )?;
        let mut repositories = BTreeMap::new();
        for (name, content) in &description.repositories {
            let lock = RepositoryLock::parse(&named(format!("lock of {name}")), &text(&content.lock, "lock")?)?;
            let manifest = text(&content.manifest, "manifest")?;
            let parsed = RepositoryManifest::parse(&named(format!("manifest of {name}")), &manifest)?;
            let tasks = TaskFile::parse(&named(format!("tasks of {name}")), &record(&content.task_file)?)?;
            let built = opened.image(name, &content.image)?;
            if [&lock.repository, &parsed.repository, &tasks.repository].iter().any(|of| *of != name) {
                return Err(malformed(format!("what it has for {name} is of another repository")));
            }
            let mut ids: Vec<&TaskId> = tasks.tasks.iter().map(|task| &task.id).collect();
            ids.sort();
            if ids != content.tasks.iter().collect::<Vec<_>>() {
                return Err(malformed(format!("it lists other tasks of {name} than it has")));
            }
            let revisions = tasks.tasks.iter().flat_map(|task| [&task.rev1, &task.rev2]);
            if let Some(missing) = revisions.into_iter().find(|revision| !content.revisions.contains(revision)) {
                return Err(malformed(format!("it has no sources of {name}'s revision {missing}")));
            }
            let time_classes = content.time_classes.as_ref().map(record).transpose()?;
            if let Some(bytes) = &time_classes {
                time_class::parse(bytes, name)
                    .map_err(|reason| malformed(format!("time classes of {name}: {reason}")))?;
            }
            repositories.insert(name.clone(), Repository { lock, manifest, tasks, built, time_classes });
        }
        let mut made = Vec::new();
        for one in &description.made {
            let bytes = record(&one.record)?;
            let wrong = |reason: String| malformed(format!("description {}: {reason}", one.key));
            let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
            if value.get("key").and_then(|key| key.as_str()) != Some(one.key.to_string().as_str()) {
                return Err(wrong("it has another key".to_owned()));
            }
            let blobs = made::blobs_of(&bytes).map_err(|error| wrong(error.to_string()))?;
            opened.require(blobs, &format!("description {}", one.key))?;
            made.push((one.clone(), bytes));
        }
        let layers = opened.layers()?;
        Ok(Self { toolchain, repositories, made, layers })
    }
}

/// Takes the locks of everything that is written, in the order of other commands.
async fn hold(checked: &Checked, workbench: &Workbench<'_>) -> Result<Vec<HeldLock>, CommandError> {
    let mut held = vec![workbench.hold("import").await?, workbench.hold("lock-toolchain").await?];
    for repository in checked.repositories.keys() {
        held.push(workbench.hold(&format!("lock-{}", repository.file_stem())).await?);
        held.push(workbench.hold(&format!("repository-{}", repository.file_stem())).await?);
    }
    held.push(workbench.hold("images").await?);
    Ok(held)
}

/// Returns the task files to write, after checking that nothing present contradicts the bundle.
fn writes(
    checked: &Checked,
    layout: &Layout,
    replace: bool,
    workbench: &Workbench<'_>,
) -> Result<Vec<(PathBuf, TaskFile)>, CommandError> {
    workbench.taken_toolchain(&checked.toolchain, replace)?;
    let directory = workbench.data_dir.join("tasks");
    let mut files = Vec::new();
    for (name, repository) in &checked.repositories {
        let path = workbench.lock_path(name);
        refuse_other(workbench.repository_lock(name)?.as_ref(), &repository.lock, &path, replace)?;
        // Read in any case: a damaged record, or one of a newer program, is not replaced.
        let (known, built) = (Catalog::open(&workbench.data_dir)?.get(name)?, &repository.built);
        // Equal locks make equal images, or somebody has changed one.
        let differs = |present: &BuiltImage| {
            present.locks == built.locks
                && present.recipe_version == built.recipe_version
                && present.image != built.image
        };
        if !replace && known.as_ref().is_some_and(differs) {
            return Err(BundleError::OtherImage { name: layout.name().to_owned(), repository: name.clone() }.into());
        }
        let path = directory.join(format!("{}.json", name.file_stem()));
        let known = TaskFile::load_of(&path, name)?;
        let differs = |task: &&crate::task::Task| known.iter().any(|known| known.id == task.id && known != *task);
        if let Some(other) = repository.tasks.tasks.iter().find(differs).filter(|_| !replace) {
            let (name, task) = (layout.name().to_owned(), other.id.clone());
            return Err(BundleError::OtherTask { name, task }.into());
        }
        let (tasks, _) = file::merge(known, &repository.tasks.tasks, false);
        files.push((path, TaskFile { schema: TASK_FILE_SCHEMA, repository: name.clone(), tasks }));
    }
    file::check_ids(&directory, &files)?;
    Ok(files)
}

/// Takes the sources of a repository's revisions, unless they are there. Its lock must be held.
fn sources(
    layout: &Layout,
    name: &RepositoryName,
    content: &RepositoryContent,
    data_dir: &DataDir,
    store: &Store,
) -> Result<(), CommandError> {
    let path = data_dir.join("repositories").join(format!("{}.git", name.file_stem()));
    let failed = |reason: String| BundleError::Git { repository: name.clone(), doing: "written", reason };
    let lacking = |reason: String| {
        let (name, repository) = (layout.name().to_owned(), name.clone());
        CommandError::from(BundleError::LackingSources { name, repository, reason })
    };
    let earlier = objects::taken(&path).map_err(|error| failed(error.to_string()))?;
    let (mut own, mut of_base) = (Vec::new(), false);
    for blob in &content.sources {
        match layout.has(&blob.digest)? {
            true => own.push(blob),
            // The base of an incremental bundle should have brought those that are missing here.
            false => of_base |= !earlier.contains(&blob.digest),
        }
    }
    let own_digests: Vec<Digest> = own.iter().map(|blob| blob.digest).collect();
    let note = || objects::note_taken(&path, own_digests.iter().copied()).map_err(|error| failed(error.to_string()));
    // Directories tell what they lack. Files' contents may be missing where the sources were made, so their absence says nothing
    // once all sources were taken.
    let all_taken = content.sources.iter().all(|blob| earlier.contains(&blob.digest));
    let gap = |git: &git2::Repository| {
        let lacks = |revision: &&Revision| !objects::has_contents(git, revision);
        content.revisions.iter().find(lacks).map(|revision| format!("files of revision {revision} are missing"))
    };
    if let Ok(git) = git2::Repository::open_bare(&path)
        && content.revisions.iter().all(|revision| objects::is_complete(&git, revision))
        && (all_taken || gap(&git).is_none())
    {
        return Ok(note()?);
    }
    let mut streams: Vec<Box<dyn Read>> = Vec::new();
    for blob in own {
        layout.check_blob(&blob.digest, blob.size)?;
        streams.push(Box::new(layout.open_blob(&blob.digest, blob.size)?));
    }
    let file = store.unnamed_file()?.into_parts().0;
    let incomplete = objects::take(&path, streams, &content.revisions, file).map_err(failed)?;
    if let Some(revision) = incomplete.first() {
        return Err(lacking(format!("revision {revision} is not complete")));
    }
    let git = git2::Repository::open_bare(&path).map_err(|error| failed(error.message().to_owned()))?;
    if let Some(reason) = gap(&git).filter(|_| of_base) {
        return Err(lacking(reason));
    }
    Ok(note()?)
}

/// Gives the runner's jar the time that class archives refer to, if this import brought the jar.
fn set_runner(description: &ScorerDescription, taken: &BTreeMap<Digest, u64>, store: &Store) -> std::io::Result<()> {
    let Some(runner) = description.runner.as_ref().filter(|runner| taken.contains_key(&runner.jar)) else {
        return Ok(());
    };
    let modified = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(runner.modified));
    // Anything else fits no class archive, which only costs time.
    let Some(modified) = modified.filter(|modified| *modified <= SystemTime::now()) else { return Ok(()) };
    fs::File::options().write(true).open(store.path(&runner.jar))?.file().set_modified(modified)
}

/// Writes the records that commands look for, the tasks last.
fn finish(checked: &Checked, files: Vec<(PathBuf, TaskFile)>, workbench: &Workbench<'_>) -> Result<(), CommandError> {
    let path = workbench.toolchain_path();
    let toolchain = present(ToolchainLock::load(&path).map_err(CommandError::from))?;
    // What it may not replace was refused before anything was written.
    let taken = workbench.taken_toolchain(&checked.toolchain, true)?;
    workbench.replace_lock(toolchain.as_ref(), &taken, &path)?;
    let catalog = Catalog::open(&workbench.data_dir)?;
    for (name, repository) in &checked.repositories {
        let path = workbench.manifest_path(name);
        match fs::read_to_string(&path) {
            // A present manifest may contain its user's overrides.
            Ok(present) if present != repository.manifest => {
                workbench.context.events.warning(format!("`{}` stays, and differs from the bundle's", path.display()));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                write_atomically(&path, repository.manifest.as_bytes()).map_err(ManifestError::Io)?;
            }
            Err(error) => return Err(ManifestError::Io(error).into()),
        }
        let present = workbench.repository_lock(name)?;
        workbench.replace_lock(present.as_ref(), &repository.lock, &workbench.lock_path(name))?;
        let mut built = repository.built.clone();
        match catalog.get(name)? {
            Some(present) if present.image == built.image && present.locks == built.locks => {}
            present => {
                // A bundle for scorers has none for agents.
                built.agent = present.filter(|present| present.locks == built.locks).and_then(|present| present.agent);
                catalog.put(&built)?;
            }
        }
    }
    for (path, file) in files {
        let bytes = file.render()?;
        if fs::read(&path).ok().as_deref() != Some(&bytes) {
            write_atomically(&path, &bytes).map_err(TaskFileError::from)?;
        }
    }
    Ok(())
}
