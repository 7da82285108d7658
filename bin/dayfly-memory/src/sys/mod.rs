//! The two functions that stand in front of the C library's, and the mappings that they make.
#![expect(
    unsafe_code,
    reason = "a library that takes the place of mmap is made of nothing else"
)]

mod discarding;
pub(crate) mod tracking;

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::map::{MAP_VARIABLE, MemoryMap, PAGE_BYTES};
use crate::order::SOCKET_VARIABLE;

/// Guest memory is mapped once. A second such mapping is not what this library understands.
static IS_DONE: AtomicBool = AtomicBool::new(false);

/// Takes the place of the C library's function of that name.
///
/// # Safety
/// As for `mmap(2)`: the caller owns the address range that it fixes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mmap64(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the very call that the caller made, with its own promises.
    let start = unsafe { map(address, length, protection, flags, descriptor, offset) };
    if start != libc::MAP_FAILED
        && descriptor >= 0
        && flags & libc::MAP_TYPE == libc::MAP_PRIVATE
        && protection & libc::PROT_WRITE != 0
        && offset == 0
    {
        lay_over(start, length);
    }
    start
}

/// Takes the place of the C library's function of that name.
///
/// # Safety
/// As for `mmap(2)`: the caller owns the address range that it fixes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the same function under its other name; the caller's promises hold for it.
    unsafe { mmap64(address, length, protection, flags, descriptor, offset) }
}

/// The system call itself. Not through the C library, whose name for it is taken.
unsafe fn map(
    address: *mut c_void,
    length: usize,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: passed on as given; the caller has promised what `mmap(2)` asks for. The call sets
    // errno as the C library's own would.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            address,
            length,
            protection,
            flags,
            descriptor,
            offset,
        )
    };
    result as *mut c_void
}

/// Maps the layers, if this is guest memory and a map is there. Ends the process when it cannot.
fn lay_over(start: *mut c_void, length: usize) {
    let Some(path) = std::env::var_os(MAP_VARIABLE) else {
        return;
    };
    let Ok(text) = std::fs::read_to_string(&path) else {
        fail("cannot read the memory map");
    };
    let Some(memory) = MemoryMap::parse(&text) else {
        fail("the memory map is damaged");
    };
    if u64::try_from(length) != Ok(memory.memory_bytes) {
        return;
    }
    if IS_DONE.swap(true, Ordering::SeqCst) {
        fail("guest memory is mapped twice");
    }
    for layer in &memory.layers {
        let Ok(file) = File::open(&layer.file) else {
            fail("cannot open a memory layer");
        };
        let is_whole = file
            .metadata()
            .is_ok_and(|metadata| metadata.len() == memory.memory_bytes);
        if !is_whole {
            fail("a memory layer has another size than memory");
        }
        for &(first, count) in &layer.extents {
            map_extent(start, &file, first * PAGE_BYTES, count * PAGE_BYTES);
        }
    }
    tracking::open();
    if let Some(socket) = std::env::var_os(SOCKET_VARIABLE) {
        // SAFETY: guest memory was mapped there a moment ago with the size that the map names, and
        // an engine keeps it until it ends. This library holds no reference into it.
        unsafe { discarding::begin(Path::new(&socket), start, memory.memory_bytes) };
    }
}

fn map_extent(start: *mut c_void, file: &File, offset: u64, bytes: u64) {
    let (Ok(file_offset), Ok(distance), Ok(length)) = (
        i64::try_from(offset),
        usize::try_from(offset),
        usize::try_from(bytes),
    ) else {
        fail("a memory layer is too large");
    };
    let place = start.wrapping_byte_add(distance);
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_FIXED;
    // SAFETY: the map was checked against the length of the mapping that begins at `start`, so
    // `place` and `length` stay within it. That mapping was made a moment ago by the caller that
    // waits for us, and nothing can hold a reference into it yet.
    let mapped = unsafe {
        map(
            place,
            length,
            protection,
            flags,
            file.as_raw_fd(),
            file_offset,
        )
    };
    if mapped == libc::MAP_FAILED {
        fail("cannot map a memory layer");
    }
}

/// Ends the process before it can run a guest on memory that is not its own.
fn fail(reason: &str) -> ! {
    // The engine's standard error is its log; when it cannot be written the process ends anyway.
    let _ = writeln!(std::io::stderr(), "dayfly-memory: {reason}");
    std::process::abort();
}
