//! Mutants of new code: made by Universal Mutator in a container, judged by the warm compiler with the arguments of the real
//! build, run like methods. Source: protocol §4, design §7.
//!
//! The mutator's own compile check is not used: it would run a compiler for each mutant. What it does is done here: a line
//! on which garbage compiles has no mutants. `emission` runs the mutator, [`MainCompiler`] is the compiler.

mod emission;
mod main_compiler;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use self::emission::emit;
pub use self::main_compiler::{MainCompilation, MainCompiler};
use super::cell::{Environment, Executor};
use super::direct::Direct;
use super::prepared::CompiledRevision;
use crate::digest::Digest;
use crate::focal::FocalLines;
use crate::metrics::mutation::{Emitted, KeptMutant, MutantSet, distinct, garbage, mutated_lines, sample};
use crate::outcome::launch::shortened;
use crate::task::TaskId;

/// The largest source that is mutated, in bytes.
const MOST_SOURCE_BYTES: usize = 2 << 20;

/// The mutants of one file with the texts of those that are kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mutants {
    /// The set.
    pub set: MutantSet,
    /// Texts of the kept ones, in their order.
    pub texts: Vec<String>,
}

/// Why there are no mutants, and whether trying again may give some.
#[derive(Clone, Debug)]
pub struct NoMutants {
    /// In words.
    pub cause: String,
    /// The fault is ours.
    pub may_pass: bool,
}

impl NoMutants {
    fn certain(cause: impl AsRef<str>) -> Self {
        Self { cause: shortened(cause.as_ref()), may_pass: false }
    }

    pub(super) fn passing(cause: impl AsRef<str>) -> Self {
        Self { cause: shortened(cause.as_ref()), may_pass: true }
    }
}

/// A file whose lines are mutated.
pub struct MutatedFile<'a> {
    /// The task that the sample follows from.
    pub task_id: &'a TaskId,
    /// The file, relative to the tree.
    pub path: &'a str,
    /// Its bytes in the new revision.
    pub source: &'a [u8],
    /// Its lines of focal methods that the new revision adds, ascending.
    pub lines: &'a [usize],
}

/// Returns the lines to mutate, by file: those of focal methods that the new revision adds.
pub fn lines_to_mutate(focal: &[FocalLines]) -> BTreeMap<String, Vec<usize>> {
    let mut files: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for lines in focal.iter().filter(|lines| !lines.added.is_empty()) {
        files.entry(lines.path.clone()).or_default().extend(&lines.added);
    }
    files.into_iter().map(|(path, lines)| (path, lines.into_iter().collect())).collect()
}

/// Returns the key of a file's mutants: equal keys mean equal sets.
pub fn mutants_key(environment: &Environment, revision: &CompiledRevision, file: &MutatedFile<'_>) -> Digest {
    #[derive(Serialize)]
    struct Keyed<'a> {
        schema: u32,
        what: &'a str,
        image: Digest,
        revision: Digest,
        task_id: &'a TaskId,
        path: &'a str,
        source: Digest,
        lines: &'a [usize],
    }
    let keyed = Keyed {
        schema: 1,
        what: "mutants",
        image: environment.image,
        revision: revision.key,
        task_id: file.task_id,
        path: file.path,
        source: Digest::of(file.source),
        lines: file.lines,
    };
    match serde_json::to_vec(&keyed) {
        Ok(bytes) => Digest::of(&bytes),
        Err(error) => unreachable!("the inputs are plain data: {error}"),
    }
}

/// Makes a file's mutants and keeps the sample of the valid ones.
///
/// # Errors
/// The file system's.
pub async fn make(
    direct: &Direct,
    executor: &Executor,
    environment: &Environment,
    revision: &CompiledRevision,
    file: &MutatedFile<'_>,
) -> std::io::Result<Result<Mutants, NoMutants>> {
    let Ok(source) = std::str::from_utf8(file.source) else {
        return Ok(Err(NoMutants::certain("the source is not UTF-8")));
    };
    if source.len() > MOST_SOURCE_BYTES {
        return Ok(Err(NoMutants::certain("the source is too large")));
    }
    let compiler = match MainCompiler::new(direct, executor, environment, revision, file.path, file.source).await? {
        Ok(compiler) => compiler,
        Err(reason) => return Ok(Err(reason)),
    };
    let source = as_mutated(source);
    let emission = match emit(executor, environment, file, &source).await? {
        Ok(emission) => emission,
        Err(reason) => return Ok(Err(reason)),
    };
    let (emitted, copies) = (emission.mutants, emission.copies);
    let lines: Vec<&str> = source.split_inclusive('\n').collect();
    let mut dead = BTreeSet::new();
    for line in mutated_lines(&emitted).into_iter().chain(copies.iter().copied()).collect::<BTreeSet<usize>>() {
        let Some(own) = line.checked_sub(1).and_then(|index| lines.get(index)) else {
            return Ok(Err(NoMutants::certain(format!("the mutator names a line {line} that is not there"))));
        };
        let spoilt = garbage(own);
        if spoilt == *own {
            continue;
        }
        let mut text = lines.clone();
        text[line - 1] = &spoilt;
        match compiler.compile(&text.concat()).await? {
            Ok(MainCompilation::Compiled(_)) => {
                dead.insert(line);
            }
            Ok(MainCompilation::Errors) => {}
            Err(reason) => return Ok(Err(reason)),
        }
    }
    let living: Vec<Emitted> = emitted.into_iter().filter(|mutant| !dead.contains(&mutant.line)).collect();
    let copies = copies.iter().filter(|line| !dead.contains(line)).count();
    let number = living.len() + copies;
    let (candidates, redundant) = distinct(&source, living);
    let mut valid = Vec::new();
    let mut compile_failed = 0;
    for mutant in candidates {
        match compiler.compile(&mutant.text).await? {
            Ok(MainCompilation::Compiled(_)) => valid.push(mutant),
            Ok(MainCompilation::Errors) => compile_failed += 1,
            Err(reason) => return Ok(Err(reason)),
        }
    }
    let kept = sample(file.task_id.as_str(), file.path, valid.len());
    let capped_out = valid.len() - kept.len();
    let kept: Vec<Emitted> = kept.into_iter().map(|index| valid[index].clone()).collect();
    let set = MutantSet {
        path: file.path.to_owned(),
        lines: file.lines.to_vec(),
        dead_lines: dead.into_iter().collect(),
        emitted: number,
        redundant: redundant + copies,
        compile_failed,
        capped_out,
        kept: kept.iter().map(|one| KeptMutant { id: Digest::of(one.text.as_bytes()), line: one.line }).collect(),
    };
    debug_assert!(set.is_accounted(), "{set:?}");
    Ok(Ok(Mutants { set, texts: kept.into_iter().map(|one| one.text).collect() }))
}

/// Returns a source as the mutator reads it: lines end as on Unix, and what is not ASCII is left out. All of its mutants are
/// without it.
fn as_mutated(source: &str) -> String {
    source.replace("\r\n", "\n").replace('\r', "\n").chars().filter(char::is_ascii).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_read_as_the_mutator_reads_it() {
        assert_eq!(as_mutated("// Jos\u{e9}\r\nclass A {\r}"), "// Jos\nclass A {\n}");
    }
}
