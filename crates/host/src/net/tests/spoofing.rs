//! Frames that no honest guest sends. Each is told from an honest one by a single fact, and the
//! honest one must arrive, or the test would prove nothing.

use std::net::Ipv4Addr;

use super::super::{
    GATEWAY_ADDRESS, GATEWAY_HARDWARE_ADDRESS, GUEST_ADDRESS, GUEST_HARDWARE_ADDRESS, SlotDenials,
};
use super::frames::{Frame, IPV6, Packet, VLAN, arp};
use super::guest::World;
use super::{LIMIT, QUIET, eventually, is_readable};
use crate::netns;

const STRANGER: [u8; 6] = [0x02, 0xdf, 0, 0, 0, 0x77];
const STRANGERS_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 11, 0, 77);

fn honest() -> Frame {
    Frame::with(Packet::question(b"honest").bytes())
}

fn packet(change: impl FnOnce(&mut Packet)) -> Frame {
    let mut packet = Packet::question(b"hostile");
    change(&mut packet);
    Frame::with(packet.bytes())
}

fn frame(change: impl FnOnce(&mut Frame)) -> Frame {
    let mut frame = Frame::with(Packet::question(b"hostile").bytes());
    change(&mut frame);
    frame
}

type Counted = fn(&SlotDenials) -> u64;

const SPOOFED: Counted = |denials| denials.spoofed;
const OTHER: Counted = |denials| denials.other;
const VERSION_6: Counted = |denials| denials.ipv6;

fn hostile() -> Vec<(&'static str, Frame, Counted)> {
    vec![
        (
            "another source address",
            packet(|packet| packet.source = STRANGERS_ADDRESS),
            SPOOFED,
        ),
        (
            "the gateway's source address",
            packet(|packet| packet.source = GATEWAY_ADDRESS),
            SPOOFED,
        ),
        (
            "another hardware address",
            frame(|frame| frame.hardware_source = STRANGER),
            SPOOFED,
        ),
        (
            "the gateway's hardware address",
            frame(|frame| frame.hardware_source = GATEWAY_HARDWARE_ADDRESS),
            SPOOFED,
        ),
        (
            "a broadcast",
            frame(|frame| frame.hardware_destination = [0xff; 6]),
            OTHER,
        ),
        ("IPv6", frame(|frame| frame.kind = IPV6), VERSION_6),
        (
            "a tag of a virtual network",
            frame(|frame| {
                frame.tag = VLAN.to_be_bytes().to_vec();
                frame.tag.extend([0, 0]);
            }),
            OTHER,
        ),
        ("an unknown kind", frame(|frame| frame.kind = 0x88b5), OTHER),
        (
            "a first fragment",
            packet(|packet| packet.fragment = 0x2000),
            OTHER,
        ),
        (
            "a later fragment",
            packet(|packet| packet.fragment = 8),
            OTHER,
        ),
        (
            "options",
            packet(|packet| packet.options = vec![1, 1, 1, 0]),
            OTHER,
        ),
        ("SCTP", packet(|packet| packet.protocol = 132), OTHER),
        ("GRE", packet(|packet| packet.protocol = 47), OTHER),
        ("UDP-Lite", packet(|packet| packet.protocol = 136), OTHER),
        ("raw", packet(|packet| packet.protocol = 255), OTHER),
    ]
}

fn arrives(world: &World, words: &[u8]) -> bool {
    let mut buffer = [0; 64];
    is_readable(&world.dns_udp, LIMIT)
        && world
            .dns_udp
            .recv(&mut buffer)
            .is_ok_and(|length| &buffer[..length] == words)
}

#[test]
fn a_frame_that_is_not_the_guests_own_is_dropped_and_counted() {
    let Some(world) = World::new() else { return };
    for (what, frame, counted) in hostile() {
        world.send(&honest().bytes());
        assert!(
            arrives(&world, b"honest"),
            "the honest frame before: {what}"
        );
        let before = counted(&world.denials());
        world.send(&frame.bytes());
        eventually(what, || counted(&world.denials()) == before + 1);
        assert!(!is_readable(&world.dns_udp, QUIET), "{what} arrived");
    }
}

#[test]
fn the_guest_cannot_say_who_anybody_else_is() {
    let Some(world) = World::new() else { return };
    let (guest, gateway) = (GUEST_HARDWARE_ADDRESS, GATEWAY_HARDWARE_ADDRESS);
    let mut forged = vec![
        arp(2, (STRANGER, GUEST_ADDRESS), (gateway, GATEWAY_ADDRESS)),
        arp(2, (guest, GATEWAY_ADDRESS), (gateway, GATEWAY_ADDRESS)),
        arp(1, (guest, STRANGERS_ADDRESS), ([0; 6], GATEWAY_ADDRESS)),
        arp(1, (guest, GUEST_ADDRESS), ([0; 6], STRANGERS_ADDRESS)),
        arp(3, (guest, GUEST_ADDRESS), (gateway, GATEWAY_ADDRESS)),
    ];
    let mut stranger = arp(2, (guest, GUEST_ADDRESS), (gateway, GATEWAY_ADDRESS));
    stranger.hardware_source = STRANGER;
    forged.push(stranger);
    for frame in forged {
        let sum = |denials: SlotDenials| denials.spoofed + denials.other;
        let before = sum(world.denials());
        world.send(&frame.bytes());
        eventually("a forged answer is counted", || {
            sum(world.denials()) == before + 1
        });
    }
    let before = world.denials();
    world.send(&arp(1, (guest, GUEST_ADDRESS), ([0; 6], GATEWAY_ADDRESS)).bytes());
    world.send(&honest().bytes());
    assert!(arrives(&world, b"honest"));
    assert_eq!(world.denials(), before, "an honest question is no denial");
    let table = netns::in_namespace(&world.slot, || {
        std::fs::read_to_string("/proc/thread-self/net/arp").unwrap()
    });
    let table = table.unwrap();
    let entries: Vec<_> = table.lines().skip(1).collect();
    assert_eq!(entries.len(), 1, "{table}");
    assert!(entries[0].starts_with("10.11.0.2 "), "{table}");
    // Complete and permanent.
    assert!(entries[0].contains(" 0x6 "), "{table}");
    assert!(entries[0].contains("02:df:00:00:00:01"), "{table}");
}
