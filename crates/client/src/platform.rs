//! What one operating system has and another has not. Nothing else here asks which one it is, so that
//! the client builds wherever its dependencies do.

use reqwest::ClientBuilder;

use crate::limits;

/// Gives up on a host that went away. Without it an upload waits for as long as the kernel resends.
#[cfg(target_os = "linux")]
pub(crate) fn give_up_on_silence(builder: ClientBuilder) -> ClientBuilder {
    builder.tcp_user_timeout(limits::UNACKNOWLEDGED_MAX)
}

/// Elsewhere the deadline of the call alone ends it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn give_up_on_silence(builder: ClientBuilder) -> ClientBuilder {
    let _ = limits::UNACKNOWLEDGED_MAX;
    builder
}
