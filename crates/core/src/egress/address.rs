//! Addresses that no sandbox reaches, whatever its policy says.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use dayfly_types::egress::NEVER_NETWORKS;

/// Whether nobody may reach this address.
#[must_use]
pub fn is_never(address: Ipv4Addr) -> bool {
    NEVER_NETWORKS
        .iter()
        .any(|(network, prefix)| (address.to_bits() ^ network.to_bits()) >> (32 - prefix) == 0)
}

/// The address that may be dialled for an answer of a resolver: IPv4 itself, and public. There is
/// no way out by IPv6, so an IPv6 address is never dialled, also not for what is embedded in it.
#[must_use]
pub fn reachable(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(address).filter(|address| !is_never(*address)),
        IpAddr::V6(_) => None,
    }
}

/// The IPv4 address that an IPv6 one stands for: mapped, compatible, NAT64, 6to4, Teredo.
#[must_use]
pub fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = address.segments();
    let pair = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match (a, b, c, d, e, f) {
        (0, 0, 0, 0, 0, 0 | 0xffff) | (0, 0, 0, 0, 0xffff, 0) => Some(pair(high, low)),
        (0x64, 0xff9b, 0, 0, 0, 0) | (0x64, 0xff9b, 1, ..) => Some(pair(high, low)),
        (0x2002, ..) => Some(pair(b, c)),
        // Teredo hides the client's address behind a complement.
        (0x2001, 0, ..) => Some(pair(!high, !low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn special_addresses_are_never_reached() {
        for text in [
            "0.1.2.3",
            "10.0.0.5",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "168.63.129.16",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.9",
            "224.0.0.251",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
        ] {
            assert!(is_never(text.parse().unwrap()), "{text}");
        }
        for text in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "93.184.216.34",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
        ] {
            assert!(!is_never(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn embedded_addresses_are_seen() {
        let metadata = Ipv4Addr::new(169, 254, 169, 254);
        for text in [
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::a9fe:a9fe",
            "2002:a9fe:a9fe::",
            "2001:0:1:2:3:4:5601:5601",
        ] {
            assert_eq!(
                embedded_ipv4(text.parse().unwrap()),
                Some(metadata),
                "{text}"
            );
        }
        assert_eq!(embedded_ipv4("2606:2800:220:1::1".parse().unwrap()), None);
    }

    proptest! {
        #[test]
        fn what_is_reachable_is_no_special_range_of_the_standard_library(bits in any::<u32>()) {
            let address = Ipv4Addr::from_bits(bits);
            if reachable(address.into()).is_some() {
                prop_assert!(!address.is_private() && !address.is_loopback());
                prop_assert!(!address.is_link_local() && !address.is_multicast());
                prop_assert!(!address.is_documentation() && !address.is_broadcast());
                prop_assert!(!address.is_unspecified());
            }
        }

        #[test]
        fn no_ipv6_address_is_dialled(bits in any::<u128>()) {
            prop_assert_eq!(reachable(Ipv6Addr::from_bits(bits).into()), None);
        }
    }
}
