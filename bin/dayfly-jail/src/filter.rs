//! The filter of system calls, made from the list of the program that is about to be executed.

use std::collections::BTreeMap;

use dayfly_host::jail::{Allowed, Condition, JailCalls, JailStep, OtherCalls, SystemCall};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use crate::failure::Failure;

/// Compiled before anything is entered, so that what can fail there fails early.
pub(crate) struct Filters {
    programs: [BpfProgram; 2],
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

/// Two filters, because one knows a single answer to what is listed: the kernel asks both and
/// takes the stricter answer.
pub(crate) fn compile(calls: JailCalls) -> Result<Filters, Failure> {
    let list = calls.list();
    let not_there = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let otherwise = match list.otherwise {
        OtherCalls::End => SeccompAction::KillProcess,
        OtherCalls::Refuse => SeccompAction::Errno(libc::EPERM.unsigned_abs()),
    };
    let absent: Rules = list.absent.iter().map(any).collect();
    let mut allowed = absent.clone();
    for entry in &list.allowed {
        allowed.insert(entry.call.number, forms(entry)?);
    }
    let absent = compile_one(absent, SeccompAction::Allow, not_there)?;
    let mut program = newer_calls_are_absent();
    program.extend(compile_one(allowed, otherwise, SeccompAction::Allow)?);
    Ok(Filters {
        programs: [absent, program],
    })
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// The newest call that existed when the lists were written.
const NEWEST_CALL: u32 = 462;

/// What is put in front of a list: a library that is newer than the list asks for newer calls and
/// does without, as on an older kernel. The second set of numbers that the same kernel entries
/// have on x86, and that no list names, lies above as well.
fn newer_calls_are_absent() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_GREATER: u16 = 0x25;
    const RETURN: u16 = 0x06;
    const RETURN_ERROR: u32 = 0x0005_0000;
    let instruction = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        // The number of the call is the first word that a filter sees.
        instruction(LOAD_WORD, 0, 0, 0),
        instruction(JUMP_IF_GREATER, 0, 1, NEWEST_CALL),
        instruction(RETURN, 0, 0, RETURN_ERROR | libc::ENOSYS.unsigned_abs()),
    ]
}

fn compile_one(
    rules: Rules,
    otherwise: SeccompAction,
    listed: SeccompAction,
) -> Result<BpfProgram, Failure> {
    let architecture: TargetArch = std::env::consts::ARCH
        .try_into()
        .map_err(|error| Failure::new(JailStep::Filter, error))?;
    SeccompFilter::new(rules, otherwise, listed, architecture)
        .and_then(BpfProgram::try_from)
        .map_err(|error| Failure::new(JailStep::Filter, error))
}

fn any(call: &SystemCall) -> (i64, Vec<SeccompRule>) {
    (call.number, Vec::new())
}

fn forms(allowed: &Allowed) -> Result<Vec<SeccompRule>, Failure> {
    let forms = allowed.forms.iter().map(|form| {
        let conditions: Vec<_> = form.iter().map(condition).collect::<Result<_, _>>()?;
        SeccompRule::new(conditions).map_err(|error| Failure::new(JailStep::Filter, error))
    });
    forms.collect()
}

fn condition(wanted: &Condition) -> Result<SeccompCondition, Failure> {
    let operator = match wanted.mask {
        u32::MAX => SeccompCmpOp::Eq,
        mask => SeccompCmpOp::MaskedEq(mask.into()),
    };
    let width = SeccompCmpArgLen::Dword;
    SeccompCondition::new(wanted.argument, width, operator, wanted.value.into())
        .map_err(|error| Failure::new(JailStep::Filter, error))
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
