//! Checks this machine with the options of the command, and counts what is done in the data directory.

use fs_err as fs;

use super::Context;
use super::workbench::{Workbench, client};
use crate::data_dir::DataDir;
use crate::doctor::engines::{Engines, engines, program};
use crate::doctor::native::{Native, native};
use crate::doctor::origins::{FoundOrigins, origins};
use crate::doctor::work::{Progress, work};
use crate::doctor::{Check, Report, Status, machine, sources};
use crate::engine::docker::Daemon;
use crate::error::{CommandError, Failure as _};
use crate::output::counted;
use crate::settings::EngineChoice;
use crate::task::RepositoryName;

/// The checks of a machine.
pub struct Examined {
    /// All checks.
    pub report: Report,
    /// What is missing and decides the exit code: an engine, an origin, or a usable data directory.
    missing: Option<CommandError>,
}

impl Examined {
    /// Says whether every check passed.
    ///
    /// # Errors
    /// The error of what is missing, [`CommandError::CheckFailed`] for other failed checks.
    pub fn verdict(self) -> Result<(), CommandError> {
        if let Some(missing) = self.missing {
            return Err(missing);
        }
        match self.report.checks.iter().filter(|check| check.status == Status::Fail).count() {
            0 => Ok(()),
            failed => {
                Err(CommandError::CheckFailed { summary: format!("{} failed", counted(failed, "check", "checks")) })
            }
        }
    }
}

/// Makes all checks. What fails is in the answer.
pub async fn examine(context: &Context) -> Examined {
    let options = &context.options;
    let mut checks = vec![machine::platform(), machine::resources(options.jobs.get())];
    let (found, no_engine) = find_engines(context).await;
    checks.extend(found);
    let (opened, check) = data_dir(context);
    checks.push(check);
    checks.push(machine::disk("the data directory", &options.data_dir));
    let certificates = rustls_native_certs::load_native_certs().certs.len();
    checks.extend(machine::network(&|name| std::env::var(name).ok(), certificates));
    let (no_origin, unusable, time) = match opened.map(|data_dir| client(context, data_dir)) {
        Ok(Ok(client)) => {
            let FoundOrigins { checks: found, missing, time } = origins(&client).await;
            checks.extend(found);
            (missing, None, time)
        }
        Ok(Err(error)) => {
            checks.push(Check::fail("origin", error.to_string(), error.hint().unwrap_or_default()));
            (None, Some(error.into()), None)
        }
        Err(error) => {
            let advice = "what origins answer is kept there: make it usable first";
            checks.push(Check::warn("origin", "not asked, because the data directory can't be used", advice));
            (None, Some(error), None)
        }
    };
    checks.push(machine::clock(jiff::Timestamp::now(), time));
    let (repositories, progress) = progress(context);
    checks.push(sources::git(options.git_mirror.is_some()));
    checks.push(sources::mirror(options.git_mirror.as_deref(), &repositories));
    checks.push(work(progress));
    let missing = no_engine.or(no_origin.map(CommandError::from)).or(unusable);
    Examined { report: Report::new(checks), missing }
}

/// Checks the chosen engines. The error is that of having none.
async fn find_engines(context: &Context) -> (Vec<Check>, Option<CommandError>) {
    let daemon = match context.options.engine {
        EngineChoice::Auto => Some(Daemon::Any),
        EngineChoice::Docker => Some(Daemon::Docker),
        EngineChoice::Podman => Some(Daemon::Podman),
        EngineChoice::Native => None,
    };
    let mut found = match &daemon {
        Some(daemon) => engines(daemon).await,
        None => Engines { checks: vec![program()], missing: None },
    };
    if !matches!(context.options.engine, EngineChoice::Auto | EngineChoice::Native) {
        return (found.checks, found.missing.map(CommandError::from));
    }
    let needed = daemon.is_none() || found.missing.is_some();
    let workbench = match Workbench::open(context) {
        Ok(workbench) => workbench,
        // The data directory has a check of its own.
        Err(error) => return (found.checks, found.missing.map(CommandError::from).or(needed.then_some(error))),
    };
    let spool = Some(workbench.data_dir.temporary()).filter(|_| !context.options.dry_run);
    let Native { checks, missing } = native(workbench.native(), spool.as_deref(), needed).await;
    if needed && missing.is_none() {
        // The built-in engine replaces the daemons that do not answer.
        for check in found.checks.iter_mut().filter(|check| check.check == "engine") {
            (check.status, check.advice) = (Status::Ok, None);
        }
    }
    found.checks.extend(checks);
    (found.checks, missing.map(CommandError::from))
}

fn data_dir(context: &Context) -> (Result<&DataDir, CommandError>, Check) {
    match context.data_dir() {
        Ok(data_dir) => {
            let detail = format!("`{}` can be used", data_dir.root().display());
            (Ok(data_dir), Check::ok("data directory", detail))
        }
        Err(error) => {
            let check = Check::fail("data directory", error.to_string(), error.hint().unwrap_or_default());
            (Err(error), check)
        }
    }
}

/// Returns the imported repositories, and the progress of the work on them according to existing files.
fn progress(context: &Context) -> (Vec<RepositoryName>, Progress) {
    let stems = |directory: &str, ending: &str| -> Vec<String> {
        // A directory that can't be listed counts as empty. The data directory's own check reports the failure.
        let entries = fs::read_dir(context.options.data_dir.join(directory)).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter_map(|name| name.strip_suffix(ending).map(str::to_owned)).collect()
    };
    let mut repositories: Vec<RepositoryName> =
        stems("manifests", ".toml").iter().filter_map(|stem| RepositoryName::of_file_stem(stem)).collect();
    repositories.sort();
    let (locks, images) = (stems("locks", ".lock"), stems("images", ".json"));
    let having = |stems: &[String]| repositories.iter().filter(|name| stems.contains(&name.file_stem())).count();
    let progress = Progress { repositories: repositories.len(), locked: having(&locks), built: having(&images) };
    (repositories, progress)
}
