//! Events of running work, as one closed enum that feeds the terminal, JSON events and logs alike.
//!
//! Producers do not know how events are displayed. Results are never events.

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

/// An event of running work.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A stage of the command began; `total` counts its items, if known.
    StageStarted {
        /// Stable name, such as `download` or `validate`.
        stage: String,
        /// Number of items.
        total: Option<u64>,
        /// How many of them an earlier process has done.
        done: u64,
    },
    /// An item of the stage began.
    ItemStarted {
        /// The stage's name.
        stage: String,
        /// The item, unique within the stage.
        item: String,
    },
    /// An item of the stage ended.
    ItemFinished {
        /// The stage's name.
        stage: String,
        /// The item, unique within the stage.
        item: String,
        /// Its result, in a word or two.
        outcome: String,
        /// Whether an error or a fault of the infrastructure ended it.
        fault: bool,
    },
    /// The stage ended.
    StageFinished {
        /// The stage's name.
        stage: String,
        /// Its duration in milliseconds.
        elapsed_ms: u64,
    },
    /// Information for the user.
    Message {
        /// The text, a sentence.
        text: String,
    },
    /// A problem that needs the user's attention.
    Warning {
        /// The text, a sentence.
        text: String,
    },
}

/// The receiver of events. Cheap to clone; callable from any thread.
#[derive(Clone)]
pub struct EventSink(Arc<dyn Fn(Event) + Send + Sync>);

impl std::fmt::Debug for EventSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventSink")
    }
}

impl EventSink {
    /// Returns a sink that passes every event to `receive`.
    pub fn new(receive: impl Fn(Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(receive))
    }

    /// Returns a sink that drops everything.
    pub fn none() -> Self {
        Self::new(drop)
    }

    /// Hands over one event.
    pub fn send(&self, event: Event) {
        (self.0)(event);
    }

    /// Sends [`Event::Message`].
    pub fn message(&self, text: impl Into<String>) {
        self.send(Event::Message { text: text.into() });
    }

    /// Starts a stage with this number of items, of which `done` were done before. The stage ends when the returned value
    /// is dropped, by whatever error.
    pub fn stage(&self, name: &str, total: Option<u64>, done: u64) -> RunningStage {
        let stage = RunningStage { events: self.clone(), name: name.to_owned(), started: Instant::now() };
        self.send(Event::StageStarted { stage: stage.name.clone(), total, done });
        stage
    }

    /// Sends [`Event::Warning`].
    pub fn warning(&self, text: impl Into<String>) {
        self.send(Event::Warning { text: text.into() });
    }
}

/// A stage that is being worked on ([`EventSink::stage`]).
#[derive(Debug)]
pub struct RunningStage {
    events: EventSink,
    name: String,
    started: Instant,
}

impl RunningStage {
    /// Tells that an item begins.
    pub fn item_started(&self, item: &str) {
        self.events.send(Event::ItemStarted { stage: self.name.clone(), item: item.to_owned() });
    }

    /// Tells that an item ended, with its result in a word or two, and whether it is a fault.
    pub fn item_finished(&self, item: &str, outcome: impl Into<String>, fault: bool) {
        let (stage, item, outcome) = (self.name.clone(), item.to_owned(), outcome.into());
        self.events.send(Event::ItemFinished { stage, item, outcome, fault });
    }

    /// Does the work of one item, and tells when it begins and ends. An error is the caller's to tell.
    ///
    /// # Errors
    /// The work's.
    pub async fn during<T, E>(&self, item: &str, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        self.item_started(item);
        let result = work.await;
        self.item_finished(item, if result.is_ok() { "done" } else { "failed" }, result.is_err());
        result
    }
}

impl Drop for RunningStage {
    fn drop(&mut self) {
        let elapsed_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.events.send(Event::StageFinished { stage: self.name.clone(), elapsed_ms });
    }
}
