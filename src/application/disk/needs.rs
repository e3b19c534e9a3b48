//! What a command is about to write.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::budget::{UNUSED, give_up};
use super::{Room, places};
use crate::application::agent_images;
use crate::application::io_failure::IoFailure;
use crate::application::revisions::prepared_key;
use crate::application::selection::by_repository;
use crate::application::workbench::{Workbench, blocking, repository_image, whole_builds};
use crate::artifact::fetch::FetchItem;
use crate::artifact::made::{self, Described as _};
use crate::artifact::store::{Store, UPSTREAM};
use crate::digest::Digest;
use crate::error::{CommandError, ExitStatus};
use crate::event::EventSink;
use crate::execution::build::prepared::Prepared;
use crate::execution::container::limits::ExecutionLimits;
use crate::execution::container::{RepositoryImage, Surefire};
use crate::image::recipe::ImageRecipe;
use crate::image::{Catalog, Image};
use crate::lock::items::{repository_items, toolchain_items};
use crate::lock::{RepositoryLock, ToolchainLock};
use crate::manifest::RepositoryManifest;
use crate::output::{counted, size};
use crate::task::{Cell, Revision, Task};
use crate::workspace::Sources;

/// From so many bytes on, a command tells its need.
const TOLD_BYTES: u64 = 1 << 30;
/// From so many bytes on, a dry run tells its need.
const TOLD_IN_DRY_RUNS: u64 = 1 << 20;
/// The size of an unpacked layer, in hundredths of its inputs' size: the most that was measured, of the base layer.
const UNPACKED_PERCENT: u64 = 250;
/// The size of a prepared revision of a repository that has none in the store yet: twice the mean of 17 revisions.
const PREPARED_BYTES: u64 = 4 << 20;
/// The Maven cache of a repository that has no lock yet: most have less.
const CACHE_BYTES: u64 = 64 << 20;
/// What a run keeps of one submission or developers' test for a task: records, logs and results. 140 to 460 KiB were
/// measured.
const RUN_BYTES: u64 = 512 << 10;

/// What a command is about to write to the data directory, in bytes.
pub(in crate::application) struct Needs<'a> {
    workbench: &'a Workbench<'a>,
    /// Whether layers are unpacked in the store.
    unpacks: bool,
    /// Files that are known by digest and that the store lacks.
    pub(super) fetched: BTreeMap<Digest, u64>,
    /// Bytes of files that no lock names yet.
    unlocked: u64,
    /// Layers that are not composed yet, by recipe.
    pub(super) composed: BTreeMap<Digest, u64>,
    /// Layers that are not unpacked yet, by diff id or, before that is known, by recipe.
    pub(super) unpacked: BTreeMap<Digest, u64>,
    /// Number and bytes of revisions that are not prepared yet.
    pub(super) prepared: (usize, u64),
    /// Bytes of runs.
    pub(super) runs: u64,
    /// How many of these are an estimate, which forbids nothing: a run that is continued has most of it already.
    estimated: u64,
    /// Keys of prepared revisions that the command uses.
    used: BTreeSet<Digest>,
}

impl<'a> Needs<'a> {
    /// Returns the need of nothing.
    pub(in crate::application) async fn new(workbench: &'a Workbench<'a>) -> Self {
        Self::of(workbench, workbench.unpacks_layers().await)
    }

    pub(super) fn of(workbench: &'a Workbench<'a>, unpacks: bool) -> Self {
        let (fetched, composed, unpacked) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (prepared, used) = ((0, 0), BTreeSet::new());
        Self { workbench, unpacks, fetched, unlocked: 0, composed, unpacked, prepared, runs: 0, estimated: 0, used }
    }

    /// Adds what executing tasks takes: images and prepared revisions of the cells that `cells` returns.
    ///
    /// # Errors
    /// An interrupt.
    pub(in crate::application) async fn tasks<'t>(
        &mut self,
        tasks: impl IntoIterator<Item = &'t Task>,
        surefire: Surefire,
        cells: impl Fn(&Task) -> &'static [Cell],
    ) -> Result<(), CommandError> {
        for (repository, tasks) in by_repository(tasks) {
            let Some(manifest) = untold(self.workbench.manifest(&repository)) else { continue };
            let of_task = |task: &&'t Task| {
                let task: &'t Task = task;
                cells(task).iter().map(move |cell| (task.clone(), *cell))
            };
            self.executions(&manifest, tasks.iter().flat_map(of_task).collect(), surefire).await?;
            self.jars();
        }
        Ok(())
    }

    /// Adds a repository's image, and the one for agents. `runs` says whether containers run from the image. A
    /// repository without a fitting lock adds nothing: the command itself ends with that error.
    pub(in crate::application) fn image(&mut self, manifest: &RepositoryManifest, runs: bool, agent: bool) {
        let mut add = || -> Result<(), CommandError> {
            let catalog = Catalog::open(&self.workbench.data_dir)?;
            let (toolchain, lock) = (self.workbench.toolchain()?, self.workbench.lock_for(manifest)?);
            let locks = self.workbench.lock_digests(&manifest.repository, manifest.jdk)?;
            let present = catalog.up_to_date(&manifest.repository, locks)?.filter(|built| built.is_for(manifest));
            let proven = present.as_ref().map(|built| self.workbench.is_proven(built)).transpose()?.unwrap_or(false);
            let runs = runs && !proven;
            match &present {
                Some(built) if runs => self.built(&built.image),
                Some(_) => {}
                None => {
                    let recipe = ImageRecipe::new(&toolchain, manifest.jdk, Some(&lock))?;
                    self.recipe(&catalog, &recipe, (&toolchain, Some(&lock)), runs)?;
                }
            }
            if runs {
                self.jars();
            }
            if agent {
                let recipe = agent_images::recipe(self.workbench, manifest)?;
                self.recipe(&catalog, &recipe, (&toolchain, Some(&lock)), false)?;
            }
            Ok(())
        };
        untold(add());
    }

    /// Adds what resolving a repository takes, as far as that is known before.
    pub(in crate::application) fn resolving(&mut self, manifest: &RepositoryManifest) {
        // What a lock lacks is found only by resolving.
        if untold(self.workbench.lock_for(manifest)).is_none() {
            self.toolchain(manifest.jdk);
            self.unlocked = self.unlocked.saturating_add(CACHE_BYTES);
        }
    }

    /// Adds the image that compiles our own jars, unless they are there.
    fn jars(&mut self) {
        let toolchain = untold(self.workbench.toolchain());
        let there =
            toolchain.as_ref().and_then(|toolchain| untold(self.workbench.remembered_jars(toolchain)).flatten());
        let oldest = toolchain.and_then(|toolchain| toolchain.jdks.iter().map(|kit| kit.major).min());
        if let (None, Some(oldest)) = (there, oldest) {
            self.toolchain(oldest);
        }
    }

    /// Adds the image of the toolchain with a development kit, if a lock has that kit.
    fn toolchain(&mut self, jdk: u32) {
        let mut add = || -> Result<(), CommandError> {
            let (catalog, toolchain) = (Catalog::open(&self.workbench.data_dir)?, self.workbench.toolchain()?);
            match toolchain.jdks.iter().any(|kit| kit.major == jdk) {
                true => self.recipe(&catalog, &ImageRecipe::new(&toolchain, jdk, None)?, (&toolchain, None), true),
                false => Ok(()),
            }
        };
        untold(add());
    }

    fn recipe(
        &mut self,
        catalog: &Catalog,
        recipe: &ImageRecipe,
        (toolchain, lock): (&ToolchainLock, Option<&RepositoryLock>),
        runs: bool,
    ) -> Result<(), CommandError> {
        let mut items: Vec<FetchItem> = toolchain_items(toolchain, Some(recipe.jdk))?;
        items.extend(lock.map(repository_items).transpose()?.unwrap_or_default());
        let sizes: BTreeMap<Digest, u64> = items.into_iter().map(|item| (item.digest, item.size)).collect();
        for layer in catalog.planned_layers(recipe)? {
            if let Some(finished) = layer.finished {
                if runs {
                    self.unpacked.insert(finished.diff_id, finished.uncompressed_size);
                }
                continue;
            }
            let inputs = || layer.inputs.iter().map(|digest| (digest, sizes.get(digest).copied().unwrap_or(0)));
            self.fetched.extend(
                inputs().filter(|(digest, _)| !catalog.store().contains(digest)).map(|(digest, size)| (*digest, size)),
            );
            let bytes = sum(inputs().map(|(_, size)| size));
            // Blobs are compressed, as inputs are.
            self.composed.insert(layer.recipe, bytes);
            if runs {
                self.unpacked.insert(layer.recipe, (bytes / 100).saturating_mul(UNPACKED_PERCENT));
            }
        }
        Ok(())
    }

    fn built(&mut self, image: &Image) {
        self.unpacked.extend(image.layers.iter().map(|layer| (layer.diff_id, layer.uncompressed_size)));
    }

    /// Adds what executing these cells on the direct path takes: a repository's image and its prepared revisions. A
    /// repository without an image adds nothing: the command itself reports that error.
    ///
    /// # Errors
    /// An interrupt.
    async fn executions(
        &mut self,
        manifest: &RepositoryManifest,
        cells: Vec<(Task, Cell)>,
        surefire: Surefire,
    ) -> Result<(), CommandError> {
        let Some(built) = untold(self.workbench.built_image(manifest)) else { return Ok(()) };
        self.built(&built.image);
        let revisions: BTreeSet<Revision> =
            cells.iter().map(|(task, cell)| task.revision(cell.code()).clone()).collect();
        let image = RepositoryImage { surefire, ..repository_image(manifest, &built.image) };
        let keys = match self.keys(manifest, cells, image).await {
            Err(error) if error.exit_status() == ExitStatus::Interrupted => return Err(error),
            keys => untold(keys).flatten(),
        };
        // Without local sources or our own jars, nothing of the repository is prepared.
        let (there, missing) = match keys {
            None => (BTreeSet::new(), revisions.len()),
            Some(keys) => {
                let all = keys.len();
                let there: BTreeSet<Digest> = keys.into_iter().filter(|key| self.description(key).is_some()).collect();
                let missing = all - there.len();
                (there, missing)
            }
        };
        let known = sum(there.iter().filter_map(|key| self.description(key)).flatten());
        let each = known.checked_div(there.len() as u64).unwrap_or(PREPARED_BYTES);
        self.prepared.0 += missing;
        self.prepared.1 = self.prepared.1.saturating_add(each.saturating_mul(missing as u64));
        self.used.extend(there);
        Ok(())
    }

    /// Returns the sizes of a prepared revision's blobs; `None` if the revision is not prepared.
    fn description(&self, key: &Digest) -> Option<Vec<u64>> {
        let bytes = made::read_raw(&self.workbench.store, Prepared::KIND.directory, key).ok()??;
        let blobs = made::blobs_of(&bytes).ok()?;
        Some(blobs.iter().filter_map(|blob| self.workbench.store.size(blob).ok()).collect())
    }

    /// Returns the keys of the cells' prepared revisions; `None` without our own jars.
    async fn keys(
        &self,
        manifest: &RepositoryManifest,
        cells: Vec<(Task, Cell)>,
        image: RepositoryImage,
    ) -> Result<Option<BTreeSet<Digest>>, CommandError> {
        let workbench = self.workbench;
        let Some((_, jars)) = workbench.remembered_jars(&workbench.toolchain()?)? else { return Ok(None) };
        let tasks: Vec<&Task> = cells.iter().map(|(task, _)| task).collect();
        let revisions: Vec<Revision> = cells.iter().map(|(task, cell)| task.revision(cell.code()).clone()).collect();
        let sources = Sources { offline: true, events: EventSink::none(), ..workbench.context.sources()? };
        let opening = async { Ok(sources.open(&manifest.repository, &manifest.clone_url, &revisions).await?) };
        let opened = workbench.context.until_interrupted(opening).await?;
        let lock = workbench.lock_for(manifest)?;
        let whole = Arc::new(whole_builds(&opened, manifest, &lock, &tasks).await?);
        let paths = BTreeMap::from([(manifest.repository.clone(), opened.path().to_owned())]);
        let (trees, limits) = (workbench.trees(paths, &whole), ExecutionLimits::from(&manifest.limits));
        let find = move || {
            let key =
                |(task, cell): &(Task, Cell)| prepared_key((task, *cell), &trees, &image, (&jars, &limits)).transpose();
            let keys: Result<_, String> = cells.iter().filter_map(key).collect();
            keys.map(Some).map_err(io::Error::other).map_err(IoFailure::of("reading the sources of tasks"))
        };
        workbench.context.until_interrupted(blocking(find)).await
    }

    /// Adds what a run keeps of so many submissions or developers' tests.
    pub(in crate::application) fn run(&mut self, number: usize) {
        self.estimated = self.estimated.saturating_add(RUN_BYTES.saturating_mul(number as u64));
        self.runs = self.runs.saturating_add(RUN_BYTES.saturating_mul(number as u64));
    }

    /// Adds blobs and runs of a bundle.
    pub(in crate::application) fn bundle(&mut self, blobs: &BTreeMap<Digest, u64>, runs: impl Iterator<Item = u64>) {
        self.fetched.extend(blobs);
        self.runs = sum(runs);
    }

    fn parts(&self) -> [(u64, String); 5] {
        let unpacked = match self.unpacks {
            true => not_unpacked(self.workbench.store.root(), &self.unpacked),
            false => 0,
        };
        let (revisions, prepared) = self.prepared;
        [
            (sum(self.fetched.values().copied().chain([self.unlocked])), "to fetch".to_owned()),
            (sum(self.composed.values().copied()), "for layers".to_owned()),
            (unpacked, "to unpack layers".to_owned()),
            (prepared, format!("for {}", counted(revisions, "prepared revision", "prepared revisions"))),
            (self.runs, "for the run".to_owned()),
        ]
    }

    /// Returns all of it in bytes.
    pub(super) fn total(&self) -> u64 {
        sum(self.parts().into_iter().map(|(bytes, _)| bytes))
    }

    /// Returns all of it in words.
    pub(super) fn words(&self) -> String {
        let parts = self.parts().into_iter().filter(|(bytes, _)| *bytes >= TOLD_IN_DRY_RUNS / 10);
        let parts: Vec<String> = parts.map(|(bytes, what)| format!("{} {what}", size(bytes))).collect();
        format!("about {} of disk: {}", size(self.total()), parts.join(", "))
    }

    /// Checks that there is room, tells a large need, and makes room by giving up what `store gc` gives up: blobs that
    /// no record names, and prepared revisions and class archives that nobody used for a day. Nothing goes if that does
    /// not suffice. A dry run removes nothing.
    ///
    /// # Errors
    /// [`DiskError`](super::DiskError); errors of looking through the data directory.
    pub(in crate::application) async fn ensure(self) -> Result<(), CommandError> {
        let (workbench, context, total) = (self.workbench, self.workbench.context, self.total());
        let (needed, dry_run) = (total.saturating_sub(self.estimated), context.options.dry_run);
        if total >= if dry_run { TOLD_IN_DRY_RUNS } else { TOLD_BYTES } {
            context.events.message(format!("{} {}", if dry_run { "would need" } else { "needs" }, self.words()));
        }
        let measuring = || IoFailure::of("measuring the data directory");
        let (root, places) = (workbench.data_dir.root().to_owned(), places(workbench).map_err(measuring())?);
        let (store, limit, used, events) =
            (workbench.store.clone(), context.options.max_disk, self.used, context.events.clone());
        let make_room = move || {
            let measure = || Room::measure(root.clone(), &places, limit).map_err(measuring());
            let Some((lacking, error)) = measure()?.lacking(needed) else { return Ok(()) };
            // A node's copy of a shared store has a rule of its own, which found room for layers.
            if store.root().join(UPSTREAM).exists() {
                events.warning(error.to_string());
                return Ok(());
            }
            if !dry_run {
                keep_used(&store, &used)?;
            }
            let planned = match give_up(&store, &UNUSED, lacking, true) {
                Ok(planned) => planned,
                Err(failure) => {
                    events.warning(format!("nothing can be given up to make room: {failure}"));
                    return Err(error.into());
                }
            };
            if planned.bytes < lacking {
                return Err(error.into());
            }
            if dry_run {
                events.message(format!("would first give up {planned}"));
                return Ok(());
            }
            let given_up = give_up(&store, &UNUSED, lacking, false)?;
            events.message(format!("gave up {given_up}, to make room"));
            measure()?.lacking(needed).map_or(Ok(()), |(_, error)| Err(error.into()))
        };
        context.until_interrupted(blocking(make_room)).await
    }
}

/// Marks prepared revisions as used, so that those which the command needs do not go to make room for it.
fn keep_used(store: &Store, used: &BTreeSet<Digest>) -> Result<(), CommandError> {
    let mark = |key: &Digest| made::mark_used::<Prepared>(store, *key);
    used.iter().try_for_each(mark).map_err(IoFailure::of("marking prepared revisions as used"))
}

/// Returns the bytes of those layers that are not unpacked in a store.
pub(in crate::application) fn not_unpacked(store: &Path, layers: &BTreeMap<Digest, u64>) -> u64 {
    let missing = layers.iter().filter(|(layer, _)| !store.join("unpacked").join(layer.hex()).exists());
    sum(missing.map(|(_, bytes)| *bytes))
}

/// Sizes in locks may be anything.
fn sum(sizes: impl IntoIterator<Item = u64>) -> u64 {
    sizes.into_iter().fold(0, u64::saturating_add)
}

/// Returns the value, or `None` for an error. Logs the error only, because the command itself meets and reports it.
fn untold<T>(found: Result<T, CommandError>) -> Option<T> {
    found.inspect_err(|error| tracing::debug!("a need of disk is not known: {error}")).ok()
}
