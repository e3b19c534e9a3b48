//! Focal line coverage, in percent: `100 × Σ covered lines / Σ total lines` over a test method's own
//! focal methods. Source: protocol §4.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A launch's coverage of one focal method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FocalCoverage {
    /// Its first line.
    pub first_line: usize,
    /// Its last line.
    pub last_line: usize,
    /// The method's executable lines, as JaCoCo lists them, ascending.
    pub lines: Vec<usize>,
    /// Executed lines among `lines`, ascending.
    pub covered: Vec<usize>,
}

impl FocalCoverage {
    /// Returns the coverage of a method with these lines of code, ascending, in one file.
    pub fn of_lines((first_line, last_line): (usize, usize), code: &[usize], file: &BTreeMap<usize, bool>) -> Self {
        let listed = || code.iter().copied().filter_map(|line| Some((line, *file.get(&line)?)));
        let lines = listed().map(|(line, _)| line).collect();
        let covered = listed().filter(|(_, covered)| *covered).map(|(line, _)| line).collect();
        Self { first_line, last_line, lines, covered }
    }

    /// Returns the coverage of a range of lines in one file.
    pub fn of((first_line, last_line): (usize, usize), file: &BTreeMap<usize, bool>) -> Self {
        let range = file.range(first_line..=last_line.max(first_line));
        let lines = range.clone().map(|(line, _)| *line).collect();
        let covered = range.filter(|(_, covered)| **covered).map(|(line, _)| *line).collect();
        Self { first_line, last_line, lines, covered }
    }
}

/// Returns the coverage over executable lines, percent; `None` without executable lines.
pub fn coverage(focal: &[FocalCoverage]) -> Option<f64> {
    percent(focal, |one| one.lines.len())
}

/// Returns the coverage over all lines of the methods' ranges, percent; `None` without lines.
pub fn coverage_range(focal: &[FocalCoverage]) -> Option<f64> {
    percent(focal, |one| (one.last_line + 1).saturating_sub(one.first_line))
}

fn percent(focal: &[FocalCoverage], total: fn(&FocalCoverage) -> usize) -> Option<f64> {
    let covered: usize = focal.iter().map(|one| one.covered.len()).sum();
    let total: usize = focal.iter().map(total).sum();
    (total > 0).then(|| 100.0 * covered as f64 / total as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_readings_of_total_lines() {
        let file = BTreeMap::from([(1, true), (10, true), (11, false), (12, true), (20, true)]);
        let focal = [FocalCoverage::of((9, 13), &file), FocalCoverage::of((30, 40), &file)];
        assert_eq!((focal[0].lines.len(), focal[0].covered.len()), (3, 2));
        assert_eq!(coverage(&focal).map(f64::round), Some(67.0));
        assert_eq!(coverage_range(&focal), Some(12.5));
        assert_eq!(coverage(&focal[1..]), None);
        assert_eq!(coverage(&[]), None);
    }
}
