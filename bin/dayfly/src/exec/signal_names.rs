//! Signals on the command line: `TERM`, `SIGTERM`, `15`.

/// The numbers that a guest has, which is Linux whatever this program runs on.
const NAMES: [(&str, i32); 30] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", 31),
];
const NUMBER_MAX: i32 = 64;

/// Why a text is not a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("give a name such as TERM, INT or KILL, or a number from 1 to {NUMBER_MAX}")]
pub(crate) struct UnknownSignal;

/// Reads a signal by its name, with or without `SIG`, or by its number.
pub(crate) fn parse(text: &str) -> Result<i32, UnknownSignal> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let number = text.parse().map_err(|_| UnknownSignal)?;
        return match number {
            1..=NUMBER_MAX => Ok(number),
            _ => Err(UnknownSignal),
        };
    }
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let known = NAMES.iter().find(|(known, _)| *known == name);
    known.map(|(_, number)| *number).ok_or(UnknownSignal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_has_a_name_and_a_number() {
        for (text, number) in [
            ("TERM", 15),
            ("SIGTERM", 15),
            ("int", 2),
            ("sigkill", 9),
            ("9", 9),
            ("64", 64),
        ] {
            assert_eq!(parse(text), Ok(number), "{text}");
        }
        for text in ["", "0", "65", "-9", "TERMINATE", "SIG", "9.5", "é"] {
            assert_eq!(parse(text), Err(UnknownSignal), "{text:?}");
        }
    }
}
