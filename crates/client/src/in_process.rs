//! A server in the same process: its service is called, and no socket is used.
//!
//! A request is the same as over a connection, with the key in its header, and passes everything
//! that the server puts in front of its routes. What needs an upgraded connection (sockets) does
//! not work.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt as _, TryFutureExt as _};
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderValue, Uri};
use http_body_util::BodyDataStream;
use reqwest::{Body, Response};
use tower::{Service, ServiceExt as _};

use crate::client::Client;
use crate::config::{ApiKey, ClientConfig, InvalidConfig, parse_url};

/// Where requests go when no connection is made. Replaced by the caller's own name for the server.
const NAMELESS: &str = "http://localhost";

type Call = dyn Fn(http::Request<Body>) -> BoxFuture<'static, Response> + Send + Sync;

/// What takes requests to a service.
#[derive(Clone)]
pub(crate) struct Carrier(Arc<Call>);

impl fmt::Debug for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Carrier(..)")
    }
}

impl Carrier {
    /// Carries a request as it would arrive over a connection: its host is in a header.
    pub(crate) async fn carry(
        &self,
        request: reqwest::Request,
        on_behalf_of: Option<IpAddr>,
    ) -> io::Result<Response> {
        let host = host_of(&request)?;
        let mut request: http::Request<Body> =
            request.try_into().map_err(|error: reqwest::Error| {
                io::Error::new(io::ErrorKind::InvalidInput, error.to_string())
            })?;
        // What else of the address a connection would have told the server.
        let scheme = request.uri().scheme().cloned();
        let path = request.uri().path_and_query().cloned();
        *request.uri_mut() = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
        request.headers_mut().insert(HOST, host);
        if let Some(scheme) = scheme {
            request.extensions_mut().insert(scheme);
        }
        if let Some(address) = on_behalf_of {
            request.extensions_mut().insert(address);
        }
        Ok((self.0)(request).await)
    }
}

fn host_of(request: &reqwest::Request) -> io::Result<HeaderValue> {
    let url = request.url();
    let host = url.host_str().unwrap_or_default();
    let text = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    HeaderValue::from_str(&text)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))
}

impl Client {
    /// A client of a server that is a service of this process. It has no key yet.
    ///
    /// # Errors
    /// [`InvalidConfig::Http`] when the HTTP library cannot be set up.
    pub fn in_process<S, B>(service: S) -> Result<Self, InvalidConfig>
    where
        S: Service<http::Request<Body>, Response = http::Response<B>, Error = Infallible>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let mut client = Self::new(ClientConfig {
            url: NAMELESS.to_owned(),
            key: None,
        })?;
        client.carrier = Some(Carrier(Arc::new(move |request| {
            let answering = service.clone().oneshot(request);
            let answered = answering.map_ok(|response| {
                Response::from(response.map(|body| Body::wrap_stream(BodyDataStream::new(body))))
            });
            answered
                .map(|outcome| match outcome {
                    Ok(response) => response,
                    Err(never) => match never {},
                })
                .boxed()
        })));
        Ok(client)
    }

    /// The same client for another caller: their key, and the address by which they know the
    /// server. Connections are shared.
    ///
    /// # Errors
    /// [`InvalidConfig`] when the address or the key cannot be used.
    pub fn for_caller(&self, url: &str, key: &ApiKey) -> Result<Self, InvalidConfig> {
        Ok(Self {
            base: parse_url(url)?,
            authorization: Some(key.header()?),
            ..self.clone()
        })
    }

    /// The same client, whose server in this process is told which address asks. Over connections it
    /// is of no consequence.
    #[must_use]
    pub fn on_behalf_of(mut self, address: Option<IpAddr>) -> Self {
        self.on_behalf_of = address;
        self
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;
    use tower::service_fn;

    use super::*;

    #[tokio::test]
    async fn a_service_gets_the_request_as_over_a_connection() {
        let service = service_fn(|request: http::Request<Body>| async move {
            assert_eq!(request.uri().to_string(), "/v1/sandboxes/work");
            assert_eq!(request.headers()[HOST], "box:7070");
            assert_eq!(request.headers()["authorization"], "Bearer df_a");
            let address = request.extensions().get::<IpAddr>().unwrap();
            assert_eq!(address.to_string(), "192.0.2.7");
            let body = r#"{"error":"no such sandbox","code":"not_found","request_id":"r"}"#;
            let response = http::Response::builder().status(404);
            Ok::<_, Infallible>(response.body(Full::new(Bytes::from(body))).unwrap())
        });
        let client = Client::in_process(service).unwrap();
        let key = ApiKey::parse("df_a").unwrap();
        let client = client.for_caller("http://box:7070", &key).unwrap();
        let client = client.on_behalf_of(Some("192.0.2.7".parse().unwrap()));
        let error = client.get_sandbox("work").await.unwrap_err();
        assert_eq!(error.api_code(), Some(dayfly_types::ErrorCode::NotFound));
    }
}
