//! The arguments that select a subcommand's tasks. Flatten [`SelectorArguments`] into its arguments and call
//! [`SelectorArguments::resolve`].

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::completions;
use super::options::{date, positive};
use crate::error::CommandError;
use crate::task::Track;
use crate::task::selector::Selector;

const HEADING: &str = "Selection";

/// Which tasks.
#[derive(Clone, Debug, Args)]
pub struct SelectorArguments {
    /// Repositories (owner/name or name) and task ids, with * and ?; all where none is given
    #[arg(value_name = "NAME", add = completions::selected())]
    names: Vec<String>,
    /// Only tasks of this track
    #[arg(long, help_heading = HEADING, value_name = "TRACK", value_parser = parse_track)]
    track: Option<Track>,
    /// Only tasks whose new revision is of this day or later
    #[arg(long, help_heading = HEADING, value_name = "YYYY-MM-DD", value_parser = date)]
    since: Option<jiff::civil::Date>,
    /// Only tasks whose new revision is of this day or earlier
    #[arg(long, help_heading = HEADING, value_name = "YYYY-MM-DD", value_parser = date)]
    until: Option<jiff::civil::Date>,
    /// Tasks whose ids stand in this file, one a line
    #[arg(long, help_heading = HEADING, value_name = "FILE")]
    task_file: Option<PathBuf>,
    /// At most so many tasks
    #[arg(long, help_heading = HEADING, value_name = "N", value_parser = positive::<NonZeroUsize>)]
    limit: Option<NonZeroUsize>,
}

impl SelectorArguments {
    /// Returns the selector of the arguments. Reads a task file.
    ///
    /// # Errors
    /// [`CommandError::Usage`] if the task file can't be read.
    pub fn resolve(&self) -> Result<Selector, CommandError> {
        let task_ids = match &self.task_file {
            None => Vec::new(),
            Some(path) => {
                let text = fs_err::read_to_string(path).map_err(|error| CommandError::Usage {
                    message: error.to_string(),
                    hint: "`--task-file` names a file with one task id a line".to_owned(),
                })?;
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
                let task_ids: Vec<String> = lines.map(str::to_owned).collect();
                // A file without ids must not mean all tasks.
                if task_ids.is_empty() {
                    return Err(CommandError::Usage {
                        message: format!("the task file `{}` has no task ids", path.display()),
                        hint: "write one task id a line".to_owned(),
                    });
                }
                task_ids
            }
        };
        Ok(Selector {
            patterns: self.names.clone(),
            task_ids,
            track: self.track,
            since: self.since,
            until: self.until,
            limit: self.limit.map(NonZeroUsize::get),
        })
    }
}

fn parse_track(text: &str) -> Result<Track, String> {
    match text {
        "update" | "test_update" => Ok(Track::TestUpdate),
        "generation" | "test_generation" => Ok(Track::TestGeneration),
        _ => Err("it is neither `update` nor `generation`".to_owned()),
    }
}
