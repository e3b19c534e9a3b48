//! Log lines of this program, between the lines of progress.

use std::io::{self, Write};
use std::sync::Arc;

use super::{Mode, Progress, Shared};
use crate::output::json_line;

/// Sends log lines of this program to stderr: warnings always, more with every `--verbose`.
pub(in crate::cli) fn start_tracing(progress: &Progress, verbosity: i8, color: bool) {
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
