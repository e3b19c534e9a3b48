use std::collections::BTreeSet;

use super::*;
use crate::task::Track;

fn task(repository: &str, id: &str, revisions: [char; 2], methods: usize) -> Task {
    let [rev1, rev2] = revisions.map(|digit| digit.to_string().repeat(40).parse().unwrap());
    Task {
        id: id.parse().unwrap(),
        repository: repository.parse().unwrap(),
        track: Track::TestUpdate,
        rev1,
        rev2,
        rev1_date: "2020-01-31".to_owned(),
        rev2_date: "2020-01-31".to_owned(),
        test_file: "src/test/java/ATest.java".parse().unwrap(),
        test_methods: (0..methods).map(|number| format!("ATest#m{number}").parse().unwrap()).collect(),
        focal_methods: Vec::new(),
    }
}

fn tasks() -> Vec<Task> {
    vec![
        task("one/one", "one_1", ['a', 'b'], 1),
        task("one/one", "one_2", ['b', 'c'], 2),
        task("one/one", "one_3", ['d', 'e'], 5),
        // The same revisions of another repository are other code.
        task("two/two", "two_1", ['a', 'b'], 4),
        task("two/two", "two_2", ['d', 'e'], 1),
        // Joins the two before it.
        task("two/two", "two_3", ['b', 'd'], 1),
    ]
}

fn ids(shard: &str, costs: &Costs) -> Vec<String> {
    part(&tasks(), shard.parse().unwrap(), costs).into_iter().map(|task| task.id.to_string()).collect()
}

#[test]
fn shards_are_whole_revisions_balanced_by_methods() {
    let none = Costs::default();
    assert_eq!(ids("1/1", &none), ["one_1", "one_2", "one_3", "two_1", "two_2", "two_3"]);
    // Weights 6 (two_*), 5 (one_3), 3 (one_1, one_2).
    assert_eq!(ids("1/2", &none), ["two_1", "two_2", "two_3"]);
    assert_eq!(ids("2/2", &none), ["one_1", "one_2", "one_3"]);
    // The repository with the greatest weight is dealt out first.
    assert_eq!(ids("1/4", &none), ["one_3"]);
    assert_eq!(ids("2/4", &none), ["one_1", "one_2"]);
    assert_eq!(ids("3/4", &none), ["two_1", "two_2", "two_3"]);
    assert_eq!(ids("4/4", &none), Vec::<String>::new());
}

/// Where a repository's groups fit into fewer shards, they stay together.
#[test]
fn a_repository_goes_to_few_shards() {
    let all: Vec<Task> = (0..24_u8)
        .map(|at| {
            let repository = ["a/a", "b/b", "c/c"][usize::from(at) % 3];
            let mut task = task(repository, &format!("t{at}"), ['0', '0'], 1 + usize::from(at) % 4);
            (task.rev1, task.rev2) = (format!("{at:040}").parse().unwrap(), format!("1{at:039}").parse().unwrap());
            task
        })
        .collect();
    for (of, most, weight) in [(1, 3, 60), (2, 2, 31), (3, 1, 21), (6, 1, 10)] {
        for number in 1..=of {
            let part = part(&all, format!("{number}/{of}").parse().unwrap(), &Costs::default());
            let repositories: BTreeSet<_> = part.iter().map(|task| &task.repository).collect();
            let methods: usize = part.iter().map(|task| task.test_methods.len()).sum();
            assert!(repositories.len() <= most && methods <= weight, "{number}/{of}: {repositories:?} {methods}");
        }
    }
}

/// A group that is heavier than a shard's share fills one shard, and no other gets more for that.
#[test]
fn a_heavy_group_makes_no_other_shard_heavier() {
    let weights = [29, 12, 8, 8, 3, 1, 1];
    let all: Vec<Task> = (0..7_usize)
        .map(|at| {
            let mut task = task("a/a", &format!("t{at}"), ['0', '0'], weights[at]);
            (task.rev1, task.rev2) = (format!("{at:040}").parse().unwrap(), format!("1{at:039}").parse().unwrap());
            task
        })
        .collect();
    let methods = |of: u32| -> Vec<usize> {
        let part = |number| part(&all, format!("{number}/{of}").parse().unwrap(), &Costs::default());
        (1..=of).map(|number| part(number).iter().map(|task| task.test_methods.len()).sum()).collect()
    };
    assert_eq!(methods(4), [29, 16, 16, 1]);
    assert_eq!(methods(8), [29, 12, 8, 8, 5, 0, 0, 0]);
    assert_eq!(part(&[], "3/4".parse().unwrap(), &Costs::default()), []);
}

#[test]
fn recorded_costs_weigh_and_missing_ones_are_estimated() {
    let cost = |id: &str, milliseconds| (id.parse().unwrap(), milliseconds);
    // A method of the others costs 30 ms on average: one_3 150 ms, one_1 and one_2 90 ms, two_* 60 + 30 + 30 ms.
    let costs = Costs { schema: COSTS_SCHEMA, milliseconds: [cost("two_1", 60), cost("two_2", 90)].into() };
    assert_eq!(costs.weights(&tasks()), [30, 60, 150, 60, 90, 30]);
    assert_eq!(ids("1/2", &costs), ["two_1", "two_2", "two_3"]);
    let heavy = Costs { schema: COSTS_SCHEMA, milliseconds: [cost("one_1", u64::MAX), cost("one_2", u64::MAX)].into() };
    assert_eq!(ids("1/2", &heavy), ["one_1", "one_2", "two_1", "two_2", "two_3"], "saturated weights do not overflow");
}

#[test]
fn every_task_is_in_exactly_one_shard() {
    let all: Vec<Task> = (0..200_u32)
        .map(|at| {
            let digit = |number: u32| char::from_digit(number % 16, 16).unwrap();
            let mut task = task("a/b", &format!("t{at}"), ['0', '0'], 1 + (at as usize * 7) % 11);
            let revision =
                |number: u32| format!("{number:08}{}", digit(number).to_string().repeat(32)).parse().unwrap();
            (task.rev1, task.rev2) = (revision(at / 2), revision(1_000 + at / 3));
            task
        })
        .collect();
    for of in [1, 2, 3, 7, 64] {
        let mut seen = BTreeSet::new();
        let mut weights = Vec::new();
        for number in 1..=of {
            let part = part(&all, format!("{number}/{of}").parse().unwrap(), &Costs::default());
            weights.push(part.iter().map(|task| task.test_methods.len()).sum::<usize>());
            for task in part {
                assert!(seen.insert(task.id.clone()), "{} is in two shards", task.id);
            }
        }
        assert_eq!(seen.len(), all.len());
        let (most, least) = (weights.iter().max().unwrap(), weights.iter().min().unwrap());
        assert!(of > 7 || most - least <= all.len() * 11 / 10, "{weights:?}");
    }
}

#[test]
fn shards_are_written_as_numbers() {
    for text in ["1/1", "3/8", "4096/4096"] {
        assert_eq!(text.parse::<Shard>().unwrap().to_string(), text);
    }
    for text in ["", "1", "0/3", "4/3", "1/0", "1/4097", "-1/3", "1/2/3", "a/b"] {
        assert!(text.parse::<Shard>().is_err(), "{text}");
    }
}
