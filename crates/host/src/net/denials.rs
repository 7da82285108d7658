//! What the rules of a slot have refused so far.

use std::io;
use std::path::Path;

use serde::Deserialize;

use super::error::{Failed, NetworkError, within};
use super::nft;

/// Packets of a guest that its slot's rules did not let through, by reason. Counting starts anew
/// when rules are restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlotDenials {
    /// UDP other than DNS, and DNS beyond its rate.
    pub udp: u64,
    pub ipv6: u64,
    /// From addresses that are not the guest's.
    pub spoofed: u64,
    /// Connections beyond their number or rate.
    pub connections: u64,
    pub other: u64,
}

/// Reads the counters of a slot.
///
/// # Errors
/// [`NetworkError`].
pub fn slot_denials(netns: &Path) -> Result<SlotDenials, NetworkError> {
    within(netns, || parse(&nft::counters()?))
}

#[derive(Debug, Deserialize)]
struct Listing {
    nftables: Vec<Listed>,
}

#[derive(Debug, Deserialize)]
struct Listed {
    counter: Option<Counter>,
}

#[derive(Debug, Deserialize)]
struct Counter {
    name: String,
    packets: u64,
}

/// Both tables have counters, and some of the same names; those add up.
fn parse(json: &str) -> Result<SlotDenials, Failed> {
    let listing: Listing = serde_json::from_str(json)
        .map_err(io::Error::from)
        .map_err(Failed::at("understand the counters"))?;
    let mut denials = SlotDenials::default();
    for counter in listing
        .nftables
        .into_iter()
        .filter_map(|listed| listed.counter)
    {
        let place = match counter.name.as_str() {
            "deny_udp" => &mut denials.udp,
            "deny_v6" => &mut denials.ipv6,
            "deny_spoof" => &mut denials.spoofed,
            "deny_conn" => &mut denials.connections,
            _ => &mut denials.other,
        };
        *place = place.saturating_add(counter.packets);
    }
    Ok(denials)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_one_name_add_up() {
        let json = r#"{"nftables": [{"metainfo": {"version": "1.0.6"}},
            {"counter": {"family": "inet", "name": "deny_spoof", "packets": 2, "bytes": 80}},
            {"counter": {"family": "netdev", "name": "deny_spoof", "packets": 3, "bytes": 9}},
            {"counter": {"family": "netdev", "name": "deny_other", "packets": 1, "bytes": 9}}]}"#;
        let expected = SlotDenials {
            spoofed: 5,
            other: 1,
            ..SlotDenials::default()
        };
        assert_eq!(parse(json).unwrap(), expected);
        assert!(parse("nothing").is_err());
    }
}
