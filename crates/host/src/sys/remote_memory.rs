//! Reading the memory of another process.

use std::io;

/// Fills `buffer` from an address of another process. One copy, where a read of `/proc/PID/mem`
/// makes two.
///
/// # Errors
/// What the kernel said, or [`io::ErrorKind::UnexpectedEof`] when the memory ends before the
/// buffer does.
pub(crate) fn read_remote(pid: i32, address: u64, buffer: &mut [u8]) -> io::Result<()> {
    let start = usize::try_from(address).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut done = 0;
    while done < buffer.len() {
        let rest = &mut buffer[done..];
        let local = libc::iovec {
            iov_base: rest.as_mut_ptr().cast(),
            iov_len: rest.len(),
        };
        let remote = libc::iovec {
            iov_base: std::ptr::without_provenance_mut(start + done),
            iov_len: rest.len(),
        };
        // SAFETY: `local` describes `rest`, which is ours alone for the length of the call and
        // which the kernel writes at most `iov_len` bytes of. `remote` is an address of another
        // process: the kernel checks it there, and nothing of ours is reached through it.
        let count =
            unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
        let count = super::check(libc::c_long::try_from(count).unwrap_or(-1))?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        done += usize::try_from(count).unwrap_or(0);
    }
    Ok(())
}
