//! Runs Universal Mutator in a container, without its own compile check, and reads its mutants.

use std::collections::BTreeMap;

use fs_err as fs;

use super::{MOST_SOURCE_BYTES, MutatedFile};
use crate::engine::session::{self, StepOutput};
use crate::engine::spec::{Command, ContainerSpec, PROGRAM_SCHEMA, Program, ReadOnlyMount, Scratch, Step, StepResult};
use crate::execution::attempt::ATTEMPTS;
use crate::execution::container::RepositoryImage;
use crate::execution::container::steps::{command_end, done};
use crate::execution::container::temporary::Spool;
use crate::execution::executor::Executor;
use crate::execution::fault::{ExecutionError, NoAnswer, engine_fault, not_done};
use crate::metrics::mutation::Emitted;

const PYTHON: &str = "/usr/bin/python3";
const MUTANTS: &str = "/work/mutants";
/// The name of the record in the archive of mutants.
const RECORD: &str = "record";
/// The largest archive of mutants, in bytes: some thousands of whole files.
pub const MOST_ARCHIVE_BYTES: u64 = 256 << 20;
/// The most mutants of one file.
const MOST_MUTANTS: usize = 20_000;

/// Runs the mutator as its command does. For each mutant that it writes, or leaves out as a copy of the source, records
/// the line that it takes for mutated. The text does not show that line: some mutants add a line after an unchanged
/// one.
const DRIVER: &str = "\
import runpy
import sys
sys.path.append('/opt/python')
from universalmutator import mutator
make = mutator.makeMutant
record = open(sys.argv.pop(1), 'w')
def recorded(source, mutant, path):
    made = make(source, mutant, path)
    record.write('%d %d\\n' % (mutant[0], made))
    return made
mutator.makeMutant = recorded
try:
    runpy.run_path('/usr/bin/mutate', run_name='__main__')
finally:
    record.close()
";

/// The mutants of a source, as the mutator made them.
pub struct Emission {
    /// Mutants, in order.
    pub(super) mutants: Vec<Emitted>,
    /// Lines of the left-out copies of the source, one for each copy.
    pub(super) copies: Vec<usize>,
}

/// Runs the mutator on `source`; after a fault of ours again, at most [`ATTEMPTS`] times in all.
///
/// # Errors
/// [`ExecutionError`]; its I/O errors are of logs and temporary files.
pub(super) async fn emit(
    executor: &Executor,
    image: &RepositoryImage,
    file: &MutatedFile<'_>,
    source: &str,
) -> Result<Emission, ExecutionError> {
    let mut attempt = 1;
    loop {
        match emit_once(executor, image, file, source).await {
            Err(ExecutionError::NoAnswer(reason)) if reason.may_pass() && attempt < ATTEMPTS => attempt += 1,
            emission => return emission,
        }
    }
}

async fn emit_once(
    executor: &Executor,
    image: &RepositoryImage,
    file: &MutatedFile<'_>,
    source: &str,
) -> Result<Emission, ExecutionError> {
    let spool = Spool::create(&executor.temporary)?;
    let name = file.path.rsplit('/').next().unwrap_or(file.path);
    let (on_host, in_container) = (spool.path().join("source.java"), format!("/testevo/input/{name}"));
    fs::write(&on_host, source)?;
    let lines: String = file.lines.iter().map(|line| format!("{line}\n")).collect();
    let text = |text: &str| text.to_owned();
    let record = format!("{MUTANTS}/{RECORD}");
    let mutate = [&in_container, "java", "--noCheck", "--lines", "/work/lines", "--mutantDir", MUTANTS];
    let command = Command {
        argv: [PYTHON, "-c", DRIVER, &record].into_iter().chain(mutate).map(text).collect(),
        environment: mutator_environment(),
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
        image: image.config_digest,
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
        let _shared = executor.exclusive.read().await;
        session::run(executor.engine.as_ref(), &spec, spool.path()).await.map_err(|error| engine_fault(&error))?
    };
    let (Some(ended), Some(end)) = (run.step(2), command_end(&run, 2)) else {
        return Err(not_done(&run, "mutator").into());
    };
    let Some(exit_code) = end.exit_code else {
        return Err(NoAnswer::fault(format!("the mutator was ended: {end:?}")).into());
    };
    if exit_code != 0 {
        let said = String::from_utf8_lossy(&ended.stderr.bytes()?).into_owned();
        return Err(NoAnswer::never(format!("the mutator failed: {said}")).into());
    }
    match done(&run, 3) {
        Some(archive) => read(archive, name),
        None if matches!(run.step(3).and_then(StepOutput::result), Some(StepResult::Refused { .. })) => {
            Err(NoAnswer::never("the mutants are too many to be sent").into())
        }
        None => Err(not_done(&run, "mutants").into()),
    }
}

/// Returns the mutator's environment variables.
pub fn mutator_environment() -> Vec<(String, String)> {
    let variables = [
        ("HOME", "/work"),
        ("LANG", "en_US.UTF-8"),
        ("LC_ALL", "en_US.UTF-8"),
        ("PATH", "/usr/bin:/bin"),
        // The mutator iterates over sets, whose order depends on this seed.
        ("PYTHONHASHSEED", "0"),
        ("TZ", "UTC"),
    ];
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// Reads the record and mutants from an archive of files `<base>.mutant.<number>.java`, in the order of their numbers.
fn read(archive: &StepOutput, name: &str) -> Result<Emission, ExecutionError> {
    let files = texts(archive)?;
    Ok(emission(files.get(RECORD).map_or("", String::as_str), numbered(&files, name))?)
}

/// Returns the mutants of a source file among the files that the mutator wrote, by number.
pub fn numbered(files: &BTreeMap<String, String>, name: &str) -> BTreeMap<usize, String> {
    let prefix = format!("{}.mutant.", name.strip_suffix(".java").unwrap_or(name));
    let number = |file: &str| file.strip_prefix(&prefix)?.strip_suffix(".java")?.parse::<usize>().ok();
    files.iter().filter_map(|(file, text)| Some((number(file)?, text.clone()))).collect()
}

/// Reads the files of an archive, named without their directories. A file that is larger than a mutant may be is an
/// error.
pub fn texts(archive: &StepOutput) -> Result<BTreeMap<String, String>, ExecutionError> {
    let bytes = archive.content.bytes()?;
    let mut files = BTreeMap::new();
    for entry in tar::Archive::new(&bytes[..]).entries()? {
        let mut entry = entry?;
        if entry.header().entry_type() != tar::EntryType::Regular {
            continue;
        }
        let path = entry.path_bytes().into_owned();
        let file = String::from_utf8_lossy(path.rsplit(|byte| *byte == b'/').next().unwrap_or(&path)).into_owned();
        if files.len() >= MOST_MUTANTS || entry.size() > 2 * MOST_SOURCE_BYTES as u64 {
            return Err(NoAnswer::never("there are too many mutants, or too large ones").into());
        }
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut text)?;
        let Ok(text) = String::from_utf8(text) else {
            return Err(NoAnswer::never("a mutant is not UTF-8").into());
        };
        files.insert(file, text);
    }
    Ok(files)
}

/// Joins the record's lines with the texts.
fn emission(record: &str, texts: BTreeMap<usize, String>) -> Result<Emission, NoAnswer> {
    let odd = || NoAnswer::never("what the mutator made is not what it says that it made");
    let (mut made, mut copies) = (Vec::new(), Vec::new());
    for entry in record.lines() {
        let (line, was_made) = entry.split_once(' ').ok_or_else(odd)?;
        let line: usize = line.parse().map_err(|_| odd())?;
        if was_made == "1" { made.push(line) } else { copies.push(line) }
    }
    if made.len() != texts.len() || texts.keys().copied().ne(0..made.len()) {
        return Err(odd());
    }
    let mutants = made.into_iter().zip(texts.into_values()).map(|(line, text)| Emitted { line, text }).collect();
    Ok(Emission { mutants, copies })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutants_have_the_line_that_the_mutator_says() {
        let texts = BTreeMap::from([(0, "a".to_owned()), (1, "b".to_owned())]);
        let emitted = emission("4 1\n4 0\n9 1\n", texts.clone()).unwrap();
        let mutants: Vec<(usize, &str)> = emitted.mutants.iter().map(|one| (one.line, one.text.as_str())).collect();
        assert_eq!((mutants, emitted.copies), (vec![(4, "a"), (9, "b")], vec![4]));
        for record in ["4 1\n", "4 1\n9 1\n9 1\n", "4 1\nx 1\n", ""] {
            assert!(emission(record, texts.clone()).is_err(), "{record}");
        }
    }
}
