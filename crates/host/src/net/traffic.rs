//! What went over the interface of a slot's guest.

use super::TAP;
use crate::process::{ProcessError, read_process_file};

/// Bytes over one guest's interface since it was made, as the guest sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GuestTraffic {
    pub received_bytes: u64,
    pub sent_bytes: u64,
}

/// What the guest of this engine received and sent. An engine without an interface has no traffic.
///
/// The kernel shows each process the interfaces of its own namespace, so nobody has to enter one.
///
/// # Errors
/// [`ProcessError::Gone`] when there is no such process.
pub fn guest_traffic(engine_pid: i32) -> Result<GuestTraffic, ProcessError> {
    let text = read_process_file(engine_pid, "net/dev")?;
    Ok(parse(&text).unwrap_or_default())
}

fn parse(text: &str) -> Option<GuestTraffic> {
    let line = text.lines().find_map(|line| {
        let (name, counters) = line.split_once(':')?;
        (name.trim() == TAP).then_some(counters)
    })?;
    let mut counters = line.split_whitespace();
    // What the host's end received is what the guest sent.
    let sent_bytes = counters.next()?.parse().ok()?;
    let received_bytes = counters.nth(7)?.parse().ok()?;
    Some(GuestTraffic {
        received_bytes,
        sent_bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_s_end_of_the_interface_counts_the_other_way_round() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets\n\
                        lo:  9 1 0 0 0 0 0 0  9 1 0 0 0 0 0 0\n\
                      tap0: 11 2 0 0 0 0 0 0 22 3 0 0 0 0 0 0\n";
        let traffic = GuestTraffic {
            received_bytes: 22,
            sent_bytes: 11,
        };
        assert_eq!(parse(text), Some(traffic));
        assert_eq!(parse("Inter-|\n lo: 1 2\n"), None);
        assert_eq!(parse("tap0: x"), None);
        let own = i32::try_from(std::process::id()).unwrap();
        guest_traffic(own).unwrap();
        assert!(matches!(
            guest_traffic(i32::MAX),
            Err(ProcessError::Gone { .. })
        ));
    }
}
