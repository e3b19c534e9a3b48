//! `doctor`: what this machine offers, and what to do about what it lacks.

use std::fmt::Write as _;

use clap::Args;
use fs_err as fs;

use super::interrupts::block_on;
use super::stdout;
use crate::application::Context;
use crate::application::workbench::{Workbench, client};
use crate::data_dir::DataDir;
use crate::doctor::engines::{Engines, engines, program};
use crate::doctor::native::{Native, native};
use crate::doctor::origins::{FoundOrigins, origins};
use crate::doctor::work::{Progress, work};
use crate::doctor::{Check, Report, Status, machine, sources};
use crate::engine::docker::Daemon;
use crate::error::{CommandError, Failure as _};
use crate::output::{OutputFormat, counted};
use crate::settings::EngineChoice;
use crate::task::RepositoryName;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(super) struct DoctorArguments {
    /// How results are written
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    format: OutputFormat,
}

pub(super) fn run(arguments: &DoctorArguments, context: &Context) -> Result<(), CommandError> {
    let (report, missing) = block_on(context, async { Ok(examine(context).await) })?;
    match arguments.format {
        OutputFormat::Json => stdout::json(&report)?,
        OutputFormat::Text => stdout::lines(&text(&report))?,
    }
    if let Some(missing) = missing {
        return Err(missing);
    }
    let failed = report.checks.iter().filter(|check| check.status == Status::Fail).count();
    if failed > 0 {
        let checks = counted(failed, "check", "checks");
        return Err(CommandError::CheckFailed { summary: format!("{checks} failed") });
    }
    Ok(())
}

/// Makes all checks; the error is the one that decides the exit code, if any.
async fn examine(context: &Context) -> (Report, Option<CommandError>) {
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
    (Report::new(checks), missing)
}

/// Looks at the engines that are meant; the error is that of having none.
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
        // It makes up for the daemons that do not answer.
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

/// Returns the imported repositories and how far the work on them is, by the files that are there.
fn progress(context: &Context) -> (Vec<RepositoryName>, Progress) {
    let stems = |directory: &str, ending: &str| -> Vec<String> {
        // What can't be listed was told of as the data directory's trouble.
        let entries = fs::read_dir(context.options.data_dir.join(directory)).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter_map(|name| name.strip_suffix(ending).map(str::to_owned)).collect()
    };
    let mut repositories: Vec<RepositoryName> =
        stems("manifests", ".toml").iter().filter_map(|stem| stem.replacen("__", "/", 1).parse().ok()).collect();
    repositories.sort();
    let (locks, images) = (stems("locks", ".lock"), stems("images", ".json"));
    let having = |stems: &[String]| repositories.iter().filter(|name| stems.contains(&name.file_stem())).count();
    let progress = Progress { repositories: repositories.len(), locked: having(&locks), built: having(&images) };
    (repositories, progress)
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    let width = report.checks.iter().map(|check| check.check.len()).max().unwrap_or(0);
    for check in &report.checks {
        let _ = writeln!(text, "{:<4}  {:<width$}  {}", check.status.name(), check.check, check.detail);
        if let Some(advice) = &check.advice {
            let _ = writeln!(text, "{:<4}  {:<width$}  → {advice}", "", "");
        }
    }
    text
}
