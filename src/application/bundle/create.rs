//! `bundle create`: collects what some tasks need, and writes it as a bundle.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err as fs;

use super::bill::Bill;
use super::parts::{NewFile, Parts};
use super::runs::PackedRuns;
use super::summary::Created;
use super::workspaces::for_agents;
use super::{Trust, check_space, open};
use crate::application::Context;
use crate::application::archives::ArchiveOutput;
use crate::application::failures::{Failures, Partial};
use crate::application::io_failure::IoFailure;
use crate::application::merge::paths;
use crate::application::revisions::prepared_key;
use crate::application::selection::{by_repository, tasks};
use crate::application::workbench::{Workbench, blocking, repository_image, whole_builds};
use crate::artifact::made::{self, MadeError};
use crate::artifact::store::Store;
use crate::bundle::description::{ImageReference, RepositoryContent, SCHEMA, ScorerDescription, SourceBlob};
use crate::bundle::objects::{self, ObjectList};
use crate::bundle::{Audience, BundleError, Description, Layout, MadeKind, signature};
use crate::canonical_json::canonical_json;
use crate::digest::{Digest, HashingWriter};
use crate::error::CommandError;
use crate::event::EventSink;
use crate::execution::build::prepared::Prepared;
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::container::temporary::Spool;
use crate::execution::container::{RepositoryImage, ToolJars};
use crate::execution::identity::identity;
use crate::execution::launch::console_for;
use crate::execution::scoring::cache::ResultCache;
use crate::execution::sharing::{self, Serves};
use crate::execution::time_class::TimeClasses;
use crate::execution::trees::Trees;
use crate::image::{BuiltImage, ImageError};
use crate::lock::{LockFile as _, ToolchainLock};
use crate::manifest::{ManifestError, RepositoryManifest};
use crate::output::counted;
use crate::task::file::{TASK_FILE_SCHEMA, TaskFile};
use crate::task::selector::Selector;
use crate::task::{Cell, RepositoryName, Revision, Task, TaskId};

/// What is bundled, and where to.
#[derive(Clone, Debug)]
pub struct CreateRequest {
    /// Whom the bundle is for.
    pub audience: Audience,
    /// The tasks.
    pub selector: Selector,
    /// A directory, or a file whose name ends in `.tar`.
    pub output: PathBuf,
    /// A bundle that the receiver has: blobs of it are left out.
    pub base: Option<PathBuf>,
    /// Finished runs of the tasks, for scorers: ids, `latest`, or paths, which have a slash.
    pub runs: Vec<String>,
    /// The key for `ssh-keygen -Y sign`.
    pub sign: Option<PathBuf>,
}

/// Writes a bundle. A repository without an image, lock or sources is left out. A dry run only tells what it would hold.
///
/// # Errors
/// [`CommandError::Usage`] for a place that is taken; errors of selections, the base and the bundle. If no repository
/// is left, their failures.
pub async fn create(request: &CreateRequest, context: &Context) -> Result<Partial<Created>, CommandError> {
    let output = Output::of(&request.output)?;
    if request.audience == Audience::Agent && !request.runs.is_empty() {
        return Err(CommandError::Usage {
            message: "a bundle for agents holds no runs".to_owned(),
            hint: "leave `--run` out, or pass `--audience scorer`".to_owned(),
        });
    }
    let runs = paths(&request.runs, context)?;
    let mut selected = tasks(&request.selector, context)?;
    let workbench = Workbench::open(context)?;
    let failures = retain_ready(&mut selected, &workbench).await?;
    if selected.is_empty() {
        let verdict = failures.settle("bundled", Ok(()));
        return verdict.map(|()| Partial { results: Created::default(), verdict: Ok(()) });
    }
    let ended = |created: Created| {
        let verdict = failures.settle("bundled", created.verdict());
        Partial { results: created, verdict }
    };
    let base = match &request.base {
        Some(path) => Some(open(path, &Trust { unsigned: true, ..Trust::default() }, context)?),
        None => None,
    };
    let spool =
        Spool::create(&workbench.data_dir.temporary()).map_err(IoFailure::of("making a temporary directory"))?;
    let mut created = Created { schema: 1, tasks: selected.len(), ..Created::default() };
    let mut parts = Parts::new(workbench.store.clone());
    let (description, images) = match request.audience {
        Audience::Scorer => {
            let of_base = base.as_ref().map(|base| (&base.layout, &base.description));
            let mut made = for_scorers(&selected, &workbench, &mut parts, of_base, &mut created).await?;
            let of_bundle: BTreeSet<TaskId> = selected.iter().map(|task| task.id.clone()).collect();
            let (cache, place) = (ResultCache::of(&workbench.data_dir, true), spool.path().to_owned());
            let pack = blocking(move || PackedRuns::of(&runs, &of_bundle, &cache, &place));
            let packed = context.until_interrupted(pack).await?;
            parts.files.extend(packed.files);
            (created.runs, created.results) = (packed.runs.len(), packed.results);
            made.0.runs = packed.runs;
            (Description::Scorer(Box::new(made.0)), made.1)
        }
        Audience::Agent => {
            let made = for_agents(&selected, &workbench, &mut parts, spool.path(), &mut created).await?;
            (Description::Agent(Box::new(made.0)), made.1)
        }
    };
    if !created.refused.is_empty() {
        return Ok(ended(created));
    }
    let (mut bundle, in_base) = parts.bundle(&description, &images, base.as_ref().map(|base| &base.layout))?;
    created.blobs = bundle.blobs.len();
    created.bytes = bundle.blobs.values().map(|(size, _)| size).sum();
    created.in_base = in_base;
    if context.options.dry_run {
        return Ok(ended(created));
    }
    let place = std::path::absolute(&request.output);
    let place = place.map_err(IoFailure::of(format!("finding the place of `{}`", request.output.display())))?;
    check_space(&place, created.bytes)?;
    let (store, umask, key) = (workbench.store.clone(), context.umask, request.sign.clone());
    let temporary = workbench.data_dir.temporary();
    let write = move || {
        if let Some(key) = key {
            bundle.signature = Some(signature::sign(&bundle.index, &key, &temporary)?);
        }
        match output {
            Output::Directory(path) => Ok(bundle.write_directory(&store, &path, umask)?),
            Output::Archive(path) => {
                let name = path.display().to_string();
                let io = |source| BundleError::Io { name: name.clone(), doing: "written", source };
                ArchiveOutput::File(path).write(umask, io, |out| bundle.write_archive(&store, &name, out))
            }
        }
    };
    {
        let _stage = context.events.stage("write bundle", None, 0);
        context.until_interrupted(blocking(write)).await?;
    }
    Ok(ended(created))
}

/// Leaves out the tasks of repositories that have no image, lock or sources, and returns why.
async fn retain_ready<'a>(selected: &mut Vec<Task>, workbench: &Workbench<'a>) -> Result<Failures<'a>, CommandError> {
    let groups = by_repository(&*selected);
    let mut failures = Failures::new(groups.len(), workbench.context);
    let ready = async |repository: &RepositoryName, tasks: &Vec<&Task>| {
        let manifest = workbench.manifest(repository)?;
        workbench.built_image(&manifest)?;
        workbench.lock_for(&manifest)?;
        workbench.repository(&manifest, tasks).await?;
        Ok(repository.clone())
    };
    let ready: BTreeSet<RepositoryName> = failures.each(&groups, ready).await?.into_iter().collect();
    selected.retain(|task| ready.contains(&task.repository));
    Ok(failures)
}

/// Collects what scorers need.
async fn for_scorers(
    selected: &[Task],
    workbench: &Workbench<'_>,
    parts: &mut Parts,
    base: Option<(&Layout, &Description)>,
    created: &mut Created,
) -> Result<(ScorerDescription, Vec<ImageReference>), CommandError> {
    let context = workbench.context;
    // Scorers need no tools of agents.
    let lock = ToolchainLock { agent_packages: Vec::new(), ..workbench.toolchain()? };
    let toolchain = parts.record(lock.render().into_bytes());
    let maker = workbench.remembered_jars(&lock)?;
    match &maker {
        Some((key, jars)) => {
            parts.made(MadeKind::Jars, *key)?;
            parts.runner(jars)?;
        }
        None => context.events.warning("our own jars are not compiled yet, so nothing that is prepared is bundled"),
    }
    let (mut revisions, mut images, mut repositories) = (BTreeSet::new(), Vec::new(), BTreeMap::new());
    let mut bill = Bill::default();
    for (repository, tasks) in by_repository(selected) {
        let manifest = workbench.manifest(&repository)?;
        let mut built = workbench.built_image(&manifest)?;
        (built.previous, built.agent) = (None, None);
        images.extend(parts.image(&built)?);
        bill.add(&built, workbench.lock_for(&manifest)?, &workbench.store, &context.events)?;
        let opened = workbench.repository(&manifest, &tasks).await?;
        let whole = Arc::new(whole_builds(&opened, &manifest, &workbench.lock_for(&manifest)?, &tasks).await?);
        let sources = opened.path().to_owned();
        let in_base = base.and_then(|(layout, description)| match description {
            Description::Scorer(description) => {
                Some((layout, description.repositories.get(&repository)?.sources.as_slice()))
            }
            Description::Agent(_) => None,
        });
        let content = content(workbench, parts, (&manifest, &built), &tasks, (&sources, in_base)).await?;
        repositories.insert(repository.clone(), content);
        if let Some((_, jars)) = &maker {
            let image = repository_image(&manifest, &built.image);
            let limits = ExecutionLimits::from(&manifest.limits);
            let trees = workbench.trees(BTreeMap::from([(repository, sources)]), &whole);
            let tasks: Vec<Task> = tasks.into_iter().cloned().collect();
            let (store, events, jars) = (workbench.store.clone(), context.events.clone(), jars.clone());
            let find = move || made_of(&tasks, &trees, &image, (&jars, &limits), (&store, &events));
            revisions.extend(context.until_interrupted(blocking(find)).await?);
        }
    }
    let unprepared = revisions.iter().filter(|found| found.made.is_empty()).count();
    if unprepared > 0 {
        let lacking = counted(unprepared, "revision is", "revisions are");
        context.events.warning(format!(
            "{lacking} not prepared: whoever imports the bundle has Maven compile them; `validate` prepares them"
        ));
    }
    for (kind, key) in revisions.iter().flat_map(|found| found.made.iter().copied()) {
        parts.made(kind, key)?;
    }
    let bill = parts.record(bill.render(&lock)?);
    (created.prepared, created.unprepared) = (revisions.len() - unprepared, unprepared);
    parts.made.sort();
    let description = ScorerDescription {
        schema: SCHEMA,
        identity: identity(),
        toolchain,
        repositories,
        made: parts.made.clone(),
        runner: parts.runner.clone(),
        runs: Vec::new(),
        layers: parts.layers.clone(),
        bill,
        records: parts.record_sizes(),
        blobs: parts.blobs.clone(),
    };
    Ok((description, images))
}

/// Where a bundle is written.
enum Output {
    Directory(PathBuf),
    Archive(PathBuf),
}

impl Output {
    fn of(path: &Path) -> Result<Self, CommandError> {
        if path.extension().is_some_and(|extension| extension == "tar") {
            return Ok(Self::Archive(path.to_owned()));
        }
        let taken = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) || path.is_file();
        match taken {
            false => Ok(Self::Directory(path.to_owned())),
            true => Err(CommandError::Usage {
                message: format!("`{}` has content already", path.display()),
                hint: "name a new directory, or a file whose name ends in `.tar`".to_owned(),
            }),
        }
    }
}

/// Collects the records and sources of a repository.
async fn content(
    workbench: &Workbench<'_>,
    parts: &mut Parts,
    (manifest, built): (&RepositoryManifest, &BuiltImage),
    tasks: &[&Task],
    (sources, base): (&Path, Option<(&Layout, &[SourceBlob])>),
) -> Result<RepositoryContent, CommandError> {
    let repository = &manifest.repository;
    let lock = parts.record(workbench.lock_for(manifest)?.render().into_bytes());
    let text = fs::read(workbench.manifest_path(repository)).map_err(ManifestError::Io)?;
    let manifest = parts.record(text);
    let mut of_file: Vec<Task> = tasks.iter().map(|task| (*task).clone()).collect();
    of_file.sort_by(|a, b| a.id.cmp(&b.id));
    let file = TaskFile { schema: TASK_FILE_SCHEMA, repository: repository.clone(), tasks: of_file };
    let task_file = parts.record(file.render()?);
    let classes = TimeClasses::new(&workbench.data_dir).export(repository, tasks);
    let classes = classes.map_err(IoFailure::of("reading recorded time classes"))?;
    let time_classes = classes.map(|bytes| parts.record(bytes));
    let revisions: BTreeSet<Revision> = tasks.iter().flat_map(|task| [task.rev1.clone(), task.rev2.clone()]).collect();
    let revisions: Vec<Revision> = revisions.into_iter().collect();
    let (mut blobs, mut known) = (Vec::new(), HashSet::new());
    for blob in base.map(|(_, blobs)| blobs).unwrap_or_default() {
        let Some((layout, _)) = base.filter(|(layout, _)| layout.has(&blob.digest).unwrap_or(false)) else { continue };
        let found = objects::ids(layout.open_blob(&blob.digest, blob.size)?);
        known.extend(found.map_err(|reason| layout.malformed(reason))?);
        blobs.push(blob.clone());
    }
    let (path, name) = (sources.to_owned(), repository.clone());
    let (wanted, spooled) = (revisions.clone(), parts.spool(&workbench.data_dir.temporary(), repository));
    let spool = spooled.clone();
    let write = move || {
        let failed = |reason: String| BundleError::Git { repository: name.clone(), doing: "read", reason };
        let list = ObjectList::of(&path, &wanted, &known).map_err(failed)?;
        if list.is_empty() {
            return Ok(None);
        }
        let write = || -> std::io::Result<(Digest, u64)> {
            let mut out = HashingWriter::new(std::io::BufWriter::new(fs::File::create(&spool)?));
            list.write(&path, &mut out)?;
            let (buffer, digest, size) = out.finish();
            buffer.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            Ok((digest, size))
        };
        Ok(Some(write().map_err(|error| failed(error.to_string()))?))
    };
    if let Some((digest, size)) = workbench.context.until_interrupted(blocking(write)).await? {
        parts.files.insert(digest, NewFile { size, path: spooled });
        blobs.push(SourceBlob { digest, size });
    }
    let image = parts.record(canonical_json(built).map_err(ImageError::from)?);
    let tasks = file.tasks.into_iter().map(|task| task.id).collect();
    Ok(RepositoryContent { tasks, image, lock, manifest, task_file, time_classes, revisions, sources: blobs })
}

/// A code revision and the keys of what was made of it; without keys it is not prepared.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct MadeOf {
    key: Digest,
    made: Vec<(MadeKind, Digest)>,
}

/// Finds what was made of the revisions of tasks: prepared revisions, and the class archives of their launches.
fn made_of(
    tasks: &[Task],
    trees: &Trees,
    image: &RepositoryImage,
    (jars, limits): (&ToolJars, &ExecutionLimits),
    (store, events): (&Store, &EventSink),
) -> Result<Vec<MadeOf>, CommandError> {
    let mut found: BTreeMap<Digest, MadeOf> = BTreeMap::new();
    for task in tasks {
        for cell in [Cell::Oo, Cell::Nn] {
            let failed = |reason| BundleError::Git { repository: task.repository.clone(), doing: "read", reason };
            let key = prepared_key((task, cell), trees, image, (jars, limits)).map_err(failed)?;
            let Some(key) = key else { continue };
            if found.contains_key(&key) {
                continue;
            }
            let mut made = Vec::new();
            let prepared = made::find::<Prepared>(store, key, events).map_err(|error| match error {
                MadeError::Io(error) => IoFailure::of("reading a prepared revision")(error),
                MadeError::Store(error) => error.into(),
                MadeError::DataDir(error) => error.into(),
            })?;
            if let Some(prepared) = prepared {
                made.push((MadeKind::Prepared, key));
                if let Prepared::Compiled(revision) = prepared {
                    let console = console_for(&revision.class_path, image.jdk, image.launcher);
                    for serves in [Serves::Launches(console), Serves::Compilers] {
                        let archive = sharing::key((jars, identity()), image, serves);
                        let archive = archive.map_err(IoFailure::of("reading the time of the runner's jar"))?;
                        made.push((MadeKind::ClassArchive, archive));
                    }
                }
            }
            found.insert(key, MadeOf { key, made });
        }
    }
    Ok(found.into_values().collect())
}
