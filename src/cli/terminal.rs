//! The user's terminal, handed over to a shell in a container and taken back.

use std::io::{self, IsTerminal as _, Read as _};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::application::shell::Typed;

/// The terminal of stdin and stdout. Dropping it gives the terminal its earlier settings.
pub(super) struct Terminal {
    saved: Termios,
}

impl Terminal {
    /// Returns the terminal; `None` if stdin or stdout is something else.
    ///
    /// # Errors
    /// I/O errors of asking the terminal.
    pub(super) fn find() -> io::Result<Option<Self>> {
        match io::stdin().is_terminal() && io::stdout().is_terminal() {
            true => Ok(Some(Self { saved: tcgetattr(io::stdin())? })),
            false => Ok(None),
        }
    }

    /// Returns a function that passes on every key from then on, and every change of the window's size. It is to be
    /// called in a runtime.
    pub(super) fn take_over(&self) -> impl FnOnce() -> io::Result<UnboundedReceiver<Typed>> + Send + use<> {
        let mut raw = self.saved.clone();
        raw.make_raw();
        move || {
            let (sender, receiver) = unbounded_channel();
            let mut windows = signal(SignalKind::window_change())?;
            tcsetattr(io::stdin(), OptionalActions::Drain, &raw)?;
            let of_windows = sender.clone();
            tokio::spawn(async move {
                while windows.recv().await.is_some() {
                    let (rows, columns) = size();
                    if of_windows.send(Typed::Size(rows, columns)).is_err() {
                        break;
                    }
                }
            });
            // Reading can't be cancelled, so no task of the runtime may do it.
            std::thread::spawn(move || read(&sender));
            Ok(receiver)
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no settings.
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.saved);
    }
}

fn read(sender: &UnboundedSender<Typed>) {
    let mut buffer = [0; 4096];
    // The end of the terminal ends the shell's input, and an unreadable one is at its end.
    while let Ok(length @ 1..) = io::stdin().read(&mut buffer) {
        if sender.send(Typed::Bytes(buffer[..length].to_vec())).is_err() {
            break;
        }
    }
}

/// Returns the rows and columns of the terminal on stdout.
pub(super) fn size() -> (u16, u16) {
    match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_row > 0 && size.ws_col > 0 => (size.ws_row, size.ws_col),
        _ => (24, 80),
    }
}
