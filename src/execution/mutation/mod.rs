//! Mutants of new code. Universal Mutator makes them in a container. The warm compiler, or Maven if the warm compiler
//! does not fit, decides which ones compile. Methods are launched on a sample of these. Source: protocol §4.
//!
//! The mutator's own compile check is not used, because it would run a compiler for each mutant. Its effect is
//! reproduced here: a line on which garbage compiles has no mutants. `emission` runs the mutator, [`MainCompiler`] is
//! the warm compiler, `reference` is Maven.

pub mod emission;
pub mod launches;
mod main_compiler;
pub mod reference;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use self::emission::{Emission, emit};
pub use self::main_compiler::{MainCompilation, MainCompiler};
use self::reference::{MavenCompiler, ReferenceBuild};
use super::container::RepositoryImage;
use super::direct::Direct;
use super::executor::Executor;
use super::fault::{ExecutionError, NoAnswer};
use crate::artifact::key::key;
use crate::digest::Digest;
use crate::execution::build::prepared::CompiledRevision;
use crate::focal::FocalLines;
use crate::metrics::mutation::{Emitted, KeptMutant, MutantSet, distinct, garbage, mutated_lines, sample};
use crate::task::TaskId;

/// The largest source that is mutated, in bytes.
pub(super) const MOST_SOURCE_BYTES: usize = 2 << 20;

/// The mutants of one file, with the texts of the sampled ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mutants {
    /// The set.
    pub set: MutantSet,
    /// Texts of the sampled mutants, in their order.
    pub texts: Vec<String>,
}

/// The compiler that decides whether a text of a main source compiles.
#[derive(Clone, Copy)]
pub enum Judge<'a> {
    /// The warm compiler, on a prepared revision.
    Warm {
        /// The direct path with its compilers.
        direct: &'a Direct,
        /// The revision.
        revision: &'a CompiledRevision,
    },
    /// Maven, if the direct path does not fit.
    Maven(ReferenceBuild<'a>),
}

impl Judge<'_> {
    /// Returns the key of the build that judges mutants.
    pub fn key(&self, executor: &Executor, image: &RepositoryImage) -> Digest {
        match self {
            Self::Warm { revision, .. } => revision.key,
            Self::Maven(build) => build.key(executor, image),
        }
    }
}

/// A judge of one source's texts.
enum Compiler<'a> {
    Warm(Box<MainCompiler<'a>>),
    Maven(MavenCompiler<'a>),
}

/// The most texts in memory at once.
const MOST_TEXTS: usize = 16;

impl Compiler<'_> {
    /// Returns why this number of texts is too many to compile, before the first is compiled; `None` if it is not.
    fn refuses(&self, texts: usize) -> Option<NoAnswer> {
        match self {
            Self::Warm(_) => None,
            Self::Maven(_) => reference::too_many(texts),
        }
    }

    /// Tells of each text whether it compiles.
    async fn compile(&self, texts: &[&str]) -> Result<Vec<bool>, ExecutionError> {
        let compiler = match self {
            Self::Warm(compiler) => compiler,
            Self::Maven(compiler) => return compiler.compile(texts).await,
        };
        let compilations = compiler.compile_all(texts).await?;
        Ok(compilations.iter().map(|compilation| matches!(compilation, MainCompilation::Compiled(_))).collect())
    }
}

/// A file whose lines are mutated.
pub struct MutatedFile<'a> {
    /// The task whose id seeds the sample.
    pub task_id: &'a TaskId,
    /// The file, relative to the tree.
    pub path: &'a str,
    /// Its bytes in the new revision.
    pub source: &'a [u8],
    /// Ascending: the focal lines that the new revision adds.
    pub lines: &'a [usize],
}

/// Returns the lines to mutate, by file: the focal lines that the new revision adds.
pub fn lines_to_mutate(focal: &[FocalLines]) -> BTreeMap<String, Vec<usize>> {
    let mut files: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for lines in focal.iter().filter(|lines| !lines.added.is_empty()) {
        files.entry(lines.path.clone()).or_default().extend(&lines.added);
    }
    files.into_iter().map(|(path, lines)| (path, lines.into_iter().collect())).collect()
}

/// Returns the key of a file's mutants, given the key of the build that judges them. Equal keys mean equal sets.
pub fn mutants_key(image: &RepositoryImage, build: Digest, file: &MutatedFile<'_>) -> Digest {
    let source = Digest::of(file.source);
    key("mutants", 2, &(image.config_digest, build, file.task_id, file.path, source, file.lines))
}

/// All mutants of a file with the compiler's judgement, before sampling.
#[derive(Clone, Debug)]
pub struct JudgedMutants {
    /// The source as the mutator reads it.
    pub source: String,
    /// All mutants of the mutator's rules, in order.
    pub made: Vec<Emitted>,
    /// Lines of the left-out copies of the source, one for each copy.
    pub copies: Vec<usize>,
    /// Lines on which garbage compiles.
    pub dead_lines: BTreeSet<usize>,
    /// Positions in `made`, ascending: distinct mutants on living lines that compile.
    pub valid: Vec<usize>,
    /// Positions in `made`, ascending: distinct mutants on living lines that do not compile.
    pub invalid: Vec<usize>,
}

impl JudgedMutants {
    /// Returns the mutants on living lines with their positions, in order.
    pub fn emitted(&self) -> impl Iterator<Item = (usize, &Emitted)> {
        self.made.iter().enumerate().filter(|(_, mutant)| !self.dead_lines.contains(&mutant.line))
    }

    /// Returns the texts of the mutants at these positions.
    pub fn texts<'a>(&'a self, places: &'a [usize]) -> impl Iterator<Item = &'a str> {
        places.iter().map(|place| self.made[*place].text.as_str())
    }

    /// Returns how many copies of the source were left out on living lines.
    pub fn copies_left_out(&self) -> usize {
        self.copies.iter().filter(|line| !self.dead_lines.contains(line)).count()
    }

    /// Returns the set with the sample of valid mutants.
    fn sampled(&self, file: &MutatedFile<'_>) -> Mutants {
        let (living, copies) = (self.emitted().count(), self.copies_left_out());
        let redundant = living - self.valid.len() - self.invalid.len();
        let kept = sample(file.task_id.as_str(), file.path, self.valid.len());
        let capped_out = self.valid.len() - kept.len();
        let kept: Vec<&Emitted> = kept.into_iter().map(|index| &self.made[self.valid[index]]).collect();
        let texts = kept.iter().map(|one| one.text.clone()).collect();
        let set = MutantSet {
            path: file.path.to_owned(),
            lines: file.lines.to_vec(),
            emitted: living + copies,
            redundant: redundant + copies,
            compile_failed: self.invalid.len(),
            capped_out,
            kept: kept.into_iter().map(|one| KeptMutant::of(one, &self.source)).collect(),
            dead_lines: self.dead_lines.iter().copied().collect(),
        };
        debug_assert!(set.is_accounted(), "{set:?}");
        Mutants { set, texts }
    }
}

/// Makes a file's mutants, and samples the valid ones.
///
/// # Errors
/// [`ExecutionError`]; its I/O errors are of logs and temporary files.
pub async fn make(
    by: Judge<'_>,
    executor: &Executor,
    image: &RepositoryImage,
    file: &MutatedFile<'_>,
) -> Result<Mutants, ExecutionError> {
    Ok(judge(by, executor, image, file).await?.sampled(file))
}

/// Returns the compiler that judges the texts of a file.
async fn compiler<'a>(
    by: Judge<'a>,
    executor: &'a Executor,
    image: &'a RepositoryImage,
    file: &MutatedFile<'_>,
) -> Result<Compiler<'a>, ExecutionError> {
    Ok(match by {
        Judge::Warm { direct, revision } => {
            let compiler = MainCompiler::new(direct, executor, image, revision, file.path, file.source).await?;
            Compiler::Warm(Box::new(compiler))
        }
        Judge::Maven(build) => Compiler::Maven(MavenCompiler::new(executor, image, build, file.path).await?),
    })
}

/// Makes a file's mutants, and finds those that compile.
///
/// # Errors
/// [`ExecutionError`]; its I/O errors are of logs and temporary files.
pub async fn judge(
    by: Judge<'_>,
    executor: &Executor,
    image: &RepositoryImage,
    file: &MutatedFile<'_>,
) -> Result<JudgedMutants, ExecutionError> {
    let Ok(source) = std::str::from_utf8(file.source) else {
        return Err(NoAnswer::never("the source is not UTF-8").into());
    };
    if source.len() > MOST_SOURCE_BYTES {
        return Err(NoAnswer::never("the source is too large").into());
    }
    let source = as_mutated(source);
    // The mutator and the first compilation are independent, so they run side by side.
    let (compiler, emission) = tokio::join!(compiler(by, executor, image, file), emit(executor, image, file, &source));
    let (compiler, Emission { mutants: made, copies }) = (compiler?, emission?);
    let lines: Vec<&str> = source.split_inclusive('\n').collect();
    let mut dead_lines = BTreeSet::new();
    let mutated: BTreeSet<usize> = mutated_lines(&made).into_iter().chain(copies.iter().copied()).collect();
    let mutated: Vec<usize> = mutated.into_iter().collect();
    // Before the first compilation no line is known to be dead, so all count as living.
    let distinct_ones = distinct(&source, made.iter().enumerate()).len();
    if let Some(reason) = compiler.refuses(mutated.len() + distinct_ones) {
        return Err(reason.into());
    }
    for together in mutated.chunks(MOST_TEXTS) {
        let mut spoilt_lines = Vec::new();
        for line in together {
            let Some(own) = line.checked_sub(1).and_then(|index| lines.get(index)) else {
                return Err(NoAnswer::never(format!("the mutator names a line {line} that is not there")).into());
            };
            let spoilt = garbage(own);
            if spoilt != *own {
                let mut text = lines.clone();
                text[line - 1] = &spoilt;
                spoilt_lines.push((*line, text.concat()));
            }
        }
        let texts: Vec<&str> = spoilt_lines.iter().map(|(_, text)| text.as_str()).collect();
        let compiles = compiler.compile(&texts).await?;
        let dead = spoilt_lines.iter().zip(compiles).filter(|(_, compiles)| *compiles);
        dead_lines.extend(dead.map(|((line, _), _)| *line));
    }
    let mut judged = JudgedMutants { source, made, copies, dead_lines, valid: Vec::new(), invalid: Vec::new() };
    let places = distinct(&judged.source, judged.emitted());
    for together in places.chunks(MOST_TEXTS) {
        let texts: Vec<&str> = judged.texts(together).collect();
        let compiles = compiler.compile(&texts).await?;
        for (place, compiles) in together.iter().zip(compiles) {
            if compiles { judged.valid.push(*place) } else { judged.invalid.push(*place) }
        }
    }
    Ok(judged)
}

/// Returns a source as the mutator reads it: with Unix line ends and without non-ASCII characters. All of its mutants
/// lack these characters too.
pub fn as_mutated(source: &str) -> String {
    source.replace("\r\n", "\n").replace('\r', "\n").chars().filter(char::is_ascii).collect()
}

#[cfg(test)]
mod tests;
