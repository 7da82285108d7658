//! A range for the link between the host and the egress namespace that the host does not use.

use std::net::Ipv4Addr;

/// Where to look, in this order: shared address space, benchmarks, then the far ends of the private
/// ranges. None of it is reachable from inside the egress namespace, so what it hides there is lost
/// to nobody.
const BLOCKS: [Ipv4Addr; 5] = [
    Ipv4Addr::new(100, 127, 253, 0),
    Ipv4Addr::new(198, 19, 253, 0),
    Ipv4Addr::new(172, 31, 253, 0),
    Ipv4Addr::new(10, 255, 253, 0),
    Ipv4Addr::new(192, 168, 253, 0),
];
const LINKS_IN_BLOCK: u32 = 64;
pub(super) const PREFIX_BITS: u32 = 30;
/// Routes wider than this are ways to the internet, not networks.
const PREFIX_BITS_MIN: u32 = 8;

/// The two ends of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) host: Ipv4Addr,
    pub(super) inside: Ipv4Addr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    start: u32,
    bits: u32,
}

impl Range {
    fn overlaps(self, other: Self) -> bool {
        let bits = self.bits.min(other.bits);
        let shift = u32::BITS - bits;
        bits == 0 || self.start >> shift == other.start >> shift
    }
}

/// The first link that meets no route. `routes` is what `ip route show table all` says: a
/// destination in each line, perhaps behind a word for its kind.
pub(super) fn choose(routes: &str) -> Option<Ends> {
    let used: Vec<Range> = routes
        .lines()
        .filter_map(|line| line.split_whitespace().take(2).find_map(parse))
        .filter(|range| range.bits >= PREFIX_BITS_MIN)
        .collect();
    let links = BLOCKS
        .iter()
        .flat_map(|&block| (0..LINKS_IN_BLOCK).map(move |number| u32::from(block) + number * 4));
    let is_free = |start: &u32| {
        let link = Range {
            start: *start,
            bits: PREFIX_BITS,
        };
        !used.iter().any(|range| range.overlaps(link))
    };
    let start = links.into_iter().find(is_free)?;
    Some(Ends {
        host: Ipv4Addr::from(start + 1),
        inside: Ipv4Addr::from(start + 2),
    })
}

fn parse(word: &str) -> Option<Range> {
    let (address, bits) = word.split_once('/').unwrap_or((word, "32"));
    let address: Ipv4Addr = address.parse().ok()?;
    let bits: u32 = bits.parse().ok().filter(|bits| *bits <= u32::BITS)?;
    Some(Range {
        start: address.into(),
        bits,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(routes: &str) -> Option<String> {
        choose(routes).map(|ends| ends.host.to_string())
    }

    #[test]
    fn a_host_without_such_routes_gets_the_first_link() {
        let routes = "default via 10.0.0.1 dev eth0\n10.0.0.0/24 dev eth0 proto kernel\n\
            local 10.0.0.5 dev eth0 table local scope host\n0.0.0.0/1 dev vpn\n";
        assert_eq!(hosts(routes).as_deref(), Some("100.127.253.1"));
    }

    #[test]
    fn links_and_blocks_that_are_in_use_are_passed_over() {
        let other = "100.127.253.0/30 dev dfy-1 proto kernel\n";
        assert_eq!(hosts(other).as_deref(), Some("100.127.253.5"));
        let shared = "100.64.0.0/10 dev vpn table 52\nlocal 198.19.253.2 dev lo\n";
        assert_eq!(hosts(shared).as_deref(), Some("198.19.253.5"));
    }

    #[test]
    fn a_host_that_uses_everything_gets_nothing() {
        let routes = "100.64.0.0/10 dev a\n198.18.0.0/15 dev b\n172.16.0.0/12 dev c\n\
            10.0.0.0/8 dev d\n192.168.0.0/16 dev e\n";
        assert_eq!(choose(routes), None);
    }
}
