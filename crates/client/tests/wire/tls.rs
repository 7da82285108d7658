//! Servers that cannot be spoken to in TLS, told apart from those that are not there.

use std::sync::Arc;

use dayfly_client::{Client, ClientConfig, ClientError};
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Serves connections by `serve`, and asks the server at that https address for something.
async fn refused<F: Future<Output = ()> + Send>(
    serve: impl Fn(TcpStream) -> F + Send + 'static,
) -> ClientError {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            serve(stream).await;
        }
    });
    let client = Client::new(ClientConfig { url, key: None }).unwrap();
    let error = client.me().await.unwrap_err();
    server.abort();
    error
}

#[tokio::test]
async fn a_certificate_that_nobody_vouches_for_is_told() {
    let names = vec!["127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let error = refused(move |stream| {
        let acceptor = acceptor.clone();
        async move { acceptor.accept(stream).await.map_or((), drop) }
    })
    .await;
    assert!(matches!(error, ClientError::Untrusted { .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_without_tls_is_told() {
    let error = refused(async |mut stream: TcpStream| {
        let _ = stream.read(&mut [0; 1024]).await;
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    })
    .await;
    assert!(matches!(error, ClientError::NoTls { .. }), "{error:?}");
}
