//! An internet for tests: public addresses with servers on them, an attacker's servers, a name
//! server, and places that nobody may reach, all in network namespaces that the test made.
//!
//! Whatever stands between a guest and the outside dials from [`Internet::egress`]; everything that
//! arrives at the other end of the cable is counted, so that "nothing left" is a fact about the
//! receiver and not about an answer that the guest got. It must not know who decides about traffic.
//! Start reading at [`Internet`]; [`wire`] and [`frame`] make the bytes that a hostile guest sends.
#![forbid(unsafe_code)]
#![expect(
    clippy::unwrap_used,
    reason = "a rig that cannot be built must fail its test"
)]

pub mod certificates;
pub mod frame;
pub mod host_canary;
pub mod http_server;
pub mod internet;
pub mod name_server;
pub mod namespace;
mod proxy;
pub mod site;
pub mod wire;

pub use host_canary::HostCanary;
pub use internet::Internet;
