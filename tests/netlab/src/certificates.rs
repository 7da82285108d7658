//! Certificates of the servers of the test's internet.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// The certificate of one host, under one or more names, which is its own root.
#[derive(Debug)]
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    /// What a client of any kind is told to believe.
    pub pem: String,
    /// For a server that is another program.
    pub key_pem: String,
}

impl Identity {
    #[must_use]
    pub fn new(names: &[&str]) -> Self {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        Self {
            pem: made.cert.pem(),
            key_pem: made.signing_key.serialize_pem(),
            certificate: made.cert.der().clone(),
            key: PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into(),
        }
    }

    #[must_use]
    pub fn server(&self) -> Arc<ServerConfig> {
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], self.key.clone_key());
        Arc::new(config.unwrap())
    }
}

/// A client that believes these and nobody else.
#[must_use]
pub fn client(identities: &[&Identity]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for identity in identities {
        roots.add(identity.certificate.clone()).unwrap();
    }
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}
