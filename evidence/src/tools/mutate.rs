//! Mutants by Universal Mutator's own command, run twice. The first run has no check. In the second run, a command
//! checks each mutant: it compiles the mutant in the source's place, with javac and Maven's arguments for all sources
//! of the module.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use fs_err as fs;

use super::contain;
use testevo_sandbox::engine::session::ContainerRun;
use testevo_sandbox::engine::spec::{
    Command, CommandLimits, ContainerLimits, PROGRAM_SCHEMA, Program, ReadOnlyMount, Step,
};
use testevo_sandbox::execution::build::prepared::CompiledRevision;
use testevo_sandbox::execution::container::RepositoryImage;
use testevo_sandbox::execution::container::places::{HOME, PROJECT, TREE};
use testevo_sandbox::execution::container::steps::{command_end, done};
use testevo_sandbox::execution::container::temporary::Spool;
use testevo_sandbox::execution::executor::Executor;
use testevo_sandbox::execution::fault::{ExecutionError, NoAnswer, not_done};
use testevo_sandbox::execution::mutation::emission::{MOST_ARCHIVE_BYTES, mutator_environment, numbered, texts};
use testevo_sandbox::execution::mutation::{MutatedFile, as_mutated};
use testevo_sandbox::metrics::mutation::garbage;

/// The mutator's command, as people call it.
const MUTATE: &str = "/usr/bin/mutate";
/// Where the container has its inputs.
const INPUTS: &str = "/testevo/input";
/// What is mutated, and where javac finds it.
const EMITTED: &str = "/work/emitted";
const JUDGED: &str = "/work/judged";
const SEEN: &str = "/work/seen";
const ARGUMENTS: &str = "arguments";
/// The longest that one command may take, in seconds: a compiler for every mutant.
const MOST_SECONDS: u64 = 4 * 3_600;

/// Compiles what stands in the source's place and keeps it with the compiler's exit status. It may not hold the word that
/// the mutator would replace, so that the mutator puts each mutant in the source's place.
const JUDGE: &str = "\
number=$(cat /work/number)
echo $((number + 1)) > /work/number
cp \"$SOURCE\" /work/seen/$number.java
\"$JAVAC\" -J-XX:+UseSerialGC -J-XX:TieredStopAtLevel=1 @\"$INPUTS/arguments\"
status=$?
echo $status > /work/seen/$number.status
exit $status
";

/// The command's mutants of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandMutants {
    /// Texts of all mutants that its rules make, in order.
    pub(crate) made: Vec<String>,
    /// Texts of mutants on living lines, in order.
    pub(crate) emitted: Vec<String>,
    /// Mutants that compile.
    pub(crate) valid: Vec<String>,
    /// Those that do not.
    pub(crate) invalid: Vec<String>,
    /// Copies of the source left out on living lines.
    pub(crate) copies: usize,
    /// Lines that it takes for dead.
    pub(crate) dead_lines: BTreeSet<usize>,
}

/// Indexes of the steps.
const UNCHANGED: usize = 8;
const EMIT: usize = 9;
const CHECK: usize = 10;
const ARCHIVES: usize = 11;

/// Runs the command on a file; `tree` is the revision's compiled tree.
///
/// # Errors
/// [`ExecutionError`]; its I/O errors are of temporary files.
pub(crate) async fn mutate(
    executor: &Executor,
    image: &RepositoryImage,
    revision: &CompiledRevision,
    tree: PathBuf,
    file: &MutatedFile<'_>,
) -> Result<CommandMutants, ExecutionError> {
    let path = format!("{PROJECT}/{}", file.path);
    let Some(call) = revision.main_calls.iter().rev().find(|call| call.sources.contains(&path)) else {
        return Err(NoAnswer::never(format!("`{}` is no source that was compiled", file.path)).into());
    };
    let Ok(source) = std::str::from_utf8(file.source) else {
        return Err(NoAnswer::never("the source is not UTF-8").into());
    };
    let spool = Spool::create(&executor.temporary)?;
    let arguments = spool.path().join(ARGUMENTS);
    let lines: String = call.arguments.iter().chain(&call.sources).map(|argument| quoted(argument) + "\n").collect();
    fs::write(&arguments, lines)?;
    let mounts = vec![
        ReadOnlyMount { source: tree, target: TREE.to_owned() },
        ReadOnlyMount { source: arguments, target: format!("{INPUTS}/{ARGUMENTS}") },
    ];
    let program = program(executor, image, file, &path);
    let limits = ContainerLimits { wall_seconds: 2 * MOST_SECONDS, ..executor.limits.compile };
    let (run, _spool) = match contain(executor, image, "mutate", mounts, limits, program).await? {
        Ok(run) => run,
        Err(cause) => return Err(NoAnswer::fault(cause).into()),
    };
    let name = file.path.rsplit('/').next().unwrap_or(file.path);
    made(&run, name, &as_mutated(source))
}

fn program(executor: &Executor, image: &RepositoryImage, file: &MutatedFile<'_>, path: &str) -> Program {
    let limits =
        CommandLimits { wall_seconds: MOST_SECONDS, cpu_seconds: 2 * MOST_SECONDS, ..executor.limits.compile_command };
    let mut variables = mutator_environment();
    variables.extend([
        ("INPUTS".to_owned(), INPUTS.to_owned()),
        ("JAVAC".to_owned(), format!("{}/bin/javac", image.java_home)),
        ("SOURCE".to_owned(), path.to_owned()),
    ]);
    let command = |words: &[&str]| {
        Step::Run(Command {
            argv: words.iter().map(|word| (*word).to_owned()).collect(),
            environment: variables.clone(),
            working_directory: HOME.to_owned(),
            limits,
            events: false,
            required: true,
            only_after_success_of: None,
        })
    };
    let directory = |path: &str| Step::MakeDirectory { path: path.to_owned() };
    let write = |path: &str, content: String| Step::Write { path: path.to_owned(), content };
    let archive = |root: &str| Step::SendArchive { root: root.to_owned(), max_bytes: MOST_ARCHIVE_BYTES };
    let judge = "sh /work/judge";
    let steps = vec![
        directory(HOME),
        Step::Unpack { archive: TREE.to_owned(), into: PROJECT.to_owned() },
        directory(EMITTED),
        directory(JUDGED),
        directory(SEEN),
        write("/work/lines", file.lines.iter().map(|line| format!("{line}\n")).collect()),
        write("/work/judge", JUDGE.to_owned()),
        write("/work/number", "0\n".to_owned()),
        command(&["/bin/sh", "-c", &format!("{judge} && rm {SEEN}/* && echo 0 > /work/number")]),
        command(&[MUTATE, path, "java", "--noCheck", "--lines", "/work/lines", "--mutantDir", EMITTED]),
        command(&[MUTATE, path, "java", "--lines", "/work/lines", "--mutantDir", JUDGED, "--cmd", judge]),
        archive(EMITTED),
        archive(JUDGED),
        archive(SEEN),
    ];
    Program { schema: PROGRAM_SCHEMA, door_port: None, steps }
}

/// Returns an argument as a compiler's file of arguments has it.
fn quoted(argument: &str) -> String {
    let escaped = argument.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

fn made(run: &ContainerRun, name: &str, source: &str) -> Result<CommandMutants, ExecutionError> {
    for (step, what) in [
        (UNCHANGED, "javac does not compile the unchanged sources"),
        (EMIT, "`mutate --noCheck` fails"),
        (CHECK, "`mutate --cmd` fails"),
    ] {
        let Some(end) = command_end(run, step) else {
            return Err(not_done(run, "mutate").into());
        };
        if end.exit_code != Some(0) {
            let said = match run.step(step) {
                Some(output) => String::from_utf8_lossy(&output.stderr.bytes()?).into_owned(),
                None => String::new(),
            };
            return Err(NoAnswer::never(format!("{what}: {said}")).into());
        }
    }
    let mut archives = Vec::new();
    for step in ARCHIVES..ARCHIVES + 3 {
        let Some(archive) = done(run, step) else {
            return Err(not_done(run, "mutants").into());
        };
        archives.push(texts(archive)?);
    }
    let said = match run.step(CHECK) {
        Some(output) => String::from_utf8_lossy(&output.stdout.bytes()?).into_owned(),
        None => String::new(),
    };
    let [emitted, judged, seen] = &archives[..] else { unreachable!("three archives were read") };
    let made = numbered(emitted, name).into_values().collect();
    let valid = numbered(judged, name).into_values().collect();
    Ok(joined(made, valid, seen, &said, source).map_err(NoAnswer::never)?)
}

/// Joins what the command wrote, what its check saw, and what it says at its end, which must all fit.
fn joined(
    made: Vec<String>,
    valid: Vec<String>,
    seen: &BTreeMap<String, String>,
    said: &str,
    source: &str,
) -> Result<CommandMutants, String> {
    let lines: Vec<&str> = source.split_inclusive('\n').collect();
    let mut mutants = CommandMutants { made, ..CommandMutants::default() };
    let (mut compiled, mut checked) = (Vec::new(), BTreeSet::new());
    for number in 0.. {
        let Some(text) = seen.get(&format!("{number}.java")) else { break };
        let status = seen.get(&format!("{number}.status")).map(|status| status.trim());
        let Some(status) = status else { return Err(format!("there is no status of text {number}")) };
        let compiles = status == "0";
        // The mutator puts garbage on a line before its first mutant.
        if let Some(line) = spoilt_line(&lines, text)
            && checked.insert(line)
        {
            mutants.dead_lines.extend(compiles.then_some(line));
            continue;
        }
        mutants.emitted.push(text.clone());
        if compiles { &mut compiled } else { &mut mutants.invalid }.push(text.clone());
    }
    let counts = ["VALID", "INVALID", "REDUNDANT"].map(|kind| count(said, kind));
    let [Some(valids), Some(invalids), Some(copies)] = counts else {
        return Err("`mutate` does not say how many mutants it made".to_owned());
    };
    if (valids, invalids) != (valid.len(), mutants.invalid.len()) || valid != compiled {
        let (found, seen) = (valid.len(), mutants.invalid.len());
        return Err(format!(
            "`mutate` says {valids} valid and {invalids} invalid; it wrote {found}, and its check saw {} and {seen}",
            compiled.len()
        ));
    }
    Ok(CommandMutants { valid, copies, ..mutants })
}

/// Returns the line of a source on which a text has its garbage, where that is all that it changes.
fn spoilt_line(source: &[&str], text: &str) -> Option<usize> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let same = source.iter().zip(&lines).take_while(|(own, other)| own == other).count();
    let own = source.get(same)?;
    let spoilt = lines.len() == source.len() && lines[same] == garbage(own) && lines[same + 1..] == source[same + 1..];
    spoilt.then_some(same + 1)
}

/// Returns the number in a line such as `12 VALID MUTANTS`.
fn count(said: &str, kind: &str) -> Option<usize> {
    let mut numbers = said.lines().filter_map(|line| {
        let rest = line.strip_suffix(" MUTANTS")?.strip_suffix(kind)?.strip_suffix(' ')?;
        rest.parse().ok()
    });
    numbers.next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "a();\n// b\nc();\n";
    const SAID: &str =
        "a VALID MUTANTS\n3 MUTANTS GENERATED BY RULES\n2 VALID MUTANTS\n1 INVALID MUTANTS\n0 REDUNDANT MUTANTS\n";

    fn seen(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
        let numbered = texts.iter().enumerate();
        let files = numbered.flat_map(|(number, (text, status))| {
            [(format!("{number}.java"), (*text).to_owned()), (format!("{number}.status"), format!("{status}\n"))]
        });
        files.collect()
    }

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn garbage_is_told_from_mutants() {
        let lines: Vec<&str> = SOURCE.split_inclusive('\n').collect();
        assert_eq!(spoilt_line(&lines, "Q QQ\n// b\nc();\n"), Some(1));
        assert_eq!(spoilt_line(&lines, "a();\n// Q\nc();\n"), Some(2));
        for other in [SOURCE, "b();\n// b\nc();\n", "Q QQ\n// b\n", "Q QQ\n// Q\nc();\n", "a();\n// b\nc();\nd\n"] {
            assert_eq!(spoilt_line(&lines, other), None, "{other}");
        }
    }

    #[test]
    fn what_the_command_says_and_what_it_wrote_must_fit() {
        let (first, second, third) = ("b();\n// b\nc();\n", "a();\n// b\nd();\n", "a();\n// b\n;\n");
        let seen = seen(&[
            ("Q QQ\n// b\nc();\n", "1"),
            (first, "0"),
            ("a();\n// Q\nc();\n", "0"),
            ("a();\n// b\nQ QQ\n", "1"),
            (second, "1"),
            (third, "0"),
        ]);
        let joined = |valid: &[&str], said: &str| joined(owned(&["made"]), owned(valid), &seen, said, SOURCE);
        let mutants = joined(&[first, third], SAID).unwrap();
        assert_eq!((mutants.made, mutants.emitted), (owned(&["made"]), owned(&[first, second, third])));
        assert_eq!((mutants.valid, mutants.invalid), (owned(&[first, third]), owned(&[second])));
        assert_eq!((mutants.dead_lines, mutants.copies), (BTreeSet::from([2]), 0));
        assert!(joined(&[first], SAID).is_err());
        assert!(joined(&[first, second], SAID).is_err());
        assert!(joined(&[first, third], &SAID.replace("1 INVALID", "2 INVALID")).is_err());
        assert!(joined(&[first, third], "").is_err());
    }

    #[test]
    fn arguments_are_quoted() {
        assert_eq!(quoted("a \"b\" \\ c"), "\"a \\\"b\\\" \\\\ c\"");
    }

    #[test]
    fn the_judge_compiles_in_place() {
        assert!(!JUDGE.contains("MUTANT"));
    }
}
