//! The compiled filters, asked about every call there is.

use std::collections::BTreeMap;

use dayfly_host::jail::{JailCalls, OtherCalls, SystemCall};
use seccompiler::BpfProgram;

use super::{NEWEST_CALL, compile};

const ALLOW: u32 = 0x7fff_0000;
const KILL_PROCESS: u32 = 0x8000_0000;
const NOT_THERE: u32 = 0x0005_0000 | libc::ENOSYS.unsigned_abs();
const REFUSED: u32 = 0x0005_0000 | libc::EPERM.unsigned_abs();
const X86_64: u32 = 0xc000_003e;
const I386: u32 = 0x4000_0003;
const X32_BIT: u32 = 0x4000_0000;

/// What the kernel would say: the stricter answer of all filters.
fn answer(calls: JailCalls, architecture: u32, number: u32, arguments: [u64; 6]) -> u32 {
    let filters = compile(calls).unwrap_or_else(|_| panic!("{calls:?} does not compile"));
    let answers = filters
        .programs
        .each_ref()
        .map(|program| run(program, architecture, number, arguments));
    // As a signed number, the strictest is the least.
    answers
        .into_iter()
        .min_by_key(|&it| it.cast_signed())
        .unwrap()
}

/// The few instructions of the kernel's machine for filters that are used here.
fn run(program: &BpfProgram, architecture: u32, number: u32, arguments: [u64; 6]) -> u32 {
    let mut data = vec![number, architecture, 0, 0];
    for argument in arguments {
        data.push(u32::try_from(argument & 0xffff_ffff).unwrap());
        data.push(u32::try_from(argument >> 32).unwrap());
    }
    let (mut at, mut value) = (0_usize, 0_u32);
    loop {
        let it = &program[at];
        at += 1;
        let mut jump = |is_true: bool| at += usize::from(if is_true { it.jt } else { it.jf });
        match it.code {
            0x20 => value = data[usize::try_from(it.k / 4).unwrap()],
            0x54 => value &= it.k,
            0x05 => at += usize::try_from(it.k).unwrap(),
            0x15 => jump(value == it.k),
            0x25 => jump(value > it.k),
            0x35 => jump(value >= it.k),
            0x06 => return it.k,
            other => panic!("instruction {other:#x} is not known here"),
        }
    }
}

fn listed(calls: JailCalls) -> BTreeMap<u32, SystemCall> {
    let list = calls.list();
    let named = list.allowed.iter().map(|allowed| allowed.call);
    named
        .chain(list.absent.iter().copied())
        .map(|call| (u32::try_from(call.number).unwrap(), call))
        .collect()
}

#[test]
fn every_call_that_is_not_listed_ends_an_engine() {
    for calls in JailCalls::ALL {
        let listed = listed(calls);
        let wanted = match calls.list().otherwise {
            OtherCalls::End => KILL_PROCESS,
            OtherCalls::Refuse => REFUSED,
        };
        let mut tried = 0;
        for number in (0..=NEWEST_CALL).filter(|number| !listed.contains_key(number)) {
            let found = answer(calls, X86_64, number, [0; 6]);
            assert_eq!(found, wanted, "{calls:?} call {number}");
            tried += 1;
        }
        assert!(tried > 250, "{calls:?}: only {tried} calls are not listed");
    }
}

#[test]
fn what_is_listed_is_let_through_or_absent() {
    for calls in JailCalls::ALL {
        let list = calls.list();
        for absent in list.absent {
            let number = u32::try_from(absent.number).unwrap();
            assert_eq!(
                answer(calls, X86_64, number, [0; 6]),
                NOT_THERE,
                "{absent:?}"
            );
        }
        for allowed in list.allowed {
            let number = u32::try_from(allowed.call.number).unwrap();
            let mut arguments = vec![[0; 6]];
            if !allowed.forms.is_empty() {
                arguments = allowed.forms.iter().map(fitting).collect();
            }
            for arguments in arguments {
                let found = answer(calls, X86_64, number, arguments);
                assert_eq!(found, ALLOW, "{calls:?} {allowed:?}");
            }
        }
    }
}

fn fitting(form: &Vec<dayfly_host::jail::Condition>) -> [u64; 6] {
    let mut arguments = [0; 6];
    for condition in form {
        arguments[usize::from(condition.argument)] = condition.value.into();
    }
    arguments
}

/// A call by its number, and arguments that it may not have.
type OtherForm = (i64, [u64; 6]);

fn assert_ends(lists: &[JailCalls], forms: &[OtherForm]) {
    for (call, arguments) in forms {
        for &calls in lists {
            let number = u32::try_from(*call).unwrap();
            let found = answer(calls, X86_64, number, *arguments);
            assert_eq!(found, KILL_PROCESS, "{calls:?} {call} {arguments:x?}");
        }
    }
}

/// With one argument that counts, the others 0.
fn form(call: i64, argument: usize, value: u64) -> OtherForm {
    let mut arguments = [0; 6];
    arguments[argument] = value;
    (call, arguments)
}

fn bits(value: i32) -> u64 {
    u64::from(value.cast_unsigned())
}

#[test]
fn a_listed_call_in_another_form_ends_an_engine() {
    let forms = [
        // A process, a namespace, another family of sockets, other people's processes.
        form(libc::SYS_clone, 0, bits(libc::SIGCHLD)),
        form(libc::SYS_clone, 0, bits(libc::CLONE_NEWUSER)),
        form(libc::SYS_socket, 0, bits(libc::AF_INET)),
        form(libc::SYS_socket, 0, bits(libc::AF_VSOCK)),
        form(libc::SYS_socket, 0, bits(libc::AF_NETLINK)),
        form(libc::SYS_tgkill, 0, 2),
        form(libc::SYS_prlimit64, 0, 2),
        form(libc::SYS_prctl, 0, bits(libc::PR_SET_DUMPABLE)),
        form(libc::SYS_prctl, 0, bits(libc::PR_SET_MM)),
        form(libc::SYS_fcntl, 1, bits(libc::F_SETOWN)),
        // A terminal's input, a program for the tap's packets, a device of the hypervisor.
        form(libc::SYS_ioctl, 1, libc::TIOCSTI),
        form(libc::SYS_ioctl, 1, 0x8004_54e1),
        form(libc::SYS_ioctl, 1, 0xc00c_aee0),
    ];
    assert_ends(&[JailCalls::EmulatedEngine, JailCalls::KvmEngine], &forms);
    let run_and_make = [0xae80, 0xae01].map(|command| form(libc::SYS_ioctl, 1, command));
    assert_ends(&[JailCalls::EmulatedEngine], &run_and_make);
}

#[test]
fn code_that_was_not_in_a_file_of_the_root_ends_an_engine_on_kvm() {
    let readable = bits(libc::PROT_READ | libc::PROT_EXEC);
    let changeable = bits(libc::PROT_WRITE | libc::PROT_EXEC);
    let anonymous = bits(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let of_file = bits(libc::MAP_PRIVATE);
    let map = |protection, flags| (libc::SYS_mmap, [0, 4096, protection, flags, 3, 0]);
    let forms = [
        map(readable | changeable, anonymous),
        map(readable, anonymous),
        map(changeable, of_file),
        map(readable, bits(libc::MAP_SHARED)),
        form(libc::SYS_mprotect, 2, readable),
    ];
    assert_ends(&[JailCalls::KvmEngine], &forms);
    // The positive control: this is how a library is loaded.
    let number = u32::try_from(libc::SYS_mmap).unwrap();
    let (_, loaded) = map(readable, of_file);
    assert_eq!(answer(JailCalls::KvmEngine, X86_64, number, loaded), ALLOW);
}

#[test]
fn newer_calls_and_the_second_table_are_absent_and_another_table_ends_it() {
    for calls in JailCalls::ALL {
        let read = u32::try_from(libc::SYS_read).unwrap();
        for number in [NEWEST_CALL + 1, 600, X32_BIT, X32_BIT | read] {
            assert_eq!(answer(calls, X86_64, number, [0; 6]), NOT_THERE);
        }
        assert_eq!(answer(calls, I386, read, [0; 6]), KILL_PROCESS);
        assert_eq!(answer(calls, X86_64, read, [0; 6]), ALLOW);
    }
}
