//! The terminal that `dayfly` runs in, lent to a command of a guest.

use std::io::{self, Read as _};

use dayfly_api::TerminalSize;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::failure::CommandError;

/// What a terminal counts as when it does not say.
const SIZE_DEFAULT: TerminalSize = TerminalSize {
    columns: 80,
    rows: 24,
};

/// Keys that were typed and not looked at yet.
const KEYS_WAITING_MAX: usize = 16;

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

/// Keys as they are typed: no line is waited for, and nothing is shown. Ctrl-C stays a signal.
/// Dropping it puts things back.
#[derive(Debug)]
pub(crate) struct Keys {
    /// Absent when standard input is no terminal: then no key is ever pressed.
    before: Option<Termios>,
    typed: mpsc::Receiver<u8>,
}

impl Keys {
    pub(crate) fn listen() -> Self {
        let (to, typed) = mpsc::channel(KEYS_WAITING_MAX);
        let before = take_single_keys().ok();
        if before.is_some() {
            read_keys(to);
        }
        Self { before, typed }
    }

    /// Waits for one key. Cancel safe.
    pub(crate) async fn pressed(&mut self, key: u8) {
        while let Some(typed) = self.typed.recv().await {
            if typed == key {
                return;
            }
        }
        std::future::pending().await
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

fn take_single_keys() -> io::Result<Termios> {
    let before = tcgetattr(io::stdin())?;
    let mut single = before.clone();
    single
        .local_modes
        .remove(LocalModes::ECHO | LocalModes::ICANON);
    tcsetattr(io::stdin(), OptionalActions::Now, &single)?;
    Ok(before)
}

/// In a thread of its own: a read of a terminal cannot be given up, and leaving must not wait for it.
fn read_keys(to: mpsc::Sender<u8>) {
    std::thread::spawn(move || {
        for key in io::stdin().lock().bytes() {
            let Ok(key) = key else { return };
            if to.blocking_send(key).is_err() {
                return;
            }
        }
    });
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
