//! The addresses of the host itself.

use std::net::Ipv4Addr;

use super::error::{Failed, NetworkError};
use super::program::IP;

/// Every IPv4 address of every interface of the calling thread's namespace, once and in order.
///
/// # Errors
/// [`NetworkError`] when the program that lists them fails.
pub fn host_addresses() -> Result<Vec<Ipv4Addr>, NetworkError> {
    own_addresses().map_err(Failed::on_host)
}

pub(super) fn own_addresses() -> Result<Vec<Ipv4Addr>, Failed> {
    let listed = IP.run(&["-4", "-o", "address", "show"], "");
    let listed = listed.map_err(Failed::at("list the addresses of the host"))?;
    let mut addresses: Vec<_> = listed.lines().filter_map(address_in).collect();
    addresses.sort_unstable();
    addresses.dedup();
    Ok(addresses)
}

/// The address in a line: `3: name    inet 10.0.0.1/30 ...`, or with a peer `inet 10.0.0.1 peer ...`.
pub(super) fn address_in(line: &str) -> Option<Ipv4Addr> {
    let mut words = line.split_whitespace().skip_while(|word| *word != "inet");
    let address = words.nth(1)?;
    address.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_from_what_the_program_says() {
        for (line, address) in [
            ("1: lo    inet 127.0.0.1/8 scope host lo", "127.0.0.1"),
            (
                "2: eth0    inet 10.0.0.5/24 brd 10.0.0.255 scope global eth0",
                "10.0.0.5",
            ),
            (
                "3: tun0    inet 10.8.0.2 peer 10.8.0.1/32 scope global tun0",
                "10.8.0.2",
            ),
        ] {
            assert_eq!(address_in(line), Some(address.parse().unwrap()), "{line}");
        }
        assert_eq!(address_in("2: eth0    inet6 fe80::1/64 scope link"), None);
        assert!(host_addresses().unwrap().contains(&Ipv4Addr::LOCALHOST));
    }
}
