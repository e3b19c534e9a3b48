//! Confidence intervals of a mean, and of a difference of two means over the same tasks: percentile intervals by
//! resampling tasks.
//!
//! The random numbers are equal in every report, so that equal runs give equal bytes.

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
    means.sort_by(f64::total_cmp);
    Some([means[RESAMPLES / 40], means[RESAMPLES - 1 - RESAMPLES / 40]])
}

/// Maps a random number to an index, by multiplication because that is faster than division: there are millions of
/// them.
fn index(random: u32, number: u64) -> usize {
    usize::try_from((u64::from(random) * number) >> 32).unwrap_or_default()
}

/// Returns the mean difference of pairs, and its 95 % interval.
pub fn paired(pairs: &[(f64, f64)]) -> Option<(f64, [f64; 2])> {
    let differences: Vec<f64> = pairs.iter().map(|(one, other)| one - other).collect();
    let mean = differences.iter().sum::<f64>() / differences.len() as f64;
    interval(&differences).map(|interval| (mean, interval))
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
    fn pairs_are_compared_task_by_task() {
        let pairs: Vec<(f64, f64)> = (0..50).map(|n| (f64::from(n) + 1.0, f64::from(n))).collect();
        assert_eq!(paired(&pairs), Some((1.0, [1.0, 1.0])));
        assert_eq!(paired(&[]), None);
    }
}
