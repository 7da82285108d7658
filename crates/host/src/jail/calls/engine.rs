//! What an engine calls, from its first instruction on.
//!
//! The engine is executed under its filter, so the calls of the loader and of its start are here
//! as well. What only the start needs, the engine's own filter takes away afterwards.

use super::kvm::KVM_COMMANDS;
use super::{
    Allowed, CallList, OtherCalls, SystemCall, THREAD, bits, call, calls, memory_without_new_code,
};

pub(super) fn emulated() -> CallList {
    // Translated code is written and executed in one place.
    let memory = calls![SYS_mmap, SYS_mprotect];
    let memory = memory.iter().copied().map(Allowed::any);
    list(memory.collect(), ioctl(&[]))
}

pub(super) fn kvm() -> CallList {
    list(memory_without_new_code().into(), ioctl(KVM_COMMANDS))
}

fn list(memory: Vec<Allowed>, ioctl: Allowed) -> CallList {
    let plain = ANY.iter().chain(ANY_ON_THIS_MACHINE).copied();
    let mut allowed: Vec<Allowed> = plain.map(Allowed::any).collect();
    allowed.extend(memory);
    allowed.push(ioctl);
    allowed.extend(narrowed());
    CallList {
        allowed,
        otherwise: OtherCalls::End,
        absent: ABSENT,
    }
}

/// Commands of the tap that an engine attaches to: find it, attach, say what it may carry. And of
/// its output, of which a library asks whether it is a terminal before it writes a warning.
const OTHER_COMMANDS: &[u32] = &[
    0x8933,      // SIOCGIFINDEX
    0x8004_54cf, // TUNGETFEATURES
    0x4004_54ca, // TUNSETIFF
    0x4004_54d0, // TUNSETOFFLOAD
    0x4004_54d4, // TUNSETSNDBUF
    0x8004_54e0, // TUNSETSTEERINGEBPF, by which a restore says that there is no such program
    0x5401,      // TCGETS
    0xc018_aa3f, // UFFDIO_API, of the library that has the guest's writes noted
];

/// The most frequent commands come first: a filter tries them in order.
fn ioctl(accelerator: &[u32]) -> Allowed {
    const COMMAND: u8 = 1;
    let commands = [accelerator, OTHER_COMMANDS].concat();
    Allowed::with(call("SYS_ioctl", libc::SYS_ioctl), COMMAND, &commands)
}

fn narrowed() -> Vec<Allowed> {
    const THIS_PROCESS: u32 = 0;
    // A jail is a process namespace of its own, and the engine its first process.
    const OWN_PID: u32 = 1;
    let allow = |call, argument, values: &[i32]| {
        let values: Vec<u32> = values.iter().copied().map(bits).collect();
        Allowed::with(call, argument, &values)
    };
    // Opened by the library, for the node to borrow. It cannot hold up faults of the kernel.
    const NOTES_WRITES: u32 = bits(libc::O_CLOEXEC | libc::O_NONBLOCK) | 1; // UFFD_USER_MODE_ONLY
    vec![
        Allowed::with(
            call("SYS_userfaultfd", libc::SYS_userfaultfd),
            0,
            &[NOTES_WRITES],
        ),
        Allowed::with(call("SYS_clone", libc::SYS_clone), 0, &[THREAD]),
        allow(
            call("SYS_fcntl", libc::SYS_fcntl),
            1,
            &[
                libc::F_GETFL,
                libc::F_SETFL,
                libc::F_OFD_SETLK,
                libc::F_OFD_GETLK,
                libc::F_GETFD,
                libc::F_SETFD,
                libc::F_DUPFD_CLOEXEC,
            ],
        ),
        allow(
            call("SYS_prctl", libc::SYS_prctl),
            0,
            &[
                libc::PR_SET_NAME,
                libc::PR_SET_TIMERSLACK,
                libc::PR_MCE_KILL,
                libc::PR_SET_NO_NEW_PRIVS,
                // The library of capabilities asks for its bounding set when it is loaded, from
                // Debian 13 on.
                libc::PR_CAPBSET_READ,
            ],
        ),
        // The network of an engine is what it is handed; it makes no sockets but local ones.
        allow(call("SYS_socket", libc::SYS_socket), 0, &[libc::AF_UNIX]),
        Allowed::with(
            call("SYS_prlimit64", libc::SYS_prlimit64),
            0,
            &[THIS_PROCESS],
        ),
        Allowed::with(call("SYS_tgkill", libc::SYS_tgkill), 0, &[OWN_PID]),
    ]
}

/// With any arguments.
const ANY: &[SystemCall] = calls![
    // Bytes of disks, sockets and the tap.
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_pwrite64,
    SYS_preadv,
    SYS_pwritev,
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_lseek,
    SYS_close,
    // Files, by name and by descriptor.
    SYS_openat,
    SYS_newfstatat,
    SYS_fstat,
    SYS_statx,
    SYS_statfs,
    SYS_fstatfs,
    SYS_faccessat,
    SYS_readlinkat,
    SYS_unlinkat,
    SYS_ftruncate,
    SYS_fallocate,
    SYS_fsync,
    SYS_fdatasync,
    SYS_fadvise64,
    // The monitor and the agent's ports, which listen.
    SYS_bind,
    SYS_listen,
    SYS_accept4,
    SYS_getsockname,
    SYS_getpeername,
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_shutdown,
    // Waiting.
    SYS_ppoll,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_eventfd2,
    SYS_signalfd4,
    SYS_futex,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_gettimeofday,
    SYS_restart_syscall,
    SYS_sched_yield,
    // Threads, their memory and their signals.
    SYS_set_robust_list,
    SYS_set_tid_address,
    SYS_rseq,
    SYS_sched_getaffinity,
    SYS_gettid,
    SYS_getpid,
    // A library seeds a generator by it where there is no device to read from.
    SYS_getppid,
    SYS_brk,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_msync,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigtimedwait,
    SYS_rt_sigpending,
    SYS_exit,
    SYS_exit_group,
    // What the start asks about the host.
    SYS_getrandom,
    SYS_sysinfo,
    SYS_uname,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    // The engine itself is executed under the filter. Its own, which it installs next and which
    // can only take away, ends it on a second one.
    SYS_execve,
    SYS_seccomp,
];

#[cfg(target_arch = "x86_64")]
const ANY_ON_THIS_MACHINE: &[SystemCall] = calls![
    // Elder names of what is above.
    SYS_poll,
    SYS_epoll_wait,
    SYS_access,
    SYS_readlink,
    SYS_unlink,
    // The thread's own registers.
    SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
const ANY_ON_THIS_MACHINE: &[SystemCall] = &[];

/// Asked for at the start, and done without.
const ABSENT: &[SystemCall] = calls![
    // Its flags are in memory, where a filter cannot look. The C library uses `clone` instead.
    SYS_clone3,
    // The engine asks whether it could use it for disks, and uses threads.
    SYS_io_uring_setup,
    // The engine asks whether it could make memory by it. Guest memory here is a file.
    SYS_memfd_create,
    // A library asks where memory lies. Nobody here places it.
    SYS_get_mempolicy,
    SYS_set_mempolicy,
    SYS_mbind,
];
