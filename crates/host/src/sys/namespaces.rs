//! Leaving namespaces.

use std::io;

use rustix::thread::UnshareFlags;

/// A kind of namespace that a thread can leave for a fresh one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespace {
    Mount,
    Ipc,
    Uts,
    Network,
    Cgroup,
    /// Takes effect for children only.
    Pid,
}

impl Namespace {
    const fn flag(self) -> UnshareFlags {
        match self {
            Self::Mount => UnshareFlags::NEWNS,
            Self::Ipc => UnshareFlags::NEWIPC,
            Self::Uts => UnshareFlags::NEWUTS,
            Self::Network => UnshareFlags::NEWNET,
            Self::Cgroup => UnshareFlags::NEWCGROUP,
            Self::Pid => UnshareFlags::NEWPID,
        }
    }
}

/// Moves the calling thread into fresh namespaces of the given kinds.
///
/// # Errors
/// What the kernel said.
pub fn unshare(namespaces: &[Namespace]) -> io::Result<()> {
    let flags = namespaces
        .iter()
        .fold(UnshareFlags::empty(), |flags, namespace| {
            flags | namespace.flag()
        });
    // SAFETY: the call is unsafe only with `UnshareFlags::FILES`, which would split the descriptor
    // table between threads; `Namespace::flag` never yields it.
    unsafe { rustix::thread::unshare_unsafe(flags) }?;
    Ok(())
}
