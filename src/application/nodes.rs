//! `doctor` on every node of a Slurm cluster: what nodes offer and lack for shards.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, Instant};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::Context;
use crate::cluster::ClusterError;
use crate::cluster::script::quoted_path;
use crate::cluster::shards::UNSEEN;
use crate::cluster::slurm::{self, Job};
use crate::digest::Digest;
use crate::error::CommandError;
use crate::output::counted;

/// The largest answer of a node, in bytes.
const MOST_BYTES: u64 = 4 << 20;
/// How long a job may wait for its node, which may be busy.
const PATIENCE: Duration = Duration::from_secs(600);
/// The time between two looks.
const PAUSE: Duration = Duration::from_secs(2);
/// Checks that shards do not need: they use no network.
const ONLINE: [&str; 4] = ["origin", "proxies", "certificates", "clock"];

/// A node, and what a doctor says there.
#[derive(Clone, Debug, Serialize)]
pub struct Node {
    /// Its name.
    pub node: String,
    /// The worst status of the checks; `fail` without an answer.
    pub status: String,
    /// The checks that did not pass.
    pub checks: Vec<NodeCheck>,
}

/// A check on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeCheck {
    /// Its name.
    pub check: String,
    /// `ok`, `warn` or `fail`.
    pub status: String,
    /// The observation.
    pub detail: String,
    /// The remedy, if one is needed.
    pub advice: Option<String>,
}

/// What a doctor writes.
#[derive(Deserialize)]
struct Answer {
    checks: Vec<NodeCheck>,
}

/// Submits a job for each node that answers Slurm, and returns what they say. An interrupt ends the jobs.
///
/// # Errors
/// [`ClusterError`]; an interrupt.
pub async fn nodes(context: &Context) -> Result<Vec<Node>, CommandError> {
    let (nodes, unavailable) = slurm::nodes(&context.options.slurm).await?;
    if context.options.dry_run {
        context.events.message(format!("would look at {}", counted(nodes.len(), "node", "nodes")));
        return Ok(Vec::new());
    }
    let data_dir = context.data_dir()?;
    let directory = data_dir.temporary().join("nodes");
    let unique = Digest::of(directory.display().to_string().as_bytes()).to_string();
    let unique = &unique[unique.len() - 8..];
    let mut waiting = BTreeMap::new();
    for node in &nodes {
        waiting.insert(node.clone(), format!("testevo-doctor-{node}-{unique}"));
    }
    let names: Vec<String> = waiting.values().cloned().collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let asked = context.until_interrupted(ask(&directory, waiting, context)).await;
    if asked.is_err() {
        slurm::cancel(&names).await?;
    }
    let mut found = asked?;
    // A job for such a node would wait until somebody makes it available.
    found.extend(unavailable.into_iter().map(|(node, state)| {
        let advice = Some(format!("`scontrol show node {node}` tells why"));
        failed(node, format!("Slurm gives it no jobs: it is {state}"), advice)
    }));
    found.sort_by(|one, other| one.node.cmp(&other.node));
    Ok(found)
}

/// Returns a node that Slurm gives no job.
fn failed(node: String, detail: String, advice: Option<String>) -> Node {
    let check = NodeCheck { check: "slurm".to_owned(), status: "fail".to_owned(), detail, advice };
    Node { node, status: "fail".to_owned(), checks: vec![check] }
}

async fn ask(
    directory: &Path,
    mut waiting: BTreeMap<String, String>,
    context: &Context,
) -> Result<Vec<Node>, CommandError> {
    let io = |error: io::Error| CommandError::from(ClusterError::Io(error));
    let program = std::env::current_exe().map_err(io)?;
    let settings = &context.options.slurm;
    let mut found = Vec::new();
    for (node, name) in waiting.clone() {
        let of_node = directory.join(&node);
        fs::create_dir_all(&of_node).map_err(io)?;
        let answer = quoted_path(&of_node.join("answer"));
        let (program, data_dir) = (quoted_path(&program), quoted_path(context.data_dir()?.root()));
        let script = format!(
            "#!/bin/sh\n{program} doctor --engine native --format json --data-dir {data_dir} > {answer}.new\nmv -f {answer}.new {answer}\n"
        );
        let job = Job {
            name: &name,
            shards: &[1],
            node: Some(&node),
            avoided: &[],
            directory: &of_node,
            logs: &of_node,
            script: &script,
        };
        match slurm::submit(job, settings).await {
            Ok(_) => {}
            // The user's own options may exclude the node, or ask for what it does not have.
            Err(ClusterError::Refused { words, .. }) => {
                waiting.remove(&node);
                let advice = Some("look at `options` and limits below [slurm] in settings.toml".to_owned());
                found.push(failed(node, format!("Slurm refuses a job for it: {words}"), advice));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let stage = context.events.stage("nodes", Some(waiting.len() as u64), 0);
    let (mut without, begun) = (BTreeMap::<String, Instant>::new(), Instant::now());
    while !waiting.is_empty() {
        let listed = slurm::list().await?;
        for (node, name) in waiting.clone() {
            let answer = read(&directory.join(&node).join("answer")).map_err(io)?;
            let job = listed.iter().find(|one| one.name == name && one.is_alive());
            if job.is_some() {
                without.remove(&node);
            }
            // NFS may show an answer a minute after the job that wrote it has ended.
            let is_lost = job.is_none() && without.entry(node.clone()).or_insert_with(Instant::now).elapsed() >= UNSEEN;
            let pending = job.filter(|one| one.is_pending() && begun.elapsed() > PATIENCE);
            if answer.is_none() && !is_lost && pending.is_none() {
                continue;
            }
            let busy = pending.map(|one| NodeCheck {
                check: "job".to_owned(),
                status: "warn".to_owned(),
                detail: format!("its job did not start within {} minutes: {}", PATIENCE.as_secs() / 60, one.reason),
                advice: Some("ask again when the node is free".to_owned()),
            });
            let silent = || NodeCheck {
                check: "job".to_owned(),
                status: "fail".to_owned(),
                detail: "its job ended without an answer".to_owned(),
                advice: Some("the data directory and this program must have the same paths there".to_owned()),
            };
            let checks = match answer {
                Some(bytes) => checks(&bytes).unwrap_or_else(|| vec![silent()]),
                None => vec![busy.unwrap_or_else(silent)],
            };
            let status = ["fail", "warn"].into_iter().find(|status| checks.iter().any(|check| check.status == *status));
            let status = status.unwrap_or("ok").to_owned();
            waiting.remove(&node);
            if pending.is_some() {
                slurm::cancel(&[&name]).await?;
            }
            stage.item_started(&node);
            stage.item_finished(&node, status.clone(), status == "fail");
            found.push(Node { node, status, checks });
        }
        if !waiting.is_empty() {
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(found)
}

/// Returns the checks that matter for shards and did not pass; `None` for what is no doctor's answer.
fn checks(bytes: &[u8]) -> Option<Vec<NodeCheck>> {
    let answer: Answer = serde_json::from_slice(bytes).ok()?;
    let matters = |check: &NodeCheck| check.status != "ok" && !ONLINE.contains(&check.check.as_str());
    Some(answer.checks.into_iter().filter(matters).collect())
}

/// Reads a node's answer; `None` if there is none yet.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}
