//! What a bundle for agents holds: images, and a workspace for each task that its audit found clean.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use fs_err as fs;

use super::bill::Bill;
use super::parts::{NewFile, Parts};
use super::summary::Created;
use super::verify::is_instructions;
use crate::agent::{AgentError, PROJECT, packing};
use crate::application::agent_images;
use crate::application::agents::Maker;
use crate::application::audit::{Audited, Content, Unit, hunt, of_image};
use crate::application::selection::{by_repository, tasks as select};
use crate::application::workbench::{Workbench, blocking};
use crate::audit::{AuditReport, Finding, Hunt};
use crate::bundle::agents::{AgentDescription, AgentRepository, Kept, PackedWorkspace, Unseen};
use crate::bundle::description::{ImageReference, SCHEMA};
use crate::canonical_json::canonical_json;
use crate::digest::{Digest, HashingWriter};
use crate::error::CommandError;
use crate::image::ImageError;
use crate::manifest::Limits;
use crate::task::selector::Selector;
use crate::task::{Task, TaskId};
use crate::workspace::{Repository, RevisionTree};

/// Collects what agents need. Where an audit finds the developers' test or is not complete, it stands in `created.refused`.
///
/// What other files of the starting tree hold is named in the description instead, with a warning: the protocol keeps
/// these files, and without them the task would be another one.
pub(super) async fn for_agents(
    selected: &[Task],
    workbench: &Workbench<'_>,
    parts: &mut Parts,
    spool: &Path,
    created: &mut Created,
) -> Result<(AgentDescription, Vec<ImageReference>), CommandError> {
    let context = workbench.context;
    let (all, toolchain) = (select(&Selector::default(), context)?, workbench.toolchain()?);
    let (mut repositories, mut images, mut bill) = (BTreeMap::new(), Vec::new(), Bill::default());
    let mut hunts = Vec::new();
    for (repository, tasks) in by_repository(selected) {
        let manifest = workbench.manifest(&repository)?;
        let mut built = workbench.built_image(&manifest)?;
        built.previous = None;
        built.agent = match toolchain.agent_packages.is_empty() {
            true => None,
            false => Some(agent_images::compose(workbench, &manifest).await?),
        };
        images.extend(parts.image(&built)?);
        bill.add(&built, workbench.lock_for(&manifest)?, &workbench.store, &context.events)?;
        let of_tasks: BTreeSet<TaskId> = tasks.iter().map(|task| task.id.clone()).collect();
        let hunt = hunt(all.iter().filter(|task| task.repository == repository), workbench).await?;
        let hunt = Arc::new(hunt);
        let maker = Maker::open(workbench, &repository, &tasks).await?;
        let stage = context.events.stage("write and audit workspaces", Some(tasks.len() as u64), 0);
        let mut packed = BTreeMap::new();
        for task in tasks {
            let working = one(task, &maker, &hunt, (workbench, spool));
            let (workspace, refused) = stage.during(task.id.as_str(), working).await?;
            created.refused.extend(refused);
            parts
                .files
                .insert(workspace.archive, NewFile { size: workspace.size, path: spool.join(archive_name(&task.id)) });
            tell(&task.id, &workspace, workbench);
            packed.insert(task.id.clone(), workspace);
        }
        drop(stage);
        // The image for agents has all layers of the other one.
        let content = of_image(built.agent.as_ref().unwrap_or(&built.image), &workbench.store)?;
        let unit = Unit { subject: repository.to_string(), content, own: of_tasks.clone(), task_id: None };
        let stage = context.events.stage("audit image", None, 0);
        let audited = stage.during(repository.as_str(), audited(unit, &hunt, workbench)).await?;
        created.refused.extend((!audited.report.is_clean()).then_some(audited));
        hunts.push((hunt, of_tasks));
        let image = parts.record(canonical_json(&built).map_err(ImageError::from)?);
        let limits = Some(manifest.limits).filter(|limits| *limits != Limits::default());
        repositories.insert(repository, AgentRepository { image, limits, tasks: packed });
    }
    let bill = parts.record(bill.render(&toolchain)?);
    let description = AgentDescription {
        schema: SCHEMA,
        repositories,
        layers: parts.layers.clone(),
        bill,
        records: parts.record_sizes(),
        blobs: parts.blobs.clone(),
    };
    let rendered = canonical_json(&description).map_err(ImageError::from)?;
    for (hunt, own) in hunts {
        let records = parts.records.iter().map(|(digest, bytes)| (digest.to_string(), bytes.clone()));
        let texts = records.chain([("description".to_owned(), rendered.clone())]).collect();
        let unit = Unit { subject: "records".to_owned(), content: Content::Texts(texts), own, task_id: None };
        let audited = audited(unit, &hunt, workbench).await?;
        created.refused.extend((!audited.report.is_clean()).then_some(audited));
    }
    Ok((description, images))
}

fn archive_name(task: &TaskId) -> String {
    format!("{task}.tar.zst")
}

async fn audited(unit: Unit, hunt: &Arc<Hunt>, workbench: &Workbench<'_>) -> Result<Audited, CommandError> {
    let (hunt, temporary) = (Arc::clone(hunt), workbench.data_dir.temporary());
    workbench.context.until_interrupted(blocking(move || unit.audit(&hunt, &temporary))).await
}

/// Writes, packs and audits a task's workspace. Returns it with the audit if that keeps it out of a bundle.
async fn one(
    task: &Task,
    maker: &Maker,
    hunt: &Arc<Hunt>,
    (workbench, spool): (&Workbench<'_>, &Path),
) -> Result<(PackedWorkspace, Option<Audited>), CommandError> {
    let (directory, archive) = (spool.join(task.id.as_str()), spool.join(archive_name(&task.id)));
    let written = maker.write(task, &directory, workbench.context).await?;
    let path = archive.clone();
    let pack = blocking(move || {
        let write = || -> std::io::Result<(Digest, u64)> {
            let out = HashingWriter::new(std::io::BufWriter::new(fs::File::create(&path)?));
            let (buffer, digest, size) = packing::pack(&directory, out)?.finish();
            buffer.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            fs::remove_dir_all(&directory)?;
            Ok((digest, size))
        };
        Ok(write().map_err(AgentError::Io)?)
    });
    let (digest, size) = workbench.context.until_interrupted(pack).await?;
    // What is audited is what the bundle will hold.
    let unit = Unit {
        subject: task.id.to_string(),
        content: Content::Paths { paths: vec![archive], base: spool.to_owned() },
        own: BTreeSet::from([task.id.clone()]),
        task_id: Some(task.id.clone()),
    };
    let audited = audited(unit, hunt, workbench).await?;
    let explained = {
        let (path, task, report) = (maker.sources.clone(), task.clone(), audited.report.clone());
        blocking(move || {
            let tree = Repository::open(task.repository.clone(), &path)?.tree(&task.rev2)?;
            Ok(Explained::of(&report, &tree, &task))
        })
        .await?
    };
    let packed = PackedWorkspace {
        archive: digest,
        size,
        track: task.track,
        commit: written.commit,
        files: written.files,
        bytes: written.bytes,
        lacking: written.lacking,
        only_named: written.only_named,
        kept: explained.kept.into_iter().collect(),
        unseen: explained.unseen.into_iter().collect(),
    };
    Ok((packed, (!explained.whole).then_some(audited)))
}

fn tell(task: &TaskId, packed: &PackedWorkspace, workbench: &Workbench<'_>) {
    let events = &workbench.context.events;
    let joined = |paths: BTreeSet<&str>| paths.into_iter().collect::<Vec<_>>().join(", ");
    if !packed.kept.is_empty() {
        let paths = joined(packed.kept.iter().map(|kept| kept.path.as_str()).collect());
        events.warning(format!(
            "{task}: other files of the starting tree, which the protocol keeps, hold parts of the developers' test: {paths}"
        ));
    }
    if !packed.unseen.is_empty() {
        let paths = joined(packed.unseen.iter().map(|unseen| unseen.path.as_str()).collect());
        events.warning(format!("{task}: files of the starting tree were not looked at in full: {paths}"));
    }
}

/// What of an audit the starting tree explains.
#[derive(Debug, PartialEq, Eq)]
struct Explained {
    kept: BTreeSet<Kept>,
    unseen: BTreeSet<Unseen>,
    /// Whether that is all that the audit found.
    whole: bool,
}

impl Explained {
    /// Sorts the findings of a workspace's audit. Texts in files of the new revision, apart from the target file, are explained.
    fn of(report: &AuditReport, new: &RevisionTree, task: &Task) -> Self {
        let target = task.test_file.as_str().as_bytes();
        let others = || new.entries().iter().filter(|(path, _)| path.as_slice() != target);
        let by_id: BTreeMap<String, &Vec<u8>> = others().map(|(path, entry)| (entry.id(), path)).collect();
        let file = |place: &str| {
            let below = place.split_once(&format!("{PROJECT}/"))?.1;
            if let Some(object) = below.strip_prefix(".git/objects/") {
                let id: String = object.split('!').next()?.chars().filter(|c| *c != '/').collect();
                return by_id.get(&id).map(|path| String::from_utf8_lossy(path).into_owned());
            }
            // A name may have this mark, too.
            let ends = below.match_indices('!').map(|(end, _)| end).chain([below.len()]);
            let mut names = ends.map(|end| &below[..end]);
            let found = names.find(|name| name.as_bytes() != target && new.entries().contains_key(name.as_bytes()));
            found.map(str::to_owned)
        };
        let mut explained = Self { kept: BTreeSet::new(), unseen: BTreeSet::new(), whole: report.not_listed == 0 };
        let mut elsewhere = Vec::new();
        for finding in report.leaks() {
            match file(&finding.place).filter(|_| finding.kind.is_text()) {
                Some(path) => {
                    let (kind, detail) = (finding.kind.name().to_owned(), finding.detail.clone());
                    explained.kept.insert(Kept { path, kind, detail });
                }
                None => elsewhere.push(finding),
            }
        }
        // The instructions show changes of production code and documents, which the starting tree has as well.
        let is_shown = |finding: &&Finding| {
            let same = |kept: &Kept| kept.kind == finding.kind.name() && kept.detail == finding.detail;
            is_instructions(&finding.place) && explained.kept.iter().any(same)
        };
        explained.whole &= elsewhere.iter().all(is_shown);
        for place in &report.not_looked_at {
            match file(&place.place) {
                Some(path) => {
                    explained.unseen.insert(Unseen { path, reason: place.reason.clone() });
                }
                None => explained.whole = false,
            }
        }
        explained
    }
}
