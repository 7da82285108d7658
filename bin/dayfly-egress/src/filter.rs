//! The system calls that the process can still make.
//!
//! A list of what is allowed: sockets of IPv4, waiting, memory that is never executable, threads.
//! No file can be opened, no program started, no other process looked at. Everything else fails
//! with `EPERM`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The kinds of socket are in the low bits of the argument that also holds flags.
const SOCKET_KIND_BITS: u64 = 0xf;

/// For this thread and all that it starts. To be called while there is one.
pub(crate) fn install() -> Result<()> {
    // Its flags are in memory, where a filter cannot look. Without it, libraries use `clone`.
    let absent = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let absent = compile(absent, SeccompAction::Allow, errno(libc::ENOSYS))?;
    let allowed = compile(allowed()?, errno(libc::EPERM), SeccompAction::Allow)?;
    for program in [absent, allowed] {
        apply_filter(&program)?;
    }
    Ok(())
}

const fn errno(number: i32) -> SeccompAction {
    SeccompAction::Errno(number.unsigned_abs())
}

fn compile(rules: Rules, otherwise: SeccompAction, matched: SeccompAction) -> Result<BpfProgram> {
    let architecture: TargetArch = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, otherwise, matched, architecture)?;
    filter.try_into().context("the filter does not compile")
}

fn allowed() -> Result<Rules> {
    let mut rules: Rules = ALLOWED.iter().map(|&call| (call, Vec::new())).collect();
    let inet = equals(0, libc::AF_INET)?;
    let of_kind = |kind| masked(1, SOCKET_KIND_BITS, bits(kind));
    let socket = vec![
        SeccompRule::new(vec![inet.clone(), of_kind(libc::SOCK_STREAM)?])?,
        SeccompRule::new(vec![inet, of_kind(libc::SOCK_DGRAM)?])?,
    ];
    rules.insert(libc::SYS_socket, socket);
    // The runtime tells itself of signals over a pair.
    rules.insert(libc::SYS_socketpair, one(equals(0, libc::AF_UNIX)?)?);
    let thread = bits(libc::CLONE_THREAD);
    rules.insert(libc::SYS_clone, one(masked(0, thread, thread)?)?);
    let executable = bits(libc::PROT_EXEC);
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        rules.insert(call, one(masked(2, executable, 0)?)?);
    }
    let commands = [
        libc::F_GETFD,
        libc::F_SETFD,
        libc::F_GETFL,
        libc::F_SETFL,
        libc::F_DUPFD_CLOEXEC,
        libc::F_SETPIPE_SZ,
    ];
    rules.insert(libc::SYS_fcntl, any_of(1, &commands)?);
    rules.insert(libc::SYS_prctl, any_of(0, &[libc::PR_SET_NAME])?);
    let non_blocking = i32::try_from(libc::FIONBIO)?;
    rules.insert(libc::SYS_ioctl, any_of(1, &[non_blocking])?);
    Ok(rules)
}

fn bits(value: i32) -> u64 {
    u64::from(value.unsigned_abs())
}

fn equals(argument: u8, value: i32) -> Result<SeccompCondition> {
    condition(argument, SeccompCmpOp::Eq, bits(value))
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition> {
    condition(argument, SeccompCmpOp::MaskedEq(mask), value)
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition> {
    let width = SeccompCmpArgLen::Dword;
    SeccompCondition::new(argument, width, operator, value).context("a condition is not one")
}

fn one(condition: SeccompCondition) -> Result<Vec<SeccompRule>> {
    Ok(vec![SeccompRule::new(vec![condition])?])
}

fn any_of(argument: u8, values: &[i32]) -> Result<Vec<SeccompRule>> {
    let rule = |value: &i32| Ok(SeccompRule::new(vec![equals(argument, *value)?])?);
    values.iter().map(rule).collect()
}

const ALLOWED: &[i64] = &[
    // Bytes over sockets and pipes, and to the log.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_splice,
    libc::SYS_pipe2,
    libc::SYS_close,
    // Connections.
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_shutdown,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    // Waiting.
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_futex,
    libc::SYS_ppoll,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_restart_syscall,
    libc::SYS_sched_yield,
    // Threads, their memory and their signals.
    libc::SYS_clone3,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_sched_getaffinity,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_geteuid,
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    libc::SYS_getrandom,
    libc::SYS_exit,
    libc::SYS_exit_group,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
];

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::ErrorKind;
    use std::net::UdpSocket;
    use std::os::unix::net::UnixDatagram;
    use std::process::Command;

    use super::install;

    #[test]
    fn what_is_not_on_the_list_is_refused() {
        // A filter is a thread's own, and ends with it.
        let filtered = std::thread::spawn(|| {
            install().unwrap();
            let file = File::open("/dev/null").unwrap_err().kind();
            let other_network = UdpSocket::bind("[::1]:0").unwrap_err().kind();
            let local = UnixDatagram::unbound().unwrap_err().kind();
            assert_eq!(
                [file, other_network, local],
                [ErrorKind::PermissionDenied; 3]
            );
            assert!(Command::new("/bin/true").spawn().is_err());
            assert!(
                UdpSocket::bind("127.0.0.1:0").is_ok(),
                "what it is for still works"
            );
        });
        filtered.join().unwrap();
        assert!(File::open("/dev/null").is_ok());
    }
}
