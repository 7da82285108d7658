//! The program on a terminal of its own.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tokio::process::Child;
use tokio::sync::watch;

use super::program::{Program, send};
use super::within;

/// A run whose standard input and outputs are one terminal.
pub(crate) struct Screen {
    child: Child,
    keyboard: File,
    seen: watch::Receiver<String>,
}

impl Screen {
    pub(crate) fn start(program: &Program, args: &[&str]) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&ours).expect("ours");
        unlockpt(&ours).expect("ours");
        let name = ptsname(&ours, Vec::new()).expect("it has a name");
        let theirs =
            open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("its other end");
        let end = || Stdio::from(theirs.try_clone().expect("a descriptor"));
        let mut command = program.command(args);
        command.stdin(end()).stdout(end()).stderr(end());
        let child = command.spawn().expect("the program starts");
        drop((command, theirs));
        let keyboard = File::from(ours.try_clone().expect("a descriptor"));
        Self {
            child,
            keyboard,
            seen: watched(ours),
        }
    }

    /// Waits until `words` stand on the screen.
    pub(crate) async fn saw(&mut self, words: &str) {
        let seen = self.seen.wait_for(|seen| seen.contains(words));
        within(words, seen).await.expect("the program still runs");
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("writable");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(&self.child, signal);
    }

    /// The exit status, and everything that was on the screen.
    pub(crate) async fn finish(mut self) -> (i32, String) {
        let ended = within("the program ends", self.child.wait()).await;
        let status = ended.expect("it is a child").code();
        // The other end closes with the program, and the reader with it.
        while within("the screen ends", self.seen.changed()).await.is_ok() {}
        let seen = self.seen.borrow().clone();
        (status.expect("the program ends by itself"), seen)
    }
}

fn watched(terminal: OwnedFd) -> watch::Receiver<String> {
    let (to, seen) = watch::channel(String::new());
    std::thread::spawn(move || {
        let mut terminal = File::from(terminal);
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = terminal.read(&mut piece) {
            let text = String::from_utf8_lossy(&piece[..count]).into_owned();
            to.send_modify(|seen| seen.push_str(&text));
        }
    });
    seen
}
