//! A node's own copy of what a command needs of the data directory, on a disk of the node.
//!
//! The copy is a data directory, too. Its small parts and its runs are links to the shared directory's; its store has the shared
//! store above it, and takes from it once what executions use as files; layers are unpacked on the node's disk. All locks are of
//! the node's disk. Processes of one node share the copy.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::fs::{Access, FlockOperation, access, flock};

use super::Context;
use super::context::Options;
use super::disk::not_unpacked;
use super::io_failure::IoFailure;
use super::selection::{self, by_repository};
use crate::artifact::store::UPSTREAM;
use crate::data_dir::DataDir;
use crate::data_dir::size::size_on_disk;
use crate::digest::Digest;
use crate::error::{CommandError, ExitStatus, Failure};
use crate::execution::time_class::TimeClasses;
use crate::host::free_bytes;
use crate::image::BuiltImage;
use crate::output::size;
use crate::task::selector::Selector;
use crate::task::{RepositoryName, Task};

/// Parts of the shared data directory that are used where they are.
const SHARED: [&str; 5] = ["manifests", "tasks", "proofs", "runs", "repositories"];
/// Parts that are written, too: whole files by key, which several nodes may write at once.
const KEPT: [&str; 2] = ["focal", "results"];
/// Files of the shared data directory that are used where they are.
const SHARED_FILES: [&str; 3] = ["settings.toml", "origins.toml", "allowed_signers"];
/// Free space that executions need beside images and prepared revisions, in bytes.
const WORKING_BYTES: u64 = 1 << 30;

/// Why a scratch can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// It and the data directory lie in each other.
    #[error("the scratch `{path}` and the data directory `{data_dir}` lie in each other")]
    Inside {
        /// The scratch.
        path: PathBuf,
        /// The data directory.
        data_dir: PathBuf,
    },
}

impl Failure for ScratchError {
    fn exit_status(&self) -> ExitStatus {
        ExitStatus::Usage
    }

    fn hint(&self) -> Option<String> {
        Some("name a directory on a disk of the node with `--scratch`".to_owned())
    }
}

/// Which scratch a command uses.
#[derive(Clone, Debug, Default)]
pub struct ScratchChoice {
    /// A directory on a disk of the node; `None` for none.
    pub directory: Option<PathBuf>,
    /// The most bytes that it may take.
    pub most_bytes: Option<u64>,
}

/// A command's scratch. Its process holds it until it ends.
pub struct Scratch {
    /// The context of the command, with the node's data directory.
    pub context: Context,
    shared: PathBuf,
    tasks: Vec<Task>,
    _in_use: fs::File,
}

impl Scratch {
    /// Returns the scratch of a command for a selection; `None` if none is wanted. Where the disk has no room, the command is
    /// told so and works in the shared directory.
    ///
    /// # Errors
    /// [`ScratchError`]; errors of the selection.
    pub fn open(choice: &ScratchChoice, selector: &Selector, context: &Context) -> Result<Option<Self>, CommandError> {
        let Some(directory) = choice.directory.as_ref().filter(|_| !context.options.dry_run) else { return Ok(None) };
        let absolute = |path: &Path| {
            std::path::absolute(path).map_err(IoFailure::of(format!("finding the place of `{}`", path.display())))
        };
        let (scratch, shared) = (absolute(directory)?, absolute(&context.options.data_dir)?);
        if scratch.starts_with(&shared) || shared.starts_with(&scratch) {
            return Err(ScratchError::Inside { path: scratch, data_dir: shared }.into());
        }
        let refused = |reason: String| {
            let text = format!("the scratch `{}` is not used, the data directory is: {reason}", scratch.display());
            context.events.warning(text);
        };
        let root = scratch.join(format!("testevo-sandbox-{}", Digest::of(shared.as_os_str().as_encoded_bytes()).hex()));
        let (setting_up, in_use) = match prepare(&shared, &root) {
            Ok(held) => held,
            Err(error) => {
                refused(error.to_string());
                return Ok(None);
            }
        };
        // The scratch has a limit of its own.
        let options = Options { data_dir: root.clone(), max_disk: None, ..context.options.clone() };
        let own = context.with_options(options);
        let data_dir = match own.data_dir() {
            Ok(data_dir) => data_dir.clone(),
            Err(error) => {
                refused(error.to_string());
                return Ok(None);
            }
        };
        let tasks = selection::tasks(selector, &own)?;
        let room = take_classes(&shared, &data_dir, &tasks)
            .and_then(|()| make_room((&shared, &root), &tasks, choice.most_bytes, &in_use));
        drop(setting_up);
        match room {
            Ok(None) => Ok(Some(Self { context: own, shared, tasks, _in_use: in_use })),
            Ok(Some(reason)) => {
                refused(reason);
                Ok(None)
            }
            Err(error) => {
                refused(error.to_string());
                Ok(None)
            }
        }
    }

    /// Hands what the command recorded beside its run to the shared data directory. What can't be handed over is measured
    /// again by a later command, and is told.
    pub fn finish(&self) {
        let hand_over = || -> Result<(), CommandError> {
            let own = TimeClasses::new(self.context.data_dir()?);
            let shared = TimeClasses::new(&DataDir::open(&self.shared)?);
            for (repository, tasks) in by_repository(&self.tasks) {
                if let Some(bytes) = own.export(&repository, &tasks).map_err(IoFailure::of("reading time classes"))? {
                    shared.adopt(&repository, &bytes).map_err(IoFailure::of("recording time classes"))?;
                }
            }
            Ok(())
        };
        if let Err(error) = hand_over() {
            self.context.events.warning(format!("time classes stay on this node: {error}"));
        }
    }
}

/// Makes the node's data directory. Returns the locks that no other process sets it up, and that this one uses it.
fn prepare(shared: &Path, root: &Path) -> io::Result<(fs::File, fs::File)> {
    fs::create_dir_all(root)?;
    // In a directory for everybody somebody else may have made it, with layers of their own.
    let owner = std::os::unix::fs::MetadataExt::uid(&fs::symlink_metadata(root)?);
    if owner != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other(format!("`{}` belongs to another user", root.display())));
    }
    let held = |name, operation| -> io::Result<fs::File> {
        let file = fs::File::create(root.join(name))?;
        flock(&file, operation)?;
        Ok(file)
    };
    let setting_up = held(".setting-up", FlockOperation::LockExclusive)?;
    let in_use = held(".in-use", FlockOperation::LockShared)?;
    link(shared, root)?;
    Ok((setting_up, in_use))
}

/// Checks that there is room for the tasks' images. Where nobody else works, more than the limit goes. Returns why there is
/// no room.
fn make_room(
    (shared, root): (&Path, &Path),
    tasks: &[Task],
    most_bytes: Option<u64>,
    in_use: &fs::File,
) -> io::Result<Option<String>> {
    let store = root.join("store");
    if let Some(most) = most_bytes {
        if flock(in_use, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let used = size_on_disk(&store)?;
            if used > 0 && used.saturating_add(needed_bytes(shared, root, tasks)) > most {
                fs::remove_dir_all(&store)?;
                link(shared, root)?;
            }
        }
        flock(in_use, FlockOperation::LockShared)?;
    }
    let needed = needed_bytes(shared, root, tasks);
    let free = free_bytes(root).unwrap_or(u64::MAX);
    let used = if most_bytes.is_some() { size_on_disk(&store)? } else { 0 };
    Ok(match most_bytes {
        _ if free < needed => Some(format!("{} are free on its disk, and {} are needed", size(free), size(needed))),
        Some(most) if most < used.saturating_add(needed) => {
            let [most, used, needed] = [most, used, needed].map(size);
            Some(format!("it may take {most}, has {used} that others may use, and {needed} more are needed"))
        }
        _ => None,
    })
}

/// Links the node's data directory to the shared one. Links of an earlier command are renewed.
fn link(shared: &Path, root: &Path) -> io::Result<()> {
    for directory in ["locks", "images", "store"] {
        fs::create_dir_all(root.join(directory))?;
    }
    let mut links: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
    for name in SHARED.into_iter().chain(SHARED_FILES) {
        links.insert(root.join(name), shared.join(name));
    }
    for name in KEPT {
        let target = shared.join(name);
        // What a shared directory that can't be written does not keep, the node keeps for itself.
        let writable = fs::create_dir_all(&target).is_ok() && access(&target, Access::WRITE_OK).is_ok();
        if writable {
            links.insert(root.join(name), target);
        } else if fs::symlink_metadata(root.join(name)).is_ok_and(|found| found.is_symlink()) {
            fs::remove_file(root.join(name))?;
        }
    }
    for (name, extension) in [("locks", "lock"), ("images", "json")] {
        for entry in fs::read_dir(shared.join(name))? {
            let entry = entry?;
            if entry.path().extension().is_some_and(|found| found == extension) {
                links.insert(root.join(name).join(entry.file_name()), entry.path());
            }
        }
    }
    links.insert(root.join("store").join(UPSTREAM), fs::canonicalize(shared.join("store"))?);
    for (link, target) in links.into_iter().filter(|(_, target)| target.exists()) {
        match fs::read_link(&link) {
            Ok(present) if present == target => continue,
            Ok(_) => fs::remove_file(&link)?,
            Err(_) if link.is_dir() => match fs::remove_dir(&link) {
                // Where nobody could write to the shared one, this node keeps its own, which another command may be using.
                Err(_) if KEPT.iter().any(|name| link.ends_with(name)) => continue,
                // Opening the directory before may have made an empty one.
                removed => removed?,
            },
            Err(_) => {}
        }
        fs_err::os::unix::fs::symlink(target, link)?;
    }
    Ok(())
}

/// Takes over what is recorded of the tasks in the shared data directory. New classes are handed over at the end.
fn take_classes(shared: &Path, own: &DataDir, tasks: &[Task]) -> io::Result<()> {
    for repository in by_repository(tasks).keys() {
        let path = shared.join("time-classes").join(format!("{}.json", repository.file_stem()));
        match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            bytes => TimeClasses::new(own).take_over(repository, &bytes?)?,
        }
    }
    Ok(())
}

/// Returns the bytes of the tasks' images that are not unpacked on this node yet, and some for the work.
fn needed_bytes(shared: &Path, root: &Path, tasks: &[Task]) -> u64 {
    let repositories: BTreeMap<&RepositoryName, ()> = tasks.iter().map(|task| (&task.repository, ())).collect();
    let mut layers: BTreeMap<Digest, u64> = BTreeMap::new();
    for repository in repositories.keys() {
        let path = shared.join("images").join(format!("{}.json", repository.file_stem()));
        // The command itself names an image that is missing.
        let Some(built) = fs::read(path).ok().and_then(|bytes| BuiltImage::parse(&bytes).ok()) else { continue };
        layers.extend(built.image.layers.iter().map(|layer| (layer.diff_id, layer.uncompressed_size)));
    }
    not_unpacked(&root.join("store"), &layers).saturating_add(WORKING_BYTES)
}

#[cfg(test)]
mod tests;
