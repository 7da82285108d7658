//! What the egress process calls until it filters its own calls, and from then on.
//!
//! What is not here is refused and does not end it: it serves every sandbox of the host, and a name
//! server's answer must not decide whether it lives.

use super::{
    Allowed, CallList, OtherCalls, SystemCall, THREAD, bits, call, calls, memory_without_new_code,
};

pub(super) fn list() -> CallList {
    let plain = PLAIN.iter().chain(PLAIN_ON_THIS_MACHINE).copied();
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
    allowed.push(Allowed::with(ioctl, 1, &[FIONBIO]));
    CallList {
        allowed,
        otherwise: OtherCalls::Refuse,
        absent: ABSENT,
    }
}

/// Sockets that do not block.
pub(super) const FIONBIO: u32 = 0x5421;

pub(super) const PLAIN: &[SystemCall] = calls![
    // Bytes over sockets and pipes, and to the log.
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_recvfrom,
    SYS_sendto,
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_splice,
    SYS_pipe2,
    SYS_close,
    SYS_fcntl,
    // Connections.
    SYS_listen,
    SYS_accept4,
    SYS_connect,
    SYS_bind,
    SYS_shutdown,
    SYS_getsockname,
    SYS_getpeername,
    SYS_getsockopt,
    SYS_setsockopt,
    // Waiting.
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_eventfd2,
    SYS_futex,
    SYS_ppoll,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_clock_gettime,
    SYS_restart_syscall,
    SYS_sched_yield,
    // Threads, their memory and their signals.
    SYS_set_robust_list,
    SYS_set_tid_address,
    SYS_rseq,
    SYS_sched_getaffinity,
    SYS_gettid,
    SYS_getpid,
    SYS_brk,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_tgkill,
    SYS_getrandom,
    SYS_exit,
    SYS_exit_group,
    // Until it filters its calls: the loader, its files, who it is and what it gives up.
    SYS_execve,
    SYS_openat,
    SYS_newfstatat,
    SYS_fstat,
    SYS_statx,
    SYS_lseek,
    SYS_pread64,
    SYS_faccessat,
    SYS_readlinkat,
    SYS_fchmod,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getgroups,
    SYS_capget,
    SYS_prlimit64,
    SYS_prctl,
    SYS_seccomp,
];

#[cfg(target_arch = "x86_64")]
pub(super) const PLAIN_ON_THIS_MACHINE: &[SystemCall] = calls![
    // Elder names of what is above.
    SYS_poll,
    SYS_epoll_wait,
    SYS_access,
    SYS_readlink,
    // The thread's own registers.
    SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
pub(super) const PLAIN_ON_THIS_MACHINE: &[SystemCall] = &[];

/// Its flags are in memory, where a filter cannot look. The C library uses `clone` instead.
pub(super) const ABSENT: &[SystemCall] = calls![SYS_clone3];
