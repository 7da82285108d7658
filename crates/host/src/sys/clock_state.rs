//! What the kernel thinks of its own clock.

use std::io;

/// The bits that say how the clock is kept; see `adjtimex(2)`.
pub(crate) fn clock_status() -> io::Result<i32> {
    // SAFETY: the structure is made of integers, for all of which zero is a value; `modes` of zero
    // changes nothing.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a whole structure of the type that the call fills, for as long as
    // the call takes.
    let result = unsafe { libc::adjtimex(&raw mut state) };
    super::check(result.into())?;
    Ok(state.status)
}
