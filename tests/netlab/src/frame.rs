//! Ethernet frames that a guest puts on its cable, well formed and otherwise.

use std::net::Ipv4Addr;

use dayfly_host::net::{
    GATEWAY_ADDRESS, GATEWAY_HARDWARE_ADDRESS, GUEST_ADDRESS, GUEST_HARDWARE_ADDRESS,
};

/// Numbers of protocols inside IPv4.
pub const ICMP: u8 = 1;
pub const IPIP: u8 = 4;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const IPV6: u8 = 41;
pub const GRE: u8 = 47;
pub const ESP: u8 = 50;
pub const SCTP: u8 = 132;
pub const UDP_LITE: u8 = 136;

const TYPE_IPV4: u16 = 0x0800;
const TYPE_ARP: u16 = 0x0806;
const TYPE_IPV6: u16 = 0x86dd;
const TCP_SYN: u8 = 2;

/// A frame with an IPv4 packet. Starts as one that the slot's rules let through; a test changes
/// what it wants to see refused.
#[derive(Debug, Clone)]
pub struct Frame {
    pub from_hardware: [u8; 6],
    pub to_hardware: [u8; 6],
    pub from: Ipv4Addr,
    pub to: Ipv4Addr,
    pub protocol: u8,
    pub ttl: u8,
    /// The field of flags and offset as it stands in the packet.
    pub fragment: u16,
    /// A multiple of four bytes.
    pub options: Vec<u8>,
    pub payload: Vec<u8>,
}

impl Frame {
    #[must_use]
    pub fn new(to: Ipv4Addr, protocol: u8, payload: Vec<u8>) -> Self {
        Self {
            from_hardware: GUEST_HARDWARE_ADDRESS,
            to_hardware: GATEWAY_HARDWARE_ADDRESS,
            from: GUEST_ADDRESS,
            to,
            protocol,
            ttl: 64,
            fragment: 0,
            options: Vec::new(),
            payload,
        }
    }

    /// A datagram, with a sum that fits the guest's own address.
    #[must_use]
    pub fn udp(to: Ipv4Addr, from_port: u16, port: u16, data: &[u8]) -> Self {
        let length = u16::try_from(8 + data.len()).unwrap();
        let mut segment = Vec::new();
        for field in [from_port, port, length, 0] {
            segment.extend(field.to_be_bytes());
        }
        segment.extend(data);
        Self::with_sum(to, UDP, segment, 6)
    }

    /// The first packet of a connection.
    #[must_use]
    pub fn syn(to: Ipv4Addr, from_port: u16, port: u16) -> Self {
        let mut segment = Vec::new();
        segment.extend(from_port.to_be_bytes());
        segment.extend(port.to_be_bytes());
        segment.extend([
            0,
            0,
            0,
            7,
            0,
            0,
            0,
            0,
            5 << 4,
            TCP_SYN,
            0xff,
            0xff,
            0,
            0,
            0,
            0,
        ]);
        Self::with_sum(to, TCP, segment, 16)
    }

    /// A ping with something to carry out.
    #[must_use]
    pub fn ping(to: Ipv4Addr, data: &[u8]) -> Self {
        let mut message = vec![8, 0, 0, 0, 0, 1, 0, 1];
        message.extend(data);
        let total = sum(&message).to_be_bytes();
        message[2..4].copy_from_slice(&total);
        Self::new(to, ICMP, message)
    }

    fn with_sum(to: Ipv4Addr, protocol: u8, mut segment: Vec<u8>, place: usize) -> Self {
        let length = u16::try_from(segment.len()).unwrap().to_be_bytes();
        let pseudo = [
            &GUEST_ADDRESS.octets()[..],
            &to.octets(),
            &[0, protocol],
            &length,
            &segment,
        ];
        let total = sum(&pseudo.concat()).to_be_bytes();
        segment[place..place + 2].copy_from_slice(&total);
        Self::new(to, protocol, segment)
    }

    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let header_bytes = 20 + self.options.len();
        let words = u8::try_from(header_bytes / 4).unwrap();
        let length = u16::try_from(header_bytes + self.payload.len()).unwrap();
        let mut header = vec![4 << 4 | words, 0];
        header.extend(length.to_be_bytes());
        header.extend([0x12, 0x34]);
        header.extend(self.fragment.to_be_bytes());
        header.extend([self.ttl, self.protocol, 0, 0]);
        header.extend(self.from.octets());
        header.extend(self.to.octets());
        header.extend(&self.options);
        let total = sum(&header).to_be_bytes();
        header[10..12].copy_from_slice(&total);
        let packet = [header, self.payload.clone()].concat();
        ethernet(self.to_hardware, self.from_hardware, TYPE_IPV4, &packet)
    }
}

/// A frame of any type.
#[must_use]
pub fn ethernet(to: [u8; 6], from: [u8; 6], kind: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = [&to[..], &from, &kind.to_be_bytes(), packet].concat();
    // A shorter one is padded by the driver, or not at all.
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Who says what in ARP.
#[derive(Debug, Clone, Copy)]
pub struct Arp {
    /// 1 asks, 2 answers.
    pub operation: u16,
    pub from_hardware: [u8; 6],
    pub from: Ipv4Addr,
    pub to: Ipv4Addr,
}

impl Arp {
    /// The guest's own question for its gateway, which is answered.
    #[must_use]
    pub const fn honest() -> Self {
        Self {
            operation: 1,
            from_hardware: GUEST_HARDWARE_ADDRESS,
            from: GUEST_ADDRESS,
            to: GATEWAY_ADDRESS,
        }
    }

    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut packet = vec![0, 1, 8, 0, 6, 4];
        packet.extend(self.operation.to_be_bytes());
        packet.extend(self.from_hardware);
        packet.extend(self.from.octets());
        packet.extend([0; 6]);
        packet.extend(self.to.octets());
        ethernet([0xff; 6], GUEST_HARDWARE_ADDRESS, TYPE_ARP, &packet)
    }
}

/// An IPv6 packet to a multicast address, as neighbours and routers speak.
#[must_use]
pub fn ipv6(to: std::net::Ipv6Addr, next: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap();
    let mut packet = vec![6 << 4, 0, 0, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([next, 255]);
    packet.extend(std::net::Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2).octets());
    packet.extend(to.octets());
    packet.extend(payload);
    let last = to.octets();
    let group = [0x33, 0x33, last[12], last[13], last[14], last[15]];
    ethernet(group, GUEST_HARDWARE_ADDRESS, TYPE_IPV6, &packet)
}

/// The sum of the internet protocols.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| match pair {
        [high, low] => u32::from(u16::from_be_bytes([*high, *low])),
        rest => u32::from(rest[0]) << 8,
    });
    let mut total: u32 = words.sum();
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    !u16::try_from(total & 0xffff).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_with_its_sum_in_place_sums_up_to_nothing() {
        let bytes = Frame::udp(Ipv4Addr::new(8, 8, 8, 8), 4000, 53, b"abc").bytes();
        assert_eq!(sum(&bytes[14..34]), 0);
        let pseudo = [&bytes[26..34], &[0, UDP, 0, 11], &bytes[34..45]].concat();
        assert_eq!(sum(&pseudo), 0);
        assert_eq!(bytes.len(), 60, "padded");
    }
}
