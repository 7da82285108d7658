//! Whether a sandbox may reach something. Pure: names and addresses come in, a verdict goes out.
//!
//! The order never changes: an address that nobody may reach is refused in every mode, then the
//! mode speaks, then the rules. Start reading at [`decide`].

mod address;
mod decide;
mod within;

pub use address::{embedded_ipv4, is_never, reachable};
pub use decide::{ABUSE_PORTS, Verdict, decide, decide_address, decide_question};
pub use within::{TooWide, check_networks, is_within};
