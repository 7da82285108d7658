//! What the program that reads images of containers calls: it asks registries, and writes files into
//! the one directory that it was given.
//!
//! What is not here is refused: the program then says what it could not do.

use super::{
    Allowed, CallList, OtherCalls, SystemCall, THREAD, bits, call, calls, egress,
    memory_without_new_code,
};

pub(super) fn list() -> CallList {
    let plain = egress::PLAIN.iter().chain(egress::PLAIN_ON_THIS_MACHINE);
    let plain = plain.filter(|call| !NOT_ITS_WORK.contains(call));
    let plain = plain.chain(FILES).chain(FILES_ON_THIS_MACHINE).copied();
    let mut allowed: Vec<Allowed> = plain.map(Allowed::any).collect();
    allowed.extend(memory_without_new_code());
    let families = [libc::AF_INET, libc::AF_UNIX].map(bits);
    let socket = call("SYS_socket", libc::SYS_socket);
    allowed.push(Allowed::with(socket, 0, &families));
    let pair = call("SYS_socketpair", libc::SYS_socketpair);
    allowed.push(Allowed::with(pair, 0, &[bits(libc::AF_UNIX)]));
    let clone = call("SYS_clone", libc::SYS_clone);
    allowed.push(Allowed::with(clone, 0, &[THREAD]));
    let ioctl = call("SYS_ioctl", libc::SYS_ioctl);
    allowed.push(Allowed::with(ioctl, 1, &[egress::FIONBIO]));
    CallList {
        allowed,
        otherwise: OtherCalls::Refuse,
        absent: egress::ABSENT,
    }
}

/// It serves nobody, and takes nothing more away from itself.
const NOT_ITS_WORK: &[SystemCall] =
    calls![SYS_listen, SYS_accept4, SYS_splice, SYS_fchmod, SYS_seccomp,];

/// Layers and the disk.
const FILES: &[SystemCall] = calls![
    SYS_openat2,
    SYS_pwrite64,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_unlinkat,
    SYS_fsync,
    SYS_getdents64,
];

#[cfg(target_arch = "x86_64")]
const FILES_ON_THIS_MACHINE: &[SystemCall] = calls![
    // Elder names of what is above.
    SYS_open, SYS_unlink,
];
#[cfg(not(target_arch = "x86_64"))]
const FILES_ON_THIS_MACHINE: &[SystemCall] = &[];
