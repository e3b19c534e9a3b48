//! Mutants of new code: made by Universal Mutator in a container, judged by the warm compiler with the arguments of the real
//! build, run like methods. Source: protocol §4, design §7.
//!
//! The mutator's own compile check is not used: it would run a compiler for each mutant. What it does is done here: a line
//! on which garbage compiles has no mutants.

use std::collections::{BTreeMap, BTreeSet};

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::cell::{Environment, Executor};
use super::direct::{Direct, MainCompilation};
use super::fault::{Spool, command_end, not_done, of_engine};
use super::prepared::CompiledRevision;
use crate::digest::Digest;
use crate::engine::session::{self, StepOutput};
use crate::engine::spec::{Command, ContainerSpec, PROGRAM_SCHEMA, Program, ReadOnlyMount, Scratch, Step, StepResult};
use crate::focal::FocalLines;
use crate::metrics::mutation::{Emitted, KeptMutant, MutantSet, distinct, garbage, mutated_lines, sample};
use crate::outcome::launch::shortened;
use crate::task::TaskId;

const MUTATOR: &str = "/usr/bin/mutate";
const MUTANTS: &str = "/work/mutants";
/// The largest source that is mutated, in bytes.
const MOST_SOURCE_BYTES: usize = 2 << 20;
/// The largest archive of mutants, in bytes: some thousands of whole files.
const MOST_ARCHIVE_BYTES: u64 = 256 << 20;
/// The most mutants of one file.
const MOST_MUTANTS: usize = 20_000;

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
    // The mutator reads and writes text: line ends become those of Unix.
    let source = source.replace("\r\n", "\n");
    let (emitted, copies) = match emit(executor, environment, file, &source).await? {
        Ok(emitted) => emitted,
        Err(reason) => return Ok(Err(reason)),
    };
    let compiles =
        async |text: &str| direct.compile_main(executor, environment, revision, file.path, text.as_bytes()).await;
    let lines: Vec<&str> = source.split_inclusive('\n').collect();
    let mut dead = BTreeSet::new();
    for line in mutated_lines(&emitted).into_iter().chain(copies.iter().copied()).collect::<BTreeSet<usize>>() {
        let Some(own) = lines.get(line - 1) else { continue };
        let spoilt = garbage(own);
        if spoilt == *own {
            continue;
        }
        let mut text = lines.clone();
        text[line - 1] = &spoilt;
        match compiles(&text.concat()).await? {
            MainCompilation::Compiled(_) => {
                dead.insert(line);
            }
            MainCompilation::Errors(_) => {}
            MainCompilation::Unfit(unfit) => return Ok(Err(NoMutants::certain(unfit.0))),
        }
    }
    let living: Vec<Emitted> = emitted.into_iter().filter(|mutant| !dead.contains(&mutant.line)).collect();
    let copies = copies.iter().filter(|line| !dead.contains(line)).count();
    let number = living.len() + copies;
    let (candidates, redundant) = distinct(&source, living);
    let mut valid = Vec::new();
    let mut compile_failed = 0;
    for mutant in candidates {
        match compiles(&mutant.text).await? {
            MainCompilation::Compiled(_) => valid.push(mutant),
            // A compiler that breaks on a mutant does not compile it.
            MainCompilation::Errors(_) | MainCompilation::Unfit(_) => compile_failed += 1,
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

/// Runs the mutator; returns what it made, in order, and the lines of copies of the source that it left out.
async fn emit(
    executor: &Executor,
    environment: &Environment,
    file: &MutatedFile<'_>,
    source: &str,
) -> std::io::Result<Result<(Vec<Emitted>, Vec<usize>), NoMutants>> {
    let spool = Spool::create(&executor.temporary)?;
    let name = file.path.rsplit('/').next().unwrap_or(file.path);
    let (on_host, in_container) = (spool.path().join("source.java"), format!("/testevo/input/{name}"));
    fs::write(&on_host, source)?;
    let lines: String = file.lines.iter().map(|line| format!("{line}\n")).collect();
    let text = |text: &str| text.to_owned();
    let argv = [MUTATOR, &in_container, "java", "--noCheck", "--lines", "/work/lines", "--mutantDir", MUTANTS];
    let command = Command {
        argv: argv.map(text).to_vec(),
        environment: [
            ("HOME", "/work"),
            ("LANG", "en_US.UTF-8"),
            ("LC_ALL", "en_US.UTF-8"),
            ("PATH", "/usr/bin:/bin"),
            ("TZ", "UTC"),
        ]
        .map(|(name, value)| (text(name), text(value)))
        .to_vec(),
        working_directory: text("/work"),
        limits: executor.limits.compile_command,
        events: false,
        required: false,
        only_after_success_of: None,
    };
    let steps = vec![
        Step::Write { path: text("/work/lines"), content: lines },
        Step::MakeDirectory { path: text(MUTANTS) },
        Step::Run(command),
        Step::SendArchive { root: text(MUTANTS), max_bytes: MOST_ARCHIVE_BYTES },
    ];
    let spec = ContainerSpec {
        purpose: text("mutate"),
        image: environment.image,
        mounts: vec![ReadOnlyMount { source: on_host, target: in_container }],
        door: None,
        scratch: vec![
            Scratch { target: text("/work"), size_bytes: executor.limits.compile_scratch_bytes },
            Scratch { target: text("/tmp"), size_bytes: executor.limits.compile_scratch_bytes / 4 },
        ],
        limits: executor.limits.compile,
        program: Program { schema: PROGRAM_SCHEMA, door_port: None, steps },
    };
    let run = {
        let _shared = executor.alone.read().await;
        match session::run(executor.engine.as_ref(), &spec, spool.path()).await {
            Ok(run) => run,
            Err(error) => return Ok(Err(NoMutants { cause: of_engine(&error).detail, may_pass: true })),
        }
    };
    let (Some(ended), Some(end)) = (run.step(2), command_end(&run, 2)) else {
        return Ok(Err(NoMutants { cause: not_done(&run, "mutator").detail, may_pass: true }));
    };
    if end.exit_code != Some(0) {
        let said = String::from_utf8_lossy(&ended.stderr.bytes()?).into_owned();
        return Ok(Err(NoMutants::certain(format!("the mutator failed: {said}"))));
    }
    if end.dropped_bytes > 0 {
        return Ok(Err(NoMutants::certain("the mutator says more than is kept, so that copies can't be counted")));
    }
    let copies = copied_lines(&ended.stdout.bytes()?);
    match run.step(3).filter(|step| step.result() == Some(&StepResult::Done)) {
        Some(archive) => Ok(read_mutants(archive, name, source)?.map(|emitted| (emitted, copies))),
        None => Ok(Err(NoMutants::certain("the mutants are too many to be sent"))),
    }
}

/// Returns the lines of the mutants that are the source itself. The mutator writes no file for such a one, but says what it
/// would be, as Python writes a pair of line and text, and then that it is a copy, in a line of its own.
fn copied_lines(stdout: &[u8]) -> Vec<usize> {
    let said = String::from_utf8_lossy(stdout);
    let mut before = "";
    let mut copies = Vec::new();
    for line in said.lines() {
        if line == "REDUNDANT (SOURCE COPY!)" {
            let number = before.strip_prefix('(').and_then(|pair| pair.split(',').next());
            copies.extend(number.and_then(|number| number.parse::<usize>().ok()));
        }
        before = line;
    }
    copies
}

/// Reads mutants from an archive of files `<base>.mutant.<number>.java`, in the order of their numbers.
fn read_mutants(archive: &StepOutput, name: &str, source: &str) -> std::io::Result<Result<Vec<Emitted>, NoMutants>> {
    let prefix = format!("{}.mutant.", name.strip_suffix(".java").unwrap_or(name));
    let bytes = archive.content.bytes()?;
    let mut mutants: BTreeMap<usize, Emitted> = BTreeMap::new();
    for entry in tar::Archive::new(&bytes[..]).entries()? {
        let mut entry = entry?;
        if entry.header().entry_type() != tar::EntryType::Regular {
            continue;
        }
        let path = entry.path_bytes().into_owned();
        let file = String::from_utf8_lossy(path.rsplit(|byte| *byte == b'/').next().unwrap_or(&path)).into_owned();
        let number = file.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".java"));
        let Some(number) = number.and_then(|number| number.parse::<usize>().ok()) else { continue };
        if mutants.len() >= MOST_MUTANTS || entry.size() > 2 * MOST_SOURCE_BYTES as u64 {
            return Ok(Err(NoMutants::certain("there are too many mutants, or too large ones")));
        }
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut text)?;
        let Ok(text) = String::from_utf8(text) else {
            return Ok(Err(NoMutants::certain("a mutant is not UTF-8")));
        };
        let same = source.split_inclusive('\n').zip(text.split_inclusive('\n')).take_while(|(one, other)| one == other);
        let line = same.count() + 1;
        mutants.insert(number, Emitted { line, text });
    }
    Ok(Ok(mutants.into_values().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_counted_by_what_the_mutator_says() {
        let said = "PROCESSING MUTANT: 3: int x;  ==>  int x;...** WARNING: SKIPPING GENERATING IDENTICAL MUTANT **\n\
            (3, 'int x;\\n', ('a', 'b'))\nREDUNDANT (SOURCE COPY!)\n\
            PROCESSING MUTANT: 4: // REDUNDANT (SOURCE COPY!)  ==>  //...VALID [written to x]\n";
        assert_eq!(copied_lines(said.as_bytes()), [3]);
    }
}
