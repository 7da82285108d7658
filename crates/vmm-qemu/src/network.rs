//! The guest's network device and what it is attached to.
//!
//! A jailed engine attaches to the tap of its slot, which its user owns. A bare one has no slot to
//! speak of and its device no peer; the device and its saved state are the same in both.

use dayfly_host::net::{GUEST_HARDWARE_ADDRESS, TAP};
use dayfly_vmm::{EngineView, Slot};

/// Attaching to a tap goes through this node of the host.
const TUN_DEVICE: &str = "/dev/net/tun";

/// Offloads that a peer might not understand. The features that a guest has negotiated are part of
/// its saved state, so the device offers the same ones with every peer and with none. The last one
/// would have every restored guest tell its neighbours five times where it is, while its user waits;
/// its one neighbour knows.
const FEATURES_OFF: [&str; 15] = [
    "csum",
    "guest_csum",
    "gso",
    "guest_tso4",
    "guest_tso6",
    "guest_ecn",
    "guest_ufo",
    "guest_uso4",
    "guest_uso6",
    "host_tso4",
    "host_tso6",
    "host_ecn",
    "host_ufo",
    "host_uso",
    "guest_announce",
];

/// The engine's end of the slot's tap. It runs no script, and without the extra header a frame is
/// what the tap's rules see.
pub(crate) fn uplink(slot: &Slot) -> Option<String> {
    let tap = tap(slot)?;
    let plain = "script=no,downscript=no,vhost=off,vnet_hdr=off";
    Some(format!("tap,id=uplink,ifname={tap},{plain}"))
}

pub(crate) fn device(slot: &Slot) -> String {
    let address = GUEST_HARDWARE_ADDRESS
        .map(|byte| format!("{byte:02x}"))
        .join(":");
    let features = FEATURES_OFF.map(|name| format!("{name}=off")).join(",");
    let peer = match tap(slot) {
        Some(_) => "netdev=uplink,",
        None => "",
    };
    format!("virtio-net-device,id=network,{peer}mac={address},{features}")
}

pub(crate) fn device_node(slot: &Slot) -> Option<&'static str> {
    tap(slot).map(|_| TUN_DEVICE)
}

fn tap(slot: &Slot) -> Option<&'static str> {
    match slot.engine_view {
        EngineView::Jailed => Some(TAP),
        EngineView::Bare => None,
    }
}
