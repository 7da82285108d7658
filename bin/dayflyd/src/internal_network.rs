//! The setting that opens networks inside private space.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, bail, ensure};
use dayfly_host::net::{NetworkError, host_addresses};
use dayfly_types::egress::InternalNetworks;
use dayfly_types::limits::INTERNAL_NETWORKS_BYTES_MAX;

/// What is written on the command line, or made of the file's tables.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn parse(text: &str) -> Result<InternalNetworks> {
    ensure!(
        text.len() <= INTERNAL_NETWORKS_BYTES_MAX,
        "all internal networks together have at most {INTERNAL_NETWORKS_BYTES_MAX} bytes as JSON"
    );
    Ok(serde_json::from_str(text)?)
}

/// Refuses networks that the host is in. A start leaves such a network shut.
///
/// # Errors
/// Which network, and which address.
pub(crate) fn check(networks: &InternalNetworks) -> Result<()> {
    if networks.is_empty() {
        return Ok(());
    }
    check_beside(networks, &host_addresses().context("internal_network")?)
}

fn check_beside(networks: &InternalNetworks, own: &[Ipv4Addr]) -> Result<()> {
    if let Some((network, address)) = networks.clone().remove_holding(own).first() {
        let name = network.name();
        bail!(
            "internal_network: {address} in the ranges of `{name}` is this host's own address, \
             which no sandbox may reach; write ranges beside it"
        );
    }
    Ok(())
}

/// What can be opened on the host as it is now. One that would open an address of the host itself
/// stays closed: an address that changed must not keep everything else from starting.
pub(crate) fn open(written: &InternalNetworks) -> InternalNetworks {
    if written.is_empty() {
        return InternalNetworks::default();
    }
    open_beside(written, host_addresses())
}

fn open_beside(
    written: &InternalNetworks,
    own: Result<Vec<Ipv4Addr>, NetworkError>,
) -> InternalNetworks {
    let own = match own {
        Ok(own) => own,
        Err(error) => {
            let error = dayfly_types::error_chain(&error);
            tracing::error!(error, "all internal networks stay closed");
            return InternalNetworks::default();
        }
    };
    let mut networks = written.clone();
    for (network, address) in networks.remove_holding(&own) {
        let (name, address) = (network.name(), address.to_string());
        tracing::error!(
            name,
            address,
            "an internal network has the host in it and stays closed"
        );
    }
    networks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_with_an_address_of_the_host_in_it_is_refused_and_stays_closed() {
        let networks = parse(
            r#"[{"name":"corp","projects":["*"],"ranges":["10.20.0.0/16"],"ports":[443]},
                {"name":"other","projects":["*"],"ranges":["10.30.0.0/16"],"ports":[443]}]"#,
        );
        let networks = networks.unwrap();
        let beside = [[127, 0, 0, 1], [10, 19, 255, 255], [10, 21, 0, 0]].map(Ipv4Addr::from);
        check_beside(&networks, &beside).unwrap();
        assert_eq!(open_beside(&networks, Ok(beside.to_vec())), networks);
        for inside in [[10, 20, 0, 0], [10, 20, 0, 7], [10, 20, 255, 255]] {
            let own = [beside[0], Ipv4Addr::from(inside)];
            let error = check_beside(&networks, &own).unwrap_err().to_string();
            let address = own[1].to_string();
            assert!(error.contains("`corp`") && error.contains(&address));
            let open = open_beside(&networks, Ok(own.to_vec()));
            let names: Vec<_> = open.as_slice().iter().map(|one| one.name()).collect();
            assert_eq!(names, ["other"]);
        }
        let unknown = open_beside(&networks, Err(NetworkError::NoRange));
        assert!(unknown.is_empty(), "nobody knows where the host is");
    }

    #[test]
    fn a_network_is_read_and_what_is_not_known_is_refused() {
        let text = r#"[{"name":"corp","projects":["*"],"ranges":["10.20.0.0/16"],"ports":[443]}]"#;
        assert_eq!(parse(text).unwrap().as_slice().len(), 1);
        for wrong in [
            text.replace("ports", "port"),
            text.replace("10.20.0.0/16", "169.254.0.0/16"),
            text.replace("corp", &"x".repeat(INTERNAL_NETWORKS_BYTES_MAX)),
        ] {
            assert!(parse(&wrong).is_err(), "{wrong}");
        }
    }
}
