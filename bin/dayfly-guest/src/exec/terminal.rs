//! Terminals: made for an exec, sized, and told apart by who is in front.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use dayfly_types::exec::WindowSize;
use rustix::fs::{Mode, fchmod, fchown};
use rustix::process::{Pid, Signal};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Winsize, tcgetattr, tcgetpgrp,
    tcsetattr, tcsetwinsize,
};

use crate::account::Account;

/// What programs are told about the terminal at the other end, unless the caller says otherwise.
pub(super) const TERM: &str = "xterm-256color";
/// End of transmission, what Ctrl-D types.
const END_OF_TRANSMISSION: u8 = 4;

/// The two sides of a terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    pub(super) ours: OwnedFd,
    pub(super) theirs: OwnedFd,
}

/// Makes a terminal of this size, which belongs to the user.
pub(super) fn open(size: WindowSize, account: &Account) -> io::Result<Terminal> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let ours = openpt(flags)?;
    unlockpt(&ours)?;
    // By the descriptor and not by its name: whatever user code mounts over it does not matter.
    let theirs = ioctl_tiocgptpeer(&ours, flags)?;
    resize(&ours, size)?;
    let mut modes = tcgetattr(&theirs)?;
    // So that erasing a character erases all its bytes.
    modes.input_modes |= InputModes::IUTF8;
    tcsetattr(&theirs, OptionalActions::Now, &modes)?;
    if rustix::process::geteuid().is_root() {
        // Programs that open it by its name must be allowed to; others may only write to it as
        // the group of terminals does.
        fchown(&theirs, Some(account.uid), None)?;
        fchmod(&theirs, Mode::RUSR | Mode::WUSR | Mode::WGRP)?;
    }
    Ok(Terminal { ours, theirs })
}

pub(super) fn resize(ours: impl std::os::fd::AsFd, size: WindowSize) -> io::Result<()> {
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(tcsetwinsize(ours, size)?)
}

/// What to type for an end of input. In the middle of a line the first one only hands the line to
/// the program, and a second one makes the end.
pub(super) fn end_of_input(ours: BorrowedFd<'_>, last_byte: Option<u8>) -> Vec<u8> {
    let Ok(modes) = tcgetattr(ours) else {
        return vec![END_OF_TRANSMISSION];
    };
    let character = modes.special_codes[SpecialCodeIndex::VEOF];
    let by_lines = modes.local_modes.contains(LocalModes::ICANON);
    let is_mid_line = last_byte.is_some_and(|byte| byte != b'\n' && byte != b'\r');
    if by_lines && is_mid_line {
        vec![character; 2]
    } else {
        vec![character]
    }
}

/// Whether a keyboard sends this signal. It goes to whoever is in front of the terminal alone: an
/// interrupt is for the program that a shell waits for, not for the shell.
pub(super) fn is_typed(signal: Signal) -> bool {
    [Signal::INT, Signal::QUIT, Signal::TSTP].contains(&signal)
}

/// The process group in front of the terminal.
pub(super) fn foreground(ours: BorrowedFd<'_>) -> Option<Pid> {
    tcgetpgrp(ours).ok()
}
