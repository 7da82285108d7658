//! Images of registries: a small client of the OCI distribution API, for pulling alone.
//!
//! It is our own, and not one of the published crates, because every connection is a decision: an
//! image is named by whoever may name one, its registry may lead anywhere by a redirect or by the
//! address of its tokens, and none of that may reach this host, its network or a cloud's metadata
//! service. So addresses are checked where the connection is made ([`resolve`]), redirects are
//! followed here and not by the library ([`request`]), and the password has two places it can go.

mod challenge;
mod client;
mod inside;
mod lookup;
mod request;
mod resolve;
mod transfer;

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use dayfly_types::egress::InternalNetwork;
use dayfly_types::limits::{IMAGE_DOCUMENT_BYTES_MAX, REGISTRY_REDIRECTS_MAX};

pub use client::{InvalidRegistryAccess, RegistryClient};

use crate::digest::Digest;

/// Why a registry did not give what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error(
        "{host} is at {address}, where no image may be pulled from unless the operator allows it"
    )]
    RefusedAddress { host: String, address: IpAddr },
    #[error("{host} does not respond")]
    Unreachable {
        host: String,
        #[source]
        source: reqwest::Error,
    },
    #[error("{host} took too long")]
    Slow { host: String },
    #[error("{host} responds with {status}")]
    Status { host: String, status: u16 },
    #[error("{host} has no such image")]
    NotFound { host: String },
    #[error("{host} wants a name and a password")]
    NeedsCredentials { host: String },
    #[error("{host} refuses this name and password, or this image to them")]
    Denied { host: String },
    #[error("how to sign in cannot be read from what {host} says")]
    Challenge { host: String },
    #[error("{host} gives no token that can be used")]
    Token { host: String },
    #[error("{host} leads to {to}, which is not private; https is needed")]
    NotPrivate { host: String, to: String },
    #[error("a name and a password are sent over TLS only, and {host} does not speak it")]
    CredentialsInPlain { host: String },
    #[error("{host} leads to an address that cannot be used")]
    Redirect { host: String },
    #[error("{host} leads elsewhere more than {REGISTRY_REDIRECTS_MAX} times")]
    TooManyRedirects { host: String },
    #[error("a document of {host} is longer than {IMAGE_DOCUMENT_BYTES_MAX} bytes")]
    TooLong { host: String },
    #[error("{host} gives other than the {wanted} bytes that there should be")]
    OtherSize { host: String, wanted: u64 },
    #[error("{host} gives {found} for {wanted}")]
    OtherContent {
        host: String,
        wanted: Digest,
        found: Digest,
    },
    #[error("{host} calls a document {named:?} that has the digest {found}")]
    OtherName {
        host: String,
        named: String,
        found: Digest,
    },
    #[error("{host} gives another part of a layer than it was asked for")]
    OtherPart { host: String },
    #[error("whoever wrote the layer has stopped")]
    Stopped,
}

/// Who asks. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct RegistryCredentials {
    pub username: String,
    pub password: String,
}

impl fmt::Debug for RegistryCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RegistryCredentials")
    }
}

/// What may be inside. Who names an image does not get on these lists by naming it, and a redirect
/// or the address of tokens is looked up here like the registry itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistryReach {
    /// Hosts and ports that may have any address: a registry that the operator has named.
    pub allowed: Vec<(String, u16)>,
    /// Addresses and ports that the operator has opened, for whichever host it is.
    pub networks: Vec<InternalNetwork>,
}

impl RegistryReach {
    fn allows(&self, host: &str, port: u16) -> bool {
        let plain = |host: &str| host.trim_matches(['[', ']']).to_ascii_lowercase();
        let is_it = |one: &(String, u16)| one.1 == port && plain(&one.0) == plain(host);
        self.allowed.iter().any(is_it)
    }

    fn has_networks_at(&self, port: u16) -> bool {
        let mut networks = self.networks.iter();
        networks.any(|network| network.ports().contains(port))
    }
}

/// How a registry is asked.
#[derive(Debug, Clone, Default)]
pub struct RegistryAccess {
    pub credentials: Option<RegistryCredentials>,
    pub reach: RegistryReach,
    /// Certificates in PEM of authorities that are trusted beside those of the system.
    pub authority: Option<Vec<u8>>,
    /// Speaks plain HTTP with a registry on a loopback address, and with no other.
    pub plain_loopback: bool,
    /// DNS servers to ask; with none the system is asked.
    pub resolvers: Vec<SocketAddr>,
}
