//! Shards: the parts of a selection that several machines execute.
//!
//! A shard follows from the selected tasks and their weights alone, so machines need not talk to each other. Tasks that share a
//! code revision stay together, so that one machine prepares each revision.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{InvalidText, RepositoryName, Revision, Task, TaskId};

/// The largest number of shards.
pub const MOST_SHARDS: u32 = 4096;
/// Version of the rule by which tasks are divided. Shards of different versions are no parts of one run.
pub const DIVISION: u32 = 2;

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
    /// A job's time for each task, in milliseconds: its executions' wall time, scaled up so that all tasks add up to the time
    /// of the run's jobs, if that is more.
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
/// Groups of tasks that share revisions stay together. A repository's groups go to few shards: each shard starts compilers and unpacks an
/// image for every repository that it has. For that the heaviest shard may be a twentieth heavier than if weights alone decided.
pub fn parts(tasks: &[Task], of: NonZeroU32, weights: &[u64]) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<usize, Group<'_>> = BTreeMap::new();
    for (at, first) in groups_of(tasks).into_iter().enumerate() {
        let repository = &tasks[at].repository;
        let group = groups.entry(first).or_insert_with(|| Group { repository, weight: 0, members: Vec::new() });
        group.weight = group.weight.saturating_add(weights[at]);
        group.members.push(at);
    }
    let mut groups: Vec<Group<'_>> = groups.into_values().collect();
    // Groups are in the order of the selection before; equal weights keep it.
    groups.sort_by_key(|group| Reverse(group.weight));
    let even = Dealt::evenly(&groups, of);
    let mut of_repositories: BTreeMap<&RepositoryName, u64> = BTreeMap::new();
    for group in &groups {
        let weight = of_repositories.entry(group.repository).or_default();
        *weight = weight.saturating_add(group.weight);
    }
    groups.sort_by_key(|group| (Reverse(of_repositories.get(group.repository).copied()), group.repository));
    let total = weights.iter().fold(0_u64, |total, weight| total.saturating_add(*weight));
    let share = total.div_ceil(of.get().into());
    let together = Dealt::together(&groups, of, share.saturating_add(share / 20));
    let most = even.heaviest().saturating_add(even.heaviest() / 20);
    let dealt = if together.heaviest() <= most { together } else { even };
    let mut parts: Vec<Vec<usize>> = dealt.shards.into_iter().map(|shard| shard.members).collect();
    parts.iter_mut().for_each(|part| part.sort_unstable());
    parts
}

/// Tasks that share revisions.
struct Group<'a> {
    repository: &'a RepositoryName,
    weight: u64,
    members: Vec<usize>,
}

/// Groups as they are dealt out.
struct Dealt<'a> {
    shards: Vec<Dealing<'a>>,
}

/// What a shard got.
#[derive(Clone, Default)]
struct Dealing<'a> {
    weight: u64,
    repositories: BTreeSet<&'a RepositoryName>,
    members: Vec<usize>,
}

impl<'a> Dealt<'a> {
    fn none(of: NonZeroU32) -> Self {
        Self { shards: vec![Dealing::default(); of.get() as usize] }
    }

    /// Gives each group to the shard with the least weight so far.
    fn evenly(groups: &[Group<'a>], of: NonZeroU32) -> Self {
        let mut dealt = Self::none(of);
        for group in groups {
            dealt.give(dealt.least(), group);
        }
        dealt
    }

    /// Gives each group to the fullest shard that has its repository and stays within `most`; if there is none, to the one with the least
    /// weight so far.
    fn together(groups: &[Group<'a>], of: NonZeroU32, most: u64) -> Self {
        let mut dealt = Self::none(of);
        for group in groups {
            let has_room = |shard: &Dealing<'_>| shard.weight.saturating_add(group.weight) <= most;
            let own = |shard: &Dealing<'_>| has_room(shard) && shard.repositories.contains(group.repository);
            let shards = dealt.shards.iter().enumerate().filter(|(_, shard)| own(shard));
            let fullest = shards.min_by_key(|(at, shard)| (Reverse(shard.weight), *at)).map(|(at, _)| at);
            dealt.give(fullest.unwrap_or_else(|| dealt.least()), group);
        }
        dealt
    }

    /// Returns the first of the shards with the least weight.
    fn least(&self) -> usize {
        let shards = self.shards.iter().enumerate();
        shards.min_by_key(|(_, shard)| shard.weight).map_or(0, |(at, _)| at)
    }

    fn give(&mut self, at: usize, group: &Group<'a>) {
        let shard = &mut self.shards[at];
        shard.weight = shard.weight.saturating_add(group.weight);
        shard.repositories.insert(group.repository);
        shard.members.extend(&group.members);
    }

    fn heaviest(&self) -> u64 {
        self.shards.iter().map(|shard| shard.weight).max().unwrap_or_default()
    }
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
