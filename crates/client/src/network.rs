//! What sandboxes may reach.

use dayfly_api::{
    AllowNetwork, Network, NetworkDefault, NetworkLog, NetworkLost, NetworkPreset,
    NetworkPresetList, NetworkRecord, NetworkSuggestion, NetworkWish, RuleWish,
};
use reqwest::header::ACCEPT;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::{Client, decode};
use crate::error::ClientError;
use crate::event_stream::{EventStream, is_cut, open_again, told};
use crate::limits;
use crate::retry;

/// Which part of a record is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NetworkLogOptions {
    /// Only records with a greater sequence.
    pub after: u64,
    /// The server's own limit when absent.
    pub limit: Option<u64>,
    /// How long to wait for a first record when there is none yet; at most 25.
    pub wait_seconds: u64,
}

/// What following a record gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkItem {
    Record(Box<NetworkRecord>),
    /// This many records are gone.
    Lost(u64),
}

/// The record of a sandbox as it grows. A lost connection is made again where it was.
#[derive(Debug)]
pub struct NetworkFollow {
    client: Client,
    id: String,
    after: u64,
    stream: Option<EventStream>,
    is_over: bool,
}

impl Client {
    /// What a sandbox may reach.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn network(&self, id: &str) -> Result<Network, ClientError> {
        self.get_json(self.sandbox_address(id, &["network"])?).await
    }

    /// Replaces what a sandbox may reach, for open connections as well.
    ///
    /// # Errors
    /// [`ClientError`]. When a wider policy fails, the old one stays.
    pub async fn set_network(&self, id: &str, wish: &NetworkWish) -> Result<Network, ClientError> {
        let url = self.sandbox_address(id, &["network"])?;
        self.change(|| self.http.put(url.clone()), wish).await
    }

    /// Lets a sandbox reach more. One that could reach nothing has an allowlist then.
    ///
    /// # Errors
    /// [`ClientError`]. When it fails, the old policy stays.
    pub async fn allow_network(
        &self,
        id: &str,
        rules: Vec<RuleWish>,
    ) -> Result<Network, ClientError> {
        let url = self.sandbox_address(id, &["network", "allow"])?;
        // What is there already is not added again, so this may be repeated.
        self.change(|| self.http.post(url.clone()), &AllowNetwork { rules })
            .await
    }

    /// The smallest allowlist for the connections that were let through so far.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn suggest_network(&self, id: &str) -> Result<NetworkSuggestion, ClientError> {
        self.get_json(self.sandbox_address(id, &["network", "suggest"])?)
            .await
    }

    /// Part of the record of what a sandbox tried to reach.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn network_log(
        &self,
        id: &str,
        options: NetworkLogOptions,
    ) -> Result<NetworkLog, ClientError> {
        let mut url = self.sandbox_address(id, &["network", "log"])?;
        {
            let mut query = url.query_pairs_mut();
            query.append_pair("after", &options.after.to_string());
            if let Some(limit) = options.limit {
                query.append_pair("limit", &limit.to_string());
            }
            if options.wait_seconds > 0 {
                query.append_pair("wait_seconds", &options.wait_seconds.to_string());
            }
        }
        self.get_json(url).await
    }

    /// Follows the record of a sandbox from behind `after` on.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when there is no such sandbox.
    pub async fn follow_network(&self, id: &str, after: u64) -> Result<NetworkFollow, ClientError> {
        let mut follow = NetworkFollow {
            client: self.clone(),
            id: id.to_owned(),
            after,
            stream: None,
            is_over: false,
        };
        follow.stream = Some(follow.open().await?);
        Ok(follow)
    }

    /// What a new sandbox may reach when its create does not say.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn network_default(&self) -> Result<NetworkDefault, ClientError> {
        self.get_json(self.address(&["v1", "network-default"]))
            .await
    }

    /// Replaces what a new sandbox may reach when its create does not say.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn set_network_default(
        &self,
        wish: &NetworkWish,
    ) -> Result<NetworkDefault, ClientError> {
        let url = self.address(&["v1", "network-default"]);
        self.change(|| self.http.put(url.clone()), wish).await
    }

    /// Lists of hosts that a rule can name.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn network_presets(&self) -> Result<Vec<NetworkPreset>, ClientError> {
        let url = self.address(&["v1", "network-presets"]);
        let list: NetworkPresetList = self.get_json(url).await?;
        Ok(list.items)
    }

    async fn change<T: DeserializeOwned>(
        &self,
        request: impl Fn() -> reqwest::RequestBuilder,
        body: &(impl Serialize + Sync),
    ) -> Result<T, ClientError> {
        let call = || self.call(request().json(body), limits::CALL_DEADLINE);
        decode(&retry::repeat(call).await?)
    }
}

impl NetworkFollow {
    /// The next record; `None` when the sandbox is gone.
    ///
    /// # Errors
    /// [`ClientError`] when the server is away for longer than a minute.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped before it is ready.
    pub async fn next(&mut self) -> Result<Option<NetworkItem>, ClientError> {
        while !self.is_over {
            let Some(stream) = &mut self.stream else {
                let opened = open_again(async || self.open().await).await;
                match opened {
                    Ok(stream) => self.stream = Some(stream),
                    // It was deleted while nobody listened.
                    Err(error) if error.api_code() == Some(dayfly_types::ErrorCode::NotFound) => {
                        self.is_over = true;
                    }
                    Err(error) => return Err(error),
                }
                continue;
            };
            let event = match stream.next().await {
                Ok(event) => event,
                Err(error) if is_cut(&error) => {
                    self.stream = None;
                    continue;
                }
                Err(error) => return Err(error),
            };
            match event.name.as_str() {
                "record" => {
                    let record: NetworkRecord = decode(event.data.as_bytes())?;
                    self.after = self.after.max(record.sequence);
                    return Ok(Some(NetworkItem::Record(Box::new(record))));
                }
                "lost" => {
                    let lost: NetworkLost = decode(event.data.as_bytes())?;
                    return Ok(Some(NetworkItem::Lost(lost.count)));
                }
                "end" => self.is_over = true,
                "error" => {
                    self.is_over = true;
                    return Err(told(&event.data)?);
                }
                // A newer server may say more.
                _ => {}
            }
        }
        Ok(None)
    }

    async fn open(&self) -> Result<EventStream, ClientError> {
        let mut url = self.client.sandbox_address(&self.id, &["network", "log"])?;
        url.query_pairs_mut()
            .append_pair("after", &self.after.to_string());
        let request = self.client.http.get(url);
        let request = request.header(ACCEPT, "text/event-stream");
        let response = self.client.open(request, limits::CALL_DEADLINE).await?;
        Ok(EventStream::new(response, self.client.url()))
    }
}
