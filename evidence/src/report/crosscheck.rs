//! The report of crosschecked tasks: scoring's coverage and mutants beside those of Maven, JaCoCo and Universal
//! Mutator's command. Pure: both come in as values, and every difference is named.

mod formats;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub(crate) use self::formats::{markdown, text};
use crate::report::measurement::Spread;
use crate::tools::mutate::CommandMutants;
use crate::tools::rebuilt::MutantEnd;
use testevo_sandbox::execution::launch::coverage::{Lines, SourceFile, focal_coverage};
use testevo_sandbox::execution::mutation::{JudgedMutants, MutatedFile};
use testevo_sandbox::execution::run::record::ExecutionPath;
use testevo_sandbox::focal::FocalLines;
use testevo_sandbox::metrics::coverage::{coverage, coverage_range};
use testevo_sandbox::task::{MethodId, RepositoryName, TaskId};

/// Version of crosschecked tasks and of their summary.
pub(crate) const CROSSCHECK_SCHEMA: u32 = 2;

/// The least number of tasks for a statement.
pub(crate) const LEAST_TASKS: usize = 20;

/// Of what only one side has so many are named.
const MOST_NAMED: usize = 20;

/// Our value, and the other tool's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Both<T> {
    /// As scoring has it.
    pub(crate) ours: T,
    /// The other tool's value.
    pub(crate) theirs: T,
}

/// Two collections in which the same may stand several times, in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Compared {
    /// The number of our items.
    pub(crate) ours: usize,
    /// The number of the other tool's items.
    pub(crate) theirs: usize,
    /// Items that only we have, or have more often; only the first few are kept.
    pub(crate) only_ours: Vec<String>,
    /// Items that only the other tool has, or has more often; only the first few are kept.
    pub(crate) only_theirs: Vec<String>,
}

impl Compared {
    /// Compares; `name` says which one something is.
    pub(crate) fn of<T: Ord>(
        ours: impl IntoIterator<Item = T>,
        theirs: impl IntoIterator<Item = T>,
        name: impl Fn(&T) -> String,
    ) -> Self {
        let mut balances: BTreeMap<T, i64> = BTreeMap::new();
        let mut compared = Self::default();
        for one in ours {
            compared.ours += 1;
            *balances.entry(one).or_default() += 1;
        }
        for one in theirs {
            compared.theirs += 1;
            *balances.entry(one).or_default() -= 1;
        }
        for (one, balance) in &balances {
            let only = if *balance > 0 { &mut compared.only_ours } else { &mut compared.only_theirs };
            if *balance != 0 && only.len() < MOST_NAMED {
                only.push(name(one));
            }
        }
        compared
    }

    /// Describes what only one side has; empty if both are equal.
    fn differences(&self, what: &str) -> Vec<String> {
        let said = |only: &[String], whose: &str| {
            (!only.is_empty()).then(|| format!("{what} only {whose}: {}", only.join(", ")))
        };
        said(&self.only_ours, "ours").into_iter().chain(said(&self.only_theirs, "theirs")).collect()
    }
}

/// The setting of a crosscheck.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CheckSetting {
    /// The engine and its version.
    pub(crate) engine: String,
    /// This program's version.
    pub(crate) version: String,
}

/// One task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CheckedTask {
    /// [`CROSSCHECK_SCHEMA`].
    pub(crate) schema: u32,
    /// Where.
    pub(crate) setting: CheckSetting,
    /// The task.
    pub(crate) task_id: TaskId,
    /// Its repository.
    pub(crate) repository: RepositoryName,
    /// Coverage by target method.
    pub(crate) coverage: Vec<CheckedMethod>,
    /// Mutants by file.
    pub(crate) mutants: Vec<CheckedMutants>,
    /// Why nothing of the task could be compared.
    pub(crate) left_out: Option<String>,
    /// Whether a fault of ours prevented a comparison, so that another try may succeed.
    pub(crate) lost: bool,
}

/// The coverage of one target method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CheckedMethod {
    /// The method.
    pub(crate) method: MethodId,
    /// Our path.
    pub(crate) path: ExecutionPath,
    /// Tests that Surefire ran for it.
    pub(crate) tests: Vec<String>,
    /// The focal methods' source files.
    pub(crate) files: Vec<CheckedFile>,
    /// Over executable lines, percent.
    pub(crate) coverage: Both<Option<f64>>,
    /// Over all lines of the focal methods, percent.
    pub(crate) coverage_range: Both<Option<f64>>,
    /// Why the method could not be compared.
    pub(crate) left_out: Option<String>,
}

/// Lines of one source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CheckedFile {
    /// The file.
    #[serde(flatten)]
    pub(crate) file: SourceFile,
    /// Lines that JaCoCo lists.
    pub(crate) listed: Compared,
    /// Listed lines with an executed instruction.
    pub(crate) covered: Compared,
}

/// Mutants of one source file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct CheckedMutants {
    /// The file.
    pub(crate) path: String,
    /// The number of lines to mutate.
    pub(crate) lines: usize,
    /// All mutants that the rules make.
    pub(crate) made: Compared,
    /// Mutants on living lines.
    pub(crate) emitted: Compared,
    /// Distinct mutants that compile.
    pub(crate) valid: Compared,
    /// Distinct mutants that do not compile.
    pub(crate) invalid: Compared,
    /// Lines taken for dead.
    pub(crate) dead_lines: Compared,
    /// Copies of the source left out on living lines.
    pub(crate) copies: Both<usize>,
    /// Outcomes of some of the mutants, if requested.
    pub(crate) ends: Option<CheckedEnds>,
    /// Why they could not be compared.
    pub(crate) left_out: Option<String>,
}

/// Outcomes of mutants of one source file. We compile with the warm compiler and launch method by method. Maven
/// compiles and runs all methods in one call, in one container that has built the source before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CheckedEnds {
    /// Methods run on each mutant.
    pub(crate) methods: usize,
    /// Number of distinct mutants on living lines; the compared ones are some of these.
    pub(crate) distinct: usize,
    /// Our time for making all of the file's mutants and judging which compile, in milliseconds.
    pub(crate) judging_ms: u64,
    /// Our time before the first compared mutant could be compiled, in milliseconds.
    pub(crate) beginning_ms: u64,
    /// The mutants.
    pub(crate) mutants: Vec<CheckedEnd>,
    /// Mutants whose outcome Maven does not tell, with the reason.
    pub(crate) unknown: Vec<String>,
    /// Why they could not be compared.
    pub(crate) left_out: Option<String>,
}

/// The outcome of one mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CheckedEnd {
    /// The mutant's name.
    pub(crate) name: String,
    /// The mutant's outcome on both sides.
    pub(crate) end: Both<MutantEnd>,
    /// In milliseconds, ours without judging.
    pub(crate) ms: Both<u64>,
    /// A limit ended it on one side, so its times say nothing.
    pub(crate) limited: bool,
}

impl CheckedEnds {
    /// Returns mutants that could not be compared.
    pub(crate) fn left_out(reason: String) -> Self {
        Self { left_out: Some(reason), ..Self::default() }
    }

    /// Returns the times of the mutants that no limit ended, in milliseconds. Ours includes their share of judging all
    /// mutants. `None` without such mutants.
    pub(crate) fn took(&self) -> Option<Both<f64>> {
        let timed: Vec<&CheckedEnd> = self.mutants.iter().filter(|one| !one.limited).collect();
        let sum = |ms: fn(&CheckedEnd) -> u64| timed.iter().map(|one| ms(one)).sum::<u64>() as f64;
        let share = timed.len() as f64 / self.distinct.max(1) as f64;
        let before = self.judging_ms as f64 * share + self.beginning_ms as f64;
        (!timed.is_empty()).then(|| Both { ours: sum(|one| one.ms.ours) + before, theirs: sum(|one| one.ms.theirs) })
    }

    /// Returns what differs, in words.
    fn differences(&self) -> Vec<String> {
        let differing = self.mutants.iter().filter(|one| one.end.ours != one.end.theirs);
        differing.map(|one| format!("{}: ours {:?}, theirs {:?}", one.name, one.end.ours, one.end.theirs)).collect()
    }
}

impl CheckedMethod {
    /// Returns a method that could not be compared.
    pub(crate) fn left_out(method: MethodId, path: ExecutionPath, reason: String) -> Self {
        let (tests, files, left_out) = (Vec::new(), Vec::new(), Some(reason));
        Self { method, path, tests, files, coverage: Both::default(), coverage_range: Both::default(), left_out }
    }

    /// Compares a method's coverage of the files of its task's focal methods.
    pub(crate) fn of(
        (method, path, tests): (MethodId, ExecutionPath, Vec<String>),
        (focal, files): (&[FocalLines], &[SourceFile]),
        ours: &BTreeMap<SourceFile, Lines>,
        theirs: &BTreeMap<SourceFile, Lines>,
    ) -> Self {
        let files: Vec<CheckedFile> = files.iter().map(|file| CheckedFile::of(file, ours, theirs)).collect();
        if files.iter().all(|file| file.listed.ours == 0 && file.listed.theirs == 0) {
            return Self::left_out(method, path, "JaCoCo lists no line of the focal methods' files".to_owned());
        }
        let (focal_ours, focal_theirs) = (focal_coverage(focal, ours), focal_coverage(focal, theirs));
        Self {
            method,
            path,
            tests,
            files,
            coverage: Both { ours: coverage(&focal_ours), theirs: coverage(&focal_theirs) },
            coverage_range: Both { ours: coverage_range(&focal_ours), theirs: coverage_range(&focal_theirs) },
            left_out: None,
        }
    }

    /// Returns what differs, in words.
    fn differences(&self) -> Vec<String> {
        let mut differences = Vec::new();
        for CheckedFile { file, listed, covered } in &self.files {
            let name = format!("{}/{}", file.package, file.name);
            differences.extend(listed.differences(&format!("{name}: listed lines")));
            differences.extend(covered.differences(&format!("{name}: covered lines")));
        }
        for (name, both) in [("coverage", &self.coverage), ("coverage_range", &self.coverage_range)] {
            if both.ours != both.theirs {
                differences.push(format!("{name}: ours {:?}, theirs {:?}", both.ours, both.theirs));
            }
        }
        differences
    }
}

impl CheckedFile {
    fn of(file: &SourceFile, ours: &BTreeMap<SourceFile, Lines>, theirs: &BTreeMap<SourceFile, Lines>) -> Self {
        let none = Lines::new();
        let (ours, theirs) = (ours.get(file).unwrap_or(&none), theirs.get(file).unwrap_or(&none));
        let covered = |lines: &Lines| -> Vec<usize> {
            lines.iter().filter(|(_, covered)| **covered).map(|(line, _)| *line).collect()
        };
        Self {
            file: file.clone(),
            listed: Compared::of(ours.keys(), theirs.keys(), |line| line.to_string()),
            covered: Compared::of(covered(ours), covered(theirs), usize::to_string),
        }
    }
}

impl CheckedMutants {
    /// Returns a file whose mutants could not be compared.
    pub(crate) fn left_out(path: &str, lines: usize, reason: String) -> Self {
        Self { path: path.to_owned(), lines, left_out: Some(reason), ..Self::default() }
    }

    /// Compares a file's mutants.
    pub(crate) fn of(file: &MutatedFile<'_>, ours: &JudgedMutants, theirs: &CommandMutants) -> Self {
        let source = ours.source.as_str();
        let compared = |ours: Vec<&str>, theirs: &[String]| {
            Compared::of(ours, theirs.iter().map(String::as_str), |text| named(source, text))
        };
        // The command counts each as often as it makes it; we judge it once.
        let distinct = |texts: &[String]| -> Vec<String> {
            let texts: BTreeSet<&String> = texts.iter().filter(|text| *text != source).collect();
            texts.into_iter().cloned().collect()
        };
        Self {
            path: file.path.to_owned(),
            lines: file.lines.len(),
            made: compared(ours.made.iter().map(|one| one.text.as_str()).collect(), &theirs.made),
            emitted: compared(ours.emitted().map(|(_, one)| one.text.as_str()).collect(), &theirs.emitted),
            valid: compared(ours.texts(&ours.valid).collect(), &distinct(&theirs.valid)),
            invalid: compared(ours.texts(&ours.invalid).collect(), &distinct(&theirs.invalid)),
            dead_lines: Compared::of(&ours.dead_lines, &theirs.dead_lines, |line| line.to_string()),
            copies: Both { ours: ours.copies_left_out(), theirs: theirs.copies },
            ends: None,
            left_out: None,
        }
    }

    /// Returns what differs, in words.
    fn differences(&self) -> Vec<String> {
        let parts = [
            ("made", &self.made),
            ("emitted", &self.emitted),
            ("valid", &self.valid),
            ("invalid", &self.invalid),
            ("dead lines", &self.dead_lines),
        ];
        let mut differences: Vec<String> =
            parts.iter().flat_map(|(what, compared)| compared.differences(what)).collect();
        if self.copies.ours != self.copies.theirs {
            differences.push(format!("copies: ours {}, theirs {}", self.copies.ours, self.copies.theirs));
        }
        differences
    }
}

/// Names a mutant by its changed line.
pub(crate) fn named(source: &str, mutant: &str) -> String {
    let lines = source.lines().zip(mutant.lines()).enumerate();
    let changed = lines.into_iter().find(|(_, (own, other))| own != other);
    changed.map_or_else(
        || "one that is longer or shorter".to_owned(),
        |(index, (_, text))| format!("{}: {}", index + 1, text.trim()),
    )
}

/// Counts of the comparisons of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Count {
    /// Tasks of which something was compared.
    pub(crate) tasks: usize,
    /// Tasks in which everything compared is equal.
    pub(crate) tasks_equal: usize,
    /// Whether these tasks are enough for a statement.
    pub(crate) enough: bool,
    /// Compared methods, or compared files with mutants.
    pub(crate) compared: usize,
    /// Equal ones among these.
    pub(crate) equal: usize,
    /// Methods or files that could not be compared.
    pub(crate) left_out: usize,
}

/// The report of all crosschecked tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Crosscheck {
    /// [`CROSSCHECK_SCHEMA`].
    pub(crate) schema: u32,
    /// The settings, each once.
    pub(crate) settings: Vec<CheckSetting>,
    /// Coverage, by method.
    pub(crate) coverage: Count,
    /// Lines that our coverage lists in the compared files, over methods, and covered ones among these.
    pub(crate) lines: (usize, usize),
    /// Mutants, by file.
    pub(crate) mutants: Count,
    /// Our compared mutants: made, emitted, valid, invalid.
    pub(crate) mutants_compared: [usize; 4],
    /// Outcomes of mutants, by file.
    pub(crate) ends: Count,
    /// Mutants with compared outcomes, by our outcome: invalid, killed, survived.
    pub(crate) ends_compared: [usize; 3],
    /// Ratio of Maven's time to ours for a file's mutants, over files; `None` without any.
    pub(crate) speed: Option<Spread>,
    /// The total times of these mutants, in milliseconds.
    pub(crate) took_ms: Both<f64>,
    /// The differences, in words.
    pub(crate) differences: Vec<String>,
    /// The failed comparisons, with reasons.
    pub(crate) left_out: Vec<String>,
    /// All crosschecked tasks.
    pub(crate) tasks: Vec<CheckedTask>,
}

/// Something that was compared, or was not.
struct Part {
    name: String,
    left_out: Option<String>,
    differences: Vec<String>,
}

/// Returns the report of crosschecked tasks.
pub(crate) fn crosscheck(tasks: Vec<CheckedTask>) -> Crosscheck {
    let mut crosscheck = Crosscheck {
        schema: CROSSCHECK_SCHEMA,
        settings: Vec::new(),
        coverage: Count::default(),
        lines: (0, 0),
        mutants: Count::default(),
        mutants_compared: [0; 4],
        ends: Count::default(),
        ends_compared: [0; 3],
        speed: None,
        took_ms: Both::default(),
        differences: Vec::new(),
        left_out: Vec::new(),
        tasks: Vec::new(),
    };
    let mut speeds = Vec::new();
    for task in &tasks {
        if !crosscheck.settings.contains(&task.setting) {
            crosscheck.settings.push(task.setting.clone());
        }
        crosscheck.left_out.extend(task.left_out.iter().map(|reason| format!("{}: {reason}", task.task_id)));
        let methods = task.coverage.iter().map(|one| Part {
            name: one.method.to_string(),
            left_out: one.left_out.clone(),
            differences: one.differences(),
        });
        let files = task.mutants.iter().map(|one| Part {
            name: format!("mutants of {}", one.path),
            left_out: one.left_out.clone(),
            differences: one.differences(),
        });
        let ends = task.mutants.iter().filter_map(|one| Some((one, one.ends.as_ref()?))).map(|(one, ends)| Part {
            name: format!("what becomes of mutants of {}", one.path),
            left_out: ends.left_out.clone(),
            differences: ends.differences(),
        });
        let (methods, files): (Vec<Part>, Vec<Part>) = (methods.collect(), files.collect());
        let ends: Vec<Part> = ends.collect();
        for part in methods.iter().chain(&files).chain(&ends) {
            let named = |what: &String| format!("{} {}: {what}", task.task_id, part.name);
            crosscheck.left_out.extend(part.left_out.iter().map(named));
            crosscheck.differences.extend(part.differences.iter().map(named));
        }
        crosscheck.coverage.add(&methods);
        crosscheck.mutants.add(&files);
        crosscheck.ends.add(&ends);
        for (file, ends) in task.mutants.iter().filter_map(|one| Some((one, one.ends.as_ref()?))) {
            for one in &ends.mutants {
                let place = match one.end.ours {
                    MutantEnd::Invalid => 0,
                    MutantEnd::Killed => 1,
                    MutantEnd::Survived => 2,
                };
                crosscheck.ends_compared[place] += 1;
            }
            let unknown = ends.unknown.iter().map(|one| format!("{} mutant of {}: {one}", task.task_id, file.path));
            crosscheck.left_out.extend(unknown);
            if let Some(took) = ends.took() {
                speeds.push(took.theirs / took.ours.max(1.0));
                crosscheck.took_ms.ours += took.ours;
                crosscheck.took_ms.theirs += took.theirs;
            }
        }
        for file in task.coverage.iter().flat_map(|one| &one.files) {
            crosscheck.lines.0 += file.listed.ours;
            crosscheck.lines.1 += file.covered.ours;
        }
        for one in &task.mutants {
            let ours = [&one.made, &one.emitted, &one.valid, &one.invalid].map(|compared| compared.ours);
            crosscheck.mutants_compared.iter_mut().zip(ours).for_each(|(sum, number)| *sum += number);
        }
    }
    Crosscheck { tasks, speed: Spread::of(speeds), ..crosscheck }
}

impl Count {
    /// Adds the parts of a task.
    fn add(&mut self, parts: &[Part]) {
        let compared: Vec<&Part> = parts.iter().filter(|part| part.left_out.is_none()).collect();
        let equal = compared.iter().filter(|part| part.differences.is_empty()).count();
        self.left_out += parts.len() - compared.len();
        self.compared += compared.len();
        self.equal += equal;
        self.tasks += usize::from(!compared.is_empty());
        self.tasks_equal += usize::from(!compared.is_empty() && equal == compared.len());
        self.enough = self.tasks >= LEAST_TASKS;
    }
}

#[cfg(test)]
mod tests;
