//! The lists of system calls at work: what is not on a list ends the process that tries it.

use std::collections::BTreeSet;

use dayfly_attacker::engine::{Attempt, Came};
use dayfly_host::jail::{JailCalls, JailSpec};
use dayfly_host::process::Exit;

use crate::support::{CGROUP_LIMITS, Slot};

const ENGINES: [JailCalls; 2] = [JailCalls::EmulatedEngine, JailCalls::KvmEngine];
/// The newest call that is known here; those above are absent.
const NEWEST_CALL: i64 = 462;

fn spec(slot: &Slot, calls: JailCalls, attempts: &[Attempt]) -> JailSpec {
    JailSpec {
        calls,
        ..slot.taken_over(attempts)
    }
}

/// Something allowed before and after, so that it is this attempt and no other that ends it.
async fn assert_ends(slot: &Slot, calls: JailCalls, attempt: &Attempt) {
    let allowed = Attempt::call(libc::SYS_getpid, &[]);
    let attempts = [allowed.clone(), attempt.clone(), allowed];
    let found = slot.run(&spec(slot, calls, &attempts)).await;
    let wanted = (Exit::Signal(libc::SIGSYS), vec![Came::Done]);
    assert_eq!(found, wanted, "{calls:?} {attempt:?}");
}

#[tokio::test]
async fn a_call_that_is_not_listed_ends_the_process() {
    let Some(slot) = Slot::new() else { return };
    let text = |number, words: &[&str]| {
        let words = words.iter().map(|&word| word.to_owned());
        Attempt::Call(number, words.collect())
    };
    let attempts = [
        text(libc::SYS_mount, &["/run", "/run", "none", "4096", "0"]),
        Attempt::call(libc::SYS_unshare, &[i64::from(libc::CLONE_NEWUSER)]),
        Attempt::call(libc::SYS_clone, &[i64::from(libc::SIGCHLD), 0, 0, 0, 0]),
        Attempt::call(libc::SYS_fork, &[]),
        Attempt::call(libc::SYS_kill, &[-1, 0]),
        Attempt::call(libc::SYS_tgkill, &[2, 2, 0]),
        Attempt::call(libc::SYS_ptrace, &[0, 0, 0, 0]),
        Attempt::call(libc::SYS_pidfd_open, &[1, 0]),
        Attempt::call(libc::SYS_bpf, &[0, 0, 0]),
        Attempt::call(libc::SYS_userfaultfd, &[1]),
        Attempt::call(libc::SYS_perf_event_open, &[0, 0, 0, 0, 0]),
        Attempt::call(libc::SYS_keyctl, &[0, 0, 0]),
        Attempt::call(libc::SYS_io_setup, &[1, 0]),
        Attempt::call(libc::SYS_shmget, &[0, 4096, 0o1600]),
        Attempt::call(libc::SYS_personality, &[0xffff_ffff]),
        text(libc::SYS_symlink, &["/template", "/run/link"]),
        text(libc::SYS_mkdir, &["/run/made", "448"]),
        Attempt::call(libc::SYS_setuid, &[0]),
        Attempt::call(libc::SYS_socket, &[i64::from(libc::AF_INET), 1, 0]),
        Attempt::call(libc::SYS_socket, &[i64::from(libc::AF_NETLINK), 3, 0]),
        Attempt::call(libc::SYS_socket, &[i64::from(libc::AF_VSOCK), 1, 0]),
        Attempt::call(libc::SYS_connect, &[0, 0, 0]),
        Attempt::call(libc::SYS_ioctl, &[0, libc::TIOCSTI.cast_signed(), 0]),
        Attempt::call(libc::SYS_prctl, &[i64::from(libc::PR_SET_DUMPABLE), 1]),
    ];
    for calls in ENGINES {
        for attempt in &attempts {
            assert_ends(&slot, calls, attempt).await;
        }
    }
}

#[tokio::test]
async fn new_code_and_the_hypervisor_are_each_for_one_kind_of_engine() {
    const CREATE_VM: i64 = 0xae01;
    let Some(slot) = Slot::new() else { return };
    let all = i64::from(libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC);
    let anonymous = i64::from(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let new_code = Attempt::call(libc::SYS_mmap, &[0, 4096, all, anonymous, -1, 0]);
    // To a descriptor that is no hypervisor, so that it does nothing where it may.
    let machine = Attempt::call(libc::SYS_ioctl, &[-1, CREATE_VM, 0]);
    let [emulated, kvm] = ENGINES;
    assert_ends(&slot, kvm, &new_code).await;
    assert_ends(&slot, emulated, &machine).await;
    let may = [
        (emulated, new_code, Came::Done),
        (kvm, machine, Came::Refused(libc::EBADF)),
    ];
    for (calls, attempt, wanted) in may {
        let found = slot.run(&spec(&slot, calls, &[attempt])).await;
        assert_eq!(found, (Exit::Status(0), vec![wanted]), "{calls:?}");
    }
}

#[tokio::test]
async fn what_libraries_only_ask_for_is_absent_and_ends_nothing() {
    let Some(slot) = Slot::new() else { return };
    for calls in ENGINES {
        let absent: Vec<Attempt> = calls
            .list()
            .absent
            .iter()
            .map(|call| call.number)
            .chain([NEWEST_CALL + 1, 1000])
            .map(|number| Attempt::call(number, &[0; 6]))
            .collect();
        let (exit, came) = slot.run(&spec(&slot, calls, &absent)).await;
        assert_eq!(exit, Exit::Status(0), "{calls:?} {}", slot.log());
        assert_eq!(came, vec![Came::Refused(libc::ENOSYS); absent.len()]);
    }
}

/// The egress process serves everybody, so a call that it may not make fails and does not end it.
#[tokio::test]
async fn the_egress_list_refuses() {
    let Some(slot) = Slot::new() else { return };
    let attempts = [
        Attempt::call(libc::SYS_unshare, &[i64::from(libc::CLONE_NEWUSER)]),
        Attempt::call(libc::SYS_socket, &[i64::from(libc::AF_NETLINK), 3, 0]),
        Attempt::call(libc::SYS_socket, &[i64::from(libc::AF_INET), 1, 0]),
    ];
    let (exit, came) = slot.run(&spec(&slot, JailCalls::Egress, &attempts)).await;
    let refused = Came::Refused(libc::EPERM);
    let wanted = (Exit::Status(0), vec![refused, refused, Came::Done]);
    assert_eq!((exit, came), wanted, "{}", slot.log());
}

#[tokio::test]
async fn memory_past_the_limit_ends_the_process() {
    let Some(slot) = Slot::new() else { return };
    let limit = CGROUP_LIMITS.memory_bytes >> 20;
    let (exit, came) = slot
        .run(&slot.taken_over(&[Attempt::Take(limit / 4)]))
        .await;
    assert_eq!((exit, came), (Exit::Status(0), vec![Came::Done]));
    let (exit, came) = slot
        .run(&slot.taken_over(&[Attempt::Take(limit * 2)]))
        .await;
    assert_eq!((exit, came), (Exit::Signal(libc::SIGKILL), Vec::new()));
}

fn numbers(calls: JailCalls) -> BTreeSet<i64> {
    let list = calls.list();
    let allowed = list.allowed.iter().map(|allowed| allowed.call.number);
    let absent = list.absent.iter().map(|call| call.number);
    allowed.chain(absent).collect()
}

/// Every number that is on no list, one process each.
#[tokio::test]
async fn each_of_all_calls_that_are_not_listed_ends_the_process() {
    // Newer kernels show these two to no filter. Whoever calls them from anywhere but the place that
    // the kernel made for them is refused or ended.
    const OF_PROBES: [i64; 2] = [335, 336];
    let Some(slot) = Slot::new() else { return };
    let [emulated, kvm] = ENGINES;
    let listed = numbers(emulated);
    assert_eq!(listed, numbers(kvm), "they differ in arguments alone");
    let mut ended = 0;
    for number in (0..=NEWEST_CALL).filter(|number| !listed.contains(number)) {
        let attempt = Attempt::call(number, &[0; 6]);
        if OF_PROBES.contains(&number) {
            let (_, came) = slot.run(&spec(&slot, emulated, &[attempt])).await;
            assert!(!came.contains(&Came::Done), "call {number}");
            continue;
        }
        assert_ends(&slot, emulated, &attempt).await;
        ended += 1;
    }
    assert!(ended > 300, "{ended}");
}
