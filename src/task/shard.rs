//! Shards: the parts of a selection that several machines execute.
//!
//! A shard follows from the selected tasks and their weights alone, so machines need not talk to each other. Tasks that share a
//! code revision stay together, so that one machine prepares each revision.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{InvalidText, RepositoryName, Revision, Task, TaskId};

/// The largest number of shards.
pub const MOST_SHARDS: u32 = 4096;

/// Shard `number` of `of`, written `K/N`. Numbers begin at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    number: NonZeroU32,
    of: NonZeroU32,
}

impl Shard {
    /// Returns its number, from 1.
    pub fn number(&self) -> NonZeroU32 {
        self.number
    }

    /// Returns the number of shards.
    pub fn of(&self) -> NonZeroU32 {
        self.of
    }

    /// Returns its position, from 0.
    fn index(&self) -> usize {
        self.number.get() as usize - 1
    }
}

impl FromStr for Shard {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = |(number, of): (&str, &str)| {
            let (number, of): (NonZeroU32, NonZeroU32) = (number.parse().ok()?, of.parse().ok()?);
            (number <= of && of.get() <= MOST_SHARDS).then_some(Self { number, of })
        };
        let invalid = || InvalidText::new("shard: write `K/N` with 1 ≤ K ≤ N ≤ 4096", text);
        text.split_once('/').and_then(parse).ok_or_else(invalid)
    }
}

impl TryFrom<String> for Shard {
    type Error = InvalidText;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> Self {
        shard.to_string()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// Recorded costs of tasks in milliseconds. Source: `runs costs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Costs {
    /// [`COSTS_SCHEMA`].
    pub schema: u32,
    /// Wall time of the task's executions in milliseconds.
    pub milliseconds: BTreeMap<TaskId, u64>,
}

/// Version of the schema of [`Costs`].
pub const COSTS_SCHEMA: u32 = 1;

impl Costs {
    /// Returns the weight of each task: its cost, or else its number of methods times the mean cost of a method with a
    /// recorded cost. Without any recorded cost it is the number of methods.
    pub fn weights(&self, tasks: &[Task]) -> Vec<u64> {
        let methods = |task: &Task| (task.test_methods.len() as u64).max(1);
        let recorded = tasks.iter().filter_map(|task| Some((methods(task), *self.milliseconds.get(&task.id)?)));
        let (known, total) = recorded
            .fold((0, 0), |(known, total): (u64, u64), (methods, cost)| (known + methods, total.saturating_add(cost)));
        let mean = total.checked_div(known).unwrap_or(1).max(1);
        let weight = |task: &Task| match self.milliseconds.get(&task.id) {
            Some(cost) => (*cost).max(1),
            None => methods(task).saturating_mul(mean),
        };
        tasks.iter().map(weight).collect()
    }
}

/// Returns the tasks of a shard, in the order of the selection. Every task is in exactly one shard; a shard may be empty.
pub fn part(tasks: &[Task], shard: Shard, costs: &Costs) -> Vec<Task> {
    let mut parts = parts(tasks, shard.of, &costs.weights(tasks));
    parts.swap_remove(shard.index()).into_iter().map(|at| tasks[at].clone()).collect()
}

/// Returns the positions of the tasks of each shard, in the order of the selection.
///
/// Groups of tasks are dealt out, the heaviest first, each to the shard with the least weight so far.
pub fn parts(tasks: &[Task], of: NonZeroU32, weights: &[u64]) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<usize, (u64, Vec<usize>)> = BTreeMap::new();
    for (at, group) in groups_of(tasks).into_iter().enumerate() {
        let (weight, members) = groups.entry(group).or_default();
        *weight = weight.saturating_add(weights[at]);
        members.push(at);
    }
    let mut groups: Vec<(u64, Vec<usize>)> = groups.into_values().collect();
    // Groups are in the order of the selection before; equal weights keep it.
    groups.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    let mut loads = vec![0_u64; of.get() as usize];
    let mut parts = vec![Vec::new(); of.get() as usize];
    for (weight, members) in groups {
        let least = loads.iter().enumerate().min_by_key(|(_, load)| **load).map_or(0, |(at, _)| at);
        loads[least] = loads[least].saturating_add(weight);
        parts[least].extend(members);
    }
    parts.iter_mut().for_each(|part| part.sort_unstable());
    parts
}

/// Returns for each task the position of the first task that it shares revisions with, directly or by way of others.
fn groups_of(tasks: &[Task]) -> Vec<usize> {
    let mut parents: Vec<usize> = (0..tasks.len()).collect();
    let mut first: BTreeMap<(&RepositoryName, &Revision), usize> = BTreeMap::new();
    for (at, task) in tasks.iter().enumerate() {
        for revision in [&task.rev1, &task.rev2] {
            let other = *first.entry((&task.repository, revision)).or_insert(at);
            let (one, other) = (root(&mut parents, at), root(&mut parents, other));
            parents[one.max(other)] = one.min(other);
        }
    }
    (0..tasks.len()).map(|at| root(&mut parents, at)).collect()
}

fn root(parents: &mut [usize], mut at: usize) -> usize {
    while parents[at] != at {
        parents[at] = parents[parents[at]];
        at = parents[at];
    }
    at
}

#[cfg(test)]
mod tests;
