//! How `dayfly` ends. These numbers are part of the interface.

use dayfly_api::{ExecExitEvent, HintCode};
use dayfly_client::{ApiError, ClientError};

/// Done; for `run` and `exec`, the command ended with 0.
pub(crate) const OK: u8 = 0;
/// The command line was not understood.
pub(crate) const USAGE: u8 = 2;
/// There is no key, or the server refused it (as `gh` has it).
pub(crate) const KEY_REFUSED: u8 = 4;
/// No server answers at the address: `EX_UNAVAILABLE` of sysexits.
pub(crate) const UNREACHABLE: u8 = 69;
/// The command was killed because it went over a limit of its own.
pub(crate) const LIMIT_EXCEEDED: u8 = 122;
/// The command was killed because the sandbox had no memory left.
pub(crate) const OUT_OF_MEMORY: u8 = 123;
/// The command, or a wait for a port, ran past `--timeout`.
pub(crate) const TIMED_OUT: u8 = 124;
/// Dayfly itself failed; the command may not have run.
pub(crate) const FAILED: u8 = 125;
/// Nobody reads standard output any more: what a shell reports for SIGPIPE.
pub(crate) const BROKEN_PIPE: u8 = 141;
/// The command ended with a number that a process cannot end with.
const OUT_OF_RANGE: u8 = 255;

/// The same for people, at the end of `dayfly help`.
pub(crate) const HELP: &str = "\
Exit status:
  0        done
  2        wrong usage: an unknown command, option or value
  4        no API key, or the server refused it, or it lacks the scope
  69       the server cannot be reached
  122      the command went over --memory-mb or --cpu-time
  123      the sandbox ran out of memory, which killed the command
  124      the command, or a wait for a port, ran past --timeout
  125      dayfly itself failed, or the sandbox is gone
  126,127  the command could not be run, or was not found (from the sandbox)
  128+n    the command, or dayfly, was ended by signal n
  other    `run` and `exec` end as the command did";

/// The status for a command of a guest.
pub(crate) fn of_command(exit_code: i32) -> u8 {
    u8::try_from(exit_code).unwrap_or(OUT_OF_RANGE)
}

/// The status for a command that ended.
pub(crate) fn of_ending(exit: &ExecExitEvent) -> u8 {
    match exit.reason.as_str() {
        "timed_out" => TIMED_OUT,
        "limit_exceeded" => LIMIT_EXCEEDED,
        "out_of_memory" => OUT_OF_MEMORY,
        _ => of_command(exit.exit_code),
    }
}

/// The status for a call that failed.
pub(crate) fn of_call(error: &ClientError) -> u8 {
    match error {
        ClientError::Api(refusal) if refusal.is_about_key() => KEY_REFUSED,
        ClientError::Api(refusal) if is_port_timeout(refusal) => TIMED_OUT,
        ClientError::Connect { .. } | ClientError::Untrusted { .. } | ClientError::NoTls { .. } => {
            UNREACHABLE
        }
        ClientError::Api(_)
        | ClientError::Timeout { .. }
        | ClientError::Lost { .. }
        | ClientError::OutcomeUnknown { .. }
        | ClientError::Protocol { .. }
        | ClientError::InvalidName { .. }
        | ClientError::Upload { .. } => FAILED,
    }
}

/// Other timeouts are no limit that the caller has set.
fn is_port_timeout(refusal: &ApiError) -> bool {
    refusal.advice.known_code() == Some(HintCode::PortTimeout)
}

/// The status of a program that signal `number` ended.
pub(crate) fn of_signal(number: u8) -> u8 {
    number.saturating_add(128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_never_looks_like_success() {
        assert_eq!(of_command(0), OK);
        assert_eq!(of_command(137), 137);
        assert_eq!(of_command(256), OUT_OF_RANGE);
        assert_eq!(of_command(-1), OUT_OF_RANGE);
        assert_eq!(of_signal(2), 130);
    }
}
