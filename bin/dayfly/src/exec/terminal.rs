//! The terminal that `dayfly` runs in, lent to a command of a guest.

use std::io;

use dayfly_api::TerminalSize;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::CommandError;

/// What a terminal counts as when it does not say.
const SIZE_DEFAULT: TerminalSize = TerminalSize {
    columns: 80,
    rows: 24,
};

/// Standard input as a terminal that passes every key on. Dropping it puts things back.
#[derive(Debug)]
pub(crate) struct RawTerminal {
    before: Termios,
    resized: Signal,
}

impl RawTerminal {
    /// # Errors
    /// When standard input is no terminal.
    pub(crate) fn enter() -> Result<Self, CommandError> {
        let failed = |source: io::Error| CommandError::local("cannot use the terminal", source);
        let resized = signal(SignalKind::window_change()).map_err(failed)?;
        let before = tcgetattr(io::stdin()).map_err(|error| failed(error.into()))?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw).map_err(|error| failed(error.into()))?;
        Ok(Self { before, resized })
    }

    /// The next new size. Cancel safe.
    pub(crate) async fn resized(&mut self) -> TerminalSize {
        self.resized.recv().await;
        size()
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // What was typed ahead stays for the shell.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Standard input as a terminal that does not show what is typed. Dropping it puts things back.
#[derive(Debug)]
pub(crate) struct HiddenTyping {
    before: Termios,
}

/// # Errors
/// When standard input is no terminal.
pub(crate) fn hide_typing() -> io::Result<HiddenTyping> {
    let before = tcgetattr(io::stdin())?;
    let mut hidden = before.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(io::stdin(), OptionalActions::Now, &hidden)?;
    Ok(HiddenTyping { before })
}

impl Drop for HiddenTyping {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// How large the terminal is.
pub(crate) fn size() -> TerminalSize {
    let found = tcgetwinsize(io::stdout()).or_else(|_| tcgetwinsize(io::stdin()));
    match found {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => TerminalSize {
            columns: size.ws_col.min(1000),
            rows: size.ws_row.min(1000),
        },
        Ok(_) | Err(_) => SIZE_DEFAULT,
    }
}
