//! Failures of submissions on trees that lack contents: which of them are the submission's. Source: protocol §3.

use std::io;
use std::sync::Arc;

use super::job::Job;
use super::{Scoring, cell_of};
use crate::execution::contents::{blame_sources, may_need_contents, name_missing};
use crate::execution::run::record::CellRecord;
use crate::task::{Cell, Side};

impl Scoring<'_> {
    /// Makes failures that missing contents may explain faults of the sources.
    ///
    /// On new code a failure is the submission's where the developers' test passes on the same tree. A run without
    /// measurements does not know that: the failure stays the submission's, names what the tree lacks and is not kept for
    /// other runs. On old code only contents that new code has count: a method that passes without the others needs none of
    /// them.
    pub(super) async fn judge_by_contents(&self, job: &Job<'_>, records: &mut [CellRecord]) -> io::Result<()> {
        let is_doubtful =
            |record: &CellRecord| may_need_contents(record.outcome) && !job.focal.gold_passes(&record.method);
        if !records.iter().any(is_doubtful) {
            return Ok(());
        }
        let (trees, task, code) = (Arc::clone(&self.revisions), job.task.clone(), job.code);
        let missing = move || -> Result<Vec<String>, String> {
            let mut missing = trees.missing(&task, cell_of(code))?;
            if code == Side::Old && !missing.is_empty() {
                let of_new = trees.missing(&task, Cell::Nn)?;
                missing.retain(|path| of_new.binary_search(path).is_err());
            }
            Ok(missing)
        };
        // Where a tree can't be read the records say so already.
        let missing = tokio::task::spawn_blocking(missing).await.map_err(io::Error::other)?.unwrap_or_default();
        if !missing.is_empty() {
            let judge = if job.code == Side::New && !self.measures() { name_missing } else { blame_sources };
            records.iter_mut().filter(|record| is_doubtful(record)).for_each(|record| judge(record, &missing));
        }
        Ok(())
    }
}
