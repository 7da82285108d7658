//! A guest without an engine: another namespace, and a thread that carries frames between its
//! interface and the slot's tap, as an engine does.

use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use super::super::{
    GATEWAY_ADDRESS, GUEST_ADDRESS, GUEST_HARDWARE_ADDRESS, NETMASK, SlotDenials, SlotSockets, TAP,
    make_slot_network, open_slot_sockets, slot_denials,
};
use super::{Scratch, ip_in};
use crate::netns;
use crate::sys::{Setting, open_tap, set_interface};

const INTERFACE: &str = "eth0";
/// Nobody: the tests attach as root, who may.
const OWNER: u32 = 64_000;

/// A slot with a guest in it.
pub(super) struct World {
    pub(super) slot: PathBuf,
    pub(super) guest: PathBuf,
    pub(super) tcp: TcpListener,
    pub(super) dns_udp: UdpSocket,
    pub(super) dns_tcp: TcpListener,
    /// The engine's end of the tap: what is written here, the guest has sent.
    pub(super) wire: OwnedFd,
    relay: Option<JoinHandle<()>>,
    stop: Option<OwnedFd>,
    _scratch: Scratch,
}

impl World {
    pub(super) fn new() -> Option<Self> {
        let mut scratch = Scratch::new()?;
        let slot = scratch.namespace("slot");
        make_slot_network(&slot, OWNER).unwrap();
        let SlotSockets {
            tcp,
            dns_udp,
            dns_tcp,
        } = open_slot_sockets(&slot).unwrap();
        let guest = scratch.namespace("guest");
        let (wire, theirs) = (attach(&slot, TAP), attach(&guest, INTERFACE));
        configure(&guest);
        let (stopped, stop) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let ours = wire.try_clone().unwrap();
        let relay = std::thread::spawn(move || carry(&ours, &theirs, &stopped));
        Some(Self {
            slot,
            guest,
            tcp: tcp.into(),
            dns_udp: dns_udp.into(),
            dns_tcp: dns_tcp.into(),
            wire,
            relay: Some(relay),
            stop: Some(stop),
            _scratch: scratch,
        })
    }

    pub(super) fn denials(&self) -> SlotDenials {
        slot_denials(&self.slot).unwrap()
    }

    pub(super) fn send(&self, frame: &[u8]) {
        assert_eq!(rustix::io::write(&self.wire, frame).unwrap(), frame.len());
    }

    /// Runs something inside the guest.
    pub(super) fn inside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        netns::in_namespace(&self.guest, work).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(relay) = self.relay.take() {
            relay.join().unwrap();
        }
    }
}

fn attach(namespace: &Path, name: &'static str) -> OwnedFd {
    netns::in_namespace(namespace, move || open_tap(name))
        .unwrap()
        .unwrap()
}

fn configure(guest: &Path) {
    let configured = netns::in_namespace(guest, || -> io::Result<()> {
        std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1")?;
        for setting in [
            Setting::HardwareAddress(GUEST_HARDWARE_ADDRESS),
            Setting::Address(GUEST_ADDRESS),
            Setting::Netmask(NETMASK),
            Setting::Up,
        ] {
            set_interface(INTERFACE, setting)?;
        }
        Ok(())
    });
    configured.unwrap().unwrap();
    ip_in(
        guest,
        &[
            "route",
            "add",
            "default",
            "via",
            &GATEWAY_ADDRESS.to_string(),
        ],
    );
}

/// Carries frames both ways until the other end of `stop` is closed.
fn carry(slot: &OwnedFd, guest: &OwnedFd, stop: &OwnedFd) {
    let mut frame = [0; 2048];
    loop {
        let mut watched = [slot.as_fd(), guest.as_fd(), stop.as_fd()]
            .map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN));
        poll(&mut watched, None).unwrap();
        if !watched[2].revents().is_empty() {
            return;
        }
        for (from, to) in [(slot, guest), (guest, slot)] {
            if let Ok(length) = rustix::io::read(from, &mut frame) {
                // A frame that the other side has no room for is lost, as on any wire.
                let _ = rustix::io::write(to, &frame[..length]);
            }
        }
    }
}
