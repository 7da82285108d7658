//! The addresses of the host itself.

use std::io;
use std::net::Ipv4Addr;

use super::error::{Failed, NetworkError};
use super::program::IP;

/// Every IPv4 address of every interface of the calling thread's namespace, once and in order.
///
/// # Errors
/// [`NetworkError`] when the program that lists them fails, or says what is not understood.
pub fn host_addresses() -> Result<Vec<Ipv4Addr>, NetworkError> {
    own_addresses().map_err(Failed::on_host)
}

pub(super) fn own_addresses() -> Result<Vec<Ipv4Addr>, Failed> {
    let listed = IP.run(&["-4", "-o", "address", "show"], "");
    let listed = listed.map_err(Failed::at("list the addresses of the host"))?;
    let addresses = listed.lines().map(address_in);
    let addresses = addresses.collect::<Result<Vec<_>, _>>();
    let mut addresses = addresses.map_err(Failed::at("read the addresses of the host"))?;
    addresses.sort_unstable();
    addresses.dedup();
    Ok(addresses)
}

/// The address in a line: `3: name    inet 10.0.0.1/30 ...`, or with a peer `inet 10.0.0.1 peer ...`.
/// Words count by their place, since an interface can have any of them for its name. A line that
/// reads otherwise is an error: an address that is passed over is one that nobody keeps shut.
pub(super) fn address_in(line: &str) -> io::Result<Ipv4Addr> {
    let mut words = line.split_whitespace().skip(2);
    let address = words
        .next()
        .filter(|word| *word == "inet")
        .and(words.next());
    let address = address.and_then(|word| word.split('/').next()?.parse().ok());
    address.ok_or_else(|| io::Error::other(format!("there is no address in `{line}`")))
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
            ("4: inet    inet 10.9.0.2/24 scope global inet", "10.9.0.2"),
        ] {
            let expected: Ipv4Addr = address.parse().unwrap();
            assert_eq!(address_in(line).unwrap(), expected, "{line}");
        }
        for line in [
            "",
            "2: eth0",
            "2: eth0    inet",
            "2: eth0    inet nothing",
            "2: eth0    inet6 fe80::1/64 scope link",
            "2: eth0 up inet 10.0.0.5/24",
        ] {
            assert!(address_in(line).is_err(), "{line}");
        }
        assert!(host_addresses().unwrap().contains(&Ipv4Addr::LOCALHOST));
    }
}
