//! Templates, and the server about itself.

use std::time::Duration;

use dayfly_api::{BakeTemplate, Health, Me, NodeView, Template};

use reqwest::Url;

use crate::client::{Client, decode};
use crate::error::ClientError;
use crate::{limits, retry};

impl Client {
    /// Reads all templates that the key's project sees.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn templates(&self) -> Result<Vec<Template>, ClientError> {
        self.get_json(self.address(&["v1", "templates"])).await
    }

    /// Reads one template.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when there is none.
    pub async fn template(&self, name: &str) -> Result<Template, ClientError> {
        self.get_json(self.template_address(name)?).await
    }

    /// Asks for the bake of a template and does not wait for it. Repeatable.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when there is none.
    pub async fn bake_template(&self, name: &str) -> Result<Template, ClientError> {
        let address = self.bake_address(name)?;
        let call = || self.call(self.http.post(address.clone()), limits::CALL_DEADLINE);
        decode(&retry::repeat(call).await?)
    }

    /// The same of a template in another size than its own.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `invalid_request` for a size that it cannot have, and with
    /// `quota_exceeded` when it has as many as it may.
    pub async fn bake_variant(
        &self,
        name: &str,
        size: &BakeTemplate,
    ) -> Result<Template, ClientError> {
        let address = self.bake_address(name)?;
        let call = || {
            let request = self.http.post(address.clone()).json(size);
            self.call(request, limits::CALL_DEADLINE)
        };
        decode(&retry::repeat(call).await?)
    }

    fn bake_address(&self, name: &str) -> Result<Url, ClientError> {
        let mut address = self.template_address(name)?;
        if let Ok(mut segments) = address.path_segments_mut() {
            segments.push("bake");
        }
        Ok(address)
    }

    /// Whose key this is.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `unauthorized` when the key is not known.
    pub async fn me(&self) -> Result<Me, ClientError> {
        self.get_json(self.address(&["v1", "me"])).await
    }

    /// The host's own account of itself.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn node(&self) -> Result<NodeView, ClientError> {
        self.get_json(self.address(&["v1", "node"])).await
    }

    /// What the server says about itself, within `limit` and in one attempt. Needs no key. One that
    /// is degraded refuses and says what is wrong: that is its health, and no error.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn health(&self, limit: Duration) -> Result<Health, ClientError> {
        let request = self.http.get(self.address(&["health"]));
        match self.call(request, limit).await {
            Ok(response) => decode(&response),
            Err(ClientError::Api(mut refusal)) => match refusal.health.take() {
                Some(health) => Ok(*health),
                None => Err(ClientError::Api(refusal)),
            },
            Err(error) => Err(error),
        }
    }

    /// Whether work can be sent there now, within `limit` and in one attempt. Needs no key.
    ///
    /// # Errors
    /// [`ClientError::Api`] with what it waits for.
    pub async fn ready(&self, limit: Duration) -> Result<Health, ClientError> {
        let request = self.http.get(self.address(&["ready"]));
        decode(&self.call(request, limit).await?)
    }
}
