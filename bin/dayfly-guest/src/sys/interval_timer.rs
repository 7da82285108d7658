//! The machine's interval timer (8254), by its ports.

use std::arch::asm;
use std::ffi::c_ulong;
use std::io;

/// The first of its four ports: the count of channel 0.
const COUNT: u16 = 0x40;
const PORTS: c_ulong = 4;
const CONTROL: u16 = 0x43;
/// Channel 0 takes a count of two bytes and comes to its end once, instead of again and again.
const ONCE: u8 = 0x30;

/// Lets channel 0 come to its end. It runs from the machine's reset on.
pub(crate) fn stop_interval_timer() -> io::Result<()> {
    permit(true)?;
    for (port, value) in [(CONTROL, ONCE), (COUNT, 0), (COUNT, 0)] {
        // SAFETY: the kernel has just opened these ports to this thread, so the instruction does not
        // fault; it touches neither memory nor the stack. The caller knows that the kernel does not
        // use the timer.
        unsafe {
            asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags));
        }
    }
    permit(false)
}

/// Opens or closes its ports to this thread.
fn permit(is_open: bool) -> io::Result<()> {
    // SAFETY: the call takes numbers alone, and changes what this thread may do with four ports.
    let result = unsafe { libc::ioperm(c_ulong::from(COUNT), PORTS, i32::from(is_open)) };
    if result == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}
