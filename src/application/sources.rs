//! Looks at the trees of tasks before anything runs, and lists what they lack.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Context;
use super::failures::Failures;
use super::selection::{self, by_repository};
use super::workbench::{Workbench, blocking};
use crate::error::CommandError;
use crate::output::counted;
use crate::task::selector::Selector;
use crate::task::{RepositoryName, Revision, Task, TaskId};
use crate::workspace::{Repository, TreeReport};

/// Version of [`Gaps`]' schema.
const GAPS_SCHEMA: u32 = 1;

/// A tree that lacks contents.
#[derive(Clone, Debug, Serialize)]
pub struct LackingTree {
    /// The repository.
    pub repository: RepositoryName,
    /// The revision.
    pub revision: Revision,
    /// What the tree lacks.
    #[serde(flatten)]
    pub lacks: TreeReport,
    /// The tasks of which it is the old or the new revision, sorted.
    pub tasks: Vec<TaskId>,
}

/// What the trees of a selection lack.
#[derive(Clone, Debug, Serialize)]
pub struct Gaps {
    /// The schema's version.
    pub schema: u32,
    /// Tasks whose trees were looked at.
    pub tasks: usize,
    /// Trees that lack contents, sorted by repository and revision.
    pub lacking: Vec<LackingTree>,
}

/// The result of looking at a selection's trees.
pub struct Sources<'a> {
    /// What is missing.
    pub gaps: Gaps,
    failures: Failures<'a>,
}

impl Sources<'_> {
    /// Checks that no tree lacks anything.
    ///
    /// # Errors
    /// [`CommandError::CheckFailed`] if one does; the errors of repositories that could not be opened.
    pub fn verdict(self) -> Result<(), CommandError> {
        let lacking = self.gaps.lacking.len();
        let own = match lacking {
            0 => Ok(()),
            _ => Err(CommandError::CheckFailed {
                summary: format!("{} contents", counted(lacking, "tree lacks", "trees lack")),
            }),
        };
        self.failures.settle("looked at", own)
    }
}

/// Looks at both trees of every selected task.
///
/// # Errors
/// [`CommandError`] of selections; an interrupt.
pub async fn look<'a>(selector: &Selector, context: &'a Context) -> Result<Sources<'a>, CommandError> {
    let tasks = selection::tasks(selector, context)?;
    let groups = by_repository(&tasks);
    let workbench = Workbench::open(context)?;
    let mut failures = Failures::new(groups.len(), context);
    let lacking = failures
        .each(&groups, async |name, tasks| {
            let repository = workbench.repository(&workbench.manifest(name)?, tasks).await?;
            let revisions = revisions(tasks);
            blocking(move || lacking(&repository, revisions)).await
        })
        .await?;
    let gaps = Gaps { schema: GAPS_SCHEMA, tasks: tasks.len(), lacking: lacking.into_iter().flatten().collect() };
    Ok(Sources { gaps, failures })
}

/// Returns the tasks of each revision.
fn revisions(tasks: &[&Task]) -> BTreeMap<Revision, Vec<TaskId>> {
    let mut revisions: BTreeMap<Revision, Vec<TaskId>> = BTreeMap::new();
    for task in tasks {
        for revision in [&task.rev1, &task.rev2] {
            revisions.entry(revision.clone()).or_default().push(task.id.clone());
        }
    }
    revisions
}

/// Returns the trees that lack something.
fn lacking(
    repository: &Repository,
    revisions: BTreeMap<Revision, Vec<TaskId>>,
) -> Result<Vec<LackingTree>, CommandError> {
    let mut lacking = Vec::new();
    for (revision, tasks) in revisions {
        let lacks = repository.tree(&revision)?.gaps()?;
        if !lacks.is_empty() {
            lacking.push(LackingTree { repository: repository.name().clone(), revision, lacks, tasks });
        }
    }
    Ok(lacking)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::Options;
    use crate::application::context::tests::offline;
    use crate::application::import::{ImportRequest, import};
    use crate::event::EventSink;
    use crate::sample::SampleRepository;
    use crate::umask::Umask;

    const REPOSITORY: &str = "repository = \"o/n\"\njdk = 17\n-- pom.xml --\n<project/>\n";
    const MINIATURE: &str = "shows = \"s\"\ntrack = \"test_generation\"\ntest_file = \"src/test/java/ATest.java\"\n\
        methods = [\"ATest#m\"]\n[expected.\"ATest#m\"]\noo = \"absent\"\nnn = \"pass\"\non = \"absent\"\nno = \"pass\"\n\
        -- new/src/test/java/ATest.java --\nclass ATest { void m() {} }\n";

    async fn looked(other: &str) -> (Gaps, Result<(), CommandError>) {
        let directory = tempfile::tempdir().unwrap();
        let sample = SampleRepository::parse(REPOSITORY, &[("one", &format!("{MINIATURE}{other}"))]).unwrap();
        let revisions = sample.write_git(&directory.path().join("o__n")).unwrap();
        let data = directory.path().join("sample.json");
        fs_err::write(&data, sample.published(&revisions)).unwrap();
        let git_mirror = Some(format!("{}/{{owner}}__{{name}}", directory.path().display()));
        let options = Options { git_mirror, ..offline(&directory.path().join("data")) };
        let context = Context::new(options, EventSink::none(), Umask::take());
        import(&ImportRequest { data: vec![data], ..ImportRequest::default() }, &context).unwrap();
        let found = look(&Selector::default(), &context).await.unwrap();
        (found.gaps.clone(), found.verdict())
    }

    #[tokio::test]
    async fn what_trees_lack_is_listed_with_their_tasks() {
        let pointer = "-- new/large.bin --\nversion https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
        let (gaps, verdict) = looked(pointer).await;
        let [tree] = &gaps.lacking[..] else { panic!("{gaps:?}") };
        assert_eq!((&tree.lacks.lfs_pointers[..], tree.tasks.len()), (&["large.bin".to_owned()][..], 1));
        assert_eq!(verdict.unwrap_err().to_string(), "1 tree lacks contents");
        let (gaps, verdict) = looked("-- new/small.txt --\nwhole\n").await;
        assert!(gaps.lacking.is_empty() && gaps.tasks == 1, "{gaps:?}");
        verdict.unwrap();
    }
}
