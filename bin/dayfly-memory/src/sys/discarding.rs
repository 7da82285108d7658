//! The thread that discards pages of guest memory when the node orders it.
//!
//! Only a process itself can discard pages of its own (`MADV_DONTNEED`), so this is done here. A
//! page that was discarded is what its file has there: that of the template, or of the layer above
//! it. Which pages nobody needs any more is for the node to know.
//!
//! The thread is made when guest memory is mapped, before the engine installs its filter, and needs
//! no call that the engine does not need. It waits in the kernel, for one caller at a time.

use std::ffi::c_void;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

use crate::map::PAGE_BYTES;
use crate::order::{HEADER_BYTES, RANGE_BYTES, RANGES_MAX, Range, bytes_of_ranges, ranges};

const STACK_BYTES: usize = 64 << 10;

/// Guest memory, as far as this thread goes.
#[derive(Debug, Clone, Copy)]
struct Memory {
    /// Its address. A number, because it is never read here.
    start: usize,
    pages: u64,
}

/// Listens at `path` and begins to serve. An engine without it gives no memory back, and nothing
/// else is the worse for it.
///
/// # Safety
/// For as long as the process lives there must be guest memory of `bytes` at `start`, into which no
/// reference of this library is held.
pub(crate) unsafe fn begin(path: &Path, start: *mut c_void, bytes: u64) {
    let Ok(listener) = UnixListener::bind(path) else {
        return;
    };
    let memory = Memory {
        start: start.expose_provenance(),
        pages: bytes / PAGE_BYTES,
    };
    // Made here, so that the thread needs no memory of its own.
    let mut order = vec![0; RANGES_MAX * RANGE_BYTES];
    let serve = move || {
        loop {
            match listener.accept() {
                // Reading and writing as of a file: the engine may not receive and send.
                Ok((caller, _)) => {
                    let caller = File::from(OwnedFd::from(caller));
                    // Whatever it was, the next caller may do better.
                    let _ = serve_caller(caller, memory, &mut order);
                }
                // Out of descriptors, most likely. A thread that tries at once would try for ever.
                Err(_) => return,
            }
        }
    };
    // Signals to the engine are for the threads that expect them.
    let former = block_signals();
    let thread = thread::Builder::new().stack_size(STACK_BYTES);
    // Without it the socket closes with the listener, and callers hear that nobody is there.
    let _ = thread.name("dayfly-memory".to_owned()).spawn(serve);
    if let Some(former) = former {
        restore_signals(&former);
    }
}

/// Serves one caller until it hangs up, or sends what is no order.
fn serve_caller(mut caller: File, memory: Memory, order: &mut [u8]) -> io::Result<()> {
    loop {
        let mut header = [0; HEADER_BYTES];
        caller.read_exact(&mut header)?;
        let wrong = || io::Error::from(io::ErrorKind::InvalidData);
        let length = bytes_of_ranges(header).ok_or_else(wrong)?;
        let order = &mut order[..length];
        caller.read_exact(order)?;
        let mut discarded = 0;
        for range in ranges(order, memory.pages).ok_or_else(wrong)? {
            discard(memory, range)?;
            discarded += range.count;
        }
        caller.write_all(&u64::to_le_bytes(discarded))?;
    }
}

fn discard(memory: Memory, range: Range) -> io::Result<()> {
    let bytes = |pages: u64| usize::try_from(pages * PAGE_BYTES);
    let (Ok(distance), Ok(length)) = (bytes(range.first), bytes(range.count)) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let place = std::ptr::with_exposed_provenance_mut::<c_void>(memory.start + distance);
    // SAFETY: the order was checked against the size of guest memory, which `begin` was promised to
    // be there, so all of it is guest memory. Nobody here has a reference into it; the engine takes
    // the guest's memory for bytes that may change at any time, and the node has stopped the guest
    // and knows that it has no use for what these pages hold.
    let result = unsafe { libc::madvise(place, length, libc::MADV_DONTNEED) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Keeps all signals from this thread, and from those that it makes. Gives what was kept before.
fn block_signals() -> Option<libc::sigset_t> {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the call fills in the whole set behind the pointer, which is ours.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    let mut former = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set was filled in above, and the call fills in the other one, which is ours.
    let result =
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), former.as_mut_ptr()) };
    // SAFETY: a call that succeeded has filled it in.
    (result == 0).then(|| unsafe { former.assume_init() })
}

fn restore_signals(former: &libc::sigset_t) {
    // SAFETY: the set is whole and lives through the call, which asks for no former one.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, former, std::ptr::null_mut()) };
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    const PAGES: usize = 8;

    /// Guest memory of a test: a file of sevens, mapped privately, for as long as the process lives.
    fn memory(directory: &Path) -> &'static mut [u8] {
        use std::os::fd::AsRawFd;

        let image = directory.join("image");
        std::fs::write(&image, vec![7; PAGES * 4096]).unwrap();
        let file = File::open(image).unwrap();
        // SAFETY: a mapping at an address of the kernel's choice touches no memory of ours, and the
        // descriptor is open for the call.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                PAGES * 4096,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED);
        // SAFETY: the mapping is that long, readable and writable, is never unmapped, and this is
        // the only reference into it.
        unsafe { std::slice::from_raw_parts_mut(start.cast(), PAGES * 4096) }
    }

    fn order(ranges: &[(u64, u64)]) -> Vec<u8> {
        let count = u32::try_from(ranges.len()).unwrap();
        let numbers = ranges.iter().flat_map(|&(first, count)| [first, count]);
        let numbers = numbers.flat_map(u64::to_le_bytes);
        count.to_le_bytes().into_iter().chain(numbers).collect()
    }

    /// Sends an order and gives the count that it was answered with; `None` when it was hung up on.
    fn ask(caller: &mut UnixStream, ranges: &[(u64, u64)]) -> Option<u64> {
        caller.write_all(&order(ranges)).unwrap();
        let mut reply = [0; 8];
        caller.read_exact(&mut reply).ok()?;
        Some(u64::from_le_bytes(reply))
    }

    #[test]
    fn what_is_ordered_is_discarded_and_nothing_else() {
        let directory = std::env::temp_dir().join(format!("dayfly-memory-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let memory = memory(&directory);
        memory.fill(1);
        let path = directory.join("memory.sock");
        // SAFETY: the memory is there for ever. The test's own reference stands for the engine's.
        unsafe { begin(&path, memory.as_mut_ptr().cast(), (PAGES * 4096) as u64) };
        let mut caller = UnixStream::connect(&path).unwrap();
        assert_eq!(ask(&mut caller, &[(1, 2), (7, 1)]), Some(3));
        let firsts: Vec<u8> = memory.iter().step_by(4096).copied().collect();
        assert_eq!(firsts, [1, 7, 7, 1, 1, 1, 1, 7]);
        // A wrong one is hung up on as a whole, and the next caller is served.
        assert_eq!(ask(&mut caller, &[(0, 1), (8, 1)]), None);
        let mut caller = UnixStream::connect(&path).unwrap();
        assert_eq!(ask(&mut caller, &[(3, 1)]), Some(1));
        let firsts: Vec<u8> = memory.iter().step_by(4096).copied().collect();
        assert_eq!(firsts, [1, 7, 7, 7, 1, 1, 1, 7]);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
