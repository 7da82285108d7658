//! The way out of sandboxes: it answers their questions for names, reads where their connections
//! want to go, lets through what the policy of each allows, and records every decision.
//!
//! A sandbox is known by the listening sockets that the node made inside its network namespace and
//! handed over, never by an address or a name that came in a packet. Whether something is allowed
//! is decided in `dayfly_core::egress` and nowhere else. Where a name is what was allowed, the name
//! is resolved here and the connection goes to an address that was looked at here; the address that
//! the guest dialled is recorded and not used.
//!
//! It must not know engines, slots' insides, projects or the public API, and it terminates no TLS.
//!
//! [`server`] is the process's side of the node's connection, [`client`] the node's, [`protocol`]
//! what they say. [`readers`] is what reads the bytes of guests. Start reading at `outlet` (one open
//! lifecycle) and `outlets` (all of them), then `tcp` and `dns`.
#![forbid(unsafe_code)]

pub mod client;
mod connection;
mod dns;
mod http;
mod meter;
mod options;
mod outlet;
mod outlets;
mod pace;
mod packet;
pub mod protocol;
mod rate;
pub mod readers;
mod records;
mod resolve;
pub mod server;
mod tcp;
