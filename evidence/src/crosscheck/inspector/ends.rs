//! Outcomes of mutants: some mutants of a file, run as scoring runs them and built by Maven, with the times of both.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{InspectError, Inspector, Subject};
use crate::report::crosscheck::{Both, CheckedEnd, CheckedEnds, named};
use crate::tools::rebuilt::{MutantEnd, Rebuilt, rebuild};
use testevo_sandbox::execution::build::merged::OpenTree;
use testevo_sandbox::execution::container::temporary::TemporaryFile;
use testevo_sandbox::execution::direct::{Swap, SwappedTree};
use testevo_sandbox::execution::fault::{NoAnswer, Remedy};
use testevo_sandbox::execution::launch::{LaunchOptions, MethodLaunch};
use testevo_sandbox::execution::mutation::launches::{MutantLaunches, Passing};
use testevo_sandbox::execution::mutation::{JudgedMutants, MainCompiler, MutatedFile};
use testevo_sandbox::execution::run::logs::CellLogs;
use testevo_sandbox::outcome::{CompileReason, ExecReason, Outcome};
use testevo_sandbox::task::{Cell, MethodId};

/// New code with the target file compiled.
pub(crate) struct Runnable {
    swapped: SwappedTree,
    logs: CellLogs,
    passing: Vec<Passing>,
    /// Tar archive of the sources.
    pub(crate) archive: TemporaryFile,
}

impl Inspector {
    /// Returns new code with the target file compiled, and the target methods that pass there.
    pub(crate) async fn runnable(&self, subject: &Subject<'_>) -> Result<Runnable, InspectError> {
        let Subject { task, executor, image, facts, .. } = subject;
        let text = facts.text.as_deref().unwrap_or_default();
        let revision = Arc::new(subject.revision.clone());
        let masked = self.direct.masked(executor, &revision, task.test_file.as_str()).await?;
        let swapped = match self.direct.swap(executor, image, &masked, text).await? {
            Swap::Compiled(swapped) => swapped,
            Swap::Failed { reason, detail, .. } => {
                let may_pass = reason == CompileReason::Resource;
                return Err(NoAnswer::of(detail, if may_pass { Remedy::TryAgain } else { Remedy::None }).into());
            }
        };
        let logs = CellLogs::create(None, &task.id, Cell::Nn)?;
        let mut passing = Vec::new();
        for method in &task.test_methods {
            let options = LaunchOptions::default();
            let launch = MethodLaunch { class: &facts.class, method, options: &options, name: method.method() };
            let launched = executor.launch(image, &swapped.built, &launch, &logs).await?;
            match launched.outcome {
                Outcome::Pass => {
                    // Here every method meets every mutant.
                    let (launch_ms, own) = (launched.measured.launch_ms, Vec::new());
                    passing.push(Passing { method: method.clone(), launch_ms, own });
                }
                Outcome::InfraFail(_) => return Err(NoAnswer::fault(launched.detail).into()),
                _ => {}
            }
        }
        if passing.is_empty() {
            return Err(NoAnswer::never("no target method passes on new code").into());
        }
        let archive = self.read(task, |trees, task| trees.cell(task, Cell::Nn)).await?.archive;
        Ok(Runnable { swapped, logs, passing, archive })
    }

    /// Compares outcomes and times for some of a file's mutants, taken evenly. `judging` is the time of making and
    /// judging all of the file's mutants.
    pub(crate) async fn ends(
        &self,
        subject: &Subject<'_>,
        runnable: &Runnable,
        file: &MutatedFile<'_>,
        (judged, judging): (&JudgedMutants, Duration),
    ) -> Result<CheckedEnds, InspectError> {
        let Subject { executor, image, revision, facts, .. } = subject;
        let mut places: Vec<usize> = judged.valid.iter().chain(&judged.invalid).copied().collect();
        places.sort_unstable();
        let (distinct, most) = (places.len(), self.compares.ends.min(places.len()));
        if most == 0 {
            return Err(NoAnswer::never("there is no mutant").into());
        }
        let places: Vec<usize> = (0..most).map(|number| places[number * distinct / most]).collect();
        let methods: Vec<MethodId> = runnable.passing.iter().map(|one| one.method.clone()).collect();
        let rebuilt = Rebuilt {
            image,
            archive: runnable.archive.path(),
            module: &subject.input.module,
            class: &facts.class,
            methods: &methods,
            class_path: &revision.class_path,
            path: file.path,
            texts: &judged.texts(&places).collect::<Vec<&str>>(),
        };
        let theirs = rebuild(executor, &rebuilt).await?;
        let started = Instant::now();
        let compiler = MainCompiler::new(&self.direct, executor, image, revision, file.path, file.source).await?;
        let (judging_ms, beginning_ms) = (milliseconds(judging), milliseconds(started.elapsed()));
        let tree = &OpenTree::of(&runnable.swapped.built).await.map_err(std::io::Error::from)?;
        let launches = MutantLaunches {
            tree,
            // Maven's mutants have the compiler's bytes beside them.
            sources: &[],
            direct: &self.direct,
            executor,
            image,
            swapped: &runnable.swapped,
            class: &facts.class,
            methods: &runnable.passing,
            logs: &runnable.logs,
            seed: 0,
        };
        let (mut mutants, mut unknown) = (Vec::new(), Vec::new());
        for (number, place) in places.iter().enumerate() {
            let text = judged.made[*place].text.as_str();
            let name = named(&judged.source, text);
            let Some(theirs) = theirs.get(number) else {
                unknown.push(format!("{name}: Maven's container did not go on"));
                continue;
            };
            let end = match &theirs.end {
                Ok(end) => *end,
                Err(reason) => {
                    unknown.push(format!("{name}: {reason}"));
                    continue;
                }
            };
            let started = Instant::now();
            // Which do not compile is known by then.
            let (own, limited) = if judged.invalid.contains(place) {
                (MutantEnd::Invalid, false)
            } else {
                match launches.on(&compiler, (&format!("mutant-{}", number + 1), text)).await? {
                    Some(outcomes) => became(&outcomes).map_err(NoAnswer::fault)?,
                    None => return Err(NoAnswer::fault("a mutant compiled before and does not now").into()),
                }
            };
            let ms = Both { ours: milliseconds(started.elapsed()), theirs: theirs.wall_ms };
            let limited = limited || theirs.limited;
            mutants.push(CheckedEnd { name, end: Both { ours: own, theirs: end }, ms, limited });
        }
        let methods = methods.len();
        Ok(CheckedEnds { methods, distinct, judging_ms, beginning_ms, mutants, unknown, left_out: None })
    }
}

/// Says what the outcomes of methods make of a mutant, and whether a limit ended one; an error is a fault of ours.
fn became(outcomes: &[Outcome]) -> Result<(MutantEnd, bool), String> {
    if let Some(fault) = outcomes.iter().find(|outcome| matches!(outcome, Outcome::InfraFail(_))) {
        return Err(fault.to_string());
    }
    let limited = outcomes.contains(&Outcome::ExecFail(ExecReason::Timeout));
    let all = outcomes.iter().all(|outcome| *outcome == Outcome::Pass);
    Ok((if all { MutantEnd::Survived } else { MutantEnd::Killed }, limited))
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
