//! Closing after last words that must arrive.

use std::time::Duration;

use tokio::time::timeout;

use super::Socket;

/// How long a client has to take the last words.
pub(crate) const LINGER_LIMIT: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: usize = 256 << 10;

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
