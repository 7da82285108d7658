//! A range for the link between the host and the egress namespace that nobody uses.

use std::net::Ipv4Addr;

use dayfly_types::egress::{InternalNetworks, Ipv4Network};

/// Where to look, in this order: shared address space, benchmarks, then the far ends of the private
/// ranges. From inside the egress namespace nothing of it is reachable but internal networks, which
/// are passed over; so what the link hides there is lost to nobody.
const BLOCKS: [Ipv4Addr; 5] = [
    Ipv4Addr::new(100, 127, 253, 0),
    Ipv4Addr::new(198, 19, 253, 0),
    Ipv4Addr::new(172, 31, 253, 0),
    Ipv4Addr::new(10, 255, 253, 0),
    Ipv4Addr::new(192, 168, 253, 0),
];
const LINKS_IN_BLOCK: u32 = 64;
pub(super) const PREFIX_BITS: u8 = 30;
/// Routes wider than this are ways to the internet, not networks.
const PREFIX_BITS_MIN: u8 = 8;

/// The two ends of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) host: Ipv4Addr,
    pub(super) inside: Ipv4Addr,
}

/// The first link that meets no route and no network that sandboxes may reach. `routes` is what
/// `ip route show table all` says: a destination in each line, perhaps behind a word for its kind.
pub(super) fn choose(routes: &str, internal: &InternalNetworks) -> Option<Ends> {
    let routes = routes
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace().take(2);
            words.find_map(|word| word.parse::<Ipv4Network>().ok())
        })
        .filter(|range| range.prefix() >= PREFIX_BITS_MIN);
    let networks = internal.as_slice().iter();
    let opened = networks.flat_map(|network| network.ranges().iter().copied());
    let used: Vec<Ipv4Network> = routes.chain(opened).collect();
    let mut links = BLOCKS
        .iter()
        .flat_map(|&block| (0..LINKS_IN_BLOCK).map(move |number| u32::from(block) + number * 4));
    let is_free = |start: &u32| {
        let link = Ipv4Network::new(Ipv4Addr::from(*start), PREFIX_BITS);
        link.is_ok_and(|link| !used.iter().any(|range| range.overlaps(link)))
    };
    let start = links.find(is_free)?;
    Some(Ends {
        host: Ipv4Addr::from(start + 1),
        inside: Ipv4Addr::from(start + 2),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(routes: &str) -> Option<String> {
        hosts_beside(routes, &InternalNetworks::default())
    }

    fn hosts_beside(routes: &str, internal: &InternalNetworks) -> Option<String> {
        choose(routes, internal).map(|ends| ends.host.to_string())
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
        assert_eq!(hosts(routes), None);
    }

    #[test]
    fn a_network_that_sandboxes_may_reach_is_passed_over() {
        let internal = serde_json::json!([
            {"name": "a", "projects": ["*"], "ports": [443],
                "ranges": ["100.127.253.0/29", "10.20.0.0/16"]},
            {"name": "b", "projects": ["*"], "ports": [443], "ranges": ["100.127.253.10"]}]);
        let internal = serde_json::from_value(internal).unwrap();
        assert_eq!(
            hosts_beside("", &internal).as_deref(),
            Some("100.127.253.13")
        );
        let other = "100.127.253.12/30 dev dfy-1 proto kernel\n";
        assert_eq!(
            hosts_beside(other, &internal).as_deref(),
            Some("100.127.253.17")
        );
    }
}
