//! A caller of the public API, over one connection that is kept.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use crate::control::OwnControl;

const DEADLINE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub(crate) struct Api {
    http: Client<HttpConnector, Full<Bytes>>,
    address: SocketAddr,
    metrics: SocketAddr,
    key: String,
}

/// What came back, and how long it took to the last byte.
#[derive(Debug)]
pub(crate) struct Timed {
    pub(crate) body: Bytes,
    pub(crate) took: Duration,
}

impl Timed {
    fn json(&self) -> Result<Value> {
        Ok(serde_json::from_slice(&self.body)?)
    }
}

impl Api {
    pub(crate) fn of(control: &OwnControl) -> Self {
        Self {
            http: Client::builder(TokioExecutor::new()).build_http(),
            address: control.address,
            metrics: control.metrics,
            key: control.key.clone(),
        }
    }

    async fn send(
        &self,
        method: Method,
        to: SocketAddr,
        path: &str,
        body: Option<Value>,
    ) -> Result<Timed> {
        let text = body.map_or_else(Bytes::new, |body| body.to_string().into());
        let request = Request::builder()
            .method(method)
            .uri(format!("http://{to}{path}"))
            .header("authorization", format!("Bearer {}", self.key))
            .header("content-type", "application/json")
            .body(Full::new(text))?;
        let began = Instant::now();
        let exchange = async {
            let response = self.http.request(request).await?;
            let status = response.status();
            let body = response.into_body().collect().await?.to_bytes();
            anyhow::Ok((status, body))
        };
        let (status, body) = tokio::time::timeout(DEADLINE, exchange).await??;
        let took = began.elapsed();
        ensure!(
            status.is_success(),
            "{path}: {status} {}",
            String::from_utf8_lossy(&body)
        );
        Ok(Timed { body, took })
    }

    /// Makes a sandbox, and gives its id.
    pub(crate) async fn create(&self, ttl_seconds: u64) -> Result<(String, Duration)> {
        let wish = json!({ "ttl_seconds": ttl_seconds });
        let made = self
            .send(Method::POST, self.address, "/v1/sandboxes", Some(wish))
            .await?;
        let id = made.json()?["id"].as_str().context("no id")?.to_owned();
        Ok((id, made.took))
    }

    pub(crate) async fn get(&self, id: &str) -> Result<Duration> {
        let path = format!("/v1/sandboxes/{id}");
        let read = self.send(Method::GET, self.address, &path, None).await?;
        Ok(read.took)
    }

    pub(crate) async fn exec(&self, id: &str) -> Result<Duration> {
        let path = format!("/v1/sandboxes/{id}/exec");
        let wish = json!({ "cmd": ["true"] });
        let ran = self
            .send(Method::POST, self.address, &path, Some(wish))
            .await?;
        ensure!(ran.json()?["exit_code"] == 0, "true failed: {:?}", ran.body);
        Ok(ran.took)
    }

    /// The first page of a list.
    pub(crate) async fn page(&self, length: usize) -> Result<(Vec<String>, Duration)> {
        let path = format!("/v1/sandboxes?limit={length}");
        let page = self.send(Method::GET, self.address, &path, None).await?;
        let list = page.json()?;
        let items = list["items"].as_array().context("no items")?;
        let ids = items.iter().filter_map(|item| item["id"].as_str());
        Ok((ids.map(str::to_owned).collect(), page.took))
    }

    /// All pages of the list, of the longest that there may be.
    pub(crate) async fn all(&self) -> Result<usize> {
        let (mut found, mut cursor) = (0, String::new());
        loop {
            let path = format!("/v1/sandboxes?limit=1000{cursor}");
            let page = self.send(Method::GET, self.address, &path, None).await?;
            let list = page.json()?;
            found += list["items"].as_array().context("no items")?.len();
            match list["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(found),
            }
        }
    }

    pub(crate) async fn delete(&self, id: &str) -> Result<Duration> {
        let path = format!("/v1/sandboxes/{id}");
        let gone = self.send(Method::DELETE, self.address, &path, None).await?;
        Ok(gone.took)
    }

    pub(crate) async fn metrics(&self) -> Result<Duration> {
        let read = self
            .send(Method::GET, self.metrics, "/metrics", None)
            .await?;
        Ok(read.took)
    }
}
