//! Services in sandboxes, and links to them.

use std::time::Duration;

use dayfly_api::{CreatePortLink, Port, PortLink, PortLinkList, PortList, WaitForPort};
use reqwest::Url;

use crate::client::{Client, decode};
use crate::error::ClientError;
use crate::limits;

impl Client {
    /// What listens in a sandbox now. One that is hibernated has nothing, and is not woken.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn ports(&self, id: &str) -> Result<Vec<Port>, ClientError> {
        let list: PortList = self.get_json(self.sandbox_address(id, &["ports"])?).await?;
        Ok(list.ports)
    }

    /// Waits until something in a sandbox listens on a port. Wakes one that is hibernated.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `timeout` when nothing listens after `limit`.
    pub async fn wait_for_port(
        &self,
        id: &str,
        port: u16,
        limit: Duration,
    ) -> Result<Port, ClientError> {
        let url = self.sandbox_address(id, &["ports", &port.to_string(), "wait"])?;
        let request = WaitForPort {
            timeout_ms: Some(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
        };
        let call = self.http.post(url).json(&request);
        let deadline = limit.saturating_add(limits::CALL_DEADLINE);
        decode(&self.call(call, deadline).await?)
    }

    /// The address of a port for programs that send the key. For those who have none, see
    /// [`Client::create_port_link`]. Nothing is sent.
    ///
    /// # Errors
    /// [`ClientError::InvalidName`] when the id is none.
    pub fn port_url(&self, id: &str, port: u16) -> Result<String, ClientError> {
        let port = port.to_string();
        let url = self.sandbox_address(id, &["ports", &port, "http", ""])?;
        Ok(url.into())
    }

    /// Opens a port to those who have the link's token, or to anybody. Never sent twice: a second
    /// link would stay that nobody knows of.
    ///
    /// # Errors
    /// [`ClientError`]; after [`ClientError::Timeout`] and [`ClientError::Lost`] there may be a
    /// link.
    pub async fn create_port_link(
        &self,
        id: &str,
        port: u16,
        request: &CreatePortLink,
    ) -> Result<PortLink, ClientError> {
        let url = self.links_address(id, port)?;
        let call = self.http.post(url).json(request);
        decode(&self.call(call, limits::CALL_DEADLINE).await?)
    }

    /// The links of a port that work now, without their tokens.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn port_links(&self, id: &str, port: u16) -> Result<Vec<PortLink>, ClientError> {
        let list: PortLinkList = self.get_json(self.links_address(id, port)?).await?;
        Ok(list.items)
    }

    /// The links of all ports of a sandbox that work now, without their tokens.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn sandbox_links(&self, id: &str) -> Result<Vec<PortLink>, ClientError> {
        let list: PortLinkList = self.get_json(self.sandbox_address(id, &["links"])?).await?;
        Ok(list.items)
    }

    /// Ends a link, and every connection that came by it.
    ///
    /// # Errors
    /// [`ClientError::Api`] with `not_found` when there is none.
    pub async fn revoke_port_link(
        &self,
        id: &str,
        port: u16,
        link: &str,
    ) -> Result<(), ClientError> {
        let port = port.to_string();
        // Escaped as a whole, except that dots would name another object.
        let link = link.replace('.', "");
        self.delete(self.sandbox_address(id, &["ports", &port, "links", &link])?)
            .await
    }

    fn links_address(&self, id: &str, port: u16) -> Result<Url, ClientError> {
        self.sandbox_address(id, &["ports", &port.to_string(), "links"])
    }
}
