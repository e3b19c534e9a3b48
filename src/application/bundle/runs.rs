//! Finished runs in bundles for scorers: the developers' tests scored, and validations that certify tasks.
//!
//! A run is packed with the kept results that it used or made, so that no receiver executes them again.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::Opened;
use super::parts::{NewFile, Parts};
use crate::bundle::description::ScorerDescription;
use crate::bundle::runs::{self, Member, PackedRun, RESULTS, RUN};
use crate::bundle::{BundleError, Layout};
use crate::data_dir::DataDir;
use crate::digest::{Digest, HashingWriter};
use crate::error::CommandError;
use crate::execution::container::temporary::Spool;
use crate::execution::run::directory::is_run_id;
use crate::execution::run::extent::{all_files, is_file};
use crate::execution::run::inputs::RunInputs;
use crate::execution::run::list::{describe, missing, read_without_records};
use crate::execution::scoring::cache::ResultCache;
use crate::task::TaskId;

/// Packs a finished run of some of the bundle's tasks, and returns it with the number of its kept results.
pub(super) fn pack(
    path: &Path,
    tasks: &BTreeSet<TaskId>,
    results: &ResultCache,
    spool: &Path,
) -> Result<(PackedRun, NewFile, usize), CommandError> {
    let description = describe(path)?;
    let run_id = description.run_id.clone();
    let refused = |reason: String| BundleError::Run { run: run_id.clone(), reason };
    if description.finished.is_none() {
        return Err(refused("it has not finished".to_owned()).into());
    }
    if let Some(what) = missing(path, &description)? {
        return Err(refused(format!("it lacks {what}")).into());
    }
    // Inputs of `score` have those of `validate` in them.
    let inputs = read_without_records::<RunInputs>(path.to_owned())?.inputs;
    let inputs = inputs.ok_or_else(|| refused("it has no inputs".to_owned()))?;
    if let Some(task) = inputs.tasks.iter().find(|task| !tasks.contains(&task.id)) {
        return Err(refused(format!("its task {} is not among the bundle's", task.id)).into());
    }
    let io = |error: std::io::Error| CommandError::from(refused(error.to_string()));
    let files = all_files(path).map_err(io)?.into_iter();
    let mut members: BTreeMap<PathBuf, Member> =
        files.map(|file| (Path::new(RUN).join(&file), Member::File(path.join(file)))).collect();
    let of_run = members.len();
    for key in ResultCache::listed_keys(path)? {
        if let Some(sealed) = results.sealed(key).map_err(io)? {
            members.insert(Path::new(RESULTS).join(format!("{}.json", key.hex())), Member::Bytes(sealed));
        }
    }
    let kept = members.len() - of_run;
    let packed = spool.join(format!("run-{run_id}"));
    let write = || -> std::io::Result<(Digest, u64)> {
        let out = HashingWriter::new(BufWriter::new(fs::File::create(&packed)?));
        let (buffer, digest, size) = runs::pack(&members, out)?.finish();
        buffer.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        Ok((digest, size))
    };
    let (archive, size) = write().map_err(io)?;
    let file = NewFile { size, path: packed, always: false };
    Ok((PackedRun { run_id: run_id.clone(), archive, size }, file, kept))
}

impl Parts {
    /// Adds finished runs of the bundle's tasks, and returns how many results are kept with them.
    pub(super) fn runs(
        &mut self,
        paths: &[PathBuf],
        tasks: &BTreeSet<TaskId>,
        (results, spool): (&ResultCache, &Path),
    ) -> Result<(Vec<PackedRun>, usize), CommandError> {
        let (mut packed, mut kept) = (BTreeSet::new(), 0);
        for path in paths {
            let (run, file, of_run) = pack(path, tasks, results, spool)?;
            self.files.insert(run.archive, file);
            packed.insert(run);
            kept += of_run;
        }
        Ok((packed.into_iter().collect(), kept))
    }
}

/// Runs of a bundle that the data directory lacks, unpacked and checked.
pub(super) struct UnpackedRuns {
    /// The directory of each, which goes with this value unless it was taken.
    runs: Vec<(String, Spool)>,
}

impl UnpackedRuns {
    /// Unpacks and checks the runs of a bundle. A run that is there already, as the bundle has it, is left out.
    pub(super) fn of(
        layout: &Layout,
        description: &ScorerDescription,
        data_dir: &DataDir,
    ) -> Result<Self, CommandError> {
        let mut unpacked = Vec::new();
        for packed in &description.runs {
            let run = packed.run_id.clone();
            let malformed = |reason: String| layout.malformed(format!("run `{}`: {reason}", shortened(&run)));
            if !is_run_id(&run) {
                return Err(malformed("it has no name of a run".to_owned()).into());
            }
            let there = data_dir.join("runs").join(&run);
            if !layout.has(&packed.archive)? && there.exists() {
                // The base of an incremental bundle has brought it.
                continue;
            }
            if !layout.has(&packed.archive)? {
                let name = layout.name().to_owned();
                return Err(BundleError::Lacking { name, count: 1, first: packed.archive }.into());
            }
            layout.check_blob(&packed.archive, packed.size)?;
            let spool = Spool::create(&data_dir.temporary()).map_err(CommandError::Runtime)?;
            let archive = layout.open_blob(&packed.archive, packed.size)?;
            runs::unpack(archive, Some(spool.path()), is_file).map_err(malformed)?;
            let here = spool.path().join(RUN);
            let found = describe(&here).map_err(|error| malformed(error.to_string()))?;
            let lacks = missing(&here, &found).map_err(|error| malformed(error.to_string()))?;
            if found.run_id != run || found.finished.is_none() || lacks.is_some() {
                return Err(malformed("it is another run, or not whole".to_owned()).into());
            }
            if there.exists() {
                let same = describe(&there).is_ok_and(|known| known == found);
                if !same {
                    return Err(BundleError::OtherRun { name: layout.name().to_owned(), run }.into());
                }
            }
            unpacked.push((run, spool));
        }
        Ok(Self { runs: unpacked })
    }

    /// Moves runs and kept results to where commands find them. Returns how many of each the data directory lacked.
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
    /// Returns what is wrong with the archives of runs that the bundle has, in one line each.
    pub(super) fn damaged_runs(&self) -> Result<Vec<String>, BundleError> {
        let mut damaged = Vec::new();
        for packed in self.description.runs() {
            if self.layout.has(&packed.archive)?
                && let Err(reason) = runs::unpack(self.layout.open_blob(&packed.archive, packed.size)?, None, is_file)
            {
                damaged.push(format!("run `{}`: {reason}", shortened(&packed.run_id)));
            }
        }
        Ok(damaged)
    }
}
