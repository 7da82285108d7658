//! The network of a slot, and the namespace that traffic leaves the host from.
//!
//! ```text
//! guest eth0 --- tap0 | a slot's namespace: no route, no uplink, rules that hand TCP and DNS to
//!                     |   three sockets and refuse the rest
//!                     `-- sockets, held by whoever decides about traffic
//!                                                  | dials from
//!                       the egress namespace: rules that drop what no sandbox may reach
//!                                                  | uplink
//! ```
//!
//! A slot's namespace has no interface but the tap, so lost rules let nothing out. Rules are loaded
//! by the `nft` program, each time as one transaction, on a thread inside the namespace. Every
//! function works on the namespace it is told; "the host" is the namespace of the calling thread.
//! It must not know sandboxes or policies, and it reads no packet.
//!
//! Start reading at [`make_slot_network`] and `slot.nft`, then [`ensure_egress_namespace`].

mod addresses;
mod audit;
mod denials;
mod egress;
mod egress_rules;
mod error;
mod generation;
mod nat;
mod nft;
mod program;
mod slot;
mod sockets;
mod subnet;
mod sysctl;
#[cfg(test)]
mod tests;
mod traffic;

pub use addresses::host_addresses;
pub use audit::{
    RulesVersion, egress_rules_hold, restore_slot_rules, slot_rules_hold, slot_rules_version,
};
pub use denials::{SlotDenials, slot_denials};
pub use egress::{EgressNamespace, Uplink, ensure_egress_namespace, remove_egress_namespace};
pub use egress_rules::EgressExceptions;
pub use error::NetworkError;
pub use nat::NatLink;
pub use slot::make_slot_network;
pub use sockets::{SlotSockets, open_slot_sockets};
pub use traffic::{GuestTraffic, guest_traffic};

use std::fs;
use std::io;
use std::net::Ipv4Addr;

/// The interface of a slot. `slot.nft` names it too, and an engine's command line.
pub const TAP: &str = "tap0";
pub const GATEWAY_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 11, 0, 1);
pub const GUEST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 11, 0, 2);
pub const NETMASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 0);
/// Part of the saved state of every guest's network device.
pub const GUEST_HARDWARE_ADDRESS: [u8; 6] = [0x02, 0xdf, 0, 0, 0, 0x01];
pub const GATEWAY_HARDWARE_ADDRESS: [u8; 6] = [0x02, 0xdf, 0, 0, 0, 0x02];
pub const PACKET_BYTES_MAX: u16 = 1500;
/// All TCP but DNS arrives here, whatever its destination.
pub const TCP_PORT: u16 = 5017;
/// All DNS arrives here, UDP and TCP.
pub const DNS_PORT: u16 = 5353;
/// TCP connections of one slot at once.
pub const CONNECTIONS_MAX: u16 = 256;

/// The interfaces of the calling thread's namespace.
fn interface_names() -> io::Result<Vec<String>> {
    let text = fs::read_to_string("/proc/thread-self/net/dev")?;
    // Two lines of headings, then a name and a colon in each.
    let names = text
        .lines()
        .skip(2)
        .filter_map(|line| line.split(':').next());
    Ok(names.map(|name| name.trim().to_owned()).collect())
}
