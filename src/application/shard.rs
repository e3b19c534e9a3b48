//! Takes the shard of a selection that a command executes.

use std::path::{Path, PathBuf};

use crate::canonical_json::canonical_json;
use crate::digest::Digest;
use crate::error::{CommandError, ExitStatus, Failure};
use crate::execution::run::inputs::ShardInputs;
use crate::output::json_problem;
use crate::task::Task;
use crate::task::shard::{COSTS_SCHEMA, Costs, DIVISION, Shard, part};

/// The largest file of recorded costs, in bytes.
const MOST_BYTES: u64 = 64 << 20;

/// Which part of a selection a command executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardChoice {
    /// The part.
    pub shard: Shard,
    /// A file of recorded costs, by which the selection is divided; `None` if numbers of methods decide.
    pub costs: Option<PathBuf>,
}

/// Errors of a file of recorded costs.
#[derive(Debug, thiserror::Error)]
pub enum CostsError {
    /// The file can't be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The file is too large, or no JSON of the expected form.
    #[error("`{path}` has no recorded costs: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The parser's message.
        reason: String,
    },
    /// A newer program wrote it.
    #[error("`{path}` has schema {found}, this program knows schema {COSTS_SCHEMA}")]
    UnknownSchema {
        /// The file.
        path: PathBuf,
        /// Its schema.
        found: u32,
    },
}

impl Failure for CostsError {
    fn exit_status(&self) -> ExitStatus {
        ExitStatus::BadInput
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Io(_) | Self::Malformed { .. } => "`testevo-sandbox runs costs RUN` writes such a file to stdout",
            Self::UnknownSchema { .. } => "use the program that wrote it",
        };
        Some(hint.to_owned())
    }
}

/// Returns the tasks that the command executes, and their shard for the run's inputs. Without a choice these are all tasks.
/// `request` is the digest of what else decides the whole run.
///
/// # Errors
/// [`CostsError`].
pub(super) fn of(
    tasks: Vec<Task>,
    choice: Option<&ShardChoice>,
    request: Digest,
) -> Result<(Vec<Task>, Option<ShardInputs>), CommandError> {
    let Some(choice) = choice else { return Ok((tasks, None)) };
    let (costs, digest) = match &choice.costs {
        Some(path) => {
            let (costs, digest) = costs(path)?;
            (costs, Some(digest))
        }
        None => (Costs::default(), None),
    };
    let inputs = ShardInputs { shard: choice.shard, selection: selection(&tasks)?, request, costs: digest };
    Ok((part(&tasks, choice.shard, &costs), Some(inputs)))
}

/// Reads recorded costs and the digest of their file.
///
/// # Errors
/// [`CostsError`].
pub(super) fn costs(path: &Path) -> Result<(Costs, Digest), CostsError> {
    let bytes = read(path)?;
    Ok((parse(path, &bytes)?, Digest::of(&bytes)))
}

/// Returns the digest of selected tasks and of the rule that divides them.
pub(super) fn selection(tasks: &[Task]) -> Result<Digest, CommandError> {
    let bytes = canonical_json(&(DIVISION, tasks)).map_err(CommandError::defect)?;
    Ok(Digest::of(&bytes))
}

fn read(path: &Path) -> Result<Vec<u8>, CostsError> {
    use std::io::Read as _;

    let mut bytes = Vec::new();
    fs_err::File::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 {
        0..=MOST_BYTES => Ok(bytes),
        _ => Err(CostsError::Malformed { path: path.to_owned(), reason: "it is larger than 64 MiB".to_owned() }),
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Costs, CostsError> {
    let malformed =
        |reason: serde_json::Error| CostsError::Malformed { path: path.to_owned(), reason: json_problem(&reason) };
    let costs: Costs = serde_json::from_slice(bytes).map_err(malformed)?;
    match costs.schema {
        0..=COSTS_SCHEMA => Ok(costs),
        found => Err(CostsError::UnknownSchema { path: path.to_owned(), found }),
    }
}
