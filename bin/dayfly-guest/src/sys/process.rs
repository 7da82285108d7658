use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::process::Pid;
use rustix::thread::UnshareFlags;

/// On which side of a fork the caller is.
#[derive(Debug)]
pub(crate) enum Fork {
    Parent(Pid),
    Child,
}

/// Copies this process. The child must not return to the event loop: it execs or exits.
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: fork has no memory preconditions. Its danger is a lock held by another thread at
    // that moment; the agent is single-threaded, so the child may allocate and do I/O.
    let result = unsafe { libc::fork() };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // Zero is the child; `from_raw` gives `None` for it alone.
    Ok(Pid::from_raw(result).map_or(Fork::Child, Fork::Parent))
}

/// Ends this process without running any exit handler: they belong to the parent.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit takes no pointers and never returns.
    unsafe { libc::_exit(code) }
}

/// From now on this process and all that it starts see the group that it is in as the root of all
/// groups.
pub(crate) fn take_group_for_root() -> io::Result<()> {
    // SAFETY: the flag asks for a namespace of control groups alone; nothing that memory or
    // descriptors depend on becomes unshared.
    Ok(unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWCGROUP) }?)
}

/// Closes every descriptor above stderr but these, in a child that shares none of its parent's
/// work. Otherwise it would keep pipes open that the parent means to close.
pub(crate) fn close_all_but(keep: &[BorrowedFd<'_>]) {
    let mut keep: Vec<u32> = keep
        .iter()
        .map(|descriptor| descriptor.as_raw_fd().unsigned_abs())
        .collect();
    keep.sort_unstable();
    let mut first = 3;
    for number in keep {
        if number > first {
            close_range(first, number - 1);
        }
        first = first.max(number + 1);
    }
    close_range(first, u32::MAX);
}

fn close_range(first: u32, last: u32) {
    let flags: libc::c_uint = 0;
    // SAFETY: the call takes plain numbers. Closing descriptors under their owners is the point:
    // the caller is a forked child that exits without ever dropping the owners it inherited.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
}
