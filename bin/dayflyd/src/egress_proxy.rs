//! The setting that names a proxy for traffic of sandboxes.

use std::fmt;
use std::net::SocketAddrV4;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const SCHEME: &str = "http://";

/// An HTTP proxy by its address. Not by a name: which address is let through by the kernel must not
/// be for a DNS server to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct EgressProxy(SocketAddrV4);

impl EgressProxy {
    pub(crate) const fn address(self) -> SocketAddrV4 {
        self.0
    }
}

impl FromStr for EgressProxy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix(SCHEME).unwrap_or_default();
        let address = rest.strip_suffix('/').unwrap_or(rest).parse();
        let address = address.ok().filter(|one: &SocketAddrV4| {
            one.port() != 0 && !one.ip().is_loopback() && !one.ip().is_unspecified()
        });
        address.map(Self).ok_or_else(|| {
            "http://ADDRESS:PORT with an IPv4 address that the egress namespace can reach; no name, \
             no user and no password"
                .to_owned()
        })
    }
}

impl fmt::Display for EgressProxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{SCHEME}{}", self.0)
    }
}

impl TryFrom<String> for EgressProxy {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<EgressProxy> for String {
    fn from(proxy: EgressProxy) -> Self {
        proxy.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_an_address_and_a_port() {
        for text in ["http://10.40.0.1:3128", "http://10.40.0.1:3128/"] {
            let proxy: EgressProxy = text.parse().unwrap();
            assert_eq!(proxy.to_string(), "http://10.40.0.1:3128");
        }
        for text in [
            "",
            "10.40.0.1:3128",
            "http://10.40.0.1",
            "http://10.40.0.1:0",
            "http://127.0.0.1:3128",
            "http://[::1]:3128",
            "http://proxy.corp.example:3128",
            "http://user:secret@10.40.0.1:3128",
            "http://10.40.0.1:3128/path",
            "https://10.40.0.1:3128",
        ] {
            let error = text.parse::<EgressProxy>().unwrap_err();
            assert!(!error.contains("secret"), "{text}");
        }
    }
}
