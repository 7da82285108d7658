//! A registry of a test: TLS on a loopback port, what it gives, and what it was asked.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use dayfly_oci::Digest;
use dayfly_oci::blob::FetchBlobError;
use dayfly_oci::document::{Image, LayerBlob};
use dayfly_oci::reference::ImageReference;
use dayfly_oci::registry::{
    RegistryAccess, RegistryClient, RegistryCredentials, RegistryError, RegistryReach,
};
use dayfly_oci::source::{FindImageError, ImageOrigin};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

pub(crate) const PASSWORD: &str = "a password";

/// What one request said.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

type Answer = dyn Fn(&Seen) -> Response + Send + Sync;

pub(crate) struct Server {
    pub(crate) port: u16,
    connections: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) struct Certificate {
    pub(crate) certificate: String,
    pub(crate) key: String,
    acceptor: TlsAcceptor,
}

/// One for all servers of a test process.
pub(crate) fn certificate() -> &'static Certificate {
    static MADE: OnceLock<Certificate> = OnceLock::new();
    MADE.get_or_init(|| {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        Certificate {
            certificate: made.cert.pem(),
            key: made.signing_key.serialize_pem(),
            acceptor: TlsAcceptor::from(Arc::new(config)),
        }
    })
}

impl Server {
    pub(crate) async fn start(answer: impl Fn(&Seen) -> Response + Send + Sync + 'static) -> Self {
        Self::serve(Arc::new(answer), true).await
    }

    pub(crate) async fn start_plain(
        answer: impl Fn(&Seen) -> Response + Send + Sync + 'static,
    ) -> Self {
        Self::serve(Arc::new(answer), false).await
    }

    /// Where nothing should ever come.
    pub(crate) async fn sink() -> Self {
        Self::start(|_| status(200)).await
    }

    async fn serve(answer: Arc<Answer>, is_private: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (counter, record) = (Arc::clone(&connections), Arc::clone(&seen));
        let router = Router::new().fallback(move |request: Request| {
            let one = Seen {
                path: request.uri().path().to_owned(),
                query: request.uri().query().unwrap_or_default().to_owned(),
                headers: request.headers().clone(),
            };
            record.lock().unwrap().push(one.clone());
            std::future::ready(answer(&one))
        });
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(speak(stream, router.clone(), is_private));
            }
        });
        Self {
            port,
            connections,
            seen,
            task,
        }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn paths(&self) -> Vec<String> {
        self.seen().into_iter().map(|one| one.path).collect()
    }
}

async fn speak(stream: TcpStream, router: Router, is_private: bool) {
    let service = TowerToHyperService::new(router);
    // A client that does not trust us, or that goes away, is what some tests are about.
    if !is_private {
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        let _ = connection.await;
    } else if let Ok(stream) = certificate().acceptor.accept(stream).await {
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        let _ = connection.await;
    }
}

pub(crate) fn status(code: u16) -> Response {
    Response::builder()
        .status(code)
        .body(Body::empty())
        .unwrap()
}

pub(crate) fn redirect(to: &str) -> Response {
    let response = Response::builder().status(307).header("location", to);
    response.body(Body::empty()).unwrap()
}

pub(crate) fn challenge(text: &str) -> Response {
    let response = Response::builder()
        .status(401)
        .header("www-authenticate", text);
    response.body(Body::empty()).unwrap()
}

/// An image of one layer, in memory.
#[derive(Clone)]
pub(crate) struct Content {
    pub(crate) layer: Vec<u8>,
    pub(crate) manifest: Digest,
    documents: HashMap<String, (&'static str, Bytes)>,
}

impl Content {
    pub(crate) fn new() -> Self {
        let layer: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        let config = json!({
            "architecture": "amd64", "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": [Digest::of(&layer)]},
            "config": {"Cmd": ["/bin/app"]},
        });
        let config = config.to_string().into_bytes();
        let manifest = json!({
            "schemaVersion": 2,
            "config": described("application/vnd.oci.image.config.v1+json", &config),
            "layers": [described("application/vnd.oci.image.layer.v1.tar", &layer)],
        });
        let manifest = manifest.to_string().into_bytes();
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let mut entry = described(kind, &manifest);
        entry["platform"] = json!({"os": "linux", "architecture": "amd64"});
        let index_kind = "application/vnd.oci.image.index.v1+json";
        let index = json!({"schemaVersion": 2, "mediaType": index_kind, "manifests": [entry]});
        let index = index.to_string().into_bytes();
        let mut content = Self {
            manifest: Digest::of(&manifest),
            layer: layer.clone(),
            documents: HashMap::new(),
        };
        let manifest_name = format!("manifests/{}", Digest::of(&manifest));
        content.add(&manifest_name, kind, &manifest);
        content.add("manifests/v1", kind, &manifest);
        content.add("manifests/many", index_kind, &index);
        for blob in [&layer, &config] {
            content.add(
                &format!("blobs/{}", Digest::of(blob)),
                "application/octet-stream",
                blob,
            );
        }
        content
    }

    fn add(&mut self, name: &str, kind: &'static str, bytes: &[u8]) {
        let bytes = Bytes::copy_from_slice(bytes);
        self.documents
            .insert(format!("/v2/team/app/{name}"), (kind, bytes));
    }

    /// What an honest registry would say.
    pub(crate) fn answer(&self, seen: &Seen) -> Response {
        match self.documents.get(&seen.path) {
            Some((kind, bytes)) => ([("content-type", *kind)], bytes.clone()).into_response(),
            None => status(404),
        }
    }

    pub(crate) fn layer_path(&self) -> String {
        format!("/v2/team/app/blobs/{}", Digest::of(&self.layer))
    }
}

fn described(media_type: &str, content: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": Digest::of(content), "size": content.len()})
}

/// How the registry at a port is asked by a test.
pub(crate) struct Puller {
    pub(crate) access: RegistryAccess,
    reference: String,
    into: tempfile::TempDir,
}

impl Puller {
    /// The operator has allowed this one registry.
    pub(crate) fn of(server: &Server) -> Self {
        let port = server.port;
        let access = RegistryAccess {
            credentials: None,
            reach: RegistryReach {
                allowed: vec![("localhost".to_owned(), port)],
                networks: Vec::new(),
            },
            authority: Some(certificate().certificate.clone().into_bytes()),
            plain_loopback: false,
            resolvers: Vec::new(),
        };
        Self {
            access,
            reference: format!("localhost:{port}/team/app:v1"),
            into: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn allow(mut self, host: &str, port: u16) -> Self {
        self.access.reach.allowed.push((host.to_owned(), port));
        self
    }

    pub(crate) fn with_password(mut self) -> Self {
        self.access.credentials = Some(RegistryCredentials {
            username: "puller".to_owned(),
            password: PASSWORD.to_owned(),
        });
        self
    }

    pub(crate) fn named(mut self, version: &str) -> Self {
        let (name, _) = self.reference.rsplit_once(':').unwrap();
        self.reference = format!("{name}{version}");
        self
    }

    pub(crate) fn source(&self) -> ImageOrigin {
        let reference = ImageReference::parse(&self.reference).unwrap();
        let client = RegistryClient::new(reference, self.access.clone()).unwrap();
        ImageOrigin::Registry(Box::new(client))
    }

    pub(crate) async fn find(&self) -> Result<Image, FindImageError> {
        self.source().find().await
    }

    pub(crate) async fn refused(&self) -> RegistryError {
        let error = self.find().await.unwrap_err();
        let FindImageError::Registry(error) = error else {
            panic!("{error:?}");
        };
        error
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.into.path().join("layer")
    }

    pub(crate) async fn fetch(&self, content: &Content) -> Result<Vec<u8>, FetchBlobError> {
        let digest = Digest::of(&content.layer);
        let layer = LayerBlob {
            diff_id: digest.clone(),
            digest,
            size: content.layer.len() as u64,
            compression: dayfly_oci::document::LayerCompression::None,
        };
        let fetched = self.source().fetch(&layer, &self.file(), &|_| ()).await;
        assert_eq!(self.file().exists(), fetched.is_ok());
        fetched.map(|()| std::fs::read(self.file()).unwrap())
    }

    pub(crate) async fn fetch_refused(&self, content: &Content) -> RegistryError {
        let error = self.fetch(content).await.unwrap_err();
        let FetchBlobError::Registry(error) = error else {
            panic!("{error:?}");
        };
        error
    }
}
