//! How long a scoring run takes on several nodes, simulated from recorded costs.
//!
//! Shards are those that `score --shard K/N` executes, one per node. A node works on several of its tasks at once. Nodes do not
//! wait for each other: each is free once its shard is done.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU32;

use serde::Serialize;

use crate::task::Task;
use crate::task::shard::{Costs, MOST_SHARDS, parts};

/// Version of the schema of [`Plan`].
pub const PLAN_SCHEMA: u32 = 1;

/// The least gain of twice the nodes: with less, the next nodes are mostly idle.
const LEAST_GAIN: f64 = 1.5;

/// What is planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Models that are scored.
    pub models: u64,
    /// Tasks at once on a node.
    pub jobs: usize,
    /// Milliseconds that a node needs before its first task.
    pub start_ms: u64,
}

/// The time on a number of nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The nodes; each executes one shard.
    pub nodes: NonZeroU32,
    /// Wall time until the last node is done, in milliseconds.
    pub wall_ms: u64,
    /// Each node's wall time, times the tasks at once, of all nodes together, in milliseconds: what the nodes cost.
    pub core_ms: u64,
    /// The share of that in which tasks are executed.
    pub busy: f64,
}

/// The times on different numbers of nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Plan {
    /// [`PLAN_SCHEMA`].
    pub schema: u32,
    /// Tasks of the selection.
    pub tasks: usize,
    /// Those of them with a recorded cost; the others' costs are estimated by their numbers of methods.
    pub recorded: usize,
    /// Models.
    pub models: u64,
    /// Tasks at once on a node.
    pub jobs: usize,
    /// By number of nodes.
    pub estimates: Vec<Estimate>,
    /// The most of these numbers of nodes before the gain fails: from half as many to it the time still shrinks by a
    /// third or more.
    pub bend: Option<NonZeroU32>,
}

/// Returns the plan for these numbers of nodes, which are ascending.
pub fn plan(tasks: &[Task], costs: &Costs, workload: &Workload, nodes: &[NonZeroU32]) -> Plan {
    let weights = costs.weights(tasks);
    let estimates: Vec<Estimate> = nodes.iter().map(|nodes| estimate(tasks, &weights, workload, *nodes)).collect();
    let wall = |nodes: NonZeroU32| estimate(tasks, &weights, workload, nodes).wall_ms as f64;
    let pays = |one: &&Estimate| match NonZeroU32::new(one.nodes.get() / 2) {
        Some(half) => wall(half) >= LEAST_GAIN * one.wall_ms as f64,
        None => true,
    };
    Plan {
        schema: PLAN_SCHEMA,
        tasks: tasks.len(),
        recorded: tasks.iter().filter(|task| costs.milliseconds.contains_key(&task.id)).count(),
        models: workload.models,
        jobs: workload.jobs,
        bend: estimates.iter().take_while(pays).last().map(|one| one.nodes),
        estimates,
    }
}

/// Returns the number of shards up to which twice as many save a third of the time or more, and the longest one's time in
/// milliseconds. The number is larger where that would be more than half of the time limit, because nodes differ and costs are
/// estimates.
pub fn shards(tasks: &[Task], costs: &Costs, workload: &Workload, limit_ms: Option<u64>) -> (NonZeroU32, u64) {
    let weights = costs.weights(tasks);
    let most = u32::try_from(tasks.len()).unwrap_or(MOST_SHARDS).clamp(1, MOST_SHARDS);
    let number = |shards: u32| NonZeroU32::new(shards).unwrap_or(NonZeroU32::MIN);
    let wall_ms = |shards: u32| estimate(tasks, &weights, workload, number(shards)).wall_ms;
    let mut shards = 1;
    while 2 * shards <= most && wall_ms(shards) as f64 >= LEAST_GAIN * wall_ms(2 * shards) as f64 {
        shards *= 2;
    }
    while shards < most && limit_ms.is_some_and(|limit| wall_ms(shards) > limit / 2) {
        let more = (2 * shards).min(most);
        // A group of tasks that stay together is what takes so long.
        if wall_ms(more) >= wall_ms(shards) {
            break;
        }
        shards = more;
    }
    (number(shards), wall_ms(shards))
}

fn estimate(tasks: &[Task], weights: &[u64], workload: &Workload, nodes: NonZeroU32) -> Estimate {
    let jobs = workload.jobs.max(1);
    let (mut wall_ms, mut node_ms, mut work_ms) = (0, 0_u64, 0_u64);
    for part in parts(tasks, nodes, weights) {
        let mut workers: BinaryHeap<Reverse<u64>> = vec![Reverse(workload.start_ms); jobs].into();
        for at in part {
            for _ in 0..workload.models {
                work_ms = work_ms.saturating_add(weights[at]);
                if let Some(Reverse(free)) = workers.pop() {
                    workers.push(Reverse(free.saturating_add(weights[at])));
                }
            }
        }
        let end = workers.into_iter().map(|Reverse(end)| end).max().unwrap_or_default();
        (wall_ms, node_ms) = (end.max(wall_ms), node_ms.saturating_add(end));
    }
    let core_ms = node_ms.saturating_mul(jobs as u64);
    let busy = if core_ms == 0 { 0.0 } else { work_ms as f64 / core_ms as f64 };
    Estimate { nodes, wall_ms, core_ms, busy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Track;

    fn task(id: &str, revision: char) -> Task {
        Task {
            id: id.parse().unwrap(),
            repository: "o/n".parse().unwrap(),
            track: Track::TestGeneration,
            rev1: revision.to_string().repeat(40).parse().unwrap(),
            rev2: revision.to_ascii_lowercase().to_string().repeat(40).parse().unwrap(),
            rev1_date: "2020-01-01".to_owned(),
            rev2_date: "2020-01-01".to_owned(),
            test_file: "src/test/java/ATest.java".parse().unwrap(),
            test_methods: vec!["ATest#m".parse().unwrap()],
            focal_methods: Vec::new(),
        }
    }

    fn nodes(numbers: &[u32]) -> Vec<NonZeroU32> {
        numbers.iter().map(|number| NonZeroU32::new(*number).unwrap()).collect()
    }

    #[test]
    fn time_shrinks_until_the_largest_group_is_left() {
        // The first two share a revision, so one node has both.
        let tasks = [task("t1", 'a'), task("t2", 'a'), task("t3", 'b'), task("t4", 'c')];
        let costs = Costs {
            schema: 1,
            milliseconds: [("t1", 30), ("t2", 30), ("t3", 40), ("t4", 20)]
                .map(|(id, cost)| (id.parse().unwrap(), cost))
                .into(),
        };
        let workload = Workload { models: 2, jobs: 1, start_ms: 10 };
        let plan = plan(&tasks, &costs, &workload, &nodes(&[1, 2, 4]));
        let walls: Vec<u64> = plan.estimates.iter().map(|one| one.wall_ms).collect();
        assert_eq!(walls, [250, 130, 130]);
        assert_eq!((plan.tasks, plan.recorded, plan.bend), (4, 4, NonZeroU32::new(2)));
        let last = &plan.estimates[2];
        // The four nodes take 130, 90, 50 and 10.
        assert_eq!((last.core_ms, last.busy), (280, 240.0 / 280.0));
    }

    #[test]
    fn shards_are_as_many_as_pay_and_as_the_time_limit_needs() {
        let ids = ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8"];
        let tasks: Vec<Task> = ids.into_iter().zip('1'..).map(|(id, revision)| task(id, revision)).collect();
        let costs = Costs { schema: 1, milliseconds: ids.map(|id| (id.parse().unwrap(), 100)).into() };
        let of = |models, start_ms, limit_ms| {
            shards(&tasks, &costs, &Workload { models, jobs: 1, start_ms }, limit_ms).0.get()
        };
        // 1, 2, 4 and 8 shards take 800, 400, 200 and 100 without a start, and 1800, 1400, 1200 and 1100 with it.
        assert_eq!(of(1, 0, None), 8);
        assert_eq!([of(1, 1000, None), of(1, 1000, Some(3600)), of(1, 1000, Some(2600))], [1, 1, 4]);
        // Ten models take ten times as long.
        assert_eq!(of(10, 1000, Some(6000)), 8);
        let none = shards(&[], &costs, &Workload { models: 1, jobs: 1, start_ms: 0 }, None);
        assert_eq!(none, (NonZeroU32::MIN, 0));
        // Four tasks of one revision stay together, whatever the limit.
        let together: Vec<Task> = ids[..4].iter().map(|id| task(id, '1')).collect();
        let workload = Workload { models: 1, jobs: 1, start_ms: 0 };
        assert_eq!(shards(&together, &costs, &workload, Some(100)).1, 400);
    }

    #[test]
    fn a_node_works_on_several_tasks_at_once() {
        let tasks = [task("t1", 'a'), task("t2", 'b'), task("t3", 'c')];
        let workload = Workload { models: 1, jobs: 2, start_ms: 0 };
        let plan = plan(&tasks, &Costs::default(), &workload, &nodes(&[1]));
        // Without recorded costs each method counts 1.
        assert_eq!((plan.estimates[0].wall_ms, plan.estimates[0].core_ms, plan.recorded), (2, 4, 0));
        let none = super::plan(&[], &Costs::default(), &workload, &nodes(&[1, 3]));
        assert_eq!(none.estimates.iter().map(|one| one.wall_ms).collect::<Vec<_>>(), [0, 0]);
    }
}
