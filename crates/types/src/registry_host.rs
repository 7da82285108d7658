//! The host of a registry, as it stands before the first slash of an image's name.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::limits::IMAGE_NAME_BYTES_MAX;

/// The name that people write for it, and the host that has its API.
pub const DOCKER_HUB: &str = "docker.io";
pub const DOCKER_HUB_API: &str = "registry-1.docker.io";
const HTTPS_PORT: u16 = 443;

/// The text is not a host, or a host and a port. What it is instead is not shown: it may have been
/// meant to be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a host as it stands in the name of an image, such as registry.example or \
     registry.example:5000"
)]
pub struct InvalidRegistryHost;

/// The host and the port of a registry's API. Two ways to write one host are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RegistryHost {
    host: String,
    port: u16,
}

impl RegistryHost {
    /// # Errors
    /// [`InvalidRegistryHost`]
    pub fn parse(text: &str) -> Result<Self, InvalidRegistryHost> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (text, None),
        };
        let is_named = port.is_some() || host.contains(['.', ':']) || host == "localhost";
        if text.len() > IMAGE_NAME_BYTES_MAX || !is_named || !is_host(host) {
            return Err(InvalidRegistryHost);
        }
        let port = match port {
            None => HTTPS_PORT,
            Some(text) => {
                let number: u16 = text.parse().map_err(|_| InvalidRegistryHost)?;
                let is_plain = number > 0 && number.to_string() == text;
                is_plain.then_some(number).ok_or(InvalidRegistryHost)?
            }
        };
        let host = match host.to_ascii_lowercase() {
            hub if hub == DOCKER_HUB => DOCKER_HUB_API.to_owned(),
            other => other,
        };
        Ok(Self { host, port })
    }

    /// The registry of an image that is named in full.
    ///
    /// # Errors
    /// [`InvalidRegistryHost`]
    pub fn of_image(reference: &str) -> Result<Self, InvalidRegistryHost> {
        let (registry, _) = reference.split_once('/').ok_or(InvalidRegistryHost)?;
        Self::parse(registry)
    }

    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl fmt::Display for RegistryHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// One that means what it looks like: no `127.1`, no `0x7f.1`.
fn is_host(text: &str) -> bool {
    if let Some(inner) = text.strip_prefix('[') {
        let address = inner.strip_suffix(']');
        let parsed = address.and_then(|address| address.parse::<Ipv6Addr>().ok());
        return parsed.is_some_and(|parsed| Some(parsed.to_string().as_str()) == address);
    }
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(is_letter) && !part.starts_with('-');
    let last = text.rsplit('.').next().unwrap_or_default();
    let is_number = last
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_digit());
    text.split('.').all(is_part) && (!is_number || text.parse::<Ipv4Addr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        RegistryHost::parse(text).unwrap().to_string()
    }

    #[test]
    fn one_host_is_itself_however_it_is_written() {
        assert_eq!(parsed("registry.example"), "registry.example:443");
        assert_eq!(parsed("Registry.Example:443"), "registry.example:443");
        assert_eq!(parsed("registry.example:5000"), "registry.example:5000");
        assert_eq!(parsed("localhost"), "localhost:443");
        assert_eq!(parsed("registry:5000"), "registry:5000");
        assert_eq!(parsed("10.20.0.7:5000"), "10.20.0.7:5000");
        assert_eq!(parsed("[fd00::1]"), "[fd00::1]:443");
        assert_eq!(parsed("[fd00::1]:5000"), "[fd00::1]:5000");
        for hub in ["docker.io", "registry-1.docker.io", "Docker.io:443"] {
            assert_eq!(parsed(hub), "registry-1.docker.io:443");
        }
        let image = RegistryHost::of_image("docker.io/library/debian:12").unwrap();
        assert_eq!(image.host(), DOCKER_HUB_API);
        assert!(RegistryHost::of_image("debian:12").is_err());
    }

    #[test]
    fn what_is_no_host_is_refused_and_not_shown() {
        let long = format!("{}.example", "a".repeat(255));
        for text in [
            "",
            "registry",
            "https://registry.example",
            "registry.example/team",
            "registry.example:",
            "registry.example:0",
            "registry.example:065",
            "registry.example:65536",
            "user:secret@registry.example",
            "registry..example",
            "-a.example",
            "127.1",
            "0x7f.0x1",
            "[::1",
            "[0:0:0:0:0:0:0:1]",
            &long,
        ] {
            let error = RegistryHost::parse(text).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{text}: {error}");
        }
    }
}
