//! The guest's network: the same in every guest, so that a snapshot has it ready.
//!
//! Nothing here decides what can be reached; the host does, and it believes nothing that is set
//! here.

use std::fs;
use std::io;
use std::net::Ipv4Addr;

use super::BootError;
use crate::identity::overwrite;
use crate::sys::{Kind, Setting, add_default_route, set_interface};

const LOOPBACK: &str = "lo";
const INTERFACE: &str = "eth0";
const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 11, 0, 2);
const NETMASK: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 0);
/// Also the resolver.
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 11, 0, 1);
const PACKET_BYTES_MAX: u16 = 1500;

pub(super) fn bring_loopback_up() -> Result<(), BootError> {
    set_interface(LOOPBACK, Setting::Up(Kind::Loopback))
        .map_err(BootError::at("bring the loopback interface up"))
}

/// Brings the network up as far as it goes: each part is tried, whatever became of those before.
pub(super) fn bring_up() -> Vec<BootError> {
    let results = [
        shut_ipv6_off().map_err(BootError::at("shut IPv6 off")),
        set_interface_up().map_err(BootError::at("set the network interface up")),
        write_resolver().map_err(BootError::at("write the resolver's address")),
    ];
    results.into_iter().filter_map(Result::err).collect()
}

/// The host drops it, and a program that tries it first would wait. The loopback interface keeps
/// it: there it works.
fn shut_ipv6_off() -> io::Result<()> {
    for interface in ["default", INTERFACE] {
        let path = format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6");
        match fs::write(path, "1") {
            // A kernel without it has nothing to shut off.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(())
}

fn set_interface_up() -> io::Result<()> {
    for setting in [
        Setting::BytesMax(PACKET_BYTES_MAX),
        Setting::Address(ADDRESS),
        Setting::Netmask(NETMASK),
        Setting::Up(Kind::Ethernet),
    ] {
        set_interface(INTERFACE, setting)?;
    }
    add_default_route(GATEWAY)
}

fn write_resolver() -> io::Result<()> {
    let text = format!("nameserver {GATEWAY}\noptions timeout:2 attempts:2\n");
    overwrite("/etc/resolv.conf", &text)
}
