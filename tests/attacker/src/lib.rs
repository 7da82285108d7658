//! What a hostile guest tries, as a program that a test copies into it, and what a hostile engine
//! tries ([`engine`]).
//!
//! A list of [`Probe`]s goes in as JSON, one [`Report`] a line comes out. It decides nothing: what
//! is sent comes from the test, and what counts is what the test's servers saw. It is linked
//! statically and uses the standard library's sockets only, so it runs in any guest. Frames that no
//! socket makes are sent by other means.
#![forbid(unsafe_code)]

pub mod engine;
pub mod many;
pub mod probe;
pub mod tcp;
pub mod udp;

pub use probe::{Bytes, Outcome, Probe, Report};

/// Does what the probe says.
#[must_use]
pub fn run(probe: &Probe) -> Report {
    match probe {
        Probe::Tcp(wish) => tcp::run(wish),
        Probe::Udp(wish) => udp::run(wish),
        Probe::Flood(wish) => udp::flood(wish),
        Probe::Scan(wish) => many::scan(wish),
        Probe::Hold(wish) => many::hold(wish),
    }
}
