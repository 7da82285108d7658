//! The system calls that a program in a jail may make: lists of what is allowed, and nothing that
//! is not on them.
//!
//! The lists are plain data. `dayfly-jail` makes a filter of them, and tests compare them with
//! what programs really call. See ADR 0020 for how a list comes about.

mod egress;
mod engine;
mod image;
mod kvm;

use serde::{Deserialize, Serialize};

/// How many filters `dayfly-jail` makes of a list.
pub const JAIL_FILTERS: u32 = 2;

/// Which program a jail is for, as far as its calls go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JailCalls {
    /// An engine that translates the guest's instructions, and so writes code that it executes.
    EmulatedEngine,
    /// An engine whose guest runs on the processor. It executes only what is in its root.
    KvmEngine,
    /// The process that carries traffic of sandboxes. It takes more away by itself.
    Egress,
    /// The program that reads images of containers.
    Image,
}

impl JailCalls {
    pub const ALL: [Self; 4] = [
        Self::EmulatedEngine,
        Self::KvmEngine,
        Self::Egress,
        Self::Image,
    ];

    /// The whole list.
    #[must_use]
    pub fn list(self) -> CallList {
        match self {
            Self::EmulatedEngine => engine::emulated(),
            Self::KvmEngine => engine::kvm(),
            Self::Egress => egress::list(),
            Self::Image => image::list(),
        }
    }
}

/// One system call of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SystemCall {
    pub name: &'static str,
    pub number: i64,
}

/// What a process may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallList {
    pub allowed: Vec<Allowed>,
    pub otherwise: OtherCalls,
    /// Answered as by a kernel that does not have them: libraries ask for these and do without.
    pub absent: &'static [SystemCall],
}

/// What comes of a call that is on no list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtherCalls {
    /// The process is ended at once, with all its threads: it is not what it was.
    End,
    /// The call fails with `EPERM`.
    Refuse,
}

/// One call that is let through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    pub call: SystemCall,
    /// At least one of these must hold; with none, any arguments will do. The first is tried first.
    pub forms: Vec<FilterForm>,
}

/// Conditions that hold together.
pub type FilterForm = Vec<Condition>;

/// A test of the lower 32 bits of one argument. What is compared here has no more than those.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// From 0.
    pub argument: u8,
    /// The bits that count.
    pub mask: u32,
    pub value: u32,
}

impl Condition {
    const fn equals(argument: u8, value: u32) -> Self {
        Self::bits(argument, u32::MAX, value)
    }

    const fn bits(argument: u8, mask: u32, value: u32) -> Self {
        Self {
            argument,
            mask,
            value,
        }
    }
}

impl Allowed {
    const fn any(call: SystemCall) -> Self {
        Self {
            call,
            forms: Vec::new(),
        }
    }

    /// Let through when one argument has one of these values.
    fn with(call: SystemCall, argument: u8, values: &[u32]) -> Self {
        let form = |&value: &u32| vec![Condition::equals(argument, value)];
        Self {
            call,
            forms: values.iter().map(form).collect(),
        }
    }
}

/// Names calls as the C library's constants do, and drops their prefix.
macro_rules! calls {
    ($($name:ident),* $(,)?) => {
        &[$($crate::jail::calls::call(stringify!($name), libc::$name)),*]
    };
}
use calls;

/// The part of a constant's name after its prefix.
pub(super) const fn call(constant: &'static str, number: i64) -> SystemCall {
    let (_, name) = constant.split_at("SYS_".len());
    SystemCall { name, number }
}

const fn bits(value: i32) -> u32 {
    value.cast_unsigned()
}

/// A thread as the C library makes one: no namespace, no process.
const THREAD: u32 = bits(
    libc::CLONE_VM
        | libc::CLONE_FS
        | libc::CLONE_FILES
        | libc::CLONE_SIGHAND
        | libc::CLONE_THREAD
        | libc::CLONE_SYSVSEM
        | libc::CLONE_SETTLS
        | libc::CLONE_PARENT_SETTID
        | libc::CLONE_CHILD_CLEARTID,
);

/// Calls by which memory becomes executable, for a program that never writes code: what the loader
/// maps from files, which only the read-only root has any that may be executed, and nothing else.
fn memory_without_new_code() -> [Allowed; 2] {
    const PROTECTION: u8 = 2;
    const FLAGS: u8 = 3;
    let executable = bits(libc::PROT_EXEC);
    let changeable = bits(libc::PROT_WRITE);
    let kind = bits(libc::MAP_TYPE | libc::MAP_ANONYMOUS);
    let plain = vec![Condition::bits(PROTECTION, executable, 0)];
    let of_file = vec![
        Condition::bits(PROTECTION, executable | changeable, executable),
        Condition::bits(FLAGS, kind, bits(libc::MAP_PRIVATE)),
    ];
    [
        Allowed {
            call: call("SYS_mmap", libc::SYS_mmap),
            forms: vec![plain.clone(), of_file],
        },
        Allowed {
            call: call("SYS_mprotect", libc::SYS_mprotect),
            forms: vec![plain],
        },
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Ways out of a jail, into the kernel or to other processes. A list that gains one of them
    /// has gone wrong.
    const NEVER: &[SystemCall] = calls![
        SYS_mount,
        SYS_umount2,
        SYS_pivot_root,
        SYS_chroot,
        SYS_unshare,
        SYS_setns,
        SYS_open_tree,
        SYS_move_mount,
        SYS_fsopen,
        SYS_fsconfig,
        SYS_fsmount,
        SYS_mount_setattr,
        SYS_ptrace,
        SYS_process_vm_readv,
        SYS_process_vm_writev,
        SYS_pidfd_open,
        SYS_pidfd_getfd,
        SYS_pidfd_send_signal,
        SYS_kcmp,
        SYS_kill,
        SYS_bpf,
        SYS_perf_event_open,
        SYS_io_uring_enter,
        SYS_io_uring_register,
        SYS_io_setup,
        SYS_io_submit,
        SYS_add_key,
        SYS_request_key,
        SYS_keyctl,
        SYS_open_by_handle_at,
        SYS_name_to_handle_at,
        SYS_init_module,
        SYS_finit_module,
        SYS_kexec_load,
        SYS_setuid,
        SYS_setgid,
        SYS_setresuid,
        SYS_setresgid,
        SYS_setgroups,
        SYS_capset,
        SYS_personality,
        SYS_mknodat,
        SYS_fchown,
        SYS_fchownat,
        SYS_shmget,
        SYS_msgget,
        SYS_semget,
        SYS_mq_open,
        SYS_vmsplice,
        SYS_tee,
        SYS_pkey_mprotect,
        SYS_remap_file_pages,
        SYS_execveat,
        SYS_socketpair,
        SYS_symlinkat,
        SYS_linkat,
    ];

    #[test]
    fn each_call_is_listed_once() {
        for calls in JailCalls::ALL {
            let list = calls.list();
            let named = list.allowed.iter().map(|allowed| allowed.call);
            let all: Vec<SystemCall> = named.chain(list.absent.iter().copied()).collect();
            let numbers: BTreeSet<i64> = all.iter().map(|call| call.number).collect();
            assert_eq!(numbers.len(), all.len(), "{calls:?}");
        }
    }

    #[test]
    fn no_engine_may_make_a_call_that_leads_out() {
        for calls in [JailCalls::EmulatedEngine, JailCalls::KvmEngine] {
            for allowed in calls.list().allowed {
                assert!(!NEVER.contains(&allowed.call), "{calls:?} {allowed:?}");
            }
        }
    }

    /// With such a descriptor a process could stop the kernel in the middle of a copy, which is how
    /// many faults of kernels are made use of. What an engine may open sees faults of its own alone.
    #[test]
    fn an_engine_may_hold_up_no_fault_of_the_kernel() {
        const USER_MODE_ONLY: u32 = 1;
        for calls in [JailCalls::EmulatedEngine, JailCalls::KvmEngine] {
            let list = calls.list().allowed;
            let faults = list.into_iter().find(|one| one.call.name == "userfaultfd");
            let forms = faults.map(|allowed| allowed.forms).unwrap_or_default();
            assert!(!forms.is_empty(), "{calls:?}");
            for form in forms {
                let flags = form.iter().find(|condition| condition.argument == 0);
                let flags = flags.expect("any flags will do");
                assert_eq!(flags.mask, u32::MAX);
                assert_eq!(flags.value & USER_MODE_ONLY, USER_MODE_ONLY);
            }
        }
    }

    #[test]
    fn only_an_engine_on_kvm_may_ask_the_hypervisor() {
        const KVM_RUN: u32 = 0xae80;
        let may_run = |calls: JailCalls| {
            let ioctl = |allowed: &Allowed| allowed.call.name == "ioctl";
            let list = calls.list().allowed;
            let forms = list.into_iter().find(ioctl).map(|allowed| allowed.forms);
            forms.is_some_and(|forms| forms.contains(&vec![Condition::equals(1, KVM_RUN)]))
        };
        let found = JailCalls::ALL.map(may_run);
        assert_eq!(found, [false, true, false, false]);
    }
}
