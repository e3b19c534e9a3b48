//! Bundles for agents: each workspace is audited for its own task, everything else for all tasks of the bundle.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Content, Unit};
use crate::bundle::description::MOST_INDEX_BYTES;
use crate::bundle::layout::{INDEX, SIGNATURE};
use crate::bundle::{Description, Layout, signature};
use crate::digest::Digest;
use crate::error::CommandError;
use crate::image::BuiltImage;
use crate::task::{Task, TaskId};

/// Returns the parts of a bundle for agents, each to be audited separately; `None` if `path` is anything else.
pub(super) fn units(
    (path, bases): (&Path, &[PathBuf]),
    all: &[Task],
    wanted: Option<&BTreeSet<TaskId>>,
) -> Result<Option<Vec<Unit>>, CommandError> {
    // What is no bundle is audited like any other file or directory.
    let Ok(layout) = Layout::open(path) else { return Ok(None) };
    let Ok(Some(index)) = layout.read(INDEX, MOST_INDEX_BYTES) else { return Ok(None) };
    let Ok((described, own_blobs)) = Description::read(&layout, &index) else { return Ok(None) };
    let Description::Agent(description) = &described else { return Ok(None) };
    let name = layout.name().to_owned();
    let tasks: BTreeSet<TaskId> = description.workspaces().map(|(_, task, _)| task.clone()).collect();
    if let Some(unknown) = tasks.iter().find(|task| !all.iter().any(|known| known.id == **task)) {
        return Err(CommandError::Usage {
            message: format!("the answer of the task {unknown} in the bundle `{name}` is not known here"),
            hint: "import the task's data with `testevo-sandbox import DATA`".to_owned(),
        });
    }
    let own = |tasks: BTreeSet<TaskId>| wanted.cloned().unwrap_or(tasks);
    let signed = layout.read(SIGNATURE, signature::MOST_BYTES)?;
    let strangers = layout.others()?;
    let names = layout.blob_names()?;
    let mut layouts = vec![layout];
    for base in bases {
        layouts.push(Layout::open(base)?);
    }
    let layouts: Arc<[Layout]> = layouts.into();
    let mut archives = BTreeSet::new();
    let mut units = Vec::new();
    for (_, task, packed) in description.workspaces() {
        archives.insert(packed.archive);
        let blobs = vec![(task.to_string(), packed.archive, packed.size)];
        units.push(Unit {
            subject: format!("{name}: {task}"),
            content: Content::Blobs { layouts: Arc::clone(&layouts), blobs },
            own: own(BTreeSet::from([task.clone()])),
            task_id: Some(task.clone()),
        });
    }
    let all_sizes = described.sizes();
    let unit = |what: &str, wanted: &BTreeSet<Digest>, tasks: BTreeSet<TaskId>| {
        let blobs = all_sizes.iter().filter(|(digest, _)| wanted.contains(*digest));
        let blobs = blobs.map(|(digest, size)| (digest.to_string(), *digest, *size)).collect();
        let content = Content::Blobs { layouts: Arc::clone(&layouts), blobs };
        Unit { subject: format!("{name}: {what}"), content, own: own(tasks), task_id: None }
    };
    // Each repository's image for its own tasks: another project's releases in its Maven cache are no answer there.
    let mut of_images = BTreeSet::new();
    for (repository, described) in &description.repositories {
        let size = all_sizes.get(&described.image).copied().unwrap_or_default();
        let built = BuiltImage::parse(&layouts[0].read_blob(&described.image, size)?)
            .map_err(|reason| layouts[0].malformed(format!("image of {repository}: {reason}")))?;
        let blobs: BTreeSet<Digest> = built.blobs().into_iter().collect();
        units.push(unit(&format!("images of {repository}"), &blobs, described.tasks.keys().cloned().collect()));
        of_images.extend(blobs);
    }
    let others = all_sizes.keys().filter(|digest| !archives.contains(*digest) && !of_images.contains(*digest));
    units.push(unit("records", &others.copied().collect(), tasks.clone()));
    let known = |name: &String| {
        Digest::from_hex(name).is_ok_and(|digest| own_blobs.contains(&digest) || all_sizes.contains_key(&digest))
    };
    if let Some(stranger) = names.iter().find(|name| !known(name)) {
        return Err(layouts[0].malformed(format!("its description does not name the blob `{stranger}`")).into());
    }
    if let Some(stranger) = strangers.first() {
        return Err(layouts[0].malformed(format!("`{stranger}` does not belong into it")).into());
    }
    let [description, manifest, _] = described.render(&[]).map_err(CommandError::defect)?;
    let texts = [(INDEX, index), ("description", description), ("manifest", manifest)];
    let texts = texts.into_iter().chain(signed.map(|bytes| (SIGNATURE, bytes)));
    let texts = texts.map(|(name, bytes)| (name.to_owned(), bytes)).collect();
    units.push(Unit {
        subject: format!("{name}: description"),
        content: Content::Texts(texts),
        own: own(tasks),
        task_id: None,
    });
    Ok(Some(units))
}
