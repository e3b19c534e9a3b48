//! The record of a run whose shards are on a cluster, by which the same command finds them again.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::ClusterError;
use super::slurm::is_node;
use crate::data_dir::{DataDir, write_atomically};
use crate::digest::Digest;
use crate::output::json_problem;

/// The version of a record's schema.
const SCHEMA: u32 = 3;
/// The largest record, in bytes.
const MOST_BYTES: u64 = 16 << 20;
/// How much of a log's end is read for its last line, in bytes.
const LOG_END_BYTES: u64 = 8 << 10;

/// A run whose shards are on a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShardedRun {
    /// Version of this value's schema.
    pub schema: u32,
    /// Its id, once the shards are merged.
    pub run_id: String,
    /// The command.
    pub asked: Asked,
    /// Number of shards.
    pub shards: u32,
    /// What was given to the scheduler.
    pub attempts: Vec<Attempt>,
    /// For a shard, how many of these no longer count: it was cancelled, or a later command tries it anew.
    #[serde(default)]
    pub anew: BTreeMap<u32, usize>,
    /// What records of schema 1 have instead: how many attempts no longer count for any shard.
    #[serde(default, skip_serializing)]
    before_cancel: usize,
}

/// A command, as it was typed but for what concerns the cluster and the run's name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    /// The directory where it was typed, from which relative paths count.
    pub directory: String,
    /// The subcommand and its arguments.
    pub arguments: Vec<String>,
    /// What the files that it names hold. Records of earlier schemas do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<AskedInputs>,
}

/// Digests of what a command's shards execute, as the shards' own inputs have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskedInputs {
    /// Of all selected tasks.
    pub selection: Digest,
    /// Of everything else that decides the whole run: submissions and options.
    pub request: Digest,
}

impl Asked {
    /// Tells whether both are the same command, as far as is known.
    pub fn is(&self, other: &Self) -> bool {
        let typed = (&self.directory, &self.arguments) == (&other.directory, &other.arguments);
        let inputs = self.inputs.zip(other.inputs);
        typed && inputs.is_none_or(|(one, other)| one == other)
    }
}

/// A job that was given to the scheduler, perhaps without success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// The job's name, which no other job has.
    pub name: String,
    /// Its number, once the scheduler took it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<String>,
    /// Its shards.
    pub shards: Vec<u32>,
    /// Nodes that it does not use: they lost one of the shards before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub avoided: Vec<String>,
}

impl ShardedRun {
    /// Returns a run without attempts.
    pub fn new(run_id: String, asked: Asked, shards: u32) -> Self {
        Self { schema: SCHEMA, run_id, asked, shards, attempts: Vec::new(), anew: BTreeMap::new(), before_cancel: 0 }
    }

    /// Returns the beginning of the ids of the shards' runs.
    pub(super) fn run_prefix(&self) -> String {
        format!("{}-shard-", self.run_id)
    }

    /// Returns the id of a shard's run.
    pub fn run_of(&self, shard: u32) -> String {
        format!("{}{shard}", self.run_prefix())
    }

    /// Counts the attempts at a shard from here on.
    pub fn count_anew(&mut self, shard: u32) {
        self.anew.insert(shard, self.attempts.len());
    }

    /// Returns the attempts at a shard that count.
    fn counted(&self, shard: u32) -> impl Iterator<Item = &Attempt> {
        let before = self.anew.get(&shard).copied().unwrap_or_default();
        self.attempts.iter().skip(before).filter(move |attempt| attempt.shards.contains(&shard))
    }

    /// Returns the number of a shard's attempts that count.
    pub fn attempts_of(&self, shard: u32) -> usize {
        self.counted(shard).count()
    }

    /// Returns the names of all its jobs.
    pub fn names(&self) -> Vec<&str> {
        self.attempts.iter().map(|attempt| attempt.name.as_str()).collect()
    }

    /// Returns the number of all attempts of a shard.
    pub fn submissions_of(&self, shard: u32) -> usize {
        self.attempts.iter().filter(|attempt| attempt.shards.contains(&shard)).count()
    }

    /// Returns the nodes that attempts at a shard avoided, as far as they count.
    pub fn avoided_for(&self, shard: u32) -> BTreeSet<String> {
        self.counted(shard).flat_map(|attempt| attempt.avoided.iter().cloned()).collect()
    }

    /// Adds an attempt at these shards. Its name differs from those of other runs, users and data directories.
    pub fn add_attempt(&mut self, shards: Vec<u32>, avoided: Vec<String>, data_dir: &DataDir) -> &Attempt {
        let now = jiff::Timestamp::now().as_nanosecond();
        let (root, number) = (data_dir.root().display().to_string(), self.attempts.len() + 1);
        let unique = Digest::of(format!("{root}\n{}\n{number}\n{now}", self.run_id).as_bytes()).to_string();
        let unique: String = unique.chars().rev().take(8).collect();
        let name = format!("testevo-{}-{number}-{unique}", self.run_id);
        self.attempts.push(Attempt { name, number: None, shards, avoided });
        &self.attempts[self.attempts.len() - 1]
    }
}

/// The directory of a sharded run: its record, and its shards' logs and exit codes.
#[derive(Clone, Debug)]
pub struct ShardedRunDirectory {
    path: PathBuf,
}

impl ShardedRunDirectory {
    /// Returns the directory of a run.
    pub fn of(data_dir: &DataDir, run_id: &str) -> Self {
        Self { path: data_dir.join("sharded").join(run_id) }
    }

    /// Returns the directories of all sharded runs, sorted.
    ///
    /// # Errors
    /// I/O errors of listing them.
    pub fn all(data_dir: &DataDir) -> io::Result<Vec<Self>> {
        let entries = match fs::read_dir(data_dir.join("sharded")) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        paths.sort();
        Ok(paths.into_iter().map(|path| Self { path }).collect())
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn record(&self) -> PathBuf {
        self.path.join("run.json")
    }

    /// Returns the log of a shard.
    pub fn log(&self, shard: u32) -> PathBuf {
        self.path.join(format!("shard-{shard}.log"))
    }

    fn exit(&self, shard: u32) -> PathBuf {
        self.path.join(format!("shard-{shard}.exit"))
    }

    fn node_file(&self, shard: u32) -> PathBuf {
        self.path.join(format!("shard-{shard}.node"))
    }

    fn cancelled(&self) -> PathBuf {
        self.path.join("cancelled")
    }

    /// Reads the record; `None` if there is none.
    ///
    /// # Errors
    /// [`ClusterError::Malformed`], [`ClusterError::Io`].
    pub fn read(&self) -> Result<Option<ShardedRun>, ClusterError> {
        let path = self.record();
        let Some(bytes) = read(&path, MOST_BYTES)? else { return Ok(None) };
        let malformed = |reason: String| ClusterError::Malformed { path: path.clone(), reason };
        let mut sharded: ShardedRun =
            serde_json::from_slice(&bytes).map_err(|error| malformed(json_problem(&error)))?;
        match sharded.schema {
            0..=SCHEMA => {
                if sharded.before_cancel > 0 {
                    sharded.anew = (1..=sharded.shards).map(|shard| (shard, sharded.before_cancel)).collect();
                    sharded.before_cancel = 0;
                }
                sharded.schema = SCHEMA;
                Ok(Some(sharded))
            }
            found => Err(malformed(format!("it has schema {found}, this program knows schema {SCHEMA}"))),
        }
    }

    /// Writes the record, and creates the directory.
    ///
    /// # Errors
    /// [`ClusterError::Io`].
    pub fn write(&self, sharded: &ShardedRun) -> Result<(), ClusterError> {
        fs::create_dir_all(&self.path)?;
        let bytes = serde_json::to_vec_pretty(sharded).map_err(io::Error::from)?;
        Ok(write_atomically(&self.record(), &bytes)?)
    }

    /// Removes the directory.
    ///
    /// # Errors
    /// [`ClusterError::Io`].
    pub fn remove(&self) -> Result<(), ClusterError> {
        // The record goes first. What a kill leaves is no sharded run.
        remove_file(&self.record())?;
        Ok(fs::remove_dir_all(&self.path)?)
    }

    /// Returns the exit code of a shard whose job ended by itself.
    ///
    /// # Errors
    /// [`ClusterError::Io`].
    pub fn exit_code(&self, shard: u32) -> Result<Option<u8>, ClusterError> {
        let bytes = read(&self.exit(shard), 16)?.unwrap_or_default();
        Ok(std::str::from_utf8(&bytes).ok().and_then(|text| text.trim().parse().ok()))
    }

    /// Returns the node on which a shard began last, if that is known.
    ///
    /// # Errors
    /// [`ClusterError::Io`].
    pub fn node(&self, shard: u32) -> Result<Option<String>, ClusterError> {
        let bytes = read(&self.node_file(shard), 256)?.unwrap_or_default();
        let text = String::from_utf8(bytes).unwrap_or_default();
        Ok(Some(text.trim().to_owned()).filter(|node| is_node(node)))
    }

    /// Forgets node and exit code of a shard.
    ///
    /// # Errors
    /// [`ClusterError::Io`].
    pub fn forget_end(&self, shard: u32) -> Result<(), ClusterError> {
        remove_file(&self.node_file(shard))?;
        Ok(remove_file(&self.exit(shard))?)
    }

    /// Returns the last line of a shard's log that is not empty.
    pub fn last_words(&self, shard: u32) -> String {
        let end = || -> io::Result<String> {
            use std::io::{Seek as _, SeekFrom};

            let mut log = fs::File::open(self.log(shard))?;
            let length = log.metadata()?.len();
            log.seek(SeekFrom::Start(length.saturating_sub(LOG_END_BYTES)))?;
            let mut bytes = Vec::new();
            log.take(LOG_END_BYTES).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let text = end().unwrap_or_default();
        // A hint may follow the error.
        let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
        let line = lines().rfind(|line| line.starts_with("error:")).or_else(|| lines().next_back());
        line.unwrap_or("its log is empty").chars().take(300).collect()
    }

    /// Tells whether the shards were cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled().exists()
    }

    /// Writes down that the shards were cancelled, or that they go on.
    ///
    /// # Errors
    /// [`ClusterError::Io`].
    pub fn set_cancelled(&self, cancelled: bool) -> Result<(), ClusterError> {
        match cancelled {
            true => Ok(write_atomically(&self.cancelled(), b"")?),
            false => Ok(remove_file(&self.cancelled())?),
        }
    }
}

/// Reads a file of a bounded size; `None` if there is none.
fn read(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!("`{}` is larger than {most} bytes", path.display()))),
        false => Ok(Some(bytes)),
    }
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sharded_run_is_found_again() {
        let directory = tempfile::tempdir().unwrap();
        let data_dir = DataDir::open(directory.path()).unwrap();
        let own = ShardedRunDirectory::of(&data_dir, "run");
        assert_eq!(own.read().unwrap(), None);
        let asked = Asked { directory: "/".to_owned(), arguments: vec!["validate".to_owned()], inputs: None };
        let of = |selection: &[u8], request: &[u8]| {
            let inputs = AskedInputs { selection: Digest::of(selection), request: Digest::of(request) };
            Asked { inputs: Some(inputs), ..asked.clone() }
        };
        let one = of(b"tasks", b"predictions");
        assert!(one.is(&one.clone()) && one.is(&asked) && asked.is(&one), "earlier records do not say");
        assert!(!one.is(&of(b"others", b"predictions")) && !one.is(&of(b"tasks", b"changed")));
        assert!(!one.is(&Asked { arguments: vec!["score".to_owned()], ..one.clone() }));
        let mut sharded = ShardedRun::new("run".to_owned(), asked, 3);
        let first = sharded.add_attempt(vec![1, 2, 3], vec![], &data_dir).name.clone();
        assert_ne!(first, sharded.add_attempt(vec![2], vec!["n1".to_owned()], &data_dir).name);
        assert_eq!([1, 2].map(|shard| sharded.attempts_of(shard)), [1, 2]);
        let avoided = |shard| sharded.avoided_for(shard).into_iter().collect::<Vec<_>>();
        assert_eq!((avoided(1), avoided(2)), (vec![], vec!["n1".to_owned()]));
        assert_eq!([1, 2].map(|shard| sharded.submissions_of(shard)), [1, 2]);
        own.write(&sharded).unwrap();
        let all = ShardedRunDirectory::all(&data_dir).unwrap();
        assert_eq!(all[0].read().unwrap(), Some(sharded));
        fs::write(own.exit(2), "3\n").unwrap();
        assert_eq!((own.exit_code(2).unwrap(), own.exit_code(1).unwrap()), (Some(3), None));
        for (text, expected) in [("n1\n", Some("n1")), ("\n", None), ("n1,n2\n", None), ("--x\n", None)] {
            fs::write(own.node_file(2), text).unwrap();
            assert_eq!(own.node(2).unwrap().as_deref(), expected, "{text:?}");
        }
        own.forget_end(2).unwrap();
        assert_eq!((own.exit_code(2).unwrap(), own.node(2).unwrap()), (None, None));
        fs::write(own.log(2), "error: no lock\nhint: lock\n\n").unwrap();
        assert_eq!(own.last_words(2), "error: no lock");
        // A record of schema 1, cancelled after its first attempt.
        let text = r#"{"schema":1,"run_id":"run","asked":{"directory":"/","arguments":["validate"]},"shards":1,
            "attempts":[{"name":"a","shards":[1]},{"name":"b","shards":[1]}],"before_cancel":1}"#;
        fs::write(own.record(), text).unwrap();
        assert_eq!(own.read().unwrap().unwrap().attempts_of(1), 1);
        fs::write(own.record(), "{").unwrap();
        assert!(matches!(own.read(), Err(ClusterError::Malformed { .. })));
        own.remove().unwrap();
        assert_eq!(own.read().unwrap(), None);
    }
}
