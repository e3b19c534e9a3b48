//! Slurm's own clients: `sbatch`, `squeue`, `sinfo` and `scancel`.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::ClusterError;
use super::ended::Ended;
use crate::settings::SlurmSettings;

/// The most bytes of an answer that are read. A line of `squeue` has about a hundred.
const MOST_ANSWER_BYTES: u64 = 32 << 20;
/// How long a client may take, in seconds. Clients themselves wait for a busy controller: `sbatch` for two minutes, before it says
/// why.
const CLIENT_SECONDS: u64 = 180;

/// Beginnings of variables by which users filter what clients tell or end, and those of an allocation around this command, which
/// its own shards do not have.
const VARIABLES: [&str; 8] = [
    "SQUEUE_",
    "SCANCEL_",
    "SACCT_",
    "SBATCH_CLUSTERS",
    "SBATCH_WAIT",
    "SLURM_CPUS_PER_TASK",
    "SLURM_MEM_PER_NODE",
    "SLURM_MEM_PER_CPU",
];
/// Options by which shards would not be found again, or would be others.
const REFUSED: [&str; 9] =
    ["--array", "--chdir", "--clusters", "--job-name", "--output", "--parsable", "--test-only", "--wait", "--wrap"];
/// The same in their short form.
const REFUSED_SHORT: [&str; 6] = ["-a", "-D", "-J", "-M", "-o", "-W"];

/// What clients say that did not reach the controller, or not its answer.
const UNREACHED: [&str; 4] =
    ["Unable to contact slurm controller", "Socket timed out", "Connection refused", "Zero Bytes were transmitted"];

/// What `sbatch` is given.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The name by which the job is found again. It has letters, digits, `.`, `_` and `-`.
    pub name: &'a str,
    /// The shards, each an element of the job's array.
    pub shards: &'a [u32],
    /// The node that it must run on; `None` for any.
    pub node: Option<&'a str>,
    /// Nodes that it must not run on.
    pub avoided: &'a [String],
    /// The directory where the script starts.
    pub directory: &'a Path,
    /// The directory of the shards' logs.
    pub logs: &'a Path,
    /// The script.
    pub script: &'a str,
}

/// An element of a job's array that Slurm has not forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The job's name.
    pub name: String,
    /// The element.
    pub shard: u32,
    /// Its state, as Slurm names it.
    pub state: String,
    /// Why it waits, as Slurm names it.
    pub reason: String,
    /// The node where it runs or ran; empty for none.
    pub node: String,
}

impl Listed {
    /// Tells whether the element waits, runs, or is about to end.
    pub fn is_alive(&self) -> bool {
        const ENDED: [&str; 13] = [
            "COMPLETED",
            "FAILED",
            "CANCELLED",
            "TIMEOUT",
            "NODE_FAIL",
            "OUT_OF_MEMORY",
            "BOOT_FAIL",
            "DEADLINE",
            "PREEMPTED",
            "REVOKED",
            "LAUNCH_FAILED",
            "RECONFIG_FAIL",
            "EXPIRED",
        ];
        !ENDED.contains(&self.state.as_str())
    }

    /// Returns the end of the element; `None` before it has ended.
    pub fn ended(&self) -> Option<Ended> {
        let node = Some(self.node.clone()).filter(|node| is_node(node));
        (!self.is_alive()).then(|| Ended { state: self.state.clone(), node })
    }

    /// Tells whether the element waits for its start.
    pub fn is_pending(&self) -> bool {
        self.state == "PENDING"
    }
}

/// Submits an array of shards and returns the job's number.
///
/// # Errors
/// [`ClusterError`] of the client.
pub async fn submit(job: Job<'_>, settings: &SlurmSettings) -> Result<String, ClusterError> {
    const CLIENT: &str = "sbatch";
    if let Some(option) = settings.options.iter().find(|option| is_refused(option)) {
        return Err(ClusterError::Option { option: option.clone() });
    }
    let mut output = OsString::from("--output=");
    output.push(literal(job.logs));
    output.push("/shard-%a.log");
    let mut directory = OsString::from("--chdir=");
    directory.push(job.directory);
    let at_once = settings.at_once.map(|most| format!("%{most}")).unwrap_or_default();
    let mut arguments = vec![
        "--parsable".into(),
        format!("--job-name={}", job.name).into(),
        format!("--array={}{at_once}", ranges(job.shards)).into(),
        "--nodes=1".into(),
        "--ntasks=1".into(),
        // Shards are submitted again by us, bounded and away from nodes that lost them.
        "--no-requeue".into(),
        // A shard that is started again continues its run, so its log goes on, too.
        "--open-mode=append".into(),
        output,
        directory,
    ];
    arguments.extend(job.node.map(|node| format!("--nodelist={node}").into()));
    // The user's options come later, because the last one of a kind counts.
    let of_user = settings.arguments();
    arguments.extend(excluding(job.avoided, &of_user));
    let answer = call(CLIENT, &arguments, Some(job.script)).await?;
    let number = answer.trim().split(';').next().unwrap_or_default();
    match !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
        true => Ok(number.to_owned()),
        false => Err(unknown(CLIENT, &answer)),
    }
}

/// Tells whether an option would replace what this program asks of `sbatch`.
fn is_refused(option: &str) -> bool {
    let name = option.split('=').next().unwrap_or_default();
    // Clients take a long option by its beginning, too.
    let is_long = |full: &&str| **full == *name || (name.len() > 2 && full.starts_with(name));
    REFUSED.iter().any(is_long) || REFUSED_SHORT.iter().any(|short| option.starts_with(short))
}

/// Returns the largest number of shards that an array of this cluster can have; `None` if it does not say so.
///
/// # Errors
/// [`ClusterError`] of the client.
pub async fn most_shards() -> Result<Option<u32>, ClusterError> {
    let answer = call("scontrol", &["show".into(), "config".into()], None).await?;
    Ok(array_size(&answer).map(|size| size.saturating_sub(1)))
}

/// Returns the size of arrays in a configuration. Elements count from 0, shards from 1.
fn array_size(configuration: &str) -> Option<u32> {
    let of_line = |line: &str| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == "MaxArraySize").then(|| value.trim().parse().ok()).flatten()
    };
    configuration.lines().find_map(of_line)
}

/// Returns the nodes that take jobs, sorted, and those that do not, each with its state: all of the settings' partition, or of the
/// cluster's default one.
///
/// # Errors
/// [`ClusterError`] of the client.
pub async fn nodes(settings: &SlurmSettings) -> Result<(Vec<String>, BTreeMap<String, String>), ClusterError> {
    const CLIENT: &str = "sinfo";
    let mut arguments = ["--noheader", "--Node", "--format=%N|%T|%P"].map(OsString::from).to_vec();
    let wanted = partition(settings, std::env::var("SBATCH_PARTITION").ok());
    arguments.extend(wanted.as_ref().map(|partition| format!("--partition={partition}").into()));
    let answer = call(CLIENT, &arguments, None).await?;
    let (mut nodes, mut unavailable) = (Vec::new(), BTreeMap::new());
    let lines = answer.lines().map(str::trim).filter(|line| !line.is_empty());
    let fields = |line| match line_of_node(line) {
        Some(fields) => Ok(fields),
        None => Err(unknown(CLIENT, line)),
    };
    let lines = lines.map(fields).collect::<Result<Vec<_>, _>>()?;
    // Of another partition than the jobs', a node would refuse them.
    let of_default = |partition: &str| wanted.is_none() && partition.ends_with('*');
    let has_default = lines.iter().any(|(_, _, partition)| of_default(partition));
    for (node, state, _) in lines.into_iter().filter(|(_, _, partition)| !has_default || of_default(partition)) {
        match takes_jobs(state) {
            true => nodes.push(node.to_owned()),
            false => drop(unavailable.insert(node.to_owned(), state.to_owned())),
        }
    }
    nodes.sort();
    nodes.dedup();
    Ok((nodes, unavailable))
}

/// Returns the partition that `sbatch` takes, as the last of its options says, the settings or its variable.
fn partition(settings: &SlurmSettings, variable: Option<String>) -> Option<String> {
    let of_option = |option: &String| {
        let partition = option.strip_prefix("--partition=").or_else(|| option.strip_prefix("-p"))?;
        Some(partition.trim().to_owned())
    };
    let options = settings.options.iter().rev().find_map(of_option);
    options.or_else(|| settings.partition.clone()).or(variable).filter(|partition| !partition.is_empty())
}

/// Returns a node, its state and its partition.
fn line_of_node(line: &str) -> Option<(&str, &str, &str)> {
    let (node, rest) = line.split_once('|').filter(|(node, _)| is_node(node))?;
    let (state, partition) = rest.split_once('|')?;
    Some((node, state, partition))
}

/// Tells whether a node in this state runs jobs now or soon. `*` after a state means that the node does not answer.
fn takes_jobs(state: &str) -> bool {
    let known = ["idle", "mixed", "allocated", "completing", "planned"].iter().any(|one| state.starts_with(one));
    known && !state.ends_with('*')
}

/// Tells whether a text can be a node's name, which becomes a directory's and stands in lists.
pub(super) fn is_node(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !text.is_empty() && text.bytes().all(fits) && !text.starts_with(['.', '-'])
}

/// Returns the user's array elements that Slurm knows. Those that have ended it knows for some minutes.
///
/// # Errors
/// [`ClusterError`] of the client.
pub async fn list() -> Result<Vec<Listed>, ClusterError> {
    const CLIENT: &str = "squeue";
    let arguments = ["--noheader", "--array", "--me", "--states=all", "--format=%i|%T|%j|%r|%N"].map(OsString::from);
    let answer = call(CLIENT, &arguments, None).await?;
    let lines = answer.lines().filter(|line| !line.trim().is_empty());
    // The user's other jobs, which may be no arrays and have any name, are left out.
    let elements = lines.map(|line| parse(line).ok_or_else(|| unknown(CLIENT, line)));
    Ok(elements.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// Ends all jobs of these names. Jobs that have ended are no error.
///
/// # Errors
/// [`ClusterError`] of the client.
pub async fn cancel(names: &[&str]) -> Result<(), ClusterError> {
    for name in names {
        // No other job has this name, and nobody may end another user's jobs.
        call("scancel", &["--quiet".into(), format!("--name={name}").into()], None).await?;
    }
    Ok(())
}

/// Returns the element of a line of `squeue`; an inner `None` for a job that is no array.
fn parse(line: &str) -> Option<Option<Listed>> {
    let mut fields = line.trim().splitn(3, '|');
    let (id, state, rest) = (fields.next()?, fields.next()?, fields.next()?);
    // Any job may have a `|` in its name, but no reason and no node has.
    let mut fields = rest.rsplitn(3, '|');
    let (node, reason, name) = (fields.next()?, fields.next()?, fields.next()?);
    let Some((_, element)) = id.split_once('_') else { return Some(None) };
    let Ok(shard) = element.parse() else { return Some(None) };
    let [name, state, reason, node] = [name, state, reason, node].map(str::to_owned);
    Some(Some(Listed { name, shard, state, reason, node }))
}

/// Returns a user's options, and at their end the nodes that they and we exclude.
fn excluding(avoided: &[String], of_user: &[String]) -> Vec<OsString> {
    let mut options: Vec<OsString> = of_user.iter().map(OsString::from).collect();
    if !avoided.is_empty() {
        let excluded = |option: &'_ String| {
            let nodes = option.strip_prefix("--exclude=").or_else(|| option.strip_prefix("-x"))?;
            Some(nodes.trim().to_owned())
        };
        let excluded = of_user.iter().rev().find_map(excluded);
        let nodes: Vec<&str> = excluded.as_deref().into_iter().chain(avoided.iter().map(String::as_str)).collect();
        options.push(format!("--exclude={}", nodes.join(",")).into());
    }
    options
}

/// Returns numbers as `sbatch --array` has them: `1-3,7`. They are sorted.
fn ranges(numbers: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

/// Returns a path in which `sbatch --output` replaces nothing.
fn literal(path: &Path) -> OsString {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

    let bytes = path.as_os_str().as_bytes().iter();
    OsString::from_vec(bytes.flat_map(|&byte| if byte == b'%' { vec![byte, byte] } else { vec![byte] }).collect())
}

/// Runs a client to its end and returns its stdout.
pub(super) async fn call(
    client: &'static str,
    arguments: &[OsString],
    input: Option<&str>,
) -> Result<String, ClusterError> {
    let limit = Duration::from_secs(CLIENT_SECONDS);
    match tokio::time::timeout(limit, answer(client, arguments, input)).await {
        Ok(answer) => answer,
        Err(_) => Err(ClusterError::Silent { client, seconds: CLIENT_SECONDS }),
    }
}

async fn answer(
    client: &'static str,
    arguments: &[impl AsRef<OsStr>],
    input: Option<&str>,
) -> Result<String, ClusterError> {
    let failed = |source| ClusterError::NoClient { client, source };
    let mut command = Command::new(client);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| VARIABLES.iter().any(|beginning| name.starts_with(beginning))) {
            command.env_remove(name);
        }
    }
    // An interrupt of this command is none of the client's: it may be about to learn that the controller has the job.
    command.process_group(0);
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    let mut child = command.spawn().map_err(failed)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let write = async {
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            // A client that refuses its arguments does not read; its exit code says so.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
    };
    let ((), out, err) = tokio::join!(write, beginning(stdout), beginning(stderr));
    let (out, err) = (out.map_err(failed)?, err.map_err(failed)?);
    let status = child.wait().await.map_err(failed)?;
    match status.success() {
        true => Ok(out),
        false => {
            let words: Vec<&str> =
                err.lines().chain(out.lines()).map(str::trim).filter(|line| !line.is_empty()).collect();
            let words = if words.is_empty() { "it gave no reason".to_owned() } else { words.join("; ") };
            let words: String = words.chars().take(600).collect();
            // Whoever was killed may have reached it, and said nothing.
            match status.code().is_none() || UNREACHED.iter().any(|beginning| words.contains(beginning)) {
                true => Err(ClusterError::Unreached { client, words }),
                false => Err(ClusterError::Refused { client, words }),
            }
        }
    }
}

/// Reads the beginning of an output, and closes it.
async fn beginning(pipe: Option<impl tokio::io::AsyncRead + Unpin>) -> std::io::Result<String> {
    let Some(pipe) = pipe else { return Ok(String::new()) };
    let mut bytes = Vec::new();
    pipe.take(MOST_ANSWER_BYTES).read_to_end(&mut bytes).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn unknown(client: &'static str, answer: &str) -> ClusterError {
    ClusterError::Answer { client, answer: answer.trim().chars().take(200).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_queue_are_read() {
        let element = parse("12_3|RUNNING|testevo-run-1|None|n1").unwrap().unwrap();
        assert_eq!((element.shard, element.name.as_str(), element.is_alive()), (3, "testevo-run-1", true));
        assert_eq!(parse("12|RUNNING|a|b|c|None|n1").unwrap(), None);
        assert!(parse("12_4|PENDING|x|Resources|").unwrap().unwrap().is_pending());
        assert!(!parse("12_4|NODE_FAIL|a|x|NodeDown|n1").unwrap().unwrap().is_alive());
        assert_eq!(parse("slurm_load_jobs error"), None);
    }

    #[test]
    fn shards_are_given_as_ranges() {
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), "1-3,7,9-10");
        assert_eq!(literal(Path::new("/a%b")), OsString::from("/a%%b"));
    }

    #[test]
    fn nodes_take_jobs_in_some_states() {
        assert!(["idle", "mixed", "allocated", "allocated+", "idle~", "completing"].into_iter().all(takes_jobs));
        assert!(!["idle*", "down", "down*", "drained", "draining", "maint", "unknown"].into_iter().any(takes_jobs));
    }

    #[test]
    fn nodes_that_users_exclude_stay_excluded() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let user = texts(&["--exclude=node7", "--qos=low"]);
        assert_eq!(excluding(&texts(&["n1", "n2"]), &user), ["--exclude=node7", "--qos=low", "--exclude=node7,n1,n2"]);
        assert_eq!(excluding(&[], &user), ["--exclude=node7", "--qos=low"]);
        assert_eq!(excluding(&texts(&["n1"]), &[]), ["--exclude=n1"]);
        assert_eq!(excluding(&texts(&["n1"]), &texts(&["-xnode7"])), ["-xnode7", "--exclude=node7,n1"]);
    }

    #[test]
    fn options_that_would_replace_ours_are_known() {
        assert!(
            ["--array=1-3%2", "--wait", "-Mother", "-J x", "--output=x", "--ar=1", "--jo=x"]
                .into_iter()
                .all(is_refused)
        );
        assert!(
            !["--exclude=n1", "--mail-user=me", "-xnode7", "--wait-all-nodes=1", "--qos=a"].into_iter().any(is_refused)
        );
        assert_eq!(array_size("Configuration\nMaxArraySize            = 1001\n"), Some(1001));
        assert_eq!(array_size("MaxArraySize\n"), None);
        let mut settings = SlurmSettings::default();
        let of = |settings: &SlurmSettings| partition(settings, Some("short".to_owned()));
        assert_eq!(of(&settings).as_deref(), Some("short"));
        settings.partition = Some("long".to_owned());
        assert_eq!(of(&settings).as_deref(), Some("long"));
        settings.options = ["-pgpu", "--qos=low"].map(str::to_owned).to_vec();
        assert_eq!(of(&settings).as_deref(), Some("gpu"));
    }

    #[tokio::test]
    async fn a_failure_is_told_in_the_clients_words() {
        let error =
            call("sh", &["-c".into(), "echo no such partition >&2; exit 1".into()], Some("")).await.unwrap_err();
        assert_eq!(error.to_string(), "Slurm's `sh` failed: no such partition");
        let script = "echo 'sbatch: error: Socket timed out on send/recv operation' >&2; exit 1";
        let error = call("sh", &["-c".into(), script.into()], None).await.unwrap_err();
        assert!(matches!(error, ClusterError::Unreached { .. }), "{error}");
        let error = call("sh", &["-c".into(), "kill -9 $$".into()], None).await.unwrap_err();
        assert!(matches!(error, ClusterError::Unreached { .. }), "{error}");
        let error = call("no-such-client", &[], None).await.unwrap_err();
        assert!(matches!(error, ClusterError::NoClient { .. }), "{error}");
    }
}
