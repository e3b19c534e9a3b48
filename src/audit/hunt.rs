//! What must not be found: the developers' tests of some tasks, in forms that are searched for at once.

use std::collections::{BTreeMap, BTreeSet};

use aho_corasick::{AhoCorasick, MatchKind};

use super::artifacts::{OwnArtifact, own_artifacts};
use super::changes::changes;
use super::normal::{normal, patched, place, resolved};
use super::{AuditError, Kind};
use crate::java::Unit;
use crate::task::{Task, TaskId};
use crate::workspace::cells::class_of;
use crate::workspace::{Repository, WorkspaceError};

/// Bytes of a needle that are searched for; the rest is compared where they are found.
const ANCHOR_BYTES: usize = 40;
/// The shortest method that is searched for, in bytes of its normal form: shorter ones stand in many files.
const LEAST_METHOD_BYTES: usize = 48;
/// The shortest file.
const LEAST_FILE_BYTES: usize = 60;

/// Findings beside which a changed part of the same file tells nothing.
const TEXTS: [Kind; 3] = [Kind::TestFile, Kind::TestText, Kind::MethodText];

/// The answer of one task.
#[derive(Clone, Debug)]
pub struct Secret {
    /// The task.
    pub task: TaskId,
    /// The developers' test file.
    pub test: Vec<u8>,
    /// The file that an agent starts from.
    pub start: Option<Vec<u8>>,
    /// Binary name of the test file's class.
    pub class: String,
    /// The new revision's commit id.
    pub commit: String,
    /// The artifacts that the new revision's modules make.
    pub artifacts: Vec<OwnArtifact>,
}

impl Secret {
    /// Reads a task's answer from its repository.
    ///
    /// # Errors
    /// [`WorkspaceError`].
    pub fn read(repository: &Repository, task: &Task) -> Result<Self, WorkspaceError> {
        let new = repository.tree(&task.rev2)?;
        let path = task.test_file.as_str();
        let test = new.read_source(path)?.ok_or_else(|| new.missing(path.as_bytes()))?;
        let start = repository.tree(&task.rev1)?.read_source(path)?;
        Ok(Self {
            class: class_of(&task.test_file, &test),
            task: task.id.clone(),
            test,
            start,
            commit: task.rev2.to_string(),
            artifacts: own_artifacts(&new)?,
        })
    }
}

struct Needle {
    task: usize,
    kind: Kind,
    detail: String,
    text: Vec<u8>,
    /// Where the anchor begins in the text.
    anchor: usize,
}

/// A place in a content.
pub(super) struct Hit {
    pub(super) task: TaskId,
    pub(super) kind: Kind,
    pub(super) offset: usize,
    pub(super) detail: String,
}

/// The answers of some tasks, ready to be searched for.
pub struct Hunt {
    secrets: Vec<Secret>,
    needles: Vec<Needle>,
    search: AhoCorasick,
    commits: AhoCorasick,
    artifacts: BTreeMap<String, Vec<(usize, OwnArtifact)>>,
}

impl Hunt {
    /// Prepares a search.
    ///
    /// # Errors
    /// [`AuditError::Nothing`] if no answer differs from its starting file, [`AuditError::Search`].
    pub fn new(secrets: Vec<Secret>) -> Result<Self, AuditError> {
        let mut needles: Vec<Needle> = Vec::new();
        for (task, secret) in secrets.iter().enumerate() {
            needles.extend(self::needles(task, secret)?);
        }
        if needles.is_empty() {
            let tasks: Vec<&str> = secrets.iter().map(|secret| secret.task.as_str()).collect();
            return Err(AuditError::Nothing(tasks.join(", ")));
        }
        let anchors = needles.iter().map(|needle| &needle.text[needle.anchor..][..ANCHOR_BYTES]);
        let build = |patterns: Vec<&[u8]>| {
            let built = AhoCorasick::builder().match_kind(MatchKind::Standard).build(patterns);
            built.map_err(|error| AuditError::Search(error.to_string()))
        };
        let search = build(anchors.collect())?;
        let commits = build(secrets.iter().map(|secret| secret.commit.as_bytes()).collect())?;
        let mut artifacts: BTreeMap<String, Vec<(usize, OwnArtifact)>> = BTreeMap::new();
        for (task, secret) in secrets.iter().enumerate() {
            for artifact in &secret.artifacts {
                artifacts.entry(artifact.directory.clone()).or_default().push((task, artifact.clone()));
            }
        }
        Ok(Self { secrets, needles, search, commits, artifacts })
    }

    /// Returns the tasks whose answers are searched for.
    pub fn tasks(&self) -> impl Iterator<Item = &TaskId> {
        self.secrets.iter().map(|secret| &secret.task)
    }

    /// Returns the methods and files that a content holds in any layout. `raw` tells whether the content is a file's own bytes.
    pub(super) fn texts(&self, content: &[u8], raw: bool) -> Vec<Hit> {
        let mut hits = Vec::new();
        if raw {
            for secret in self.secrets.iter().filter(|secret| secret.test == content && is_new(secret)) {
                hits.push(Hit {
                    task: secret.task.clone(),
                    kind: Kind::TestFile,
                    offset: 0,
                    detail: secret.class.clone(),
                });
            }
            hits.extend(self.commits(content));
        }
        let text = normal(content);
        let mut seen = BTreeSet::new();
        for found in self.search.find_overlapping_iter(&text) {
            let index = found.pattern().as_usize();
            let needle = &self.needles[index];
            let Some(start) = found.start().checked_sub(needle.anchor) else { continue };
            if text[start..].starts_with(&needle.text) && seen.insert(index) {
                let (task, detail) = (self.secrets[needle.task].task.clone(), needle.detail.clone());
                hits.push(Hit { task, kind: needle.kind, offset: place(content, start), detail });
            }
        }
        // One change is enough, and none is needed where more was found.
        let mut told: BTreeSet<TaskId> = BTreeSet::new();
        told.extend(hits.iter().filter(|hit| TEXTS.contains(&hit.kind)).map(|hit| hit.task.clone()));
        hits.retain(|hit| hit.kind != Kind::ChangedText || told.insert(hit.task.clone()));
        hits
    }

    /// Returns the new revisions' ids that a content or a name holds.
    pub(super) fn commits(&self, content: &[u8]) -> Vec<Hit> {
        let mut hits = Vec::new();
        for found in self.commits.find_overlapping_iter(content) {
            let secret = &self.secrets[found.pattern().as_usize()];
            let (task, detail) = (secret.task.clone(), secret.commit.clone());
            hits.push(Hit { task, kind: Kind::CommitId, offset: found.start(), detail });
        }
        hits
    }

    /// Returns the tasks whose test class this is the class file of, by its binary name with slashes.
    pub(super) fn class(&self, name: &str) -> Vec<Hit> {
        let name = name.replace('/', ".");
        let is_of = |secret: &&Secret| {
            name.strip_prefix(&secret.class).is_some_and(|rest| rest.is_empty() || rest.starts_with('$'))
        };
        let hit =
            |secret: &Secret| Hit { task: secret.task.clone(), kind: Kind::ClassFile, offset: 0, detail: name.clone() };
        self.secrets.iter().filter(is_of).map(hit).collect()
    }

    /// Returns the hits of a jar in a Maven repository that is one of the project's own, and not older than a task's revision.
    pub(super) fn artifact(&self, path: &str) -> Vec<Hit> {
        let mut parts = path.rsplitn(3, '/');
        let (Some(file), Some(version), Some(directory)) = (parts.next(), parts.next(), parts.next()) else {
            return Vec::new();
        };
        if !file.ends_with(".jar") {
            return Vec::new();
        }
        let mut below = Some(directory);
        while let Some(directory) = below {
            if let Some(artifacts) = self.artifacts.get(directory) {
                let later = artifacts.iter().filter(|(_, artifact)| artifact.may_be_later(version));
                let detail = format!("{directory} {version}");
                let hit = |(task, _): &(usize, OwnArtifact)| Hit {
                    task: self.secrets[*task].task.clone(),
                    kind: Kind::LaterArtifact,
                    offset: 0,
                    detail: detail.clone(),
                };
                return later.map(hit).collect();
            }
            below = directory.split_once(['/', '!']).map(|(_, below)| below);
        }
        Vec::new()
    }
}

/// Tells whether a test file is another text than its starting file.
fn is_new(secret: &Secret) -> bool {
    secret.start.as_ref() != Some(&secret.test)
}

/// Returns the texts to search for, given a task's secret: the whole test file, each method that the starting file lacks, and
/// changed parts.
fn needles(task: usize, secret: &Secret) -> Result<Vec<Needle>, AuditError> {
    let start = secret.start.as_deref().map(normal).unwrap_or_default();
    let whole = normal(&secret.test);
    let is_known = |text: &[u8]| start.windows(text.len().max(1)).any(|window| window == text);
    let mut needles = Vec::new();
    let mut add = |kind, detail: &str, text: Vec<u8>| {
        let anchor = (text.len() - ANCHOR_BYTES) / 2;
        needles.push(Needle { task, kind, detail: detail.to_owned(), text, anchor });
    };
    if whole.len() >= LEAST_FILE_BYTES && whole != start {
        add(Kind::TestText, &secret.class, whole);
    }
    let lines: Vec<&[u8]> = secret.test.split_inclusive(|byte| *byte == b'\n').collect();
    for declared in Unit::parse(&secret.test).types {
        for method in &declared.methods {
            let (first, last) = method.lines;
            let Some(lines) = lines.get(first.saturating_sub(1)..last) else { continue };
            let text = lines.concat();
            // Annotations and modifiers are easily changed, so the search begins at the method's name.
            let named = text.windows(method.name.len()).position(|window| window == method.name.as_bytes());
            let text = normal(&text[named.unwrap_or_default()..]);
            if text.len() >= LEAST_METHOD_BYTES && !is_known(&text) {
                add(Kind::MethodText, &format!("{}#{}", declared.name, method.name), text);
            }
        }
    }
    if let Some(before) = &secret.start {
        let changes = changes(before, &secret.test).map_err(|error| AuditError::Search(error.message().to_owned()))?;
        // The audit reads contents in these forms as well, the starting file among them.
        let mut forms: Vec<Vec<u8>> = Vec::new();
        let mut add_form = |form: &[u8]| {
            forms.push(normal(form));
            forms.extend(patched(form).iter().map(|patched| normal(patched)));
        };
        add_form(before);
        resolved(before, &mut |_, form| add_form(form));
        let stands_in = |form: &Vec<u8>, text: &[u8]| form.windows(text.len().max(1)).any(|window| window == text);
        for change in changes {
            if forms.iter().any(|form| stands_in(form, &change.text)) {
                continue;
            }
            add(Kind::ChangedText, &format!("{} from line {}", secret.class, change.line), change.text);
        }
    }
    Ok(needles)
}
