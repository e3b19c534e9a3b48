//! Looks at a run's shards until all are done: in Slurm's queue, and in the files of their runs.

mod merging;
mod submitting;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::super::Context;
use crate::cluster::ClusterError;
use crate::cluster::accounts::accounted;
use crate::cluster::ended::Ended;
use crate::cluster::sharded_run::{ShardedRun, ShardedRunDirectory};
use crate::cluster::shards::{Fate, MOST_LOOKS, Seen, fate, has_finished, is_part, look, machine_faults};
use crate::cluster::slurm::{self, Listed};
use crate::data_dir::DataDir;
use crate::error::CommandError;
use crate::event::RunningStage;
use crate::execution::run::directory::RunDirectoryError;
use crate::execution::run::reopening::{recorded_bytes, reopen};
use crate::output::counted;

/// How often a shard is submitted without progress before it is given up.
const MOST_ATTEMPTS: usize = 3;
/// How often a shard is submitted at all: what each attempt adds to may go on for long, but not for ever.
const MOST_SUBMISSIONS: usize = 20;
/// How long the job of a finished run may still hold it.
const MOST_IN_USE: Duration = Duration::from_secs(300);
/// How often in a row Slurm or the file system may fail to answer, for example while a controller is started again.
const MOST_SILENT_LOOKS: u32 = 20;
/// The time between two looks at the beginning, and the longest.
const LOOKS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(15)];

/// Returns the pause after the next look.
fn longer(pause: Duration) -> Duration {
    pause.mul_f32(1.3).min(LOOKS[1])
}

/// The shards of a run, as they are looked at again and again.
pub(super) struct Watch<'a> {
    context: &'a Context,
    data_dir: &'a DataDir,
    directory: ShardedRunDirectory,
    sharded: ShardedRun,
    /// This program. Its file may be replaced while shards run.
    program: PathBuf,
    /// How often in a row an unfinished shard was found neither waiting nor running, and since when.
    looks: BTreeMap<u32, (u32, Instant)>,
    /// Shards that were seen whole.
    done: BTreeSet<u32>,
    /// Why shards wait, as it was told last.
    told: String,
    /// How Slurm ended the last job of a shard, once that was asked.
    ended: BTreeMap<u32, Option<Ended>>,
    /// Whether the accounts failed to answer. They are not asked again: nothing depends on them.
    unaccounted: bool,
    /// Why shards were given up. The others go on.
    failed: BTreeMap<u32, ClusterError>,
    /// The bytes of a shard's records when it was submitted, or first looked at.
    recorded: BTreeMap<u32, u64>,
    /// Shards whose attempts were used up when this command began, which has as many more for them; `None` before the first look.
    used_up: Option<BTreeSet<u32>>,
}

impl<'a> Watch<'a> {
    /// Writes the record of a new run, or takes up one that was begun, perhaps cancelled.
    pub(super) fn begin(
        context: &'a Context,
        data_dir: &'a DataDir,
        directory: ShardedRunDirectory,
        mut sharded: ShardedRun,
    ) -> Result<Self, ClusterError> {
        if directory.is_cancelled() {
            (1..=sharded.shards).for_each(|shard| sharded.count_anew(shard));
        }
        directory.write(&sharded)?;
        directory.set_cancelled(false)?;
        Ok(Self {
            context,
            data_dir,
            directory,
            sharded,
            program: std::env::current_exe()?,
            looks: BTreeMap::new(),
            done: BTreeSet::new(),
            told: String::new(),
            ended: BTreeMap::new(),
            unaccounted: false,
            failed: BTreeMap::new(),
            recorded: BTreeMap::new(),
            used_up: None,
        })
    }

    /// Removes the record of a run of which nothing was submitted. Returns whether that is so.
    pub(super) fn remove_unsubmitted(&self) -> Result<bool, ClusterError> {
        let unsubmitted = self.sharded.attempts.is_empty();
        unsubmitted.then(|| self.directory.remove()).transpose()?;
        Ok(unsubmitted)
    }

    /// Waits until all shards are done, or with `detach` until all are submitted. Returns whether they are done.
    pub(super) async fn until_done(&mut self, detach: bool) -> Result<bool, CommandError> {
        let (total, mut left) = (u64::from(self.sharded.shards), self.left()?);
        let stage = self.context.events.stage("shards", Some(total), total - left.len() as u64);
        let mut running: Vec<u32> = Vec::new();
        let (mut pause, mut silent, mut blind) = (LOOKS[0], 0, 0);
        loop {
            // Slurm first: a job that ends between the two looks has written its files by the second.
            let listed = match slurm::list().await {
                Ok(listed) => {
                    silent = 0;
                    Some(self.of_this_run(listed))
                }
                Err(error @ ClusterError::NoClient { .. }) => return Err(error.into()),
                // Nothing is lost by an end while nothing is submitted.
                Err(error) if silent >= MOST_SILENT_LOOKS || self.sharded.attempts.is_empty() => {
                    return Err(error.into());
                }
                Err(error) => {
                    if silent == 0 {
                        self.context.events.warning(format!("{error}; it is asked again"));
                    }
                    silent += 1;
                    None
                }
            };
            if self.directory.is_cancelled() {
                // Whoever cancelled may not have seen the last of them, where a shared file system shows files late.
                slurm::cancel(&self.sharded.names()).await?;
                return Err(ClusterError::Cancelled { run: self.sharded.run_id.clone() }.into());
            }
            let now_left = match self.left() {
                Err(error @ (ClusterError::Gone(_) | ClusterError::Io(_))) if blind < MOST_SILENT_LOOKS => {
                    self.is_blind(&error, &mut blind);
                    tokio::time::sleep(pause).await;
                    pause = longer(pause);
                    continue;
                }
                now_left => now_left?,
            };
            for shard in left.keys().filter(|shard| !now_left.contains_key(shard)) {
                if !running.contains(shard) {
                    stage.item_started(&format!("shard {shard}"));
                }
                stage.item_finished(&format!("shard {shard}"), "done", false);
            }
            left = now_left;
            // What was given up as late may have come.
            self.failed.retain(|shard, _| left.contains_key(shard));
            if left.is_empty() {
                return Ok(true);
            }
            if let Some(listed) = listed {
                self.tell(&listed, &left, &mut running, &stage);
                let submitted = match self.lost(&listed, &left).await {
                    Ok(lost) if lost.is_empty() => Ok(false),
                    Ok(lost) => self.submit_all(lost).await.map(|()| true),
                    Err(error) => Err(error),
                };
                match submitted {
                    Err(error @ ClusterError::Gone(_)) if blind < MOST_SILENT_LOOKS => {
                        self.is_blind(&error, &mut blind);
                    }
                    Err(error) => return Err(error.into()),
                    Ok(true) => (pause, blind) = (LOOKS[0], 0),
                    Ok(false) if detach && self.is_settled(&left) && self.failed.is_empty() => return Ok(false),
                    Ok(false) => blind = 0,
                }
                let ends =
                    left.keys().all(|shard| self.failed.contains_key(shard)) || (detach && self.is_settled(&left));
                if ends && let Some((_, error)) = self.failed.pop_first() {
                    return Err(error.into());
                }
            } else {
                blind = 0;
            }
            tokio::time::sleep(pause).await;
            pause = longer(pause);
        }
    }

    /// Tells whether every shard has a job, or was given up.
    fn is_settled(&self, left: &BTreeMap<u32, Seen>) -> bool {
        left.keys().all(|shard| !self.looks.contains_key(shard) || self.failed.contains_key(shard))
    }

    /// Gives up a shard. The error ends the command once nothing else is left to wait for.
    fn give_up(&mut self, shard: u32, error: ClusterError) {
        if self.sharded.shards > 1 {
            self.context.events.warning(format!("{error}; the other shards go on"));
        }
        self.failed.insert(shard, error);
    }

    /// Counts a look at which the file system did not answer, and tells the first one.
    fn is_blind(&self, error: &ClusterError, blind: &mut u32) {
        if *blind == 0 {
            self.context.events.warning(format!("{error}; it is looked for again"));
        }
        *blind += 1;
    }

    /// Returns the shards whose runs are not seen whole, with what is seen of them.
    fn left(&mut self) -> Result<BTreeMap<u32, Seen>, ClusterError> {
        // An unmounted file system shows an empty directory without an error. Only the absence of this record tells.
        if self.directory.read()?.is_none() {
            let record = self.directory.path().display();
            return Err(ClusterError::Gone(std::io::Error::other(format!("the record in `{record}` is not there"))));
        }
        // After a kill while merging, the merged run has finished, and shards may be gone.
        if has_finished(self.data_dir, &self.sharded.run_id)? {
            return Ok(BTreeMap::new());
        }
        let mut left = BTreeMap::new();
        for shard in (1..=self.sharded.shards).filter(|shard| !self.done.contains(shard)).collect::<Vec<_>>() {
            let run_id = self.sharded.run_of(shard);
            let mut seen = look(self.data_dir, &run_id)?;
            // The last attempt's faults stay, as those of a run without a cluster do.
            if seen == Seen::Whole && self.sharded.attempts_of(shard) < MOST_ATTEMPTS {
                let faults = machine_faults(self.data_dir, &run_id)?;
                seen = if faults == 0 { Seen::Whole } else { Seen::Faulty(faults) };
            }
            match seen {
                Seen::Whole => {
                    // A run of that name may be another command's.
                    let (asked, part) = (self.sharded.asked.inputs.as_ref(), (shard, self.sharded.shards));
                    if let Some(asked) = asked
                        && !is_part(self.data_dir, &run_id, part, asked)?
                    {
                        return Err(ClusterError::OtherShard { run: run_id });
                    }
                    self.done.insert(shard);
                }
                seen => drop(left.insert(shard, seen)),
            }
        }
        Ok(left)
    }

    /// Returns the elements of this run's jobs that Slurm knows.
    fn of_this_run(&self, mut listed: Vec<Listed>) -> Vec<Listed> {
        let is_own = |one: &Listed| self.sharded.attempts.iter().any(|attempt| attempt.name == one.name);
        listed.retain(is_own);
        listed
    }

    /// Tells which shards run, and why others wait.
    fn tell(&mut self, listed: &[Listed], left: &BTreeMap<u32, Seen>, running: &mut Vec<u32>, stage: &RunningStage) {
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for one in listed.iter().filter(|one| one.is_alive() && left.contains_key(&one.shard)) {
            if one.is_pending() {
                *reasons.entry(&one.reason).or_default() += 1;
            } else if !running.contains(&one.shard) {
                running.push(one.shard);
                stage.item_started(&format!("shard {}", one.shard));
            }
        }
        let reasons = reasons.into_iter().map(|(reason, count)| match count {
            1 => format!("1 shard waits ({reason})"),
            count => format!("{count} shards wait ({reason})"),
        });
        let text = reasons.collect::<Vec<_>>().join(", ");
        if text != self.told && !text.is_empty() {
            self.context.events.message(text.clone());
        }
        self.told = text;
    }

    /// Returns the shards without a job whose attempts were used up before this command: [`Self::lost`] gives them
    /// [`MOST_ATTEMPTS`] more. Counts anew the attempts of shards that ended with exit code 2, 4 or 5, because the cause may
    /// be mended by now. Notes how many bytes of records each shard has.
    fn used_up_before(
        &mut self,
        left: &BTreeMap<u32, Seen>,
        is_alive: impl Fn(u32) -> bool,
    ) -> Result<BTreeSet<u32>, ClusterError> {
        let mut used_up = BTreeSet::new();
        for (&shard, seen) in left.iter().filter(|(shard, _)| !is_alive(**shard)) {
            match self.directory.exit_code(shard)? {
                Some(2 | 4 | 5) if *seen == Seen::Unfinished => self.sharded.count_anew(shard),
                _ if self.sharded.attempts_of(shard) >= MOST_ATTEMPTS => drop(used_up.insert(shard)),
                _ => {}
            }
        }
        for &shard in left.keys() {
            let now = recorded_bytes(self.data_dir, &self.sharded.run_of(shard));
            self.recorded.entry(shard).or_insert(now);
        }
        Ok(used_up)
    }

    /// Returns the unfinished shards that Slurm does not have, and that can be submitted again, each with the node that lost it,
    /// if it is to be avoided.
    async fn lost(
        &mut self,
        listed: &[Listed],
        left: &BTreeMap<u32, Seen>,
    ) -> Result<Vec<(u32, Option<String>)>, ClusterError> {
        let is_alive = |shard: u32| listed.iter().any(|one| one.shard == shard && one.is_alive());
        if self.used_up.is_none() {
            self.used_up = Some(self.used_up_before(left, is_alive)?);
        }
        let (mut lost, mut told) = (Vec::new(), Vec::new());
        for (&shard, seen) in left.iter().filter(|(shard, _)| !self.failed.contains_key(*shard)).collect::<Vec<_>>() {
            if is_alive(shard) {
                self.looks.remove(&shard);
                continue;
            }
            if self.sharded.attempts_of(shard) == 0 && !matches!(seen, Seen::Faulty(_)) {
                lost.push((shard, None));
                continue;
            }
            let Some((why, node)) = self.again(shard, seen, listed).await? else { continue };
            let attempt = self.sharded.attempts_of(shard) + 1;
            told.push(format!("shard {shard} {why}, and is submitted again: attempt {attempt} of {MOST_ATTEMPTS}"));
            lost.push((shard, node));
        }
        told.into_iter().for_each(|text| self.context.events.warning(text));
        Ok(lost)
    }

    /// Decides about a shard that Slurm does not have any more. Returns why it is submitted again and the node to avoid, if any;
    /// `None` if it waits or was given up.
    async fn again(
        &mut self,
        shard: u32,
        seen: &Seen,
        listed: &[Listed],
    ) -> Result<Option<(String, Option<String>)>, ClusterError> {
        let (looks, since) = self.looks.entry(shard).or_insert_with(|| (0, Instant::now()));
        *looks += 1;
        let (looks, since) = (*looks, since.elapsed());
        let exit = self.directory.exit_code(shard)?;
        let ended = match looks >= MOST_LOOKS && *seen == Seen::Unfinished && !matches!(exit, Some(0 | 1)) {
            true => self.end_of(shard, listed, exit.is_none()).await,
            false => None,
        };
        let (run, log) = (self.sharded.run_id.clone(), self.directory.log(shard));
        match fate(seen, exit, ended.as_ref(), looks, since) {
            Fate::Waits => return Ok(None),
            Fate::Failed(status) => {
                let words = self.directory.last_words(shard);
                self.give_up(shard, ClusterError::Shard { run, shard, status, words, log });
                return Ok(None);
            }
            Fate::Late(since) => {
                let what = match seen {
                    Seen::Partly(what) => what.clone(),
                    _ => format!("the run {}", self.sharded.run_of(shard)),
                };
                self.give_up(shard, ClusterError::Late { run, shard, seconds: since.as_secs(), what });
                return Ok(None);
            }
            Fate::Lost => {}
        }
        let attempts = self.sharded.attempts_of(shard);
        if *seen == Seen::Unfinished && self.has_grown(shard) && self.sharded.submissions_of(shard) < MOST_SUBMISSIONS {
            self.sharded.count_anew(shard);
        } else if attempts >= MOST_ATTEMPTS {
            if !self.used_up.as_mut().is_some_and(|used_up| used_up.remove(&shard)) {
                let words = || self.directory.last_words(shard);
                let error = match exit {
                    Some(status @ (6 | 7)) => ClusterError::Shard { run, shard, status, words: words(), log },
                    _ => ClusterError::Lost { run, shard, attempts, ended, log },
                };
                self.give_up(shard, error);
                return Ok(None);
            }
            self.sharded.count_anew(shard);
        }
        // A node without space or with a broken disk would lose the shard again; a limit has nothing to do with its node.
        let node = match ended.as_ref().is_none_or(Ended::is_the_nodes_fault) {
            true => self.directory.node(shard)?.or_else(|| ended.as_ref().and_then(|ended| ended.node.clone())),
            false => None,
        };
        let why = match (seen, &ended) {
            (Seen::Faulty(faults), _) => {
                if !self.reopen(shard, since)? {
                    return Ok(None);
                }
                format!("has {} of its node", counted(*faults, "fault", "faults"))
            }
            (_, Some(ended)) => format!("was lost ({ended})"),
            (_, None) => "was lost".to_owned(),
        };
        Ok(Some((why, node)))
    }

    /// Opens the finished run of a shard again, so that what faults of its node left out is executed. Returns `false` if the job
    /// that finished it has not ended yet, or if that took so long that the shard was given up.
    fn reopen(&mut self, shard: u32, since: Duration) -> Result<bool, ClusterError> {
        match reopen(self.data_dir, &self.sharded.run_of(shard)) {
            Ok(()) => {
                self.directory.forget_end(shard)?;
                Ok(true)
            }
            Err(RunDirectoryError::InUse(_)) if since < MOST_IN_USE => Ok(false),
            Err(RunDirectoryError::InUse(run_id)) => {
                let (run, seconds) = (self.sharded.run_id.clone(), since.as_secs());
                let what = format!("the run {run_id} is in use");
                self.give_up(shard, ClusterError::Late { run, shard, seconds, what });
                Ok(false)
            }
            Err(RunDirectoryError::Io(error) | RunDirectoryError::Gone(error)) => Err(error.into()),
            Err(error) => Err(ClusterError::Io(std::io::Error::other(error))),
        }
    }

    /// Returns the end of a shard's last job, if it is known: from the queue, or with `ask` from the accounts. If the accounts
    /// can't be asked, warns only, because the shard's files say enough.
    async fn end_of(&mut self, shard: u32, listed: &[Listed], ask: bool) -> Option<Ended> {
        let attempt = self.sharded.attempts.iter().rfind(|attempt| attempt.shards.contains(&shard))?;
        let of_attempt = |one: &&Listed| one.shard == shard && one.name == attempt.name;
        if let Some(one) = listed.iter().find(of_attempt) {
            return one.ended();
        }
        if let Some(asked) = self.ended.get(&shard) {
            return asked.clone();
        }
        let number = attempt.number.as_ref().filter(|_| ask && !self.unaccounted)?;
        let ended = match accounted(number, &attempt.name, shard).await {
            Ok(ended) => ended,
            Err(error) => {
                self.unaccounted = true;
                self.context.events.warning(format!("how Slurm ended shard {shard} is not known: {error}"));
                None
            }
        };
        self.ended.insert(shard, ended.clone());
        ended
    }

    /// Tells whether a shard has more records than when this command submitted it, or found it submitted.
    fn has_grown(&self, shard: u32) -> bool {
        let now = || recorded_bytes(self.data_dir, &self.sharded.run_of(shard));
        self.recorded.get(&shard).is_some_and(|before| now() > *before)
    }
}
