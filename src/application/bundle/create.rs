//! `bundle create`: collects what some tasks need, and writes it as a bundle.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use fs_err as fs;

use super::{Trust, directory_of, open};
use crate::application::Context;
use crate::application::archives::ArchiveOutput;
use crate::application::selection::{by_repository, tasks};
use crate::application::workbench::{Workbench, blocking, environment, whole_builds};
use crate::artifact::made;
use crate::artifact::store::Store;
use crate::bundle::description::{Described, ImageReference, RepositoryContent, Runner, SCHEMA, SourceBlob};
use crate::bundle::objects::{self, ObjectList};
use crate::bundle::writing::{Content, NewBundle};
use crate::bundle::{Audience, BundleError, Description, Layout, MadeKind, bill, signature};
use crate::canonical_json::canonical_json;
use crate::digest::{Digest, HashingWriter};
use crate::error::CommandError;
use crate::event::EventSink;
use crate::execution::build::prepared::{self, Prepared, RevisionInput};
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::container::{Environment, ToolJars};
use crate::execution::identity::identity;
use crate::execution::launch::console_for;
use crate::execution::launch::sharing;
use crate::execution::time_class::TimeClasses;
use crate::execution::trees::Trees;
use crate::image::{BuiltImage, ImageError, components, remembered_layer, tag};
use crate::lock::LockFile as _;
use crate::manifest::{ManifestError, RepositoryManifest};
use crate::output::counted;
use crate::task::file::{TASK_FILE_SCHEMA, TaskFile};
use crate::task::selector::Selector;
use crate::task::{Cell, RepositoryName, Revision, Task};

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
    /// The key for `ssh-keygen -Y sign`.
    pub sign: Option<PathBuf>,
}

/// A bundle that was written.
#[derive(Debug, serde::Serialize)]
pub struct Created {
    /// Version of this value's schema.
    pub schema: u32,
    /// Number of tasks.
    pub tasks: usize,
    /// Number of prepared revisions.
    pub prepared: usize,
    /// Number of revisions that are not prepared.
    pub unprepared: usize,
    /// Number of blobs that were written.
    pub blobs: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// Number of blobs that the base has.
    pub in_base: usize,
}

/// Writes a bundle. A dry run only tells what it would hold.
///
/// # Errors
/// [`CommandError::Usage`] for a place that is taken; errors of selections, images, sources, the base and the bundle.
pub async fn create(request: &CreateRequest, context: &Context) -> Result<Created, CommandError> {
    let output = Output::of(&request.output)?;
    let selected = tasks(&request.selector, context)?;
    let workbench = Workbench::open(context)?;
    let base = match &request.base {
        Some(path) => Some(open(path, &Trust { unsigned: true, ..Trust::default() }, context)?),
        None => None,
    };
    let mut parts = Parts::new(request.audience, workbench.store.clone());
    let toolchain = workbench.toolchain()?;
    parts.description.toolchain = parts.record(toolchain.render().into_bytes());
    let maker = workbench.remembered_jars(&toolchain)?;
    match &maker {
        Some((key, jars)) => {
            parts.made(MadeKind::Jars, *key)?;
            parts.runner(jars)?;
        }
        None => context.events.warning("our own jars are not compiled yet, so nothing that is prepared is bundled"),
    }
    let (mut revisions, mut images) = (BTreeSet::new(), Vec::new());
    let (mut locks, mut licenses) = (Vec::new(), BTreeMap::<String, BTreeSet<String>>::new());
    for (repository, tasks) in by_repository(&selected) {
        let manifest = workbench.manifest(&repository)?;
        let mut built = workbench.built_image(&manifest)?;
        built.previous = None;
        images.push(parts.image(&built)?);
        locks.push(workbench.lock_for(&manifest)?);
        // Images without their layers' records run as well.
        for component in components(&built.image, &workbench.store).unwrap_or_default() {
            let files = component.licenses.iter().map(|path| path.as_str().to_owned());
            licenses.entry(component.name).or_default().extend(files);
        }
        let opened = workbench.repository(&manifest, &tasks).await?;
        let whole = Arc::new(whole_builds(&opened, &manifest, &workbench.lock_for(&manifest)?, &tasks).await?);
        let sources = opened.path().to_owned();
        let in_base = base.as_ref().and_then(|base| {
            let content = base.description.repositories.get(&repository)?;
            Some((&base.layout, content.sources.as_slice()))
        });
        let content = content(&workbench, &mut parts, (&manifest, &built), &tasks, (&sources, in_base)).await?;
        parts.description.repositories.insert(repository.clone(), content);
        if let Some((_, jars)) = &maker {
            let environment = environment(&manifest, &built.image);
            let limits = ExecutionLimits::from(&manifest.limits);
            let trees = workbench.trees(BTreeMap::from([(repository, sources)]), &whole);
            let tasks: Vec<Task> = tasks.into_iter().cloned().collect();
            let (store, events, jars) = (workbench.store.clone(), context.events.clone(), jars.clone());
            let find = move || made_of(&tasks, &trees, &environment, (&jars, &limits), (&store, &events));
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
    let bill = bill::bill(&toolchain, &locks, &licenses).map_err(|error| CommandError::Runtime(error.into()))?;
    parts.description.bill = parts.record(bill);
    let tasks = selected.len();
    let prepared = revisions.len() - unprepared;
    let (mut bundle, in_base) = parts.bundle(&images, base.as_ref().map(|base| &base.layout))?;
    let bytes = bundle.blobs.values().map(|(size, _)| size).sum();
    let created = Created { schema: 1, tasks, prepared, unprepared, blobs: bundle.blobs.len(), bytes, in_base };
    if context.options.dry_run {
        return Ok(created);
    }
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
    context.until_interrupted(blocking(write)).await?;
    Ok(created)
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
    let classes = TimeClasses::new(&workbench.data_dir).export(repository, tasks).map_err(CommandError::Runtime)?;
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
        parts.files.insert(digest, (size, spooled));
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
    environment: &Environment,
    (jars, limits): (&ToolJars, &ExecutionLimits),
    (store, events): (&Store, &EventSink),
) -> Result<Vec<MadeOf>, CommandError> {
    let mut found: BTreeMap<Digest, MadeOf> = BTreeMap::new();
    for task in tasks {
        for cell in [Cell::Oo, Cell::Nn] {
            let failed = |reason| BundleError::Git { repository: task.repository.clone(), doing: "read", reason };
            let facts = trees.facts(task, cell).map_err(failed)?;
            // A revision without the file's module is not built.
            let Some(module) = facts.module else { continue };
            let revision = RevisionInput { tree: facts.tree, module };
            let key = prepared::key_by((jars, identity(), limits), environment, &revision);
            if found.contains_key(&key) {
                continue;
            }
            let mut made = Vec::new();
            let prepared = made::find::<Prepared>(store, key, events)
                .map_err(|error| CommandError::Runtime(std::io::Error::other(error)))?;
            if let Some(prepared) = prepared {
                made.push((MadeKind::Prepared, key));
                if let Prepared::Compiled(revision) = prepared {
                    let console = console_for(&revision.class_path, environment.jdk, environment.launcher);
                    let archive = sharing::key((jars, identity()), environment, console);
                    made.push((MadeKind::ClassArchive, archive.map_err(CommandError::Runtime)?));
                }
            }
            found.insert(key, MadeOf { key, made });
        }
    }
    Ok(found.into_values().collect())
}

/// The parts of a bundle that were collected so far.
struct Parts {
    store: Store,
    description: Description,
    /// The bytes of records.
    records: BTreeMap<Digest, Vec<u8>>,
    /// Files with sources, and their sizes in bytes.
    files: BTreeMap<Digest, (u64, PathBuf)>,
}

impl Parts {
    fn new(audience: Audience, store: Store) -> Self {
        // Replaced before anything is written.
        let none = Digest::of(b"");
        let description = Description {
            schema: SCHEMA,
            audience,
            identity: identity(),
            toolchain: none,
            repositories: BTreeMap::new(),
            made: Vec::new(),
            runner: None,
            layers: BTreeMap::new(),
            bill: none,
            records: BTreeMap::new(),
            blobs: BTreeMap::new(),
        };
        Self { store, description, records: BTreeMap::new(), files: BTreeMap::new() }
    }

    /// Returns the file for the sources of a repository.
    fn spool(&self, temporary: &Path, repository: &RepositoryName) -> PathBuf {
        temporary.join(format!("sources-{}", repository.file_stem()))
    }

    fn record(&mut self, bytes: Vec<u8>) -> Digest {
        let digest = Digest::of(&bytes);
        self.description.records.insert(digest, bytes.len() as u64);
        self.records.insert(digest, bytes);
        digest
    }

    fn blob(&mut self, digest: Digest) -> Result<u64, CommandError> {
        let size = self.store.size(&digest)?;
        self.description.blobs.insert(digest, size);
        Ok(size)
    }

    /// Adds an image: its blobs, and the records of its layers.
    fn image(&mut self, built: &BuiltImage) -> Result<ImageReference, CommandError> {
        for digest in built.blobs() {
            self.blob(digest)?;
        }
        for layer in &built.image.layers {
            // Without its record, a layer is as good for executions.
            let Some(record) = remembered_layer(&self.store, &layer.recipe) else { continue };
            for digest in record.blobs() {
                self.blob(digest)?;
            }
            let record = self.record(canonical_json(&record).map_err(ImageError::from)?);
            self.description.layers.insert(layer.recipe, record);
        }
        let manifest = built.image.manifest_digest;
        let name = tag(&built.image, Some(&built.repository), built.jdk);
        Ok(ImageReference { manifest, size: self.store.size(&manifest)?, name })
    }

    /// Adds a description of what was made, if there is one.
    fn made(&mut self, kind: MadeKind, key: Digest) -> Result<(), CommandError> {
        if self.description.made.iter().any(|made| (made.kind, made.key) == (kind, key)) {
            return Ok(());
        }
        let bytes = made::read_raw(&self.store, directory_of(kind), &key).map_err(CommandError::Runtime)?;
        let Some(bytes) = bytes else { return Ok(()) };
        let blobs = made::blobs_of(&bytes).map_err(|error| CommandError::Runtime(error.into()))?;
        if blobs.iter().any(|digest| !self.store.contains(digest)) {
            return Ok(());
        }
        for digest in blobs {
            self.blob(digest)?;
        }
        let record = self.record(bytes);
        self.description.made.push(Described { kind, key, record });
        Ok(())
    }

    /// Notes the modification time of the runner's jar, which class archives contain.
    fn runner(&mut self, jars: &ToolJars) -> Result<(), CommandError> {
        let name = jars.runner.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let modified = fs::metadata(&jars.runner).and_then(|found| found.modified()).map_err(CommandError::Runtime)?;
        let since = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        if let Ok(jar) = Digest::from_hex(name) {
            self.description.runner = Some(Runner { jar, modified: since });
        }
        Ok(())
    }

    /// Returns the bundle without the blobs that the base has, and how many these are.
    fn bundle(mut self, images: &[ImageReference], base: Option<&Layout>) -> Result<(NewBundle, usize), CommandError> {
        self.description.made.sort();
        let rendered = self.description.render(images).map_err(|error| CommandError::Runtime(error.into()))?;
        let [description, manifest, index] = rendered;
        let mut blobs: BTreeMap<Digest, (u64, Content)> =
            self.description.blobs.iter().map(|(digest, size)| (*digest, (*size, Content::Blob))).collect();
        let texts = self.records.into_values().chain([description, manifest]);
        blobs.extend(texts.map(|bytes| (Digest::of(&bytes), (bytes.len() as u64, Content::Bytes(bytes)))));
        blobs.extend(self.files.into_iter().map(|(digest, (size, path))| (digest, (size, Content::File(path)))));
        let all = blobs.len();
        if let Some(base) = base {
            let mut left = BTreeMap::new();
            for (digest, blob) in blobs {
                // What leads to everything else is in every bundle.
                let is_record = matches!(blob.1, Content::Bytes(_));
                if is_record || !base.has(&digest)? {
                    left.insert(digest, blob);
                }
            }
            blobs = left;
        }
        let in_base = all - blobs.len();
        Ok((NewBundle { index, signature: None, blobs }, in_base))
    }
}
