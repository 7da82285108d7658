//! Which addresses a provider may have.

use std::fmt;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use url::{Host, Url};

/// Why an address is not that of a provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidIssuer {
    #[error("it is no URL")]
    NoUrl,
    #[error("it must begin with https://, or be http:// on this host")]
    NotPrivate,
    #[error("it must have no user, query or fragment")]
    TooMuch,
}

/// The name of a provider, which is also where it is asked. Compared letter by letter with what its
/// tokens say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Issuer(String);

impl Issuer {
    /// # Errors
    /// [`InvalidIssuer`].
    pub fn parse(text: &str) -> Result<Self, InvalidIssuer> {
        let url = private_url(text)?;
        let has_more = url.query().is_some() || url.fragment().is_some();
        if has_more || !url.username().is_empty() || url.password().is_some() {
            return Err(InvalidIssuer::TooMuch);
        }
        Ok(Self(text.to_owned()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where the provider says what it offers.
    pub(crate) fn discovery(&self) -> String {
        let base = self.0.trim_end_matches('/');
        format!("{base}/.well-known/openid-configuration")
    }
}

/// An address on the way to which nobody can change anything: the keys of a provider decide who
/// somebody is.
pub(crate) fn private_url(text: &str) -> Result<Url, InvalidIssuer> {
    let url = Url::parse(text).map_err(|_| InvalidIssuer::NoUrl)?;
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
        Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
        None => return Err(InvalidIssuer::NoUrl),
    };
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_here => Ok(url),
        _ => Err(InvalidIssuer::NotPrivate),
    }
}

impl TryFrom<String> for Issuer {
    type Error = InvalidIssuer;

    fn try_from(text: String) -> Result<Self, InvalidIssuer> {
        Self::parse(&text)
    }
}

impl From<Issuer> for String {
    fn from(issuer: Issuer) -> Self {
        issuer.0
    }
}

impl fmt::Display for Issuer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_reached_without_anybody_between() {
        for text in [
            "https://id.example/realms/a",
            "https://id.example/",
            "http://127.0.0.1:5556/dex",
            "http://[::1]:1",
            "http://localhost:3000",
        ] {
            assert_eq!(Issuer::parse(text).unwrap().as_str(), text);
        }
        for (text, why) in [
            ("id.example", InvalidIssuer::NoUrl),
            ("http://id.example", InvalidIssuer::NotPrivate),
            ("http://127.0.0.1.example", InvalidIssuer::NotPrivate),
            ("ftp://localhost", InvalidIssuer::NotPrivate),
            ("https://user@id.example", InvalidIssuer::TooMuch),
            ("https://id.example/?a=b", InvalidIssuer::TooMuch),
            ("https://id.example/#a", InvalidIssuer::TooMuch),
        ] {
            assert_eq!(Issuer::parse(text), Err(why), "{text}");
        }
    }

    #[test]
    fn what_it_offers_is_below_its_name() {
        let wanted = "https://id.example/a/.well-known/openid-configuration";
        for text in ["https://id.example/a", "https://id.example/a/"] {
            assert_eq!(Issuer::parse(text).unwrap().discovery(), wanted);
        }
    }
}
