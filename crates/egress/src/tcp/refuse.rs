//! Ending a connection that is not let through, in words that its client understands.

use dayfly_types::egress::DenyReason;
use tokio::time::timeout;

use crate::connection::{LINGER_LIMIT, Socket, linger};

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
