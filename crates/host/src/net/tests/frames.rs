//! Frames made by hand, right and wrong.

use std::net::Ipv4Addr;

use super::super::{GATEWAY_HARDWARE_ADDRESS, GUEST_ADDRESS, GUEST_HARDWARE_ADDRESS};

pub(super) const IPV4: u16 = 0x0800;
pub(super) const IPV6: u16 = 0x86dd;
pub(super) const ARP: u16 = 0x0806;
pub(super) const VLAN: u16 = 0x8100;
pub(super) const UDP: u8 = 17;
/// Where the frames of these tests pretend to go.
pub(super) const RESOLVER: Ipv4Addr = Ipv4Addr::new(8, 8, 8, 8);

/// A frame, with everything as an honest guest would have it unless changed.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    pub(super) hardware_source: [u8; 6],
    pub(super) hardware_destination: [u8; 6],
    pub(super) kind: u16,
    /// Between the addresses and the kind.
    pub(super) tag: Vec<u8>,
    pub(super) payload: Vec<u8>,
}

impl Frame {
    pub(super) fn with(payload: Vec<u8>) -> Self {
        Self {
            hardware_source: GUEST_HARDWARE_ADDRESS,
            hardware_destination: GATEWAY_HARDWARE_ADDRESS,
            kind: IPV4,
            tag: Vec::new(),
            payload,
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.hardware_destination.to_vec();
        bytes.extend(self.hardware_source);
        bytes.extend(&self.tag);
        bytes.extend(self.kind.to_be_bytes());
        bytes.extend(&self.payload);
        bytes
    }
}

/// An IPv4 packet.
#[derive(Debug, Clone)]
pub(super) struct Packet {
    pub(super) source: Ipv4Addr,
    pub(super) destination: Ipv4Addr,
    pub(super) protocol: u8,
    pub(super) fragment: u16,
    pub(super) options: Vec<u8>,
    pub(super) payload: Vec<u8>,
}

impl Packet {
    /// A question to a resolver.
    pub(super) fn question(words: &[u8]) -> Self {
        Self {
            source: GUEST_ADDRESS,
            destination: RESOLVER,
            protocol: UDP,
            fragment: 0,
            options: Vec::new(),
            payload: datagram(53, words),
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let header = 20 + self.options.len();
        let total = u16::try_from(header + self.payload.len()).unwrap();
        let mut bytes = vec![0x40 | u8::try_from(header / 4).unwrap(), 0];
        bytes.extend(total.to_be_bytes());
        bytes.extend([0, 1]);
        bytes.extend(self.fragment.to_be_bytes());
        bytes.extend([64, self.protocol, 0, 0]);
        bytes.extend(self.source.octets());
        bytes.extend(self.destination.octets());
        bytes.extend(&self.options);
        let sum = checksum(&bytes);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        bytes.extend(&self.payload);
        bytes
    }
}

pub(super) fn datagram(port: u16, words: &[u8]) -> Vec<u8> {
    let length = u16::try_from(8 + words.len()).unwrap();
    let mut bytes = 40_000_u16.to_be_bytes().to_vec();
    bytes.extend(port.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    // No checksum, which IPv4 allows.
    bytes.extend([0, 0]);
    bytes.extend(words);
    bytes
}

/// A question or answer about who has an address.
pub(super) fn arp(
    operation: u16,
    sender: ([u8; 6], Ipv4Addr),
    target: ([u8; 6], Ipv4Addr),
) -> Frame {
    let mut payload = vec![0, 1, 8, 0, 6, 4];
    payload.extend(operation.to_be_bytes());
    for (hardware, address) in [sender, target] {
        payload.extend(hardware);
        payload.extend(address.octets());
    }
    Frame {
        kind: ARP,
        hardware_destination: [0xff; 6],
        ..Frame::with(payload)
    }
}

fn checksum(header: &[u8]) -> u16 {
    let words = header
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap()
}
