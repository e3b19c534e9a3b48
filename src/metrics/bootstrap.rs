//! Confidence intervals of a mean, and of a difference of two means over the same tasks: percentile intervals by
//! resampling tasks, or repositories and their tasks. Tasks of one repository are alike, so the latter are wider where
//! models do well in some repositories only.
//!
//! The random numbers are equal in every report, so that equal runs give equal bytes.

use std::collections::BTreeMap;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// Number of resamples. Each end of a 95 % interval then rests on 25 samples.
const RESAMPLES: usize = 1000;
const SEED: u64 = 1;

/// Returns the 95 % interval of the mean of values; `None` for fewer than two.
pub fn interval(values: &[f64]) -> Option<[f64; 2]> {
    if values.len() < 2 {
        return None;
    }
    let number = values.len() as u64;
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let sum: f64 = (0..number).map(|_| values[index(random.next_u32(), number)]).sum();
            sum / number as f64
        })
        .collect();
    Some(middle(&mut means))
}

/// Returns the 95 % interval of the mean of all values, by resampling groups and then values in each; `None` for fewer
/// than two groups. A group must have a value.
pub fn clustered_interval<'a>(groups: impl IntoIterator<Item = &'a [f64]>) -> Option<[f64; 2]> {
    let groups: Vec<&[f64]> = groups.into_iter().filter(|group| !group.is_empty()).collect();
    if groups.len() < 2 {
        return None;
    }
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let (mut sum, mut number) = (0.0, 0);
            for _ in 0..groups.len() {
                let group = groups[index(random.next_u32(), groups.len() as u64)];
                let drawn = (0..group.len()).map(|_| group[index(random.next_u32(), group.len() as u64)]);
                sum += drawn.sum::<f64>();
                number += group.len();
            }
            sum / number as f64
        })
        .collect();
    Some(middle(&mut means))
}

/// Returns the ends of the middle 95 % of the resamples' means.
fn middle(means: &mut [f64]) -> [f64; 2] {
    means.sort_by(f64::total_cmp);
    [means[RESAMPLES / 40], means[RESAMPLES - 1 - RESAMPLES / 40]]
}

/// Maps a random number to an index, by multiplication because that is faster than division: there are millions of
/// them.
fn index(random: u32, number: u64) -> usize {
    usize::try_from((u64::from(random) * number) >> 32).unwrap_or_default()
}

/// The difference of two means over the same tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The mean difference.
    pub mean: f64,
    /// Number of tasks.
    pub tasks: usize,
    /// Its 95 % interval by resampling tasks.
    pub interval: [f64; 2],
    /// Its 95 % interval by resampling groups and their tasks; `None` for one group.
    pub interval_groups: Option<[f64; 2]>,
}

impl Difference {
    /// Tells whether no known interval contains zero.
    ///
    /// Tasks of one repository correlate, so the interval by tasks alone is too narrow where a lead comes from a few
    /// repositories. The interval by groups alone is unreliable where there are few groups: with two groups of equal
    /// sign it never contains zero. Each covers the other's weakness. For a single group only the interval by tasks is
    /// known, and a significant difference is one of that group.
    pub fn is_significant(&self) -> bool {
        let intervals = [Some(self.interval), self.interval_groups];
        intervals.into_iter().flatten().all(|[low, high]| low > 0.0 || high < 0.0)
    }
}

/// Returns the difference of pairs, each with its group; `None` for fewer than two pairs.
pub fn paired<G: Ord>(pairs: impl IntoIterator<Item = (G, f64, f64)>) -> Option<Difference> {
    let (mut all, mut groups) = (Vec::new(), BTreeMap::<G, Vec<f64>>::new());
    for (group, one, other) in pairs {
        all.push(one - other);
        groups.entry(group).or_default().push(one - other);
    }
    let interval = interval(&all)?;
    let interval_groups = clustered_interval(groups.values().map(Vec::as_slice));
    Some(Difference { mean: all.iter().sum::<f64>() / all.len() as f64, tasks: all.len(), interval, interval_groups })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_hold_the_mean_and_shrink_with_more_tasks() {
        let values = |number: usize| (0..number).map(|n| if n % 2 == 0 { 0.0 } else { 100.0 }).collect::<Vec<_>>();
        let [low, high] = interval(&values(20)).unwrap();
        assert!(low < 50.0 && high > 50.0 && low > 15.0 && high < 85.0, "{low} {high}");
        let [lower, higher] = interval(&values(2000)).unwrap();
        assert!(higher - lower < (high - low) / 4.0);
        assert_eq!(interval(&values(2000)), interval(&values(2000)));
        assert_eq!(interval(&[1.0]), None);
        assert_eq!(interval(&[7.0, 7.0]), Some([7.0, 7.0]));
    }

    #[test]
    fn intervals_of_unlike_groups_are_wider() {
        let all: Vec<f64> = (0..200).map(|n| if n < 100 { 0.0 } else { 100.0 }).collect();
        let [low, high] = interval(&all).unwrap();
        // Ten groups: half of them are all 0, the others all 100. Only their choice varies the mean.
        let [lower, higher] = clustered_interval(all.chunks(20)).unwrap();
        assert!(higher - lower > 3.0 * (high - low), "{lower} {higher} {low} {high}");
        assert_eq!((lower, higher), (20.0, 80.0), "multiples of a tenth, as groups are equally large");
        // Groups that are alike vary it as tasks do.
        let alike: Vec<f64> = (0..200).map(|n| if n % 2 == 0 { 0.0 } else { 100.0 }).collect();
        let [lower, higher] = clustered_interval(alike.chunks(20)).unwrap();
        assert!((higher - lower) / (high - low) < 1.3, "{lower} {higher}");
        assert_eq!(clustered_interval([&all[..]]), None);
    }

    #[test]
    fn pairs_are_compared_task_by_task() {
        let pairs = (0..50).map(|n| (0, f64::from(n) + 1.0, f64::from(n)));
        let found = paired(pairs).unwrap();
        assert_eq!(found, Difference { mean: 1.0, tasks: 50, interval: [1.0; 2], interval_groups: None });
        assert!(found.is_significant(), "one group has no interval by groups");
        assert_eq!(paired([(0, 1.0, 0.0)]), None);
    }

    #[test]
    fn a_lead_in_one_group_alone_is_not_significant() {
        // Forty of a hundred tasks are won, all of them in one of five groups or in every group alike.
        let lead =
            |wins: fn(u32) -> bool| paired((0..100).map(|n| (n / 20, if wins(n) { 100.0 } else { 0.0 }, 0.0))).unwrap();
        let (one, alike) = (lead(|n| n < 20), lead(|n| n % 5 == 0));
        assert_eq!((one.mean, alike.mean), (20.0, 20.0));
        assert!(one.interval[0] > 0.0 && one.interval_groups.unwrap()[0] == 0.0, "{one:?}");
        assert!(alike.interval_groups.unwrap()[0] > 0.0, "{alike:?}");
        assert_eq!([one, alike].map(|difference| difference.is_significant()), [false, true]);
        // Two groups of equal sign: tasks decide.
        let few = paired([(0, 1.0, 0.0), (0, 0.0, 0.0), (1, 1.0, 0.0), (1, 0.0, 9.0)]).unwrap();
        assert!(!few.is_significant(), "{few:?}");
        let other_way = paired((0..20).map(|n| (n % 4, 0.0, f64::from(n) + 1.0))).unwrap();
        assert!(other_way.mean < 0.0 && other_way.is_significant(), "{other_way:?}");
    }
}
