//! Mutants and mutation scores: which mutants are kept, and how many of these a test kills. Source: protocol §4.
//!
//! Invariant for a file of a task: `emitted = kept + compile_failed + redundant + capped_out`.

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::digest::Digest;
use crate::outcome::{ExecReason, Outcome};

/// The most mutants of one file that are kept.
pub const MOST_KEPT: usize = 10;

/// A mutant as the mutator emits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The mutated line, counted from 1.
    pub line: usize,
    /// The whole file's text.
    pub text: String,
}

/// The mutants of one file of a task: the same for all methods, gold and every submission.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MutantSet {
    /// The file.
    pub path: String,
    /// Lines to mutate, ascending.
    pub lines: Vec<usize>,
    /// Dead lines among `lines`, on which anything compiles, such as comments; their mutants count as never made.
    pub dead_lines: Vec<usize>,
    /// Mutants on the other lines.
    pub emitted: usize,
    /// Mutants that equal the source or an earlier mutant.
    pub redundant: usize,
    /// Mutants that do not compile.
    pub compile_failed: usize,
    /// Mutants that the cap leaves out.
    pub capped_out: usize,
    /// Kept mutants, in the order in which they were made.
    pub kept: Vec<KeptMutant>,
}

/// A mutant that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptMutant {
    /// SHA-256 of its text.
    pub id: Digest,
    /// The mutated line, counted from 1.
    pub line: usize,
}

impl MutantSet {
    /// Tells whether every emitted mutant is accounted for exactly once.
    pub fn is_accounted(&self) -> bool {
        self.emitted == self.kept.len() + self.compile_failed + self.redundant + self.capped_out
    }
}

/// Returns the lines with a mutant. The mutator's own check tests each of these lines with garbage.
pub fn mutated_lines(emitted: &[Emitted]) -> BTreeSet<usize> {
    emitted.iter().map(|mutant| mutant.line).collect()
}

/// Returns a line's garbage, as the mutator makes it; characters that are not code stay unchanged.
pub fn garbage(line: &str) -> String {
    line.chars()
        .map(|c| match c {
            '(' => ' ',
            // Separators are blanks to the mutator.
            c if c.is_whitespace() || matches!(c, '\x1c'..='\x1f' | '*' | '/' | '#' | '-') => c,
            _ => 'Q',
        })
        .collect()
}

/// Returns the places of the mutants that equal neither the source nor an earlier mutant, in order.
pub fn distinct<'a>(source: &str, emitted: impl Iterator<Item = (usize, &'a Emitted)>) -> Vec<usize> {
    let mut seen = BTreeSet::from([Digest::of(source.as_bytes())]);
    let distinct = emitted.filter(|(_, mutant)| seen.insert(Digest::of(mutant.text.as_bytes())));
    distinct.map(|(place, _)| place).collect()
}

/// Returns the indexes of the kept mutants among `number`, ascending. Task and path alone decide the choice.
pub fn sample(task_id: &str, path: &str, number: usize) -> Vec<usize> {
    let mut indexes: Vec<usize> = (0..number).collect();
    if number <= MOST_KEPT {
        return indexes;
    }
    let seed = Sha256::digest([task_id.as_bytes(), b"\0", path.as_bytes(), b"\0v1"].concat());
    let mut random = ChaCha8Rng::from_seed(seed.into());
    for place in 0..MOST_KEPT {
        let other = place + below(&mut random, number - place);
        indexes.swap(place, other);
    }
    indexes.truncate(MOST_KEPT);
    indexes.sort_unstable();
    indexes
}

/// Returns a number below another, each as likely: what would favour small ones is drawn again.
fn below(random: &mut ChaCha8Rng, number: usize) -> usize {
    let number = number as u64;
    let fair = u64::MAX - u64::MAX % number;
    loop {
        let drawn = random.next_u64();
        if drawn < fair {
            return usize::try_from(drawn % number).unwrap_or_default();
        }
    }
}

/// A test's results on the kept mutants.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Kills {
    /// Mutants that the test was run on.
    pub count: usize,
    /// Mutants on which the test does not pass.
    pub killed: usize,
    /// Mutants on which the test fails on an assertion or exception.
    pub killed_strict: usize,
}

impl Kills {
    /// Counts a test's outcomes on mutants; `None` where an outcome could not be judged.
    pub fn of(outcomes: &[Outcome]) -> Option<Self> {
        if outcomes.iter().any(|outcome| matches!(outcome, Outcome::InfraFail(_))) {
            return None;
        }
        let strict =
            |outcome: &&Outcome| matches!(outcome, Outcome::ExecFail(ExecReason::Assertion | ExecReason::Exception));
        Some(Self {
            count: outcomes.len(),
            killed: outcomes.iter().filter(|outcome| **outcome != Outcome::Pass).count(),
            killed_strict: outcomes.iter().filter(strict).count(),
        })
    }

    /// Returns the mutation score, in [0, 1]; `None` where there are no mutants.
    pub fn score(&self) -> Option<f64> {
        (self.count > 0).then(|| self.killed as f64 / self.count as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::InfraReason;

    fn mutant(line: usize, text: &str) -> Emitted {
        Emitted { line, text: text.to_owned() }
    }

    #[test]
    fn what_was_there_before_is_redundant() {
        let emitted = vec![mutant(1, "a"), mutant(1, "s"), mutant(2, "a"), mutant(2, "b")];
        assert_eq!(mutated_lines(&emitted), BTreeSet::from([1, 2]));
        assert_eq!(distinct("s", emitted.iter().enumerate()), [0, 3]);
        assert_eq!(distinct("s", emitted.iter().enumerate().skip(1)), [2, 3]);
    }

    #[test]
    fn garbage_leaves_comments_comments() {
        assert_eq!(garbage("  int x = f(1); // y\n"), "  QQQ Q Q Q QQQ // Q\n");
    }

    #[test]
    fn the_sample_follows_from_task_and_path() {
        assert_eq!(sample("t", "p", 7), (0..7).collect::<Vec<_>>());
        let kept = sample("t", "p", 100);
        assert_eq!(kept.len(), MOST_KEPT);
        assert!(kept.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(kept, sample("t", "p", 100));
        assert_ne!(kept, sample("u", "p", 100));
        assert_ne!(kept, sample("t", "q", 100));
        // Over many tasks every place comes up.
        let all: BTreeSet<usize> = (0..100).flat_map(|task| sample(&task.to_string(), "p", 20)).collect();
        assert_eq!(all.len(), 20);
    }

    /// By another implementation, in Python, of ChaCha8, the seed and the shuffle.
    #[test]
    fn the_sample_is_the_one_that_others_draw() {
        let (jsoup, commons) = ("src/main/java/org/jsoup/Jsoup.java", "core/src/main/java/a/B.java");
        for (task, path, number, expected) in [
            ("jsoup-1a2b3c4", jsoup, 11, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
            ("jsoup-1a2b3c4", jsoup, 137, [24, 40, 60, 77, 95, 106, 114, 118, 125, 132]),
            ("commons__0001", commons, 37, [1, 2, 7, 11, 18, 21, 27, 28, 30, 32]),
            ("commons__0001", commons, 2500, [40, 176, 486, 608, 975, 1763, 1821, 1940, 2027, 2142]),
        ] {
            assert_eq!(sample(task, path, number), expected, "{task} {path} {number}");
        }
    }

    #[test]
    fn kills_are_counted_twice_over() {
        let assertion = Outcome::ExecFail(ExecReason::Assertion);
        let timeout = Outcome::ExecFail(ExecReason::Timeout);
        let kills = Kills::of(&[Outcome::Pass, assertion, timeout, Outcome::Pass]).unwrap();
        assert_eq!((kills.killed, kills.killed_strict, kills.score()), (2, 1, Some(0.5)));
        assert_eq!(Kills::of(&[]).unwrap().score(), None);
        assert_eq!(Kills::of(&[assertion, Outcome::InfraFail(InfraReason::Engine)]), None);
    }
}
