//! The setting that opens networks inside private space.

use anyhow::{Context, Result, bail, ensure};
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
    let own = dayfly_host::net::host_addresses().context("internal_network")?;
    if let Some((network, address)) = networks.clone().without(&own).first() {
        let name = network.name();
        bail!(
            "internal_network: {address} in the ranges of `{name}` is this host's own address, \
             which no sandbox may reach; write ranges beside it"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
