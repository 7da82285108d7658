//! TLS of the API and of previews: the certificate that is shown, which can be replaced while
//! connections go on.

use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use dayfly_api::{Advice, ErrorBody};
use dayfly_types::ErrorCode;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use super::envelope::new_id;

/// What the first byte of a connection says when it is TLS: a handshake.
const HANDSHAKE: u8 = 22;
/// What of a request in plain text is read before it is refused.
const PLAIN_BYTES_MAX: usize = 16 << 10;
pub(super) const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// A certificate with those that lead to its authority, and its private key.
#[derive(Debug, Clone)]
pub struct Certificate(Arc<CertifiedKey>);

/// Why texts are not a certificate that can be shown. What a reader of PEM says is left out: it quotes
/// lines of the file, and a key that has lost its line ends is one line.
#[derive(Debug, thiserror::Error)]
pub enum InvalidCertificate {
    #[error("there is no certificate in PEM form, which begins with -----BEGIN CERTIFICATE-----")]
    NoChain,
    #[error("the certificate cannot be read: it must be in PEM form, with line ends")]
    Chain,
    #[error(
        "the private key cannot be read: it must be in PEM form, with line ends, and not encrypted"
    )]
    Key,
    #[error("the certificate and the private key cannot be used together")]
    Pair(#[source] rustls::Error),
}

impl Certificate {
    /// Reads both from PEM, the server's own certificate first.
    ///
    /// # Errors
    /// [`InvalidCertificate`].
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, InvalidCertificate> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(|_| InvalidCertificate::Chain)?;
        if chain.is_empty() {
            return Err(InvalidCertificate::NoChain);
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| InvalidCertificate::Key)?;
        let pair = CertifiedKey::from_der(chain, key, &provider());
        let pair = pair.map_err(InvalidCertificate::Pair)?;
        Ok(Self(Arc::new(pair)))
    }

    /// The server's own certificate, in DER.
    #[must_use]
    pub fn own(&self) -> &[u8] {
        self.0.cert.first().map_or(&[], |own| own.as_ref())
    }
}

fn provider() -> CryptoProvider {
    ring::default_provider()
}

/// The certificate that is shown to whoever connects from now on.
#[derive(Debug)]
pub struct ShownCertificate(RwLock<Arc<CertifiedKey>>);

impl ShownCertificate {
    #[must_use]
    pub fn new(certificate: Certificate) -> Self {
        Self(RwLock::new(certificate.0))
    }

    /// Shows another. Connections that are open go on.
    pub fn replace(&self, certificate: Certificate) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = certificate.0;
    }

    fn shown(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// When it ends, in Unix seconds, if that can be read.
    pub(super) fn ends_at(&self) -> Option<i64> {
        let shown = self.shown();
        let (_, own) = X509Certificate::from_der(shown.cert.first()?).ok()?;
        Some(own.validity().not_after.timestamp())
    }
}

impl ResolvesServerCert for ShownCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.shown())
    }
}

/// TLS 1.3 and 1.2, with what the library holds to be safe; HTTP/2 where a client knows it.
pub(crate) fn acceptor(shown: Arc<ShownCertificate>) -> Result<TlsAcceptor, rustls::Error> {
    let config = ServerConfig::builder_with_provider(Arc::new(provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth();
    let mut config = config.with_cert_resolver(shown);
    config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Begins TLS with a client. One that speaks plain text is told so.
pub(super) async fn shake_hands(
    acceptor: &TlsAcceptor,
    mut stream: TcpStream,
) -> io::Result<TlsStream<TcpStream>> {
    let mut first = [0];
    if stream.peek(&mut first).await? == 1 && first != [HANDSHAKE] {
        refuse_plain(&mut stream).await?;
        return Err(io::Error::new(io::ErrorKind::InvalidData, "no TLS"));
    }
    acceptor.accept(stream).await
}

async fn refuse_plain(stream: &mut TcpStream) -> io::Result<()> {
    // What is not read would have the connection reset before the answer is.
    let mut unread = vec![0; PLAIN_BYTES_MAX];
    let _ = stream.read(&mut unread).await?;
    let body = ErrorBody {
        error: "this port speaks TLS, and the request came without it; its address begins with https://"
            .to_owned(),
        code: ErrorCode::InvalidRequest.as_str().to_owned(),
        advice: Advice::default(),
        request_id: new_id().to_string(),
        percent: None,
    };
    let body = serde_json::to_vec(&body).map_err(io::Error::other)?;
    let head = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&body).await?;
    stream.shutdown().await
}
