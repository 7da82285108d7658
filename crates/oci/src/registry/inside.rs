//! Connectors for networks that the operator has opened: one for each port, because who looks a name
//! up does not see the port that is dialled then.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use dayfly_types::egress::InternalNetwork;
use reqwest::Client;

use super::client::{InvalidRegistryAccess, connector};
use super::lookup::Lookup;
use super::resolve::Addresses;

#[derive(Debug)]
pub(super) struct InsideClients {
    networks: Arc<[InternalNetwork]>,
    lookup: Lookup,
    authority: Option<Vec<u8>>,
    /// By port. There are no more than ports that the networks have.
    made: Mutex<BTreeMap<u16, Client>>,
}

impl InsideClients {
    pub(super) fn new(
        networks: Arc<[InternalNetwork]>,
        lookup: Lookup,
        authority: Option<Vec<u8>>,
    ) -> Self {
        Self {
            networks,
            lookup,
            authority,
            made: Mutex::default(),
        }
    }

    pub(super) fn addresses(&self, port: u16) -> Addresses {
        let networks = Arc::clone(&self.networks);
        Addresses::Permitted { networks, port }
    }

    pub(super) fn at(&self, port: u16) -> Result<Client, InvalidRegistryAccess> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = made.get(&port) {
            return Ok(client.clone());
        }
        let (lookup, authority) = (self.lookup.clone(), self.authority.as_deref());
        let client = connector(self.addresses(port), lookup, authority)?;
        made.insert(port, client.clone());
        Ok(client)
    }
}
