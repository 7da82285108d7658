//! How the daemon runs, or would run: what of its settings a host is judged with.

use std::ffi::OsString;
use std::net::SocketAddr;

use anyhow::Result;
use dayfly_installation::DataDirectory;
use dayfly_node_api::{NodeCalls, NodeClient};

use crate::settings;
use crate::tls::{CertificateText, Expiry};

/// What is known of the settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Situation {
    pub(super) listen: Option<SocketAddr>,
    /// Absent: the daemon chooses, and chooses well.
    pub(super) disk_reserve_mib: Option<u64>,
    pub(super) shares_emulation: bool,
    /// Of the certificate that TLS is served with.
    pub(super) certificate: Option<Expiry>,
    /// Why the settings cannot be read.
    pub(super) problem: Option<String>,
}

impl Situation {
    /// By the settings as a start would read them; by the running daemon where it says more.
    pub(super) async fn of(directory: Option<&DataDirectory>) -> Result<Self> {
        let mut situation = Self::of_settings();
        let Some(directory) = directory else {
            return Ok(situation);
        };
        let Some(daemon) = directory.running()? else {
            return Ok(situation);
        };
        situation.listen = Some(daemon.listen);
        let node = NodeClient::new(directory.node_socket());
        // A node that is being started again is judged by the settings.
        if let Ok(status) = node.status().await {
            situation.disk_reserve_mib = Some(status.disk_reserve_mib);
        }
        Ok(situation)
    }

    fn of_settings() -> Self {
        Self::found().unwrap_or_else(|error| Self {
            problem: Some(format!("{error:#}")),
            ..Self::default()
        })
    }

    fn found() -> Result<Self> {
        let found = settings::resolve(&[OsString::from(env!("CARGO_PKG_NAME"))])?.arguments;
        let certificate = CertificateText::of(&found)?;
        Ok(Self {
            listen: Some(found.listen),
            disk_reserve_mib: found.disk_reserve,
            shares_emulation: found.allow_shared_emulation,
            certificate: certificate.map(|text| text.expiry()).transpose()?,
            problem: None,
        })
    }
}
