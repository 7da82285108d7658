//! Whether a sandbox may reach something. Pure: names and addresses come in, a verdict goes out.
//!
//! The order never changes: an address that nobody may reach is refused in every mode, then the
//! mode speaks, then the rules. An address that the operator has opened to the project is refused
//! in every mode unless a rule speaks of it. Start reading at [`decide`], then [`may_reach`].

mod address;
mod decide;
mod within;

pub use address::{EgressApproach, embedded_ipv4, is_never, may_ever_reach, may_reach};
pub use decide::{ABUSE_PORTS, Verdict, decide, decide_address, decide_question};
pub use within::{TooWide, check_networks, is_within};
