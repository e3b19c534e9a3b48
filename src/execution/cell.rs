//! One cell of one task on the reference path: Maven builds the cell's tree, then each method is launched on it.
//!
//! Faults of the infrastructure, failed builds included, are retried twice and then recorded. A timeout of a build or
//! of a method counts only after a second run with nothing else running. A launch on a mutant is an exception: its
//! first timeout counts if its limit is far above the launch's usual time.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use fs_err as fs;

use crate::engine::session::Captured;
use crate::execution::attribution::{Erroneous, attribute};
use crate::execution::build::built::Built;
use crate::execution::build::compiled_tree::{CompiledTree, Place as Entry, TreeError};
use crate::execution::build::prepared::in_tree;
use crate::execution::build::recording::Recording;
use crate::execution::build::{Build, BuildEnd, BuildRequest};
use crate::execution::container::places::PROJECT;
use crate::execution::container::temporary::TemporaryFile;
use crate::execution::control::{ControlRequest, MethodControls};
use crate::execution::executor::{Executor, Launched};
use crate::execution::launch::coverage::{CoverageRequest, Covering, MethodCoverage};
use crate::execution::module::ModuleArguments;
use crate::execution::request::{CellRequest, OtherText};
use crate::execution::run::logs::CellLogs;
use crate::execution::run::record::milliseconds;
use crate::execution::run::record::{CellRecord, ExecutionPath, Measured};
use crate::java::reach::Place;
use crate::outcome::{CompileReason, Outcome};
use crate::thread::blocking;
use crate::workspace::cells::class_of_method;
use crate::workspace::class_file::MOST_CLASS_BYTES;
use crate::workspace::class_file::family::{ClassShape, Family};

/// A tree that Maven built, or why there is none.
type BuiltCell = Result<Built, FailedCell>;

/// A failed build of a cell.
pub struct FailedCell {
    /// The outcome of all methods.
    pub outcome: Outcome,
    /// Lines for people.
    pub detail: String,
    places: Vec<Place>,
}

impl Executor {
    /// Executes a cell and returns a record per method and repeat.
    ///
    /// # Errors
    /// I/O errors of writing logs or temporary files. Every other failure is an outcome in the records.
    pub async fn run_cell(&self, request: &CellRequest<'_>) -> std::io::Result<Vec<CellRecord>> {
        Ok(self.run_and_measure(request, None, None).await?.0)
    }

    /// Executes a cell as [`Executor::run_cell`] does. Then launches methods again with the coverage agent and under
    /// controls: those that passed in the first repeat, and those that the requests name.
    ///
    /// # Errors
    /// As [`Executor::run_cell`].
    pub async fn run_and_measure(
        &self,
        request: &CellRequest<'_>,
        cover: Option<&CoverageRequest<'_>>,
        control: Option<&ControlRequest<'_>>,
    ) -> std::io::Result<(Vec<CellRecord>, Vec<MethodCoverage>, Vec<MethodControls>)> {
        let started = std::time::Instant::now();
        let logs = self.cell_logs(request)?;
        let identity = request.identity();
        let all = |outcome, detail: &str, attempts, measured: &Measured| {
            let launched = || Launched::not_launched(outcome, detail, attempts, measured);
            let records = self.records(&identity, request.methods, request.repeats, launched);
            unkeyed(request, records)
        };
        let mut measured = self.measured(&logs);
        if request.input.swapped.is_none() {
            return Ok((
                all(Outcome::Absent, "the revision has no such test file", 0, &measured),
                Vec::new(),
                Vec::new(),
            ));
        }
        let Some(module) = &request.input.module else {
            let detail = "the target file lies in no module of this tree";
            let records = all(Outcome::CompileFail(CompileReason::NoModule), detail, 0, &measured);
            return Ok((records, Vec::new(), Vec::new()));
        };
        let build = self.build(&build_request(request, module, &logs)).await?;
        measured.whole_build = module.whole;
        measured.compile_ms = Some(milliseconds(started));
        measured.compile_cpu_ms = build.cost.map(|cost| cost.cpu_ms);
        measured.believed = build.believed;
        measured.compile_peak_bytes = build.cost.map(|cost| cost.peak_resident_bytes);
        let attempts = build.attempts;
        let built = match self.take(request, module, build).await? {
            Ok(built) => built,
            Err(FailedCell { outcome, detail, places }) => {
                let (class, text) = (request.input.class.as_str(), request.input.text.as_deref().unwrap_or_default());
                let file = Erroneous { text, class, places, jdk: request.image.jdk };
                let records = attribute(all(outcome, &detail, attempts, &measured), file).await?;
                return Ok((records, Vec::new(), Vec::new()));
            }
        };
        let class = request.input.class.as_str();
        let launches = (class, request.methods, request.repeats);
        let records = self.launch_all(&identity, &built, launches, &measured, &logs).await?;
        let covered = match cover {
            Some(cover) => {
                let passed = records.iter().filter(|record| record.repeat == 1 && record.outcome == Outcome::Pass);
                let methods = cover.methods.iter().chain(passed.map(|record| &record.method));
                let covering = Covering { class, files: cover.files, logs: &logs };
                self.cover(request.image, &built, &covering, methods).await?
            }
            None => Vec::new(),
        };
        let controlled = match control {
            Some(control) => self.control((request.image, &built), (class, &logs), control, &records).await?,
            None => Vec::new(),
        };
        Ok((unkeyed(request, records), covered, controlled))
    }

    /// Builds a cell's tree with Maven; returns the built tree and the directory of its logs.
    ///
    /// # Errors
    /// I/O errors of writing logs and temporary files.
    pub async fn build_cell(
        &self,
        request: &CellRequest<'_>,
        module: &ModuleArguments,
    ) -> std::io::Result<(BuiltCell, CellLogs)> {
        let logs = self.cell_logs(request)?;
        let build = self.build(&build_request(request, module, &logs)).await?;
        Ok((self.take(request, module, build).await?, logs))
    }

    fn cell_logs(&self, request: &CellRequest<'_>) -> std::io::Result<CellLogs> {
        let logs = CellLogs::create(self.logs.as_ref(), &request.task.id, request.cell)?;
        match request.other_text {
            Some(OtherText { number, .. }) => logs.below(&format!("mutant-{number}")),
            None => Ok(logs),
        }
    }

    /// Makes a launchable tree of Maven's build.
    async fn take(
        &self,
        request: &CellRequest<'_>,
        module: &ModuleArguments,
        build: Build,
    ) -> std::io::Result<BuiltCell> {
        let build_cpu_ms = build.cost.map(|cost| cost.cpu_ms);
        let build = match build.end {
            BuildEnd::Built(build) => build,
            BuildEnd::Failed { outcome, detail, places } => return Ok(Err(FailedCell { outcome, detail, places })),
        };
        let own = TemporaryFile::named(&self.temporary, "compiled", "tar");
        match &build.archive {
            Captured::File { path, .. } => fs::rename(path, own.path())?,
            Captured::Memory(bytes) => fs::write(own.path(), bytes)?,
        }
        let module = module.path();
        let recording = Recording::read(&build.recording);
        let settings = build.settings(&recording, &module, request.image, self.limits.launch_heap_mib);
        let archives = vec![own.path().to_owned()];
        let class_path = build.class_path;
        let classes = request.methods.iter().map(|method| class_of_method(&request.input.class, method)).collect();
        let family = Arc::new(family_of(own.path().to_owned(), class_path.first().cloned(), classes).await?);
        let (path, own) = (ExecutionPath::Maven, vec![Arc::new(own)]);
        Ok(Ok(Built { path, archives, module, class_path, build_cpu_ms, settings, family, own }))
    }
}

/// Returns the test classes of a compiled tree if one of `classes` (binary names) is abstract. A tree that is too large to
/// be looked through, or malformed, has none.
async fn family_of(archive: PathBuf, output: Option<String>, classes: BTreeSet<String>) -> std::io::Result<Family> {
    let Some(output) = output.filter(|output| output.starts_with(PROJECT)) else { return Ok(Family::default()) };
    let read = move || -> Result<Family, TreeError> {
        let tree = CompiledTree::open(&archive)?;
        let output = in_tree(&output);
        let shape = |place: Entry| match place.length > MOST_CLASS_BYTES {
            true => Ok(None),
            false => tree.read(place).map(|bytes| ClassShape::read(&bytes).ok()),
        };
        let files =
            classes.iter().filter_map(|class| tree.file(&format!("{output}/{}.class", class.replace('.', "/"))));
        let own = files.map(shape).collect::<Result<Vec<_>, TreeError>>()?;
        if !own.iter().flatten().any(ClassShape::is_abstract) {
            return Ok(Family::default());
        }
        let all = tree.files_below(output).filter(|(path, _)| path.ends_with(".class"));
        let all = all.map(|(_, place)| shape(place)).collect::<Result<Vec<_>, TreeError>>()?;
        Ok(Family::of(all.into_iter().flatten()))
    };
    match blocking(read).await {
        Err(TreeError::Io(error)) if error.raw_os_error().is_some() => Err(error),
        // Launches on a malformed archive fail by themselves.
        Err(TreeError::Io(_) | TreeError::TooLarge(_)) => Ok(Family::default()),
        Ok(family) => Ok(family),
    }
}

fn build_request<'a>(request: &CellRequest<'a>, module: &'a ModuleArguments, logs: &'a CellLogs) -> BuildRequest<'a> {
    BuildRequest {
        purpose: "compile",
        image: request.image,
        tree: request.input.archive.path(),
        module,
        target_file: Some(&request.input.test_file),
        other_text: request.other_text,
        logs,
    }
}

/// Removes the keys from records of code with a replaced text. Keys do not name that text, so a mutant's result must
/// not be found under the original code's key.
fn unkeyed(request: &CellRequest<'_>, mut records: Vec<CellRecord>) -> Vec<CellRecord> {
    if request.other_text.is_some() {
        records.iter_mut().for_each(|record| record.key = None);
    }
    records
}

#[cfg(test)]
mod tests;
