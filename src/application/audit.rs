//! `audit`: looks for the developers' tests in directories, files, built images and bundles for agents.

mod bundled;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fs_err as fs;
use serde::Serialize;

use super::Context;
use super::selection::{by_repository, tasks};
use super::workbench::{Workbench, blocking};
use crate::agent::{TASK_FILE, TaskFile, unfinished_task};
use crate::artifact::store::Store;
use crate::audit::{AuditError, AuditLimits, AuditReport, Hunt, Scanner, Secret};
use crate::bundle::Layout;
use crate::digest::Digest;
use crate::error::CommandError;
use crate::image::{Catalog, Image, ImageError};
use crate::task::selector::Selector;
use crate::task::{RepositoryName, Task, TaskId};
use crate::workspace::Repository;

/// The largest `task.json` that is read, in bytes.
const MOST_TASK_FILE_BYTES: u64 = 1 << 20;

/// What to audit.
#[derive(Clone, Debug)]
pub struct AuditRequest {
    /// Directories, files, and repositories whose images are built.
    pub subjects: Vec<String>,
    /// The tasks whose answers must not be there; `None` for each workspace's own task, and for all tasks elsewhere.
    pub tasks: Option<Selector>,
    /// Bundles that audited bundles were based on.
    pub bases: Vec<PathBuf>,
}

/// An audited workspace, directory, file or image.
#[derive(Clone, Debug, Serialize)]
pub struct Audited {
    /// The path, or the image's repository.
    pub subject: String,
    /// The tasks whose answers must not be there.
    pub own_tasks: usize,
    /// The workspace's own task, if it is one.
    pub task_id: Option<TaskId>,
    /// The result.
    #[serde(flatten)]
    pub report: AuditReport,
}

/// What is audited for itself.
pub(super) struct Unit {
    pub(super) subject: String,
    pub(super) content: Content,
    /// The tasks whose answers must not be there.
    pub(super) own: BTreeSet<TaskId>,
    pub(super) task_id: Option<TaskId>,
}

/// What is looked at.
pub(super) enum Content {
    /// Paths, and the directory that places are relative to.
    Paths { paths: Vec<PathBuf>, base: PathBuf },
    /// Entries of the directory `base`, which somebody else may have put there: links among them are not followed.
    Entries { paths: Vec<PathBuf>, base: PathBuf },
    /// Texts by their names.
    Texts(Vec<(String, Vec<u8>)>),
    /// Blobs of a bundle or its bases by their names, with their sizes in bytes.
    Blobs { layouts: Arc<[Layout]>, blobs: Vec<(String, Digest, u64)> },
}

impl Unit {
    /// Audits it.
    pub(super) fn audit(self, hunt: &Hunt, temporary: &Path) -> Result<Audited, CommandError> {
        let mut scanner = Scanner::new(hunt, &self.own, AuditLimits::default(), temporary);
        match &self.content {
            Content::Paths { paths, base } => {
                for path in paths {
                    scanner.path(path, base)?;
                }
            }
            Content::Entries { paths, base } => {
                for path in paths {
                    scanner.entry_of(path, base)?;
                }
            }
            Content::Texts(texts) => {
                for (name, bytes) in texts {
                    scanner.reader(name, &mut bytes.as_slice());
                }
            }
            Content::Blobs { layouts, blobs } => {
                for (name, digest, size) in blobs {
                    let mut holder = None;
                    for layout in layouts.iter() {
                        if holder.is_none() && layout.has(digest)? {
                            holder = Some(layout);
                        }
                    }
                    match holder {
                        Some(layout) => scanner.reader(name, &mut layout.open_blob(digest, *size)?),
                        None => scanner.not_looked_at(name, "it is not in the bundle, but in its base"),
                    }
                }
            }
        }
        let report = scanner.finish();
        Ok(Audited { subject: self.subject, own_tasks: self.own.len(), task_id: self.task_id, report })
    }
}

/// Audits each subject, and calls `each` with its result.
///
/// # Errors
/// [`CommandError`] of selections, sources and the named paths.
pub async fn audit(
    request: &AuditRequest,
    context: &Context,
    mut each: impl FnMut(Audited) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let workbench = Workbench::open(context)?;
    let all = tasks(&Selector::default(), context)?;
    let wanted: Option<BTreeSet<TaskId>> = match &request.tasks {
        Some(selector) => Some(tasks(selector, context)?.into_iter().map(|task| task.id).collect()),
        None => None,
    };
    let mut units = Vec::new();
    for subject in &request.subjects {
        units.extend(units_of((subject, &request.bases), &all, wanted.as_ref(), &workbench)?);
    }
    let mut hunts: BTreeMap<BTreeSet<RepositoryName>, Arc<Hunt>> = BTreeMap::new();
    for unit in units {
        let of_unit = all.iter().filter(|task| unit.own.contains(&task.id));
        let repositories: BTreeSet<RepositoryName> = of_unit.map(|task| task.repository.clone()).collect();
        let hunt = match hunts.get(&repositories) {
            Some(hunt) => Arc::clone(hunt),
            None => {
                let related = all.iter().filter(|task| repositories.contains(&task.repository));
                let hunt = Arc::new(hunt(related, &workbench).await?);
                hunts.insert(repositories, Arc::clone(&hunt));
                hunt
            }
        };
        let temporary = workbench.data_dir.temporary();
        let subject = unit.subject.clone();
        let audited = context.until_interrupted(blocking(move || unit.audit(&hunt, &temporary)));
        // Whoever takes the result may write it where the stage is shown.
        let stage = context.events.stage("audit", None, 0);
        let audited = stage.during(&subject, audited).await?;
        drop(stage);
        each(audited)?;
    }
    Ok(())
}

/// Prepares the search for the answers of these tasks.
pub(super) async fn hunt<'a>(
    tasks: impl IntoIterator<Item = &'a Task>,
    workbench: &Workbench<'_>,
) -> Result<Hunt, CommandError> {
    let mut secrets = Vec::new();
    for (repository, tasks) in by_repository(tasks) {
        let manifest = workbench.manifest(&repository)?;
        let path = workbench.repository(&manifest, &tasks).await?.path().to_owned();
        let tasks: Vec<Task> = tasks.into_iter().cloned().collect();
        let read = blocking(move || {
            let repository = Repository::open(repository, &path)?;
            let secrets = tasks.iter().map(|task| Secret::read(&repository, task));
            secrets.collect::<Result<Vec<_>, _>>().map_err(CommandError::from)
        });
        secrets.extend(read.await?);
    }
    Ok(Hunt::new(secrets)?)
}

/// Returns the parts of a subject that are audited each for itself: workspaces, or the whole.
fn units_of(
    (subject, bases): (&str, &[PathBuf]),
    all: &[Task],
    wanted: Option<&BTreeSet<TaskId>>,
    workbench: &Workbench<'_>,
) -> Result<Vec<Unit>, CommandError> {
    let path = PathBuf::from(subject);
    if fs::symlink_metadata(&path).is_err()
        && let Ok(repository) = subject.parse::<RepositoryName>()
        && let Some(built) = Catalog::open(&workbench.data_dir)?.get(&repository)?
    {
        let of_repository = all.iter().filter(|task| task.repository == repository).map(|task| task.id.clone());
        let own = wanted.cloned().unwrap_or_else(|| of_repository.collect());
        let images = [(&built.image, subject.to_owned())].into_iter();
        let images = images.chain(built.agent.iter().map(|image| (image, format!("{subject}: image for agents"))));
        let unit = |(image, subject)| {
            let content = of_image(image, &workbench.store)?;
            Ok(Unit { subject, content, own: own.clone(), task_id: None })
        };
        return images.map(unit).collect();
    }
    let is_workspace = |path: &Path| own_task(path, all);
    if is_workspace(&path).is_none()
        && let Some(units) = bundled::units((&path, bases), all, wanted)?
    {
        return Ok(units);
    }
    let mut units = Vec::new();
    let mut others = Vec::new();
    if let Some(task) = is_workspace(&path) {
        units.push((path.clone(), Some(task)));
    } else if fs::metadata(&path).map_err(AuditError::Io)?.is_dir() {
        for entry in fs::read_dir(&path).map_err(AuditError::Io)? {
            let entry = entry.map_err(AuditError::Io)?;
            if unfinished_task(&entry.file_name()).is_some_and(|task| all.iter().any(|known| known.id.as_str() == task))
            {
                // A killed command left it. No agent gets it, and it may lack its `task.json`.
                continue;
            }
            let found = entry.file_type().map_err(AuditError::Io)?.is_dir().then(|| is_workspace(&entry.path()));
            match found.flatten() {
                Some(task) => units.push((entry.path(), Some(task))),
                None => others.push(entry.path()),
            }
        }
        units.sort();
        if units.is_empty() {
            others = vec![path.clone()];
        }
    } else {
        others.push(path.clone());
    }
    let base = |path: &Path| path.parent().filter(|parent| !parent.as_os_str().is_empty()).map(Path::to_owned);
    let everything: BTreeSet<TaskId> = all.iter().map(|task| task.id.clone()).collect();
    let mut found: Vec<Unit> = units
        .into_iter()
        .map(|(path, task)| Unit {
            subject: path.display().to_string(),
            own: wanted.cloned().unwrap_or_else(|| task.iter().cloned().collect()),
            content: Content::Paths { paths: vec![path.clone()], base: path },
            task_id: task,
        })
        .collect();
    if !others.is_empty() {
        others.sort();
        let own = wanted.cloned().unwrap_or(everything);
        let content = match others == [path.clone()] {
            true if path.is_dir() => Content::Paths { paths: others, base: path },
            true => {
                let base = base(&path).unwrap_or_else(|| PathBuf::from("."));
                Content::Paths { paths: others, base }
            }
            false => Content::Entries { paths: others, base: path },
        };
        found.push(Unit { subject: subject.to_owned(), content, own, task_id: None });
    }
    Ok(found)
}

/// Returns the blobs of an image as what is audited.
pub(super) fn of_image(image: &Image, store: &Store) -> Result<Content, CommandError> {
    let paths = image.blobs().map(|digest| store.sound(&digest)).collect::<Result<_, _>>();
    Ok(Content::Paths { paths: paths.map_err(ImageError::from)?, base: store.root().to_owned() })
}

/// Returns the task that a workspace says it is of, if it is a known one. Its `task.json` is not believed where the directory has the
/// name of another task: the directory is then audited for all tasks.
fn own_task(path: &Path, all: &[Task]) -> Option<TaskId> {
    let file = path.join(TASK_FILE);
    let metadata = fs::symlink_metadata(&file).ok()?;
    if !metadata.is_file() || metadata.len() > MOST_TASK_FILE_BYTES {
        return None;
    }
    let facts: TaskFile = serde_json::from_slice(&fs::read(&file).ok()?).ok()?;
    let real = fs::canonicalize(path).ok()?;
    let names = [path.file_name(), real.file_name()];
    let is_another = |task: &Task| task.id != facts.task_id && names.contains(&Some(OsStr::new(task.id.as_str())));
    if all.iter().any(is_another) {
        return None;
    }
    all.iter().any(|task| task.id == facts.task_id).then_some(facts.task_id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Track;

    #[test]
    fn a_task_file_under_another_tasks_name_is_not_believed() {
        let task = |id: &str| Task {
            id: id.parse().unwrap(),
            repository: "a/b".parse().unwrap(),
            track: Track::TestUpdate,
            rev1: "a".repeat(40).parse().unwrap(),
            rev2: "b".repeat(40).parse().unwrap(),
            rev1_date: "2020-01-31".to_owned(),
            rev2_date: "2020-01-31".to_owned(),
            test_file: "src/test/java/ATest.java".parse().unwrap(),
            test_methods: Vec::new(),
            focal_methods: Vec::new(),
        };
        let all = [task("one"), task("two")];
        let directory = tempfile::tempdir().unwrap();
        let facts = serde_json::json!({
            "schema": 1, "task_id": "two", "repository": "a/b", "track": Track::TestUpdate,
            "test_file": "src/test/java/ATest.java", "test_methods": [], "start_sha256": null, "image": null,
            "project": "project", "commands": null,
        });
        let path = |name: &str| directory.path().join(name);
        for name in ["one", "two", "copy"] {
            fs::create_dir(path(name)).unwrap();
            fs::write(path(name).join(TASK_FILE), facts.to_string()).unwrap();
        }
        fs::create_dir(path("links")).unwrap();
        for (link, target) in [("linked", "one"), ("links/one", "../copy"), ("links/two", "../two")] {
            std::os::unix::fs::symlink(target, path(link)).unwrap();
        }
        let told = |name: &str| own_task(&path(name), &all).map(|task| task.to_string());
        for name in ["two", "copy", "links/two"] {
            assert_eq!(told(name).as_deref(), Some("two"), "{name}");
        }
        for name in ["one", "linked", "links/one"] {
            assert_eq!(told(name), None, "{name}");
        }
    }
}
