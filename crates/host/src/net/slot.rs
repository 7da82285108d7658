//! Making the network of a slot.

use std::os::fd::OwnedFd;
use std::path::Path;

use super::error::{Failed, NetworkError, within};
use super::{
    GATEWAY_ADDRESS, GATEWAY_HARDWARE_ADDRESS, GUEST_ADDRESS, GUEST_HARDWARE_ADDRESS, NETMASK,
    PACKET_BYTES_MAX, TAP, nft, sysctl,
};
use crate::sys::{Setting, keep_tap, open_tap, pin_neighbour, set_interface};

/// The rules of a slot, the same in every one.
pub(super) const RULES: &str = include_str!("slot.nft");

/// Makes the tap of a slot in its kept namespace, with addresses, settings and rules. An engine
/// that runs as `owner_uid`, user and group, can attach to it without any capability. It all goes
/// with the namespace.
///
/// # Errors
/// [`NetworkError`]. The namespace is to be removed then; the link is never up without rules.
pub fn make_slot_network(netns: &Path, owner_uid: u32) -> Result<(), NetworkError> {
    within(netns, move || build(owner_uid))
}

fn build(owner_uid: u32) -> Result<(), Failed> {
    sysctl::apply(&sysctl::CLOSED)?;
    sysctl::apply(&sysctl::SLOT_ANSWERS)?;
    let tap = open()?;
    keep_tap(&tap, owner_uid).map_err(Failed::at("keep the tap"))?;
    nft::load(RULES)?;
    sysctl::apply(&sysctl::TRACKING)?;
    let settings = [
        Setting::HardwareAddress(GATEWAY_HARDWARE_ADDRESS),
        Setting::BytesMax(PACKET_BYTES_MAX),
        Setting::Address(GATEWAY_ADDRESS),
        Setting::Netmask(NETMASK),
        Setting::Up,
    ];
    for setting in settings {
        set_interface(TAP, setting).map_err(Failed::at(format!("set {setting:?} of {TAP}")))?;
    }
    pin_neighbour(TAP, GUEST_ADDRESS, GUEST_HARDWARE_ADDRESS)
        .map_err(Failed::at("pin the guest's address"))
}

/// The tap of the calling thread's namespace, for as long as the answer lives or it is kept.
pub(super) fn open() -> Result<OwnedFd, Failed> {
    open_tap(TAP).map_err(Failed::at("open the tap"))
}

#[cfg(test)]
mod tests {
    use super::super::{CONNECTIONS_MAX, DNS_PORT, TCP_PORT};
    use super::*;

    fn hardware(address: [u8; 6]) -> String {
        address.map(|byte| format!("{byte:02x}")).join(":")
    }

    #[test]
    fn rules_and_constants_name_the_same_things() {
        let guest = hardware(GUEST_HARDWARE_ADDRESS);
        let gateway = hardware(GATEWAY_HARDWARE_ADDRESS);
        for words in [
            format!("hook ingress device \"{TAP}\" priority -500; policy drop;"),
            format!("ether saddr != {guest} counter name deny_spoof drop"),
            format!("arp saddr ether != {guest} counter name deny_spoof drop"),
            format!("ether daddr != {gateway} counter name deny_other drop"),
            format!("ip saddr != {GUEST_ADDRESS} counter name deny_spoof drop"),
            format!("arp daddr ip {GATEWAY_ADDRESS} accept"),
            format!("iifname \"{TAP}\" meta l4proto tcp redirect to :{TCP_PORT}"),
            format!("th dport 53 redirect to :{DNS_PORT}"),
            format!("ct count over {CONNECTIONS_MAX} counter name deny_conn"),
            format!("tcp dport {{ {TCP_PORT}, {DNS_PORT} }} ct status dnat accept"),
        ] {
            assert!(RULES.contains(&words), "{words}");
        }
    }

    #[test]
    fn every_chain_that_decides_about_the_end_of_a_packet_drops_by_itself() {
        for chain in ["ingress", "input", "forward", "output"] {
            let hook = format!("hook {chain} ");
            let line = RULES.lines().find(|line| line.contains(&hook)).unwrap();
            assert!(line.ends_with("policy drop;"), "{line}");
        }
    }
}
