//! The certificate of the daemon's TLS: its files, and a small authority for a first private host.

mod authority;
mod commands;
mod expiry;

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use dayfly_control::Certificate;
use serde::{Deserialize, Serialize};

use crate::args::RunArguments;
use crate::bounded_file;

pub(crate) use commands::run;
pub(crate) use expiry::Expiry;

/// Some twenty certificates; what is handed over must fit into one message.
pub(crate) const FILE_BYTES_MAX: u64 = 24 << 10;

/// What is in the two files.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CertificateText {
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl fmt::Debug for CertificateText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CertificateText(..)")
    }
}

impl CertificateText {
    /// What the settings name, if they name one. It can be used, too.
    ///
    /// # Errors
    /// When a file cannot be read, or the two are no certificate with its key.
    pub(crate) fn of(settings: &RunArguments) -> Result<Option<Self>> {
        let (Some(chain), Some(key)) = (&settings.tls_certificate, &settings.tls_key) else {
            return Ok(None);
        };
        let text = Self {
            chain: read(chain).context("tls_certificate")?,
            key: read(key).context("tls_key")?,
        };
        let pair = || format!("{} with {}", chain.display(), key.display());
        text.certificate().with_context(pair)?;
        Ok(Some(text))
    }

    /// Until when it holds.
    pub(crate) fn expiry(&self) -> Result<Expiry> {
        expiry::expiry(self.certificate()?.own())
    }

    pub(crate) fn certificate(&self) -> Result<Certificate> {
        let read = Certificate::from_pem(self.chain.as_bytes(), self.key.as_bytes());
        Ok(read?)
    }
}

fn read(path: &Path) -> Result<String> {
    let bytes = bounded_file::read(path, FILE_BYTES_MAX)?;
    String::from_utf8(bytes).with_context(|| format!("cannot read {}", path.display()))
}
