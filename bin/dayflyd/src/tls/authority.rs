//! A small authority for one private host: it signs the host's own certificate and nothing else.
//!
//! ```text
//!   authority.pem   what clients must know
//!   authority.key   what signs; needed again only for the next certificate
//!   server.pem      what the daemon shows
//!   server.key
//! ```

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use dayfly_host::files::write_atomic;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use time::{Duration, OffsetDateTime};

use super::expiry::{names, read_first};

/// Clients take a new authority by hand, so it lasts.
const AUTHORITY_LASTS: Duration = Duration::days(3650);
/// What browsers take at most.
const SERVER_LASTS: Duration = Duration::days(397);
/// Clocks differ.
const BEFORE_NOW: Duration = Duration::hours(1);
const SECRET: u32 = 0o600;
const PUBLIC: u32 = 0o644;

/// The files of a directory.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) authority: PathBuf,
    pub(super) authority_key: PathBuf,
    pub(super) server: PathBuf,
    pub(super) server_key: PathBuf,
}

impl Files {
    pub(super) fn of(directory: &Path) -> Self {
        Self {
            authority: directory.join("authority.pem"),
            authority_key: directory.join("authority.key"),
            server: directory.join("server.pem"),
            server_key: directory.join("server.key"),
        }
    }

    fn all(&self) -> [&PathBuf; 4] {
        [
            &self.authority,
            &self.authority_key,
            &self.server,
            &self.server_key,
        ]
    }

    /// Makes an authority and a first certificate for these names. Nothing is replaced.
    pub(super) fn make(&self, names: &[String]) -> Result<()> {
        if let Some(there) = self.all().into_iter().find(|path| path.exists()) {
            let path = there.display();
            bail!("{path} is there already; `dayflyd tls renew` makes the next certificate");
        }
        let key = KeyPair::generate().context("cannot make a key")?;
        let params = authority_params()?;
        let made = params
            .self_signed(&key)
            .context("cannot make an authority")?;
        let authority_key = key.serialize_pem();
        // Everything is made before anything is written: a name that cannot be used leaves nothing.
        let server = Signed::new(&Issuer::new(params, key), names)?;
        write_atomic(&self.authority_key, authority_key.as_bytes(), SECRET)?;
        write_atomic(&self.authority, made.pem().as_bytes(), PUBLIC)?;
        self.write(&server)
    }

    /// Makes the next certificate, for the names of the last unless others are given.
    pub(super) fn renew(&self, given: &[String]) -> Result<Vec<String>> {
        let key = super::read(&self.authority_key)?;
        let key = KeyPair::from_pem(&key).context("the key of the authority cannot be read")?;
        let authority = super::read(&self.authority)?;
        let issuer = Issuer::from_ca_cert_pem(&authority, key);
        let issuer = issuer.context("the certificate of the authority cannot be read")?;
        let names = if given.is_empty() {
            names(&read_first(&self.server)?)?
        } else {
            given.to_vec()
        };
        self.write(&Signed::new(&issuer, &names)?)?;
        Ok(names)
    }

    fn write(&self, server: &Signed) -> Result<()> {
        // The key first: a daemon that reads both in between refuses them and goes on as before.
        write_atomic(&self.server_key, server.key.as_bytes(), SECRET)?;
        write_atomic(&self.server, server.certificate.as_bytes(), PUBLIC)?;
        Ok(())
    }
}

/// A certificate of the host and its key, in PEM form.
struct Signed {
    certificate: String,
    key: String,
}

impl Signed {
    fn new(issuer: &Issuer<'_, KeyPair>, names: &[String]) -> Result<Self> {
        ensure!(!names.is_empty(), "a certificate needs a name");
        let key = KeyPair::generate().context("cannot make a key")?;
        let made = server_params(names)?.signed_by(&key, issuer);
        Ok(Self {
            certificate: made.context("cannot sign")?.pem(),
            key: key.serialize_pem(),
        })
    }
}

fn authority_params() -> Result<CertificateParams> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).context("no random bytes")?;
    let now = OffsetDateTime::now_utc();
    let mut params = CertificateParams::default();
    // Two authorities of one name would be taken for one another.
    let name = format!("Dayfly authority {}", hex::encode(random));
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    (params.not_before, params.not_after) = (now - BEFORE_NOW, now + AUTHORITY_LASTS);
    Ok(params)
}

fn server_params(names: &[String]) -> Result<CertificateParams> {
    let now = OffsetDateTime::now_utc();
    let params = CertificateParams::new(names.to_vec());
    let mut params = params.context("a name can be of a host, *.NAME, or an address")?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, "dayflyd");
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    (params.not_before, params.not_after) = (now - BEFORE_NOW, now + SERVER_LASTS);
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_what_could_not_be_made_and_nothing_is_replaced() {
        let place = tempfile::tempdir().unwrap();
        let files = Files::of(place.path());
        assert!(files.make(&["b\u{fc}cher.example".to_owned()]).is_err());
        assert!(files.all().iter().all(|path| !path.exists()));
        let names = ["box.example.org".to_owned(), "127.0.0.1".to_owned()];
        files.make(&names).unwrap();
        let before = std::fs::read(&files.authority).unwrap();
        assert!(files.make(&names).is_err());
        assert_eq!(files.renew(&[]).unwrap(), names);
        assert_eq!(std::fs::read(&files.authority).unwrap(), before);
    }
}
