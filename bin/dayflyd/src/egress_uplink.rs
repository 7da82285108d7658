//! The setting that says how traffic of sandboxes leaves the host.

use std::path::PathBuf;
use std::str::FromStr;

/// How traffic leaves the host, as it is written on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum EgressUplink {
    None,
    Nat,
    Namespace(PathBuf),
}

impl FromStr for EgressUplink {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("netns:")) {
            ("none", _) => Ok(Self::None),
            ("nat", _) => Ok(Self::Nat),
            (_, Some(path)) if path.starts_with('/') => Ok(Self::Namespace(PathBuf::from(path))),
            _ => Err("one of nat, none, netns:/PATH".to_owned()),
        }
    }
}

impl std::fmt::Display for EgressUplink {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => formatter.write_str("none"),
            Self::Nat => formatter.write_str("nat"),
            Self::Namespace(path) => write!(formatter, "netns:{}", path.display()),
        }
    }
}

impl From<EgressUplink> for dayfly_host::net::Uplink {
    fn from(uplink: EgressUplink) -> Self {
        match uplink {
            EgressUplink::None => Self::None,
            EgressUplink::Nat => Self::Nat,
            EgressUplink::Namespace(path) => Self::Namespace(path),
        }
    }
}
