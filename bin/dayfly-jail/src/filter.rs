//! System calls that no engine has a use for, refused from its first instruction on.
//!
//! This is a list of what is denied, below the engine's own filter: it must let every engine work
//! and still take away what exploits of kernels begin with. A denied call fails with `EPERM`.

use std::collections::BTreeMap;

use dayfly_host::jail::{JailSockets, JailStep};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use crate::failure::Failure;

/// Compiled before anything is entered, so that what can fail there fails early.
pub(crate) struct Filters {
    programs: Vec<BpfProgram>,
}

impl Filters {
    /// Installs the filters for this process and all that it becomes.
    pub(crate) fn install(&self) -> Result<(), Failure> {
        for program in &self.programs {
            apply_filter(program).map_err(|error| Failure::new(JailStep::Filter, error))?;
        }
        Ok(())
    }
}

pub(crate) fn compile(sockets: JailSockets) -> Result<Filters, Failure> {
    let denied = compile_one(
        denied_rules(sockets)?,
        SeccompAction::Errno(errno(libc::EPERM)),
    )?;
    // Its flags are in memory, where a filter cannot look. Without it, libraries use `clone`.
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let absent = compile_one(clone3, SeccompAction::Errno(errno(libc::ENOSYS)))?;
    let mut programs = vec![absent, denied];
    if cfg!(target_arch = "x86_64") {
        programs.push(second_table());
    }
    Ok(Filters { programs })
}

/// The same kernel entries have a second set of numbers on this machine, which lists by number
/// would miss. Programs built for it do not run here.
fn second_table() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const SECOND_TABLE_BIT: u32 = 0x4000_0000;
    const RETURN_ERROR: u32 = 0x0005_0000;
    const RETURN_ALLOW: u32 = 0x7fff_0000;
    let instruction = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        // The number of the call is the first word that a filter sees.
        instruction(LOAD_WORD, 0, 0, 0),
        instruction(JUMP_IF_AT_LEAST, 0, 1, SECOND_TABLE_BIT),
        instruction(RETURN, 0, 0, RETURN_ERROR | errno(libc::ENOSYS)),
        instruction(RETURN, 0, 0, RETURN_ALLOW),
    ]
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn compile_one(rules: Rules, action: SeccompAction) -> Result<BpfProgram, Failure> {
    let architecture: TargetArch = std::env::consts::ARCH
        .try_into()
        .map_err(|error| Failure::new(JailStep::Filter, error))?;
    SeccompFilter::new(rules, SeccompAction::Allow, action, architecture)
        .and_then(BpfProgram::try_from)
        .map_err(|error| Failure::new(JailStep::Filter, error))
}

fn denied_rules(sockets: JailSockets) -> Result<Rules, Failure> {
    let mut rules: Rules = DENIED.iter().map(|&call| (call, Vec::new())).collect();
    let namespaces = NAMESPACE_FLAGS
        .iter()
        .map(|&flag| rule(&[(SeccompCmpOp::MaskedEq(flag), flag)]))
        .collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_clone, namespaces);
    // The network of an engine is what it is handed; it makes no sockets but local ones.
    let families: &[i32] = match sockets {
        JailSockets::Local => &[libc::AF_UNIX],
        JailSockets::Ipv4 => &[libc::AF_UNIX, libc::AF_INET],
    };
    let other: Vec<_> = families
        .iter()
        .map(|family| (SeccompCmpOp::Ne, u64::from(family.unsigned_abs())))
        .collect();
    rules.insert(libc::SYS_socket, vec![rule(&other)?]);
    Ok(rules)
}

/// Holds when all of these hold for the first argument.
fn rule(conditions: &[(SeccompCmpOp, u64)]) -> Result<SeccompRule, Failure> {
    let conditions = conditions.iter().map(|(operator, value)| {
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, operator.clone(), *value)
    });
    conditions
        .collect::<Result<_, _>>()
        .and_then(SeccompRule::new)
        .map_err(|error| Failure::new(JailStep::Filter, error))
}

fn errno(number: i32) -> u32 {
    number.unsigned_abs()
}

const NAMESPACE_FLAGS: [u64; 7] = [
    libc::CLONE_NEWCGROUP as u64,
    libc::CLONE_NEWIPC as u64,
    libc::CLONE_NEWNET as u64,
    libc::CLONE_NEWNS as u64,
    libc::CLONE_NEWPID as u64,
    libc::CLONE_NEWUSER as u64,
    libc::CLONE_NEWUTS as u64,
];

const DENIED: &[i64] = &[
    // Mounts, roots and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_process_madvise,
    // Large parts of the kernel that an engine never enters.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_fanotify_init,
    libc::SYS_vmsplice,
    // The kernel itself and the host as a whole.
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    // Files by handle, past any root.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
];
