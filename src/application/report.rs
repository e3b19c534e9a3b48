//! Reads scoring runs for reports, and compares them with a published leaderboard.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::Context;
use super::io_failure::IoFailure;
use crate::error::CommandError;
use crate::execution::run::inputs::RunInputs;
use crate::execution::run::list::{LATEST, RunEntry, describe, find, list, read_at};
use crate::execution::run::record::CellRecord;
use crate::report::leaderboard::calibration::{Calibration, calibrate};
use crate::report::leaderboard::{self, Leaderboard};
use crate::report::score::formats::{html, instances};
use crate::report::score::{
    AgentMeans, COMMAND, Certification, Period, ReportError, ScoreReport, ScoredModel, figures, find_kept_logs,
    kept_keys, read, read_of, samples_of_runs, take_as_samples,
};
use crate::report::validation::summarize;
use crate::submission::GOLD;
use crate::task::TaskId;

/// Scoring runs, read.
pub struct ScoringRuns {
    paths: Vec<PathBuf>,
    period: Period,
    certification: Option<Certification>,
    /// Whether runs of models of one name are samples.
    samples: bool,
    /// What a published leaderboard says of its agents.
    published: Vec<AgentMeans>,
    /// Their models, in the order of the runs.
    pub models: Vec<ScoredModel>,
}

impl ScoringRuns {
    /// Reads the runs: ids, `latest`, or paths, which have a slash. `certified_by` names a run of `validate` likewise. With
    /// `samples`, runs of models of one name are samples of that model.
    ///
    /// # Errors
    /// [`RunDirectoryError`](crate::execution::run::directory::RunDirectoryError), [`ReportError`].
    pub fn read(
        runs: &[String],
        period: Period,
        certified_by: Option<&str>,
        samples: bool,
        context: &Context,
    ) -> Result<Self, CommandError> {
        let _stage = context.events.stage("read runs", None, 0);
        let paths = runs.iter().map(|run| path(run, context)).collect::<Result<Vec<_>, _>>()?;
        let certification = certified_by.map(|run| certification_of(run, context)).transpose()?;
        let mut models = read_of(&paths, &period)?;
        let mut cut: Vec<(&String, &String)> = Vec::new();
        for model in &models {
            if let Some(missing) = &model.facts.records_missing
                && !cut.contains(&(&model.run_id, missing))
            {
                cut.push((&model.run_id, missing));
            }
        }
        for (run, missing) in cut {
            context.events.warning(format!(
                "{missing} of run {run} are missing: its figures lack results; copy the run's directory again, or score again \
                 with `--fresh`"
            ));
        }
        if samples {
            take_as_samples(&mut models);
        }
        Ok(Self { models, paths, period, certification, samples, published: Vec::new() })
    }

    /// Reads the runs in these directories.
    ///
    /// # Errors
    /// [`ReportError`].
    pub fn read_at(paths: Vec<PathBuf>) -> Result<Self, CommandError> {
        let models = read(&paths)?;
        let period = Period::default();
        Ok(Self { models, paths, period, certification: None, samples: false, published: Vec::new() })
    }

    /// Adds the models up.
    pub fn figures(&self) -> ScoreReport {
        let certified = self.certification.as_ref().map(|certification| certification.figures(&self.models));
        let published = self.published.clone();
        let report = ScoreReport { period: self.period, certified, published, ..figures(&self.models) };
        match self.samples {
            true => ScoreReport { samples: samples_of_runs(&self.models), ..report },
            false => report,
        }
    }

    /// Looks for the logs of kept results in the runs that executed them. A data directory without runs is not looked into, and
    /// a missing one is not created.
    ///
    /// # Errors
    /// [`RunDirectoryError`](crate::execution::run::directory::RunDirectoryError) if the runs can't be listed.
    pub fn with_kept_logs(mut self, context: &Context) -> Result<Self, CommandError> {
        let keys = kept_keys(&self.models);
        if keys.is_empty() || !context.options.data_dir.join("runs").is_dir() {
            return Ok(self);
        }
        let _stage = context.events.stage("find logs", None, 0);
        match context.data_dir() {
            Ok(data_dir) => find_kept_logs(&mut self.models, &keys, data_dir)?,
            Err(error) => context.events.warning(format!("logs of kept results are not looked for: {error}")),
        }
        Ok(self)
    }

    /// Adds the agents of a published leaderboard to the report's page, over the tasks of the report's days.
    ///
    /// # Errors
    /// [`LeaderboardError`](leaderboard::LeaderboardError).
    pub fn beside(self, published: &Path) -> Result<Self, CommandError> {
        Ok(Self { published: leaderboard::agents_means(&self.published_within(published)?), ..self })
    }

    fn published_within(&self, published: &Path) -> Result<Leaderboard, CommandError> {
        let mut leaderboard = leaderboard::read(published)?;
        leaderboard.within(&self.period);
        Ok(leaderboard)
    }

    /// Writes an index page and a page for each task into a new or empty directory.
    ///
    /// # Errors
    /// [`CommandError::Usage`] for a directory with entries; I/O errors of reading attachments and writing pages.
    pub fn write_pages(&self, directory: &Path) -> Result<(), CommandError> {
        self.written_to(directory, html::write_directory)
    }

    /// Writes a file for each completed instance, and a summary of each model, into a new or empty directory.
    ///
    /// # Errors
    /// [`CommandError::Usage`] for a directory with entries; I/O errors of writing.
    pub fn write_instances(&self, directory: &Path) -> Result<(), CommandError> {
        self.written_to(directory, instances::write_directory)
    }

    fn written_to(
        &self,
        directory: &Path,
        write: fn(&Path, &ScoreReport, &[ScoredModel]) -> io::Result<()>,
    ) -> Result<(), CommandError> {
        let written = || -> io::Result<bool> {
            fs::create_dir_all(directory)?;
            if fs::read_dir(directory)?.next().is_some() {
                return Ok(false);
            }
            write(directory, &self.figures(), &self.models)?;
            Ok(true)
        };
        match written().map_err(IoFailure::of(format!("writing the report `{}`", directory.display())))? {
            true => Ok(()),
            false => Err(CommandError::Usage {
                message: format!("the directory `{}` is not empty", directory.display()),
                hint: "name a new directory, or empty this one".to_owned(),
            }),
        }
    }

    /// Returns the models in the shape of the published leaderboard, dated by the run that ended last.
    ///
    /// # Errors
    /// [`RunDirectoryError`](crate::execution::run::directory::RunDirectoryError).
    pub fn leaderboard(&self) -> Result<Leaderboard, CommandError> {
        let ended = self.paths.iter().map(|path| Ok(describe(path)?.finished));
        let ended = ended.collect::<Result<Vec<_>, CommandError>>()?;
        Ok(leaderboard::leaderboard(&self.models, ended.into_iter().flatten().max()))
    }

    /// Compares the developers' tests among the models with a published leaderboard.
    ///
    /// # Errors
    /// [`CommandError::Usage`] for runs without developers' tests, or with a task in common;
    /// [`LeaderboardError`](leaderboard::LeaderboardError).
    pub fn calibrate(&self, published: &Path, context: &Context) -> Result<Calibration, CommandError> {
        let gold: Vec<&ScoredModel> = self.models.iter().filter(|model| model.model == GOLD).collect();
        if gold.is_empty() {
            return Err(CommandError::Usage {
                message: "`--published` takes runs that scored `gold`".to_owned(),
                hint: "run `testevo-sandbox score --predictions gold` first".to_owned(),
            });
        }
        let mut seen: BTreeMap<&TaskId, &str> = BTreeMap::new();
        for model in &gold {
            for scored in &model.tasks {
                if let Some(other) = seen.insert(&scored.task.id, &model.run_id) {
                    return Err(CommandError::Usage {
                        message: format!("the runs {other} and {} both have {}", model.run_id, scored.task.id),
                        hint: "name runs that have no task in common".to_owned(),
                    });
                }
            }
            if !model.complete {
                context.events.warning(format!("run {} is incomplete: what it lacks is in no value", model.run_id));
            }
        }
        Ok(calibrate(&gold, &self.published_within(published)?))
    }
}

/// Returns the directory of a run, given by its id or by a path, which has a slash.
///
/// # Errors
/// [`ReportError::NoRun`] for a path that leads to no run;
/// [`RunDirectoryError`](crate::execution::run::directory::RunDirectoryError).
pub(super) fn path(run: &str, context: &Context) -> Result<PathBuf, CommandError> {
    if !run.contains('/') {
        return Ok(find(context.data_dir()?, run)?);
    }
    let path = PathBuf::from(run);
    let reason = match fs::metadata(&path) {
        Ok(found) if !found.is_dir() => "it is no directory",
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            "there is no such directory"
        }
        // A run that can't be looked at is an error of reading it.
        Ok(_) if matches!(path.join("run.json").try_exists(), Ok(false)) => "it has no `run.json`",
        _ => return Ok(path),
    };
    Err(ReportError::NoRun { path, reason }.into())
}

/// Returns the certification by a run of `validate`. `latest` is the finished run that began last.
///
/// # Errors
/// [`RunDirectoryError`](crate::execution::run::directory::RunDirectoryError); [`ReportError`] if it is none.
pub fn certification_of(run: &str, context: &Context) -> Result<Certification, CommandError> {
    if run != LATEST {
        return certification(path(run, context)?);
    }
    let runs = list(context.data_dir()?)?;
    let finished = |run: &RunEntry| {
        let of = run.description.as_ref();
        of.is_some_and(|description| description.command != COMMAND && description.finished.is_some())
    };
    let newest = runs.into_iter().rfind(finished);
    let newest = newest.ok_or(ReportError::NeverValidated)?;
    certification(path(&newest.run_id, context)?)
}

fn certification(path: PathBuf) -> Result<Certification, CommandError> {
    let description = describe(&path)?;
    let run_id = description.run_id;
    if description.command == COMMAND || description.finished.is_none() {
        return Err(ReportError::NoValidation(run_id).into());
    }
    let run = read_at::<RunInputs, CellRecord>(path)?;
    let inputs = run.inputs.ok_or_else(|| ReportError::NoInputs(run_id.clone()))?;
    let (summary, classed) = summarize(&run_id, &inputs.tasks, &run.records);
    Ok(Certification::of(&summary, &classed, &inputs.images))
}
