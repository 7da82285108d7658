//! Forking a process that has one thread.

use std::io;

use rustix::process::Pid;

use super::check;

/// Proof that the process had one thread when it was asked, which is what makes `fork` harmless:
/// no other thread can hold a lock that the child would then wait for forever.
///
/// Whoever holds it must not start threads.
#[derive(Debug)]
pub struct SingleThread(());

impl SingleThread {
    /// Counts the threads of this process.
    ///
    /// # Errors
    /// When `/proc` cannot be read or there is more than one thread.
    pub fn prove() -> io::Result<Self> {
        let threads = std::fs::read_dir("/proc/self/task")?.count();
        if threads == 1 {
            Ok(Self(()))
        } else {
            Err(io::Error::other(format!(
                "the process has {threads} threads instead of one"
            )))
        }
    }
}

/// Which side of a fork this is.
#[derive(Debug)]
pub enum ForkSide {
    Child,
    Parent { child: Pid },
}

/// Splits the process.
///
/// # Errors
/// What the kernel said.
pub fn fork(_proof: &SingleThread) -> io::Result<ForkSide> {
    // SAFETY: `fork` takes no arguments. Its danger is state of other threads copied half-way,
    // and `_proof` says that there are none, so the child may go on like the parent.
    let result = unsafe { libc::fork() };
    check(libc::c_long::from(result))?;
    Ok(Pid::from_raw(result).map_or(ForkSide::Child, |child| ForkSide::Parent { child }))
}
