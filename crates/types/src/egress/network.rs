//! Ranges of IPv4 addresses.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// `203.0.113.0/24`, with no bit set behind the prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Ipv4Network {
    address: Ipv4Addr,
    prefix: u8,
}

/// Why a text is no range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNetwork {
    #[error("a range is an IPv4 address and a prefix length, as in 203.0.113.0/24")]
    Shape,
    #[error("the address has bits set behind its prefix")]
    HostBits,
}

impl Ipv4Network {
    /// # Errors
    /// [`InvalidNetwork`].
    pub fn new(address: Ipv4Addr, prefix: u8) -> Result<Self, InvalidNetwork> {
        if prefix > 32 {
            return Err(InvalidNetwork::Shape);
        }
        if address.to_bits() & !mask(prefix) != 0 {
            return Err(InvalidNetwork::HostBits);
        }
        Ok(Self { address, prefix })
    }

    /// One that stands in the source as a constant: what is wrong does not compile.
    pub(super) const fn constant(address: Ipv4Addr, prefix: u8) -> Self {
        assert!(prefix <= 32 && address.to_bits() & !mask(prefix) == 0);
        Self { address, prefix }
    }

    #[must_use]
    pub const fn prefix(self) -> u8 {
        self.prefix
    }

    #[must_use]
    pub fn contains(self, address: Ipv4Addr) -> bool {
        address.to_bits() & mask(self.prefix) == self.address.to_bits()
    }

    /// Whether all of this is in the other.
    #[must_use]
    pub fn is_within(self, other: Self) -> bool {
        other.prefix <= self.prefix && other.contains(self.address)
    }

    /// Whether the two have an address in common.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        let shorter = mask(self.prefix.min(other.prefix));
        (self.address.to_bits() ^ other.address.to_bits()) & shorter == 0
    }
}

const fn mask(prefix: u8) -> u32 {
    match prefix {
        0 => 0,
        1..=31 => u32::MAX << (32 - prefix),
        32.. => u32::MAX,
    }
}

impl FromStr for Ipv4Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let (address, prefix) = text.split_once('/').unwrap_or((text, "32"));
        let address = address.parse().map_err(|_| InvalidNetwork::Shape)?;
        let is_plain = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit());
        if !is_plain {
            return Err(InvalidNetwork::Shape);
        }
        Self::new(address, prefix.parse().map_err(|_| InvalidNetwork::Shape)?)
    }
}

impl fmt::Display for Ipv4Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.prefix)
    }
}

impl TryFrom<String> for Ipv4Network {
    type Error = InvalidNetwork;

    fn try_from(text: String) -> Result<Self, InvalidNetwork> {
        text.parse()
    }
}

impl From<Ipv4Network> for String {
    fn from(network: Ipv4Network) -> Self {
        network.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_contain_and_overlap() {
        let network: Ipv4Network = "203.0.113.0/24".parse().unwrap();
        assert!(network.contains(Ipv4Addr::new(203, 0, 113, 255)));
        assert!(!network.contains(Ipv4Addr::new(203, 0, 114, 0)));
        assert!(network.overlaps("0.0.0.0/0".parse().unwrap()));
        assert!(network.overlaps("203.0.113.7".parse().unwrap()));
        assert!(!network.overlaps("203.0.112.0/24".parse().unwrap()));
        assert_eq!(
            "10.0.0.1/8".parse::<Ipv4Network>(),
            Err(InvalidNetwork::HostBits)
        );
        for text in ["", "/8", "10.0.0.0/33", "10.0.0.0/+8", "10.0.0/8", "::/0"] {
            assert_eq!(
                text.parse::<Ipv4Network>(),
                Err(InvalidNetwork::Shape),
                "{text}"
            );
        }
    }
}
