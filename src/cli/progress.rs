//! Progress and messages on stderr: bars on a terminal, plain lines elsewhere, JSON lines for machines.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::event::{Event, EventSink};
use crate::output::{escape, json_line};

/// The most running items to show.
const MOST_ITEMS_SHOWN: usize = 8;

/// Shows events on stderr. Cheap to clone.
#[derive(Clone)]
pub(super) struct Progress(Arc<Shared>);

struct Shared {
    bars: MultiProgress,
    mode: Mode,
    stages: Mutex<BTreeMap<String, Stage>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Terminal {
        color: bool,
    },
    /// If `all` is false, only warnings are written.
    Plain {
        all: bool,
    },
    Json,
}

struct Stage {
    total: Option<u64>,
    finished: u64,
    started: Instant,
    running: BTreeMap<String, Option<ProgressBar>>,
    bar: ProgressBar,
}

/// Returns progress with bars that are redrawn in place.
pub(super) fn terminal(color: bool) -> Progress {
    Progress::new(Mode::Terminal { color })
}

/// Returns progress in plain lines; without `all`, only warnings.
pub(super) fn plain_lines(all: bool) -> Progress {
    Progress::new(Mode::Plain { all })
}

/// Returns progress in JSON lines.
pub(super) fn json_lines() -> Progress {
    Progress::new(Mode::Json)
}

impl Progress {
    fn new(mode: Mode) -> Self {
        let target = match mode {
            Mode::Terminal { .. } => ProgressDrawTarget::stderr(),
            Mode::Plain { .. } | Mode::Json => ProgressDrawTarget::hidden(),
        };
        let bars = MultiProgress::with_draw_target(target);
        Self(Arc::new(Shared { bars, mode, stages: Mutex::new(BTreeMap::new()) }))
    }

    /// Returns the sink for the work's events.
    pub(super) fn sink(&self) -> EventSink {
        let shared = Arc::clone(&self.0);
        EventSink::new(move |event| shared.show(event))
    }

    /// Removes all bars from the screen.
    pub(super) fn finish(&self) {
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
        if self.mode != (Mode::Plain { all: false }) {
            self.write(format!("{}\n", escape(text)).as_bytes());
        }
    }

    fn show(&self, event: Event) {
        if self.mode == Mode::Json {
            if let Ok(line) = json_line(&event) {
                self.write(line.as_bytes());
            }
            return;
        }
        match event {
            Event::StageStarted { stage, total } => self.stage_started(stage, total),
            Event::ItemStarted { stage, item } => self.item_started(&stage, item),
            Event::ItemFinished { stage, item, outcome } => self.item_finished(&stage, &item, &outcome),
            Event::StageFinished { stage, elapsed_ms } => {
                if let Some(stage) = self.stages().remove(&stage) {
                    stage.clear();
                }
                self.line(&format!("{stage}: done in {}", in_words(Duration::from_millis(elapsed_ms))));
            }
            Event::Message { text } => self.line(&text),
            Event::Warning { text } => {
                let label = match self.mode {
                    Mode::Terminal { color: true } => "\u{1b}[1;33mwarning:\u{1b}[0m",
                    Mode::Terminal { color: false } | Mode::Plain { .. } | Mode::Json => "warning:",
                };
                self.write(format!("{label} {}\n", escape(&text)).as_bytes());
            }
        }
    }

    fn stage_started(&self, name: String, total: Option<u64>) {
        let bar = self.bars.add(total.map_or_else(ProgressBar::new_spinner, ProgressBar::new));
        let template = match total {
            Some(_) => "{prefix} [{bar:24}] {pos}/{len}  {elapsed} gone, about {eta} left",
            None => "{spinner} {prefix}  {pos} done, {elapsed} gone",
        };
        bar.set_style(style(template));
        bar.set_prefix(escape(&name).into_owned());
        bar.enable_steady_tick(Duration::from_millis(250));
        match (self.mode, total) {
            (Mode::Plain { .. }, Some(total)) => self.line(&format!("{name}: {total} to do")),
            (Mode::Plain { .. }, None) => self.line(&format!("{name}: started")),
            (Mode::Terminal { .. } | Mode::Json, _) => {}
        }
        let stage = Stage { total, finished: 0, started: Instant::now(), running: BTreeMap::new(), bar };
        if let Some(earlier) = self.stages().insert(name, stage) {
            earlier.clear();
        }
    }

    fn item_started(&self, stage: &str, item: String) {
        let mut stages = self.stages();
        let Some(stage) = stages.get_mut(stage) else { return };
        let shown = stage.running.values().flatten().count() < MOST_ITEMS_SHOWN;
        let bar = (shown && matches!(self.mode, Mode::Terminal { .. })).then(|| {
            let bar = self.bars.add(ProgressBar::new_spinner());
            bar.set_style(style("  {spinner} {wide_msg} {elapsed}"));
            bar.set_message(escape(&item).into_owned());
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        stage.running.insert(item, bar);
    }

    fn item_finished(&self, name: &str, item: &str, outcome: &str) {
        let mut stages = self.stages();
        let Some(stage) = stages.get_mut(name) else { return };
        if let Some(Some(bar)) = stage.running.remove(item) {
            bar.finish_and_clear();
        }
        stage.finished += 1;
        stage.bar.inc(1);
        if matches!(self.mode, Mode::Plain { .. }) {
            let line = stage.plain_line(name, item, outcome);
            self.line(&line);
        }
    }
}

impl Stage {
    fn clear(&self) {
        for bar in self.running.values().flatten() {
            bar.finish_and_clear();
        }
        self.bar.finish_and_clear();
    }

    fn plain_line(&self, name: &str, item: &str, outcome: &str) -> String {
        let mut line = format!("{name} {}", self.finished);
        if let Some(total) = self.total {
            line.push_str(&format!("/{total}"));
        }
        line.push_str(&format!(": {item}: {outcome}"));
        if !self.running.is_empty() {
            let shown: Vec<&str> = self.running.keys().take(3).map(String::as_str).collect();
            let more = self.running.len() - shown.len();
            line.push_str(&format!("; running: {}", shown.join(", ")));
            if more > 0 {
                line.push_str(&format!(" and {more} more"));
            }
        }
        if let Some(left) = self.total.and_then(|total| remaining(self.started.elapsed(), self.finished, total)) {
            line.push_str(&format!("; about {} left", in_words(left)));
        }
        line
    }
}

/// Returns how long the rest takes at the present speed; `None` if nothing is left or known.
fn remaining(elapsed: Duration, finished: u64, total: u64) -> Option<Duration> {
    let left = total.checked_sub(finished).filter(|left| *left > 0 && finished > 0)?;
    Duration::try_from_secs_f64(elapsed.as_secs_f64() * left as f64 / finished as f64).ok()
}

fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{:.1} h", duration.as_secs_f64() / 3600.0),
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are constants. A wrong one would give a plain bar.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Sends log lines of this program to stderr: warnings always, more with every `--verbose`.
pub(super) fn start_tracing(progress: &Progress, verbosity: i8, color: bool) {
    use tracing_subscriber::filter::LevelFilter;
    let level = match verbosity {
        ..=-1 => LevelFilter::ERROR,
        0 => LevelFilter::WARN,
        1 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let shared = Arc::clone(&progress.0);
    let target = tracing_subscriber::EnvFilter::builder()
        .with_default_directive(LevelFilter::ERROR.into())
        .parse_lossy(format!("testevo_sandbox={level}"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(target)
        .with_ansi(color)
        .with_target(verbosity > 1)
        .with_writer(move || LogLine(Arc::clone(&shared)))
        .finish();
    // A subscriber that a caller of the library has set stays.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

struct LogLine(Arc<Shared>);

impl Write for LogLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.mode == Mode::Json {
            let text = String::from_utf8_lossy(bytes);
            let event = serde_json::json!({"event": "log", "text": text.trim_end()});
            self.0.write(json_line(&event)?.as_bytes());
        } else {
            self.0.write(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_lines_say_what_runs_and_how_long_is_left() {
        let running = ["a", "b", "c", "d"].map(|item| (item.to_owned(), None)).into();
        let started = Instant::now().checked_sub(Duration::from_secs(300)).unwrap();
        let stage = Stage { total: Some(40), finished: 10, started, running, bar: ProgressBar::hidden() };
        assert_eq!(
            stage.plain_line("validate", "task nn", "pass"),
            "validate 10/40: task nn: pass; running: a, b, c and 1 more; about 15 min left"
        );
    }

    #[test]
    fn nothing_known_is_nothing_said() {
        assert_eq!(remaining(Duration::from_secs(9), 0, 10), None);
        assert_eq!(remaining(Duration::from_secs(9), 10, 10), None);
        assert_eq!(remaining(Duration::from_secs(9), 11, 10), None);
    }
}
