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
const DAY_SECONDS: i64 = 86_400;

/// Until when a certificate holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Expiry {
    pub(crate) not_after: String,
    /// Whole days; below 0 from the moment on at which it ends.
    pub(crate) days_left: i64,
}

impl Expiry {
    fn of(not_after: OffsetDateTime, now: OffsetDateTime) -> Result<Self> {
        Ok(Self {
            not_after: not_after.format(&Rfc3339)?,
            days_left: (not_after - now).whole_seconds().div_euclid(DAY_SECONDS),
        })
    }

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
    Expiry::of(not_after, OffsetDateTime::now_utc())
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

#[cfg(test)]
mod tests {
    use time::Duration;

    use super::*;

    #[test]
    fn a_certificate_is_over_from_its_end_on() {
        let now = OffsetDateTime::now_utc();
        let of = |left: Duration| Expiry::of(now + left, now).unwrap();
        assert!(of(Duration::hours(-1)).is_over());
        assert!(!of(Duration::hours(1)).is_over());
        assert!(of(Duration::days(20)).is_near() && !of(Duration::days(22)).is_near());
        assert_eq!(of(Duration::hours(49)).days_left, 2);
    }
}
