//! Questions of guests.
//!
//! Only addresses of names that the policy lets through are asked for upstream, and only as the
//! canonical name: everything else is answered here. What goes back is made here as well, from
//! addresses that may be reached.

mod answer;
mod question;
mod serve;

pub use question::{Parsed, Question, Reply, parse};
pub(crate) use serve::{serve_tcp, serve_udp};
