//! What the best of several samples comes to: pass@k.

/// Returns the probability that of `drawn` samples, drawn without putting back, one at least succeeds, where `successes` of
/// `samples` succeed. This is the unbiased estimator of Chen et al., "Evaluating Large Language Models Trained on Code"
/// (2021), §2.1. `None` where there are fewer samples than drawn ones.
pub fn pass_at(drawn: usize, samples: usize, successes: usize) -> Option<f64> {
    if drawn == 0 || samples < drawn || samples < successes {
        return None;
    }
    let failures = samples - successes;
    // C(failures, drawn) / C(samples, drawn), factor by factor.
    let none = (failures + 1..=samples).map(|number| 1.0 - drawn as f64 / number as f64);
    Some(if failures < drawn { 1.0 } else { 1.0 - none.product::<f64>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of the subsets of so many samples that have one of the first ones, which succeed.
    fn counted(drawn: usize, samples: usize, successes: usize) -> f64 {
        let subsets = (0_u32..1 << samples).filter(|subset| subset.count_ones() as usize == drawn);
        let (mut all, mut with) = (0, 0);
        for subset in subsets {
            all += 1;
            with += usize::from(subset & ((1 << successes) - 1) != 0);
        }
        f64::from(with as u32) / f64::from(all as u32)
    }

    #[test]
    fn the_estimate_is_the_share_of_draws_with_a_success() {
        for samples in 1..=8 {
            for successes in 0..=samples {
                for drawn in 1..=samples {
                    let estimate = pass_at(drawn, samples, successes).unwrap();
                    let counted = counted(drawn, samples, successes);
                    assert!(
                        (estimate - counted).abs() < 1e-12,
                        "{drawn} of {samples}, {successes}: {estimate} {counted}"
                    );
                }
            }
        }
        assert_eq!(pass_at(1, 4, 1), Some(0.25));
        assert_eq!([pass_at(0, 4, 1), pass_at(5, 4, 1), pass_at(1, 0, 0), pass_at(1, 1, 2)], [None; 4]);
    }
}
