//! Ending a connection that is not let through, in words that its client understands.

use std::time::Duration;

use dayfly_types::egress::DenyReason;
use tokio::time::timeout;

use super::socket::Socket;

/// How long a client has to take the last words.
const LINGER_LIMIT: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: usize = 256 << 10;
const RECORD_ALERT: u8 = 21;
const FATAL: u8 = 2;
const ACCESS_DENIED: u8 = 49;
const UNRECOGNIZED_NAME: u8 = 112;
const DECODE_ERROR: u8 = 50;

/// The TLS record that tells of a denial. It is not encrypted: there are no keys yet.
pub(crate) const fn alert(reason: DenyReason) -> [u8; 7] {
    let description = match reason {
        DenyReason::NoName | DenyReason::BadName | DenyReason::Unresolvable => UNRECOGNIZED_NAME,
        DenyReason::Protocol | DenyReason::Timeout => DECODE_ERROR,
        DenyReason::ModeDeny
        | DenyReason::NoRule
        | DenyReason::Port
        | DenyReason::NeverAddress
        | DenyReason::AbusePort
        | DenyReason::QuestionType
        | DenyReason::Limit
        | DenyReason::NoUplink => ACCESS_DENIED,
    };
    [RECORD_ALERT, 3, 3, 0, 2, FATAL, description]
}

/// Sends an alert and closes.
pub(crate) async fn refuse_tls(guest: &Socket, reason: DenyReason) {
    let record = alert(reason);
    let sent = timeout(LINGER_LIMIT, guest.write_all(&record)).await;
    if sent.is_ok_and(|sent| sent.is_ok()) {
        linger(guest).await;
    }
}

/// Closes for writing and reads on for a moment. Closing over unread bytes would send a reset, and
/// that can overtake what was written last.
pub(crate) async fn linger(guest: &Socket) {
    if guest.finish().is_err() {
        return;
    }
    let draining = async {
        let mut buffer = vec![0; 16 << 10];
        let mut left = LINGER_BYTES_MAX;
        while let Ok(count @ 1..) = guest.read(&mut buffer).await {
            left = left.saturating_sub(count);
            if left == 0 {
                return;
            }
        }
    };
    let _ = timeout(LINGER_LIMIT, draining).await;
}
