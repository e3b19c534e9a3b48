//! Progress and messages on stderr: bars on a terminal, steady lines elsewhere, JSON lines for machines.

mod log;
mod pace;
mod steady;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use self::pace::{Pace, in_words};
use self::steady::Steady;
use crate::event::{Event, EventSink};
use crate::output::{elided, escape, json_line, terminal_width};

pub(super) use self::log::start_tracing;

/// The most running items to show.
const MOST_ITEMS_SHOWN: usize = 8;

/// How often bars are redrawn and steady lines may become due.
const TICK: Duration = Duration::from_millis(250);

/// Columns of a running item's line besides its name.
const BESIDE_ITEM: usize = 12;

/// Shows events on stderr. Cheap to clone.
#[derive(Clone)]
pub(super) struct Progress(Arc<Shared>);

struct Shared {
    bars: MultiProgress,
    mode: Mode,
    stages: Mutex<BTreeMap<String, Stage>>,
    /// Ends the thread that writes steady lines, when it is dropped.
    clock: Mutex<Option<Sender<()>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Terminal { color: bool },
    Plain(Lines),
    Json,
}

/// Which lines are written where stderr is no terminal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    /// Only warnings.
    Warnings,
    /// Few of every stage.
    Steady,
    /// One for every item.
    Every,
}

struct Stage {
    pace: Arc<Mutex<Pace>>,
    steady: Steady,
    running: BTreeMap<String, Option<ProgressBar>>,
    bar: ProgressBar,
}

/// Returns progress with bars that are redrawn in place.
pub(super) fn terminal(color: bool) -> Progress {
    Progress::new(Mode::Terminal { color })
}

/// Returns progress in plain lines: warnings only, steady lines, or with more verbosity a line for every item.
pub(super) fn plain_lines(verbosity: i8) -> Progress {
    Progress::new(Mode::Plain(match verbosity {
        ..0 => Lines::Warnings,
        0 => Lines::Steady,
        1.. => Lines::Every,
    }))
}

/// Returns progress in JSON lines.
pub(super) fn json_lines() -> Progress {
    Progress::new(Mode::Json)
}

impl Progress {
    fn new(mode: Mode) -> Self {
        let target = match mode {
            Mode::Terminal { .. } => ProgressDrawTarget::stderr(),
            Mode::Plain(_) | Mode::Json => ProgressDrawTarget::hidden(),
        };
        let bars = MultiProgress::with_draw_target(target);
        Self(Arc::new(Shared { bars, mode, stages: Mutex::default(), clock: Mutex::default() }))
    }

    /// Returns the sink for the work's events.
    pub(super) fn sink(&self) -> EventSink {
        let shared = Arc::clone(&self.0);
        EventSink::new(move |event| shared.show(event))
    }

    /// Removes all bars from the screen.
    pub(super) fn finish(&self) {
        self.0.clock.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut stages = self.0.stages();
        for stage in stages.values() {
            stage.clear();
        }
        stages.clear();
    }
}

impl Shared {
    fn stages(&self) -> MutexGuard<'_, BTreeMap<String, Stage>> {
        // After a panic elsewhere the bars may be wrong, which is no reason for another panic.
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes whole lines above the bars. A closed stderr is no error.
    fn write(&self, bytes: &[u8]) {
        self.bars.suspend(|| {
            let _ = io::stderr().lock().write_all(bytes);
        });
    }

    fn line(&self, text: &str) {
        if self.mode != Mode::Plain(Lines::Warnings) {
            self.write(format!("{}\n", escape(text)).as_bytes());
        }
    }

    fn show(self: &Arc<Self>, event: Event) {
        if self.mode == Mode::Json {
            if let Ok(line) = json_line(&event) {
                self.write(line.as_bytes());
            }
            return;
        }
        match event {
            Event::StageStarted { stage, total, done } => self.stage_started(stage, total, done),
            Event::ItemStarted { stage, item } => self.item_started(&stage, item),
            Event::ItemFinished { stage, item, outcome, fault } => self.item_finished(&stage, (&item, &outcome, fault)),
            Event::StageFinished { stage, elapsed_ms } => {
                let Some(ended) = self.stages().remove(&stage) else { return };
                ended.clear();
                let last = steady::last(&stage, &ended.pace(), Duration::from_millis(elapsed_ms));
                if let Some(line) = last {
                    self.line(&line);
                }
            }
            Event::Message { text } => self.line(&text),
            Event::Warning { text } => {
                let label = match self.mode {
                    Mode::Terminal { color: true } => "\u{1b}[1;33mwarning:\u{1b}[0m",
                    Mode::Terminal { color: false } | Mode::Plain(_) | Mode::Json => "warning:",
                };
                self.write(format!("{label} {}\n", escape(&text)).as_bytes());
            }
        }
    }

    fn stage_started(self: &Arc<Self>, name: String, total: Option<u64>, done: u64) {
        let pace = Arc::new(Mutex::new(Pace::new(total, done, Instant::now())));
        let bar = self.bars.add(total.map_or_else(ProgressBar::new_spinner, ProgressBar::new).with_position(done));
        let template = match total {
            Some(_) => "{prefix} [{bar:24}] {pos}/{len}  {so_far}",
            None => "{spinner} {prefix}  {so_far}",
        };
        let shown = Arc::clone(&pace);
        let so_far = move |_: &ProgressState, out: &mut dyn fmt::Write| {
            let (pace, now) = (shown.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
            let _ = write!(out, "{} so far", in_words(pace.elapsed(now)));
            if let Some(left) = pace.left(now) {
                let _ = write!(out, ", about {} left", in_words(left));
            }
        };
        bar.set_style(style(template).with_key("so_far", so_far));
        bar.set_prefix(escape(&name).into_owned());
        bar.enable_steady_tick(TICK);
        let stage = Stage { pace, steady: Steady::default(), running: BTreeMap::new(), bar };
        if let Some(earlier) = self.stages().insert(name, stage) {
            earlier.clear();
        }
        if matches!(self.mode, Mode::Plain(Lines::Steady | Lines::Every)) {
            self.start_clock();
        }
    }

    /// Starts the thread that writes steady lines, once.
    fn start_clock(self: &Arc<Self>) {
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        if clock.is_some() {
            return;
        }
        let ((sender, stopped), shared) = (channel(), Arc::downgrade(self));
        // Without the thread there are only last lines.
        let started = std::thread::Builder::new().name("progress".to_owned()).spawn(move || {
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                let Some(shared) = Weak::upgrade(&shared) else { return };
                shared.tick();
            }
        });
        if started.is_ok() {
            *clock = Some(sender);
        }
    }

    /// Writes the lines that are due.
    fn tick(&self) {
        let now = Instant::now();
        let mut stages = self.stages();
        for (name, stage) in stages.iter_mut() {
            let pace = stage.pace().clone();
            if let Some(line) = stage.steady.due(name, &pace, now) {
                self.line(&line);
            }
        }
    }

    fn item_started(&self, stage: &str, item: String) {
        let mut stages = self.stages();
        let Some(stage) = stages.get_mut(stage) else { return };
        stage.pace().begin(item.clone(), Instant::now());
        let shown = stage.running.values().flatten().count() < MOST_ITEMS_SHOWN;
        let bar = (shown && matches!(self.mode, Mode::Terminal { .. })).then(|| {
            let bar = self.bars.add(ProgressBar::new_spinner());
            let name = escape(&item).into_owned();
            let fitting = move |_: &ProgressState, out: &mut dyn fmt::Write| {
                let width = terminal_width(io::stderr()).saturating_sub(BESIDE_ITEM);
                let _ = out.write_str(&elided(&name, width));
            };
            bar.set_style(style("  {spinner} {item} {elapsed}").with_key("item", fitting));
            bar.enable_steady_tick(TICK);
            bar
        });
        stage.running.insert(item, bar);
    }

    fn item_finished(&self, name: &str, (item, outcome, fault): (&str, &str, bool)) {
        let mut stages = self.stages();
        let Some(stage) = stages.get_mut(name) else { return };
        if let Some(Some(bar)) = stage.running.remove(item) {
            bar.finish_and_clear();
        }
        stage.pace().end(item, fault, Instant::now());
        stage.bar.inc(1);
        if let Mode::Plain(lines) = self.mode {
            let pace = stage.pace().clone();
            let line = stage.steady.ended(name, &pace, (item, outcome, fault), lines == Lines::Every);
            if let Some(line) = line {
                self.line(&line);
            }
        }
    }
}

impl Stage {
    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clear(&self) {
        for bar in self.running.values().flatten() {
            bar.finish_and_clear();
        }
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are constants. A wrong one would give a plain bar.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
