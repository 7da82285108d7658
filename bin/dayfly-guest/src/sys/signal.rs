use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

/// A descriptor that becomes readable when a child ends.
#[derive(Debug)]
pub(crate) struct ChildSignals {
    descriptor: OwnedFd,
}

impl ChildSignals {
    /// Blocks SIGCHLD as a signal and receives it as a readable descriptor instead.
    pub(crate) fn open() -> io::Result<Self> {
        let mut set = empty_set();
        // SAFETY: `set` is an initialised signal set and SIGCHLD a valid signal number.
        unsafe { libc::sigaddset(&raw mut set, libc::SIGCHLD) };
        set_mask(libc::SIG_BLOCK, &set);
        // SAFETY: -1 asks for a new descriptor; `set` is initialised and only read.
        let raw =
            unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: signalfd just returned this descriptor, so it is open and nobody else owns it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(raw) };
        Ok(Self { descriptor })
    }

    /// Forgets the signals that arrived. The caller then waits for children until there is none.
    pub(crate) fn clear(&self) {
        let mut buffer = [0_u8; 1024];
        while rustix::io::read(&self.descriptor, &mut buffer).is_ok_and(|count| count > 0) {}
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// Lets a forked child receive signals as any process does.
pub(crate) fn unblock_all() {
    set_mask(libc::SIG_SETMASK, &empty_set());
}

fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the pointer is to memory of the right size, which sigemptyset initialises.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: sigemptyset has just initialised all of it; it cannot fail on a valid pointer.
    unsafe { set.assume_init() }
}

fn set_mask(how: libc::c_int, set: &libc::sigset_t) {
    // SAFETY: `set` is a valid reference and the null pointer asks not to return the old mask.
    unsafe { libc::sigprocmask(how, std::ptr::from_ref(set), std::ptr::null_mut()) };
}
