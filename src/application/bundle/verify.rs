//! `bundle verify`: reads every byte of a bundle and compares it with what the bundle says of itself. A bundle for agents is audited
//! as well, where the data directory has its tasks.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::PathBuf;

use serde::Serialize;

use super::{Trust, open_with};
use crate::agent::{INSTRUCTIONS, PROJECT, packing};
use crate::application::audit::{AuditRequest, Audited, audit};
use crate::application::workbench::blocking;
use crate::application::{Context, Options};
use crate::bundle::agents::{AgentDescription, Kept};
use crate::bundle::{Audience, BundleError, Description, Layout, objects};
use crate::digest::Digest;
use crate::error::CommandError;
use crate::output::counted;
use crate::task::file::load_all;
use crate::task::{RepositoryPath, TaskId};

/// What is verified.
#[derive(Clone, Debug)]
pub struct VerifyRequest {
    /// A directory or a tar archive.
    pub bundle: PathBuf,
    /// Whose bundles are accepted.
    pub trust: Trust,
    /// Bundles that this one was based on.
    pub bases: Vec<PathBuf>,
}

/// The result of verifying a bundle.
#[derive(Debug, Serialize)]
pub struct Verified {
    /// Version of this value's schema.
    pub schema: u32,
    /// Whom it is for.
    pub audience: Audience,
    /// Number of tasks.
    pub tasks: usize,
    /// The signer, if the signature was checked.
    pub signer: Option<String>,
    /// Number of sound blobs.
    pub sound: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// Number of blobs that are in a base.
    pub in_base: usize,
    /// Damaged blobs and what is wrong with them, in one line each.
    pub damaged: Vec<String>,
    /// Blobs that are neither here nor in a base.
    pub missing: Vec<Digest>,
    /// Files that the bundle does not name, and bytes after an archive's end.
    pub strangers: Vec<String>,
    /// Whether a bundle for agents was audited.
    pub audited: bool,
    /// Why it was not; `None` for bundles for scorers, which have the answers.
    pub not_audited: Option<String>,
    /// What the audit found of the developers' tests, apart from files that the description says the protocol keeps.
    pub leaks: Vec<String>,
    /// What the audit did not look at in full, apart from files that the description names.
    pub unseen: Vec<String>,
}

impl Verified {
    /// Checks that the bundle is whole.
    ///
    /// # Errors
    /// [`CommandError::CheckFailed`].
    pub fn verdict(&self) -> Result<(), CommandError> {
        match self.damaged.len() + self.missing.len() + self.strangers.len() {
            0 => self.clean(),
            _ => {
                let (damaged, missing, strangers) = (self.damaged.len(), self.missing.len(), self.strangers.len());
                let summary = format!(
                    "the bundle is not whole: {damaged} of its blobs are damaged, {missing} missing, {strangers} unknown"
                );
                Err(CommandError::CheckFailed { summary })
            }
        }
    }

    fn clean(&self) -> Result<(), CommandError> {
        let summary = match (self.leaks.len(), self.unseen.len()) {
            (0, 0) => return Ok(()),
            (0, unseen) => {
                format!("{} of the bundle could not be looked at in full", counted(unseen, "place", "places"))
            }
            (leaks, _) => format!("the answer can be found in {} of the bundle", counted(leaks, "place", "places")),
        };
        Err(CommandError::CheckFailed { summary })
    }
}

/// Verifies a bundle.
///
/// # Errors
/// [`BundleError`] for what can't be read or is not signed as required; an interrupt.
pub async fn verify(request: &VerifyRequest, context: &Context) -> Result<Verified, CommandError> {
    let opened = open_with(&request.bundle, &request.bases, &request.trust, context)?;
    let work = move || {
        let (layout, description) = (&opened.layout, &opened.description);
        let mut verified = Verified {
            schema: 1,
            audience: description.audience(),
            tasks: description.tasks().len(),
            signer: opened.signer.clone(),
            sound: 0,
            bytes: 0,
            in_base: 0,
            damaged: Vec::new(),
            missing: Vec::new(),
            strangers: Vec::new(),
            audited: false,
            not_audited: None,
            leaks: Vec::new(),
            unseen: Vec::new(),
        };
        for (digest, size) in description.sizes() {
            if layout.has(&digest)? {
                match layout.check_blob(&digest, size) {
                    Ok(()) => {
                        verified.sound += 1;
                        verified.bytes += size;
                    }
                    Err(error @ (BundleError::Damaged { .. } | BundleError::Malformed { .. })) => {
                        verified.damaged.push(error.to_string());
                    }
                    Err(error) => return Err(error.into()),
                }
                continue;
            }
            let holder = opened.bases.iter().find(|base| base.has(&digest).unwrap_or(false));
            match holder.map(|base| base.check_blob(&digest, size)) {
                Some(Ok(())) => verified.in_base += 1,
                Some(Err(error)) => verified.damaged.push(error.to_string()),
                None => verified.missing.push(digest),
            }
        }
        for blob in description.sources() {
            if let Some(sources) = whole(layout, &blob.digest, blob.size)?
                && let Err(reason) = objects::ids(sources)
            {
                verified.damaged.push(format!("blob {}: {reason}", blob.digest));
            }
        }
        verified.damaged.extend(opened.damaged_runs()?);
        if let Description::Agent(description) = description {
            for (repository, task, packed) in description.workspaces() {
                let Some(holder) = opened.holder(&packed.archive)? else { continue };
                let Some(archive) = whole(holder, &packed.archive, packed.size)? else { continue };
                let checked = packing::unpack(task, &packed.commit, archive, None);
                if let Err(error) = checked.and_then(|facts| facts.check_is_of(repository, packed.track)) {
                    verified.damaged.push(error.to_string());
                }
            }
        }
        match opened.check_names() {
            // Each of these was told with its blob.
            Err(BundleError::Damaged { .. } | BundleError::Malformed { .. }) if !verified.damaged.is_empty() => {}
            Err(BundleError::Malformed { .. }) if !verified.missing.is_empty() => {}
            checked => checked?,
        }
        let sizes = description.sizes();
        let own: BTreeSet<Digest> = opened.own.iter().copied().collect();
        let known = |name: &String| {
            Digest::from_hex(name).is_ok_and(|digest| own.contains(&digest) || sizes.contains_key(&digest))
        };
        verified.strangers = layout.blob_names()?.into_iter().filter(|name| !known(name)).collect();
        verified.strangers.extend(layout.others()?);
        Ok((verified, opened.description))
    };
    let (mut verified, description) = {
        let _stage = context.events.stage("read bundle", None, 0);
        context.until_interrupted(blocking(work)).await?
    };
    if let Description::Agent(description) = &description {
        look_for_answers(&mut verified, description, request, context).await?;
    }
    Ok(verified)
}

/// Tells whether a place of an audit is the instructions, which show changed files that the project has as well.
pub(super) fn is_instructions(place: &str) -> bool {
    let mut place = place;
    // They show a change, and what was found in it may be its new side.
    while let Some(rest) = ["!patch", "!unescaped", "!entities"].iter().find_map(|end| place.strip_suffix(end)) {
        place = rest;
    }
    place == INSTRUCTIONS || place.ends_with(&format!("!{INSTRUCTIONS}"))
}

/// Tells whether a place of an audit is a file of the project, a member of it, or an object of git's, whose name tells no path.
fn is_of(place: &str, path: &str) -> bool {
    let Some((_, below)) = place.split_once(&format!("{PROJECT}/")) else { return false };
    let rest = below.strip_prefix(path);
    below.starts_with(".git/objects/") || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('!'))
}

/// Opens a blob; `None` if it is missing or has another size, which is told with the blobs.
fn whole(layout: &Layout, digest: &Digest, size: u64) -> Result<Option<impl Read + use<>>, BundleError> {
    if !layout.has(digest)? {
        return Ok(None);
    }
    match layout.open_blob(digest, size) {
        Err(BundleError::Malformed { .. }) => Ok(None),
        opened => opened.map(Some),
    }
}

/// Audits a bundle for agents, if it is whole and the data directory has its tasks.
async fn look_for_answers(
    verified: &mut Verified,
    description: &AgentDescription,
    request: &VerifyRequest,
    context: &Context,
) -> Result<(), CommandError> {
    if verified.damaged.len() + verified.missing.len() + verified.strangers.len() > 0 {
        verified.not_audited = Some("the bundle is not whole".to_owned());
        return Ok(());
    }
    let known = context.data_dir().and_then(|data_dir| Ok(load_all(&data_dir.join("tasks"))?));
    let known: BTreeMap<TaskId, RepositoryPath> = match known {
        Ok(tasks) => tasks.into_iter().map(|task| (task.id, task.test_file)).collect(),
        Err(error) => {
            verified.not_audited = Some(format!("the tasks here can't be read: {error}"));
            return Ok(());
        }
    };
    let unknown = description.workspaces().filter(|(_, task, _)| !known.contains_key(task)).count();
    if unknown > 0 {
        let tasks = verified.tasks;
        verified.not_audited = Some(format!("the answers of {unknown} of its {tasks} tasks are not known here"));
        return Ok(());
    }
    let subjects = vec![request.bundle.display().to_string()];
    let audit_request = AuditRequest { subjects, tasks: None, bases: request.bases.clone() };
    let each = |audited: Audited| {
        let of_task = |task: &TaskId| description.workspaces().find(|(_, known, _)| *known == task);
        let packed = audited.task_id.as_ref().and_then(of_task).map(|(_, _, packed)| packed);
        for finding in audited.report.leaks() {
            let target = audited.task_id.as_ref().and_then(|task| known.get(task));
            // What the description says of the target file itself, or of anything but texts, is no excuse.
            let same = |kept: &Kept| {
                finding.kind.is_text()
                    && target.is_some_and(|target| kept.path != target.as_str())
                    && kept.kind == finding.kind.name()
                    && kept.detail == finding.detail
                    && (is_of(&finding.place, &kept.path) || is_instructions(&finding.place))
            };
            if !packed.is_some_and(|packed| packed.kept.iter().any(same)) {
                let (kind, place, detail) = (finding.kind.name(), &finding.place, &finding.detail);
                verified.leaks.push(format!("{}: {kind} {place}: {detail}", audited.subject));
            }
        }
        for place in &audited.report.not_looked_at {
            if !packed.is_some_and(|packed| {
                packed.unseen.iter().any(|unseen| unseen.reason == place.reason && is_of(&place.place, &unseen.path))
            }) {
                verified.unseen.push(format!("{}: {}: {}", audited.subject, place.place, place.reason));
            }
        }
        if audited.report.not_listed > 0 {
            verified.unseen.push(format!("{}: and {} more", audited.subject, audited.report.not_listed));
        }
        Ok(())
    };
    // A check fetches nothing.
    let context = context.with_options(Options { offline: true, ..context.options.clone() });
    match audit(&audit_request, &context, each).await {
        Ok(()) => verified.audited = true,
        Err(error @ CommandError::Interrupted) => return Err(error),
        Err(error) if error.failure::<BundleError>().is_some() => return Err(error),
        // What is whole stays whole where the answers can't be had.
        Err(error) => verified.not_audited = Some(format!("the answers are not here: {error}")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_of_the_file_that_it_names() {
        let place = |below: &str| format!("task.tar.zst!project/{below}");
        for (place, expected) in [
            (place("src/A.java"), true),
            (place("src/A.java!base64"), true),
            (place(".git/objects/ab/cd"), true),
            (place("src/A.java.orig"), false),
            (place("other/src/A.java"), false),
            ("task.tar.zst!home/src/A.java".to_owned(), false),
        ] {
            assert_eq!(is_of(&place, "src/A.java"), expected, "{place}");
        }
        assert!(
            ["TASK.md", "a.tar.zst!zstd!TASK.md!patch", "a!TASK.md!unescaped!patch"].into_iter().all(is_instructions)
        );
        assert!(!["a!project/TASK.md.java", "a!NOTASK.md", "TASK.md!base64@3"].into_iter().any(is_instructions));
    }
}
