//! What a certificate says of itself: until when it holds, and for which names.

use std::net::IpAddr;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;

/// Less than this is too near.
const RENEW_DAYS: i64 = 21;

/// Until when a certificate holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Expiry {
    pub(crate) not_after: String,
    pub(crate) days_left: i64,
}

impl Expiry {
    /// It is time to renew.
    pub(crate) const fn is_near(&self) -> bool {
        self.days_left < RENEW_DAYS
    }

    pub(crate) const fn is_over(&self) -> bool {
        self.days_left < 0
    }
}

fn parsed(der: &[u8]) -> Result<X509Certificate<'_>> {
    let (_, certificate) = X509Certificate::from_der(der)
        .map_err(|error| anyhow!("a certificate cannot be read: {error}"))?;
    Ok(certificate)
}

/// Until when a certificate in DER holds.
pub(super) fn expiry(der: &[u8]) -> Result<Expiry> {
    let not_after = parsed(der)?.validity().not_after.to_datetime();
    Ok(Expiry {
        not_after: not_after.format(&Rfc3339)?,
        days_left: (not_after - OffsetDateTime::now_utc()).whole_days(),
    })
}

/// The names and addresses that a certificate in DER is for.
pub(super) fn names(der: &[u8]) -> Result<Vec<String>> {
    let certificate = parsed(der)?;
    let names = certificate.subject_alternative_name()?;
    let names = names.context("the certificate has no names")?;
    names.value.general_names.iter().map(name).collect()
}

fn name(name: &GeneralName<'_>) -> Result<String> {
    match name {
        GeneralName::DNSName(name) => Ok((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let address = match bytes.len() {
                4 => <[u8; 4]>::try_from(*bytes).map(IpAddr::from),
                _ => <[u8; 16]>::try_from(*bytes).map(IpAddr::from),
            };
            Ok(address?.to_string())
        }
        GeneralName::OtherName(..)
        | GeneralName::RFC822Name(_)
        | GeneralName::X400Address(_)
        | GeneralName::DirectoryName(_)
        | GeneralName::EDIPartyName(_)
        | GeneralName::URI(_)
        | GeneralName::RegisteredID(_)
        | GeneralName::Invalid(..) => {
            bail!("the certificate has a name of an unknown kind; give its names with --name")
        }
    }
}

/// The first certificate of a file, in DER.
pub(super) fn read_first(path: &Path) -> Result<Vec<u8>> {
    let text = super::read(path)?;
    let (_, block) = x509_parser::pem::parse_x509_pem(text.as_bytes())
        .with_context(|| format!("{} has no certificate", path.display()))?;
    Ok(block.contents)
}
