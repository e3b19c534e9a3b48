//! Events of running work, as one closed enum that feeds the terminal, JSON events and logs alike.
//!
//! Producers do not know how events are displayed. Results are never events.

use std::sync::Arc;

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

    /// Sends [`Event::Warning`].
    pub fn warning(&self, text: impl Into<String>) {
        self.send(Event::Warning { text: text.into() });
    }
}
