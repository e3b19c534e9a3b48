//! Classifies one launch from launcher events and exit facts.
//!
//! A pass needs both. The events must say that every leaf of the requested method succeeded. The process must exit by
//! itself with status 0, and nothing in the container may have been killed. Any other launch gets the most specific
//! reason that the facts support. Events come from a process that ran submitted code, so they are bounded and never
//! trusted alone.

mod network;
pub mod seal;

use serde::Deserialize;

use self::seal::Seal;

use super::{ExecReason, Outcome};
use crate::engine::spec::{CommandEnd, LimitReached};
use crate::output::visible;

/// The supported version of the launcher's events.
const EVENTS_SCHEMA: u32 = 1;

/// The detail of a launch that reached the process limit.
const NO_PROCESS: &str = "no further process or thread could be made";

/// The facts of one launch besides its events.
#[derive(Clone, Debug)]
pub struct LaunchFacts<'a> {
    /// How the JVM ended.
    pub end: &'a CommandEnd,
    /// Whether the container's memory limit killed a process.
    pub oom_killed: bool,
    /// The launcher's events, JSON lines.
    pub events: &'a [u8],
    /// The key with which the runner signed them; `None` for events without signatures.
    pub seal: Option<Seal>,
    /// Binary name of the requested class.
    pub class: &'a str,
    /// Binary name of the class that declares the method: another one if the requested class only inherits it.
    pub declared_in: &'a str,
    /// The requested method.
    pub method: &'a str,
}

/// The outcome of one launch with a line or two for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchVerdict {
    /// Never `compile_fail`, `infra_fail` or `absent`.
    pub outcome: Outcome,
    /// The first failure; empty for a pass.
    pub detail: String,
}

/// Further facts from the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventFacts {
    /// Number of lines without the runner's signature.
    pub forged: u64,
    /// Whether the runner reports that its report is complete.
    pub report_complete: bool,
    /// Whether the first failure, or one of its causes, says that no network could be reached.
    pub network_missed: bool,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    RunStarted {
        schema: u32,
        class: String,
        method: String,
    },
    Discovered {},
    DiscoveryFinished {},
    Registered {},
    Started {},
    Skipped {
        reason: Option<String>,
    },
    Finished {
        status: Status,
        throwable: Option<Throwable>,
    },
    RunFinished {
        status: i32,
        leaves: Leaves,
        containers_not_successful: u64,
        #[serde(default)]
        report_complete: bool,
    },
    ClassNotLoaded {
        throwable: Throwable,
    },
    RunFailed {
        throwable: Throwable,
    },
    #[serde(other)]
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Status {
    Successful,
    Failed,
    Aborted,
}

#[derive(Debug, Deserialize)]
struct Leaves {
    discovered: u64,
    registered: u64,
    started: u64,
    successful: u64,
    failed: u64,
    aborted: u64,
    skipped: u64,
    not_run: u64,
}

#[derive(Debug, Deserialize)]
struct Throwable {
    class: String,
    message: Option<String>,
    kind: Option<Kind>,
    #[serde(default)]
    stack: Vec<String>,
    #[serde(default)]
    causes: Vec<Throwable>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Assertion,
    Exception,
    OutOfMemory,
}

/// Classifies a launch.
pub fn classify(facts: &LaunchFacts<'_>) -> (LaunchVerdict, EventFacts) {
    let seen = Seen::read(facts);
    let report_complete = seen.finished.as_ref().is_some_and(|finished| finished.report_complete);
    let network_missed = seen.thrown.as_ref().is_some_and(network::is_missed);
    (verdict(&seen, facts), EventFacts { forged: seen.forged, report_complete, network_missed })
}

fn verdict(seen: &Seen, facts: &LaunchFacts<'_>) -> LaunchVerdict {
    if let Some(verdict) = limit(facts) {
        return verdict;
    }
    if facts.oom_killed {
        return fail(ExecReason::OutOfMemory, "the container's memory limit killed a process");
    }
    if seen.passed() && facts.end.exit_code == Some(0) && facts.end.signal.is_none() {
        return LaunchVerdict { outcome: Outcome::Pass, detail: String::new() };
    }
    if let Some(throwable) = &seen.thrown {
        return thrown(throwable, facts);
    }
    let Some(finished) = &seen.finished else {
        if facts.end.process_limit_hits.is_some_and(|hits| hits > 0) {
            return fail(ExecReason::Pids, NO_PROCESS);
        }
        return fail(ExecReason::Exit, &ended_early(facts.end));
    };
    if let Some(reason) = &seen.skipped {
        return fail(ExecReason::Skipped, reason);
    }
    if finished.leaves.aborted > 0 {
        return fail(ExecReason::Aborted, "an assumption did not hold");
    }
    if !seen.discovered {
        return fail(ExecReason::NotDiscovered, "the launcher found no such test");
    }
    if finished.leaves.started == 0 {
        return fail(ExecReason::NoLeaf, "the method has no test that could be executed");
    }
    // The launcher reports success but the process does not: code ended the process at its exit.
    fail(ExecReason::Exit, &ended_early(facts.end))
}

struct Finished {
    status: i32,
    leaves: Leaves,
    containers_not_successful: u64,
    report_complete: bool,
}

#[derive(Default)]
struct Seen {
    valid_start: bool,
    discovered: bool,
    started: u64,
    thrown: Option<Throwable>,
    aborted: bool,
    skipped: Option<String>,
    finished: Option<Finished>,
    after_finish: bool,
    malformed: bool,
    /// Number of lines that the runner did not write.
    forged: u64,
}

impl Seen {
    fn read(facts: &LaunchFacts<'_>) -> Self {
        let mut seen = Self::default();
        let (lines, forged) = match facts.seal {
            Some(seal) => seal.own_lines(facts.events),
            None => (facts.events.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect(), 0),
        };
        seen.forged = forged;
        for line in lines {
            match serde_json::from_slice(line) {
                Ok(event) => seen.take(event, facts),
                // A killed JVM leaves an incomplete last line. Such a launch is never a pass.
                Err(_) => seen.malformed = true,
            }
        }
        seen
    }

    fn take(&mut self, event: Event, facts: &LaunchFacts<'_>) {
        self.after_finish |= self.finished.is_some();
        match event {
            Event::RunStarted { schema, class, method } => {
                self.valid_start = schema == EVENTS_SCHEMA && class == facts.class && method == facts.method;
            }
            Event::Discovered {} => self.discovered = true,
            Event::Started {} => self.started += 1,
            Event::Skipped { reason } => {
                self.skipped.get_or_insert(reason.unwrap_or_else(|| "skipped".to_owned()));
            }
            Event::Finished { status: Status::Successful, .. } => {}
            Event::Finished { status: Status::Aborted, .. } => self.aborted = true,
            Event::Finished { status: Status::Failed, throwable } => {
                let unknown = || Throwable {
                    class: "unknown".to_owned(),
                    message: None,
                    kind: Some(Kind::Exception),
                    stack: Vec::new(),
                    causes: Vec::new(),
                };
                self.thrown.get_or_insert_with(|| throwable.unwrap_or_else(unknown));
            }
            Event::ClassNotLoaded { throwable } | Event::RunFailed { throwable } => {
                self.thrown.get_or_insert(throwable);
            }
            Event::RunFinished { status, leaves, containers_not_successful, report_complete } => {
                self.finished = Some(Finished { status, leaves, containers_not_successful, report_complete });
            }
            Event::DiscoveryFinished {} | Event::Registered {} | Event::Other => {}
        }
    }

    fn passed(&self) -> bool {
        let Some(finished) = &self.finished else { return false };
        let leaves = &finished.leaves;
        self.valid_start
            && self.discovered
            && !self.malformed
            && !self.after_finish
            && !self.aborted
            && self.thrown.is_none()
            && self.skipped.is_none()
            && finished.status == 0
            && finished.containers_not_successful == 0
            && leaves.started >= 1
            && leaves.started == leaves.successful
            && leaves.discovered.saturating_add(leaves.registered) == leaves.started
            && leaves.failed == 0
            && leaves.aborted == 0
            && leaves.skipped == 0
            && leaves.not_run == 0
            // The launcher caps started events, but not the counts.
            && self.started >= 1
            && self.started <= leaves.started
    }
}

fn limit(facts: &LaunchFacts<'_>) -> Option<LaunchVerdict> {
    match facts.end.limit? {
        LimitReached::Wall => Some(fail(ExecReason::Timeout, "the limit of wall time was reached")),
        LimitReached::Cpu => Some(fail(ExecReason::Timeout, "the limit of processor time was reached")),
        LimitReached::Output => Some(fail(ExecReason::Exit, "the limit of output was reached")),
    }
}

fn thrown(throwable: &Throwable, facts: &LaunchFacts<'_>) -> LaunchVerdict {
    let chain = || std::iter::once(throwable).chain(&throwable.causes);
    let says = |text: &str| chain().any(|one| one.message.as_deref().is_some_and(|message| message.contains(text)));
    let reason = if says("No space left on device") {
        ExecReason::Disk
    } else if says("unable to create native thread") || says("unable to create new native thread") {
        // It is an OutOfMemoryError by name, but the process limit is the cause.
        ExecReason::Pids
    } else if facts.end.process_limit_hits.is_some_and(|hits| hits > 0) {
        ExecReason::Pids
    } else {
        match throwable.kind {
            Some(Kind::Assertion) => ExecReason::Assertion,
            Some(Kind::OutOfMemory) => ExecReason::OutOfMemory,
            Some(Kind::Exception) | None if throwable.class == "java.lang.ClassNotFoundException" => {
                if throwable.message.as_deref() == Some(facts.class) {
                    ExecReason::NotDiscovered
                } else {
                    ExecReason::Exception
                }
            }
            Some(Kind::Exception) | None => ExecReason::Exception,
        }
    };
    // Java's message mostly says that memory may have run out.
    let mut detail = if reason == ExecReason::Pids { format!("{NO_PROCESS}: ") } else { String::new() };
    detail.push_str(&throwable.class);
    if let Some(message) = throwable.message.as_deref().filter(|message| !message.is_empty()) {
        detail.push_str(": ");
        detail.push_str(message);
    }
    if let Some(frame) =
        throwable.stack.iter().find(|frame| [facts.class, facts.declared_in].iter().any(|class| frame.contains(class)))
    {
        detail.push_str("\n  at ");
        detail.push_str(frame);
    }
    fail(reason, &detail)
}

fn ended_early(end: &CommandEnd) -> String {
    match (end.exit_code, end.signal) {
        (Some(code), _) => format!("the JVM exited with status {code} before the launcher was done"),
        (None, Some(signal)) => format!("the JVM was ended by signal {signal}"),
        (None, None) => "the JVM ended in an unknown way".to_owned(),
    }
}

fn fail(reason: ExecReason, detail: &str) -> LaunchVerdict {
    LaunchVerdict { outcome: Outcome::ExecFail(reason), detail: shortened(detail) }
}

/// Returns at most 2,000 characters. Control characters except line ends and tabs are replaced, because details reach
/// records and terminals.
pub fn shortened(text: &str) -> String {
    let clean = |c: char| if matches!(c, '\n' | '\t') { c } else { visible(c) };
    text.chars().take(2_000).map(clean).collect()
}

#[cfg(test)]
mod tests;
