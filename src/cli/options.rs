//! The global options: as typed, and resolved with settings, environment and defaults.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::num::{IntErrorKind, NonZeroU32, NonZeroUsize, ParseIntError};
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use crate::application::Options;
use crate::error::CommandError;
use crate::host;
use crate::manifest::{DEFAULT_MEMORY_MIB, jobs_at_once};
use crate::settings::{ColorChoice, EngineChoice, Settings};

/// How progress and messages are written to stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum EventFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON value a line.
    Json,
}

/// What must hold containers back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum RequiredIsolation {
    /// Whatever the engine can enforce; what it can't stands in every record.
    #[default]
    Any,
    /// Every limit.
    Strict,
}

/// The global options as typed.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArguments {
    /// What runs containers [default: the first daemon that answers, else native]
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "ENGINE",
        env = "TESTEVO_SANDBOX_ENGINE",
        hide_env_values = true
    )]
    engine: Option<EngineChoice>,
    /// What must hold containers back; strict refuses an engine that can't enforce every limit
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "LEVEL",
        default_value_t,
        env = "TESTEVO_SANDBOX_REQUIRE_ISOLATION",
        hide_env_values = true
    )]
    require_isolation: RequiredIsolation,
    #[arg(
        long,
        short = 'j',
        global = true,
        value_name = "N",
        env = "TESTEVO_SANDBOX_JOBS",
        hide_env_values = true,
        value_parser = positive::<NonZeroUsize>,
        help = format!(
            "Jobs at once [default: one per core and {} GiB of memory, at least one]",
            DEFAULT_MEMORY_MIB as f64 / 1024.0
        )
    )]
    jobs: Option<NonZeroUsize>,
    /// Where everything is kept [default: testevo-sandbox in $XDG_DATA_HOME, or in ~/.local/share if that is not set]
    #[arg(long, global = true, value_name = "DIRECTORY", env = "TESTEVO_SANDBOX_DATA_DIR", hide_env_values = true)]
    data_dir: Option<PathBuf>,
    /// The most that the data directory may take; commands make room, or do not begin [default: what its disk has free]
    #[arg(
        long,
        global = true,
        value_name = "GIB",
        env = "TESTEVO_SANDBOX_MAX_DISK",
        hide_env_values = true,
        value_parser = positive::<NonZeroU32>
    )]
    max_disk: Option<NonZeroU32>,
    /// Local git repositories to read instead of cloning, with {owner} and {name} in the path
    #[arg(long, global = true, value_name = "TEMPLATE", env = "TESTEVO_SANDBOX_GIT_MIRROR", hide_env_values = true)]
    git_mirror: Option<String>,
    /// Address of an origin (debian, central, pypi, or a repository id of a POM, which an empty address declares gone); may be repeated [env:
    /// TESTEVO_SANDBOX_ORIGINS, separated by spaces]
    #[arg(long = "origin", global = true, value_name = "NAME=URL", value_parser = parse_origin)]
    origins: Vec<(String, String)>,
    /// Use nothing but what is here already [env: TESTEVO_SANDBOX_OFFLINE]
    #[arg(long, global = true)]
    offline: bool,
    /// Colours on stderr
    #[arg(long, global = true, value_enum, value_name = "WHEN")]
    color: Option<ColorChoice>,
    /// Say more; twice for everything
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Say only what is wrong
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Say what would be done, and how much of it, and do nothing
    #[arg(long, global = true)]
    dry_run: bool,
    /// Progress and messages on stderr as text or as JSON lines
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t)]
    events: EventFormat,
}

/// The resolved global options.
pub(super) struct Resolved {
    /// The options of commands.
    pub(super) options: Options,
    /// Whether stderr is coloured.
    pub(super) color: bool,
    /// -1 for quiet, else the number of `--verbose`.
    pub(super) verbosity: i8,
    /// How progress is written.
    pub(super) events: EventFormat,
}

impl GlobalArguments {
    /// Returns whether errors before the settings are read are coloured.
    pub(super) fn early_color(&self) -> bool {
        is_colored(self.color.unwrap_or_default())
    }

    /// Returns the form in which progress is written.
    pub(super) fn event_format(&self) -> EventFormat {
        self.events
    }

    /// Resolves the options.
    ///
    /// # Errors
    /// [`CommandError::Failure`] for settings; [`CommandError::Usage`] if no data directory can be found.
    pub(super) fn resolve(self) -> Result<Resolved, CommandError> {
        let data_dir = match self.data_dir {
            Some(directory) => directory,
            None => default_data_dir(std::env::var_os("XDG_DATA_HOME"), std::env::var_os("HOME"))?,
        };
        let settings = Settings::load(&data_dir)?;
        let mut origins = settings.origins;
        // An origin from a flag must not hide other origins from the environment.
        for (name, url) in environment_origins()?.into_iter().chain(self.origins) {
            origins.insert(name, url);
        }
        let asked_jobs = self.jobs.or(settings.jobs);
        let options = Options {
            engine: self.engine.or(settings.engine).unwrap_or_default(),
            strict_isolation: self.require_isolation == RequiredIsolation::Strict,
            jobs: asked_jobs.unwrap_or_else(default_jobs),
            asked_jobs,
            data_dir,
            max_disk: self.max_disk.or(settings.max_disk).map(|gib| u64::from(gib.get()) << 30),
            git_mirror: self.git_mirror.or(settings.git_mirror),
            origins,
            offline: self.offline || switch("TESTEVO_SANDBOX_OFFLINE") || settings.offline.unwrap_or(false),
            check_valid_until: settings.check_valid_until,
            dry_run: self.dry_run,
            slurm: settings.slurm,
        };
        Ok(Resolved {
            options,
            color: is_colored(self.color.or(settings.color).unwrap_or_default()),
            verbosity: if self.quiet { -1 } else { i8::try_from(self.verbose).unwrap_or(i8::MAX) },
            events: self.events,
        })
    }
}

/// Parses a number that must not be zero.
pub(super) fn positive<N: FromStr<Err = ParseIntError>>(text: &str) -> Result<N, String> {
    text.parse().map_err(|error| no_number(&error, 1))
}

/// Parses a number that may be zero.
pub(super) fn whole<N: FromStr<Err = ParseIntError>>(text: &str) -> Result<N, String> {
    text.parse().map_err(|error| no_number(&error, 0))
}

fn no_number(error: &ParseIntError, least: u32) -> String {
    match error.kind() {
        IntErrorKind::PosOverflow => "the number is too large".to_owned(),
        _ => format!("it is no whole number from {least} on"),
    }
}

/// Parses a day.
pub(super) fn date(text: &str) -> Result<jiff::civil::Date, String> {
    text.parse().map_err(|_| "it is no date (YYYY-MM-DD)".to_owned())
}

fn parse_origin(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, url)) if !name.is_empty() => Ok((name.to_owned(), url.to_owned())),
        _ => Err("it has not the form NAME=URL".to_owned()),
    }
}

fn environment_origins() -> Result<Vec<(String, String)>, CommandError> {
    let list = std::env::var("TESTEVO_SANDBOX_ORIGINS").unwrap_or_default();
    list.split(' ')
        .filter(|origin| !origin.is_empty())
        .map(|origin| {
            parse_origin(origin).map_err(|reason| CommandError::Usage {
                message: format!("TESTEVO_SANDBOX_ORIGINS: {reason}"),
                hint: "separate several NAME=URL by spaces".to_owned(),
            })
        })
        .collect()
}

/// Returns whether the variable is set, and to another value than an empty one, `0` or `false`.
fn switch(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !(value.is_empty() || value == "0" || value == "false"))
}

/// Returns the data directory of a command line that may be unfinished: its `--data-dir`, else the environment's, else the
/// default. `None` if there is none.
pub(super) fn data_dir_of(line: &[OsString]) -> Option<PathBuf> {
    let mut words = line.iter();
    while let Some(word) = words.next() {
        match word.to_str().and_then(|word| word.strip_prefix("--data-dir")) {
            Some("") => return words.next().map(PathBuf::from),
            Some(value) if value.starts_with('=') => return Some(PathBuf::from(&value[1..])),
            _ => {}
        }
    }
    std::env::var_os("TESTEVO_SANDBOX_DATA_DIR")
        .map(PathBuf::from)
        .or_else(|| default_data_dir(std::env::var_os("XDG_DATA_HOME"), std::env::var_os("HOME")).ok())
}

fn default_data_dir(data_home: Option<OsString>, home: Option<OsString>) -> Result<PathBuf, CommandError> {
    // By the base directory specification, a relative path is ignored.
    let absolute = |value: Option<OsString>| value.map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(data_home)
        .or_else(|| absolute(home).map(|home| home.join(".local/share")))
        .map(|data_home| data_home.join("testevo-sandbox"))
        .ok_or_else(|| CommandError::Usage {
            message: "there is no place for data: neither XDG_DATA_HOME nor HOME is set".to_owned(),
            hint: "name a directory with `--data-dir`".to_owned(),
        })
}

fn is_colored(choice: ColorChoice) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        }
    }
}

/// Returns min(cores, memory ÷ a job's default memory), at least 1.
fn default_jobs() -> NonZeroUsize {
    jobs_at_once(host::processors().get(), host::memory_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_directory_follows_the_base_directory_specification() {
        let directory = |data_home: Option<&str>, home: Option<&str>| {
            default_data_dir(data_home.map(OsString::from), home.map(OsString::from)).ok()
        };
        assert_eq!(directory(Some("/data"), Some("/home/u")), Some("/data/testevo-sandbox".into()));
        assert_eq!(directory(Some("data"), Some("/home/u")), Some("/home/u/.local/share/testevo-sandbox".into()));
        assert_eq!(directory(None, None), None);
    }

    #[test]
    fn origins_have_a_name_and_an_address() {
        assert_eq!(parse_origin("central=a=b").unwrap(), ("central".to_owned(), "a=b".to_owned()));
        assert_eq!(parse_origin("gone=").unwrap(), ("gone".to_owned(), String::new()));
        for bad in ["central", "=x", "="] {
            assert!(parse_origin(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn there_is_always_a_job() {
        assert!(default_jobs().get() >= 1);
    }
}
