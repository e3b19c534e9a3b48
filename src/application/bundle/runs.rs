//! Finished runs in bundles for scorers: the developers' tests scored, and validations that certify tasks.
//!
//! A run is packed with the kept results that it used or made, so that no receiver executes them again.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::Opened;
use super::parts::NewFile;
use crate::application::io_failure::IoFailure;
use crate::bundle::description::ScorerDescription;
use crate::bundle::runs::{Expected, PackedRun, RESULTS, RUN, RunArchive, UnpackError, unpack};
use crate::bundle::{BundleError, Layout};
use crate::data_dir::DataDir;
use crate::digest::{Digest, HashingWriter};
use crate::error::CommandError;
use crate::execution::container::temporary::Spool;
use crate::execution::run::directory::{RunDescription, RunDirectoryError, is_run_id};
use crate::execution::run::extent::{all_files, is_file, open_file};
use crate::execution::run::inputs::RunInputs;
use crate::execution::run::list::{describe, missing, read_without_records};
use crate::execution::scoring::cache::{MOST_BYTES, ResultCache};
use crate::output::escape;
use crate::task::TaskId;

/// What archives of runs may hold.
const EXPECTED: Expected = Expected { is_file, most_result_bytes: MOST_BYTES };

/// Finished runs, packed.
#[derive(Default)]
pub(super) struct PackedRuns {
    /// The runs, sorted.
    pub(super) runs: Vec<PackedRun>,
    /// Their archives.
    pub(super) files: BTreeMap<Digest, NewFile>,
    /// The number of kept results in them.
    pub(super) results: usize,
}

impl PackedRuns {
    /// Packs finished runs of a bundle's tasks into files below `spool`.
    pub(super) fn of(
        paths: &[PathBuf],
        tasks: &BTreeSet<TaskId>,
        results: &ResultCache,
        spool: &Path,
    ) -> Result<Self, CommandError> {
        let mut packed = Self::default();
        for path in paths {
            packed.add(path, tasks, results, spool)?;
        }
        packed.runs.sort();
        Ok(packed)
    }

    fn add(
        &mut self,
        path: &Path,
        tasks: &BTreeSet<TaskId>,
        results: &ResultCache,
        spool: &Path,
    ) -> Result<(), CommandError> {
        let description = describe(path)?;
        let run_id = description.run_id.clone();
        let refused = |reason: String| BundleError::Run { run: shortened(&run_id), reason };
        if self.runs.iter().any(|run| run.run_id == run_id) {
            return Err(refused("it was named twice".to_owned()).into());
        }
        check(path, &description, tasks)?.map_err(refused)?;
        let file = spool.join(format!("run-{}", self.runs.len()));
        let packing = || IoFailure::of(format!("packing run `{}`", shortened(&run_id)));
        let out = BufWriter::new(fs::File::create(&file).map_err(packing())?);
        let mut archive = RunArchive::new(HashingWriter::new(out)).map_err(packing())?;
        for key in ResultCache::listed_keys(path)? {
            if let Some(sealed) = results.sealed(key).map_err(packing())? {
                let name = Path::new(RESULTS).join(format!("{}.json", key.hex()));
                archive.add(&name, sealed.len() as u64, sealed.as_slice()).map_err(packing())?;
                self.results += 1;
            }
        }
        for name in all_files(path).map_err(packing())? {
            if let Some((content, size)) = open_file(path, &name)? {
                archive.add(&Path::new(RUN).join(name), size, content).map_err(packing())?;
            }
        }
        let (buffer, archive, size) = archive.finish().map_err(packing())?.finish();
        buffer.into_inner().map_err(std::io::IntoInnerError::into_error).map_err(packing())?;
        self.files.insert(archive, NewFile { size, path: file });
        self.runs.push(PackedRun { run_id, archive, size });
        Ok(())
    }
}

/// Checks that a run has finished, is whole, and has no task but these. The inner error is what is wrong with it.
fn check(
    path: &Path,
    description: &RunDescription,
    tasks: &BTreeSet<TaskId>,
) -> Result<Result<(), String>, RunDirectoryError> {
    if !is_run_id(&description.run_id) {
        return Ok(Err("its id is no run id".to_owned()));
    }
    if description.finished.is_none() {
        return Ok(Err("it has not finished".to_owned()));
    }
    if description.extent.is_none() {
        return Ok(Err("an earlier program made it, and did not record what it consists of".to_owned()));
    }
    if let Some(what) = missing(path, description)? {
        return Ok(Err(format!("it lacks {what}")));
    }
    // Inputs of `score` have those of `validate` in them.
    let Some(inputs) = read_without_records::<RunInputs>(path.to_owned())?.inputs else {
        return Ok(Err("it has no inputs".to_owned()));
    };
    Ok(match inputs.tasks.iter().find(|task| !tasks.contains(&task.id)) {
        Some(task) => Err(format!("its task {} is not among the bundle's", task.id)),
        None => Ok(()),
    })
}

/// Runs of a bundle, unpacked and checked.
pub(super) struct UnpackedRuns {
    /// The directory of each, which goes with this value unless it was taken.
    runs: Vec<(String, Spool)>,
}

impl UnpackedRuns {
    /// Checks that the ids of a bundle's runs can name directories.
    pub(super) fn check_ids(layout: &Layout, description: &ScorerDescription) -> Result<(), BundleError> {
        match description.runs.iter().find(|run| !is_run_id(&run.run_id)) {
            Some(run) => Err(layout.malformed(format!("`{}` is no run id", escape(&shortened(&run.run_id))))),
            None => Ok(()),
        }
    }

    /// Returns the number of a bundle's runs that the data directory lacks. The runs' ids must have been checked.
    pub(super) fn lacking(description: &ScorerDescription, data_dir: &DataDir) -> usize {
        description.runs.iter().filter(|run| !data_dir.join("runs").join(&run.run_id).exists()).count()
    }

    /// Unpacks and checks the runs of a bundle, whose ids were checked. One that the base of an incremental bundle has brought is left out.
    pub(super) fn of(
        layout: &Layout,
        description: &ScorerDescription,
        data_dir: &DataDir,
    ) -> Result<Self, CommandError> {
        let of_repositories = description.repositories.values();
        let tasks = of_repositories.flat_map(|content| content.tasks.iter().cloned()).collect();
        let mut unpacked = Vec::new();
        for packed in &description.runs {
            let run = packed.run_id.clone();
            let there = data_dir.join("runs").join(&run);
            if !layout.has(&packed.archive)? {
                if there.exists() {
                    continue;
                }
                let name = layout.name().to_owned();
                return Err(BundleError::Lacking { name, count: 1, first: packed.archive }.into());
            }
            layout.check_blob(&packed.archive, packed.size)?;
            let unpacking = || IoFailure::of(format!("unpacking run `{run}`"));
            let spool = Spool::create(&data_dir.temporary()).map_err(unpacking())?;
            let malformed = |reason: String| layout.malformed(format!("run `{run}`: {reason}"));
            let archive = layout.open_blob(&packed.archive, packed.size)?;
            unpack(archive, Some(spool.path()), &EXPECTED).map_err(|error| match error {
                UnpackError::Refused(reason) => malformed(reason).into(),
                UnpackError::Writing(error) => unpacking()(error),
            })?;
            let here = spool.path().join(RUN);
            let inside = |error: RunDirectoryError| match error {
                RunDirectoryError::Io(_) | RunDirectoryError::Full(_) | RunDirectoryError::Gone(_) => error.into(),
                _ => CommandError::from(malformed(error.to_string())),
            };
            let found = describe(&here).map_err(inside)?;
            if found.run_id != run {
                let other = shortened(&found.run_id);
                return Err(malformed(format!("its archive is of run `{}`", escape(&other))).into());
            }
            check(&here, &found, &tasks).map_err(inside)?.map_err(malformed)?;
            if there.exists() && describe(&there)? != found {
                return Err(BundleError::OtherRun { name: layout.name().to_owned(), run }.into());
            }
            unpacked.push((run, spool));
        }
        Ok(Self { runs: unpacked })
    }

    /// Moves runs and kept results into the data directory. Returns the numbers of both that the data directory lacked.
    pub(super) fn take(self, data_dir: &DataDir) -> std::io::Result<(usize, usize)> {
        let (mut runs, mut kept) = (0, 0);
        let results = ResultCache::of(data_dir, true);
        for (run, spool) in self.runs {
            for (key, path) in results_below(&spool.path().join(RESULTS))? {
                kept += usize::from(results.adopt(key, &fs::read(path)?)?);
            }
            let there = data_dir.join("runs").join(run);
            if !there.exists() {
                fs::rename(spool.path().join(RUN), there)?;
                runs += 1;
            }
        }
        Ok((runs, kept))
    }
}

fn results_below(directory: &Path) -> std::io::Result<Vec<(Digest, PathBuf)>> {
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        if let Ok(key) = Digest::from_hex(name) {
            found.push((key, path));
        }
    }
    Ok(found)
}

fn shortened(name: &str) -> String {
    name.chars().take(120).collect()
}

impl Opened {
    /// Returns a line for each damaged archive of a run. Archives that only the base has are not looked at.
    pub(super) fn damaged_runs(&self) -> Result<Vec<String>, BundleError> {
        let mut damaged = Vec::new();
        for packed in self.description.runs() {
            if !self.layout.has(&packed.archive)? {
                continue;
            }
            let archive = match self.layout.open_blob(&packed.archive, packed.size) {
                // Another size is told with the blobs.
                Err(BundleError::Malformed { .. }) => continue,
                opened => opened?,
            };
            if let Err(UnpackError::Refused(reason)) = unpack(archive, None, &EXPECTED) {
                damaged.push(format!("run `{}`: {reason}", escape(&shortened(&packed.run_id))));
            }
        }
        Ok(damaged)
    }
}
