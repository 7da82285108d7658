//! Finds an image in a registry.

use std::path::Path;
use std::sync::{Arc, Mutex};

use dayfly_types::limits::{
    IMAGE_DOCUMENT_BYTES_MAX, REGISTRY_CONNECT_DEADLINE, REGISTRY_DOCUMENT_DEADLINE,
    REGISTRY_STALL_MAX,
};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client};
use url::Url;

use super::inside::InsideClients;
use super::lookup::Lookup;
use super::request::{Asker, Failure, Question, Tries, is_loopback, read_body, shown};
use super::resolve::{Addresses, CheckedResolver};
use super::transfer::transfer;
use super::{RegistryAccess, RegistryError};
use crate::blob::FetchBlobError;
use crate::digest::Digest;
use crate::document::{Descent, Descriptor, Image, InvalidDocument, LayerBlob, Step};
use crate::reference::ImageReference;
use crate::source::FindImageError;

/// All that can lead to an image, so that a registry gives it as it is.
const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, \
    application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, \
    application/vnd.docker.distribution.manifest.v2+json";
const CONTENT_DIGEST: &str = "docker-content-digest";

/// Why a registry cannot be asked as somebody wants.
#[derive(Debug, thiserror::Error)]
pub enum InvalidRegistryAccess {
    #[error("the certificates of the registry's authority cannot be used")]
    Authority(#[source] reqwest::Error),
    #[error("the name for the registry has a colon or a control character in it")]
    Username,
    #[error("the host of the registry cannot be used")]
    Host,
    #[error("the DNS servers cannot be used")]
    Resolvers(#[source] std::io::Error),
}

/// Gives one image of one registry.
#[derive(Debug)]
pub struct RegistryClient {
    reference: ImageReference,
    pub(super) asker: Asker,
}

impl RegistryClient {
    /// # Errors
    /// [`InvalidRegistryAccess`]
    pub fn new(
        reference: ImageReference,
        access: RegistryAccess,
    ) -> Result<Self, InvalidRegistryAccess> {
        if let Some(credentials) = &access.credentials {
            let is_bad = |letter: char| letter == ':' || letter.is_control();
            if credentials.username.contains(is_bad) {
                return Err(InvalidRegistryAccess::Username);
            }
        }
        let authority = access.authority.as_deref();
        let lookup = Lookup::new(&access.resolvers).map_err(InvalidRegistryAccess::Resolvers)?;
        let make = |addresses| connector(addresses, lookup.clone(), authority);
        let at = |scheme: &str| Url::parse(&format!("{scheme}://{}/v2/", reference.api_host()));
        let private = at("https").map_err(|_| InvalidRegistryAccess::Host)?;
        let registry = match access.plain_loopback && is_loopback(&private) {
            true => at("http").map_err(|_| InvalidRegistryAccess::Host)?,
            false => private,
        };
        let asker = Asker {
            outside: make(Addresses::Outside)?,
            allowed: make(Addresses::Any)?,
            loopback: make(Addresses::Loopback)?,
            inside: InsideClients::new(
                Arc::from(access.reach.networks.as_slice()),
                lookup.clone(),
                access.authority.clone(),
            ),
            scope: format!("repository:{}:pull", reference.repository()),
            reach: access.reach,
            credentials: access.credentials,
            registry,
            authorization: Mutex::new(None),
        };
        Ok(Self { reference, asker })
    }

    /// What is pulled.
    #[must_use]
    pub fn reference(&self) -> &ImageReference {
        &self.reference
    }

    pub(crate) async fn find(&self) -> Result<Image, FindImageError> {
        let question = self.question("manifests", &self.reference.version());
        let (document, headers) = self.document(&question).await?;
        let mut digest = Digest::of(&document);
        self.check_digest(self.reference.digest(), &digest)?;
        self.check_name(&headers, &digest)?;
        let mut descent = Descent::default();
        let mut step = descent.step(&document, announced(&headers))?;
        loop {
            match step {
                Step::Down(next) => {
                    let document = self.described("manifests", &next).await?;
                    step = descent.step(&document, &next.media_type)?;
                    digest = next.digest;
                }
                Step::Arrived(manifest) => {
                    let config = self.described("blobs", &manifest.config).await?;
                    return Ok(manifest.complete(digest, &config)?);
                }
            }
        }
    }

    pub(crate) async fn fetch(
        &self,
        layer: &LayerBlob,
        into: &Path,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), FetchBlobError> {
        let question = self.question("blobs", &layer.digest.to_string());
        transfer(&self.asker, question, layer, into, progress).await
    }

    fn question(&self, kind: &str, version: &str) -> Question {
        let mut url = self.asker.registry.clone();
        // Grammar of the reference: nothing in it means something else in a path.
        url.set_path(&format!(
            "/v2/{}/{kind}/{version}",
            self.reference.repository()
        ));
        Question {
            url,
            accept: (kind == "manifests").then_some(ACCEPTED),
            from: None,
        }
    }

    /// A document of which the one before has said what it is.
    async fn described(
        &self,
        kind: &str,
        descriptor: &Descriptor,
    ) -> Result<Vec<u8>, FindImageError> {
        if descriptor.size > IMAGE_DOCUMENT_BYTES_MAX {
            return Err(InvalidDocument::TooLong.into());
        }
        let question = self.question(kind, &descriptor.digest.to_string());
        let (document, headers) = self.document(&question).await?;
        let found = Digest::of(&document);
        self.check_digest(Some(&descriptor.digest), &found)?;
        if kind == "manifests" {
            self.check_name(&headers, &found)?;
        }
        if document.len() as u64 != descriptor.size {
            let (host, wanted) = (self.host(), descriptor.size);
            return Err(RegistryError::OtherSize { host, wanted }.into());
        }
        Ok(document)
    }

    fn host(&self) -> String {
        shown(&self.asker.registry)
    }

    async fn document(&self, question: &Question) -> Result<(Vec<u8>, HeaderMap), RegistryError> {
        let within = tokio::time::timeout(REGISTRY_DOCUMENT_DEADLINE, async {
            let mut tries = Tries::default();
            loop {
                match self.try_document(question).await {
                    Ok(document) => return Ok(document),
                    Err(failure) => tries.wait(failure).await?,
                }
            }
        });
        let slow = |_| RegistryError::Slow { host: self.host() };
        within.await.map_err(slow)?
    }

    async fn try_document(&self, question: &Question) -> Result<(Vec<u8>, HeaderMap), Failure> {
        let response = self.asker.get(question).await?;
        let headers = response.headers().clone();
        let most = usize::try_from(IMAGE_DOCUMENT_BYTES_MAX).unwrap_or(usize::MAX);
        let body = read_body(response, most).await?;
        let host = self.host();
        Ok((body.ok_or(RegistryError::TooLong { host })?, headers))
    }

    fn check_digest(&self, wanted: Option<&Digest>, found: &Digest) -> Result<(), RegistryError> {
        match wanted.filter(|wanted| *wanted != found) {
            None => Ok(()),
            Some(wanted) => Err(RegistryError::OtherContent {
                host: self.host(),
                wanted: wanted.clone(),
                found: found.clone(),
            }),
        }
    }

    /// A registry that contradicts itself has given something else than it has.
    fn check_name(&self, headers: &HeaderMap, found: &Digest) -> Result<(), RegistryError> {
        for value in headers.get_all(CONTENT_DIGEST) {
            let named = String::from_utf8_lossy(value.as_bytes());
            if named != found.to_string() {
                return Err(RegistryError::OtherName {
                    host: self.host(),
                    named: named.chars().take(100).collect(),
                    found: found.clone(),
                });
            }
        }
        Ok(())
    }
}

/// What a registry says that a document is, without parameters.
fn announced(headers: &HeaderMap) -> &str {
    let kind = headers.get(CONTENT_TYPE);
    let kind = kind
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim()
}

pub(super) fn connector(
    addresses: Addresses,
    lookup: Lookup,
    authority: Option<&[u8]>,
) -> Result<Client, InvalidRegistryAccess> {
    // Refused when the program has chosen one, which is then used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let is_https_only = addresses != Addresses::Loopback;
    let mut builder = Client::builder()
        .user_agent(concat!("dayflyd/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(REGISTRY_CONNECT_DEADLINE)
        .read_timeout(REGISTRY_STALL_MAX)
        .redirect(Policy::none())
        // A proxy of the environment would dial where we cannot look.
        .no_proxy()
        .https_only(is_https_only)
        .dns_resolver(CheckedResolver {
            which: addresses,
            lookup,
        });
    if let Some(authority) = authority {
        let certificates = Certificate::from_pem_bundle(authority);
        let certificates = certificates.map_err(InvalidRegistryAccess::Authority)?;
        builder = builder.tls_certs_merge(certificates);
    }
    builder.build().map_err(InvalidRegistryAccess::Authority)
}
