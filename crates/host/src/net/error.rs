//! What can go wrong, and how a step inside a namespace says so.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::netns::{self, NetnsError};

/// Why a network could not be made, looked at or removed.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    #[error("cannot enter the network namespace at {path}")]
    Enter { path: PathBuf, source: io::Error },
    #[error("cannot {what} in the network namespace at {path}")]
    Inside {
        what: String,
        path: PathBuf,
        source: io::Error,
    },
    #[error("cannot {what} on the host")]
    Host { what: String, source: io::Error },
    #[error("cannot keep the egress namespace")]
    Namespace { source: NetnsError },
    #[error("resolver {address} is not on IPv4, and nothing else leaves the egress namespace")]
    Resolver { address: SocketAddr },
    #[error("every range for the link to the egress namespace is in use on this host")]
    NoRange,
}

/// A step that failed. Whoever knows where it was to happen makes a [`NetworkError`] of it.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) what: String,
    pub(super) source: io::Error,
}

impl Failed {
    pub(super) fn at<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self {
            what,
            source: source.into(),
        }
    }

    pub(super) fn on_host(self) -> NetworkError {
        NetworkError::Host {
            what: self.what,
            source: self.source,
        }
    }
}

/// Runs a step on a thread of its own inside a kept namespace.
pub(super) fn within<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, Failed> + Send + 'static,
) -> Result<T, NetworkError> {
    let entered = netns::in_namespace(path, work).map_err(|source| NetworkError::Enter {
        path: path.to_owned(),
        source,
    })?;
    entered.map_err(|failed| NetworkError::Inside {
        what: failed.what,
        path: path.to_owned(),
        source: failed.source,
    })
}
