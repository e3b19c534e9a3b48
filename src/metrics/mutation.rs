//! Mutants and mutation scores: which mutants are kept, and how many of these a test kills. Source: protocol §4.
//!
//! Invariant for a file of a task: `emitted = kept + compile_failed + redundant + capped_out`.

use std::collections::BTreeSet;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::digest::Digest;
use crate::outcome::Outcome;

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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeptMutant {
    /// SHA-256 of its text.
    pub id: Digest,
    /// The mutated line, counted from 1.
    pub line: usize,
    /// What stands there instead, in one line, without indentation and cut after 200 bytes; `None` in results of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl KeptMutant {
    /// The most bytes of a line's text.
    const MOST_TEXT: usize = 200;

    /// Returns how a mutant of a source is recorded.
    pub fn of(mutant: &Emitted, source: &str) -> Self {
        let (before, after): (Vec<&str>, Vec<&str>) = (source.lines().collect(), mutant.text.lines().collect());
        let start = mutant.line.saturating_sub(1).min(after.len());
        // The mutator may add a line, or take one away.
        let most_equal = before.len().saturating_sub(mutant.line).min(after.len() - start);
        let pairs = before.iter().rev().zip(after.iter().rev()).take(most_equal);
        let equal = pairs.take_while(|(before, after)| before == after).count();
        let lines: Vec<&str> = after[start..after.len() - equal].iter().map(|line| line.trim()).collect();
        let mut text = lines.join(" ");
        if text.len() > Self::MOST_TEXT {
            text.truncate(text.floor_char_boundary(Self::MOST_TEXT));
            text.push('…');
        }
        Self { id: Digest::of(mutant.text.as_bytes()), line: mutant.line, text: Some(text) }
    }
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

/// Returns a line of garbage as the mutator makes it. Characters that are not code stay unchanged.
pub fn garbage(line: &str) -> String {
    line.chars()
        .map(|c| match c {
            '(' => ' ',
            // The mutator treats separators as blanks.
            c if c.is_whitespace() || matches!(c, '\x1c'..='\x1f' | '*' | '/' | '#' | '-') => c,
            _ => 'Q',
        })
        .collect()
}

/// Returns the positions of the mutants that equal neither the source nor an earlier mutant, in order.
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

/// Returns a random number below `number`, each as likely. Numbers that would favour small results are drawn again.
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Kills {
    /// Mutants that the test was run on.
    pub count: usize,
    /// Mutants on which the test does not pass.
    pub killed: usize,
    /// Mutants on which the test fails on an assertion or exception.
    pub killed_strict: usize,
}

impl Kills {
    /// Counts a test's outcomes on mutants; `None` if an outcome could not be judged.
    pub fn of(outcomes: &[Outcome]) -> Option<Self> {
        if outcomes.iter().any(|outcome| matches!(outcome, Outcome::InfraFail(_))) {
            return None;
        }
        let strict = |outcome: &&Outcome| matches!(outcome, Outcome::ExecFail(reason) if reason.is_the_tests_own());
        Some(Self {
            count: outcomes.len(),
            killed: outcomes.iter().filter(|outcome| **outcome != Outcome::Pass).count(),
            killed_strict: outcomes.iter().filter(strict).count(),
        })
    }

    /// Returns the mutation score, in [0, 1]; `None` without mutants.
    pub fn score(&self) -> Option<f64> {
        (self.count > 0).then(|| self.killed as f64 / self.count as f64)
    }
}

#[cfg(test)]
mod tests;
