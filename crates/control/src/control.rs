//! What every part of one control plane shares.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use dayfly_node_api::NodeApi;
use dayfly_types::{CellName, NodeId};
use tokio_util::task::TaskTracker;

use crate::config::ReconcileSettings;
use crate::key::KeyHash;
use crate::limit::Limits;
use crate::store::{KeyRow, Store, StoreError};
use crate::time::now_ms;
use crate::view::LiveView;

/// A revoked key works for at most this long.
const KEY_CACHE_AGE_MAX: Duration = Duration::from_secs(5);
const KEY_CACHE_ENTRIES_MAX: usize = 4096;

/// One control plane.
#[derive(Debug)]
pub struct Control {
    pub store: Store,
    pub node: Arc<dyn NodeApi>,
    pub view: LiveView,
    pub limits: Limits,
    pub cell: CellName,
    pub node_id: NodeId,
    pub reconcile: ReconcileSettings,
    /// Work that outlives the request that asked for it.
    pub(crate) tasks: TaskTracker,
    keys: Mutex<HashMap<KeyHash, CachedKey>>,
}

#[derive(Debug, Clone)]
struct CachedKey {
    row: KeyRow,
    read_at: Instant,
}

impl Control {
    #[must_use]
    pub fn new(store: Store, node: Arc<dyn NodeApi>, cell: CellName, node_id: NodeId) -> Self {
        Self {
            store,
            node,
            view: LiveView::default(),
            limits: Limits::default(),
            cell,
            node_id,
            reconcile: ReconcileSettings::default(),
            tasks: TaskTracker::new(),
            keys: Mutex::default(),
        }
    }

    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    #[must_use]
    pub fn with_reconcile(mut self, settings: ReconcileSettings) -> Self {
        self.reconcile = settings;
        self
    }

    /// The key that a caller presented, when it may be used now.
    ///
    /// # Errors
    /// [`StoreError`] when the database cannot be read.
    pub async fn find_key(&self, presented: &str) -> Result<Option<KeyRow>, StoreError> {
        let Some(hash) = KeyHash::of(presented) else {
            return Ok(None);
        };
        let row = match self.cached_key(hash) {
            Some(row) => row,
            None => match self.store.key_by_hash(&hash.to_hex()).await? {
                Some(row) => row,
                None => return Ok(None),
            },
        };
        let stored = KeyHash::from_hex(&row.hash).map_err(|_| StoreError::Corrupt {
            table: "api_keys",
            column: "hash",
        })?;
        let expired = row.expires_at_ms.is_some_and(|expiry| expiry <= now_ms());
        if !stored.matches(hash) || row.revoked_at_ms.is_some() || expired {
            return Ok(None);
        }
        self.cache_key(hash, &row);
        Ok(Some(row))
    }

    fn cached_key(&self, hash: KeyHash) -> Option<KeyRow> {
        let keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = keys.get(&hash)?;
        (cached.read_at.elapsed() < KEY_CACHE_AGE_MAX).then(|| cached.row.clone())
    }

    fn cache_key(&self, hash: KeyHash, row: &KeyRow) {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = keys
            .get(&hash)
            .is_some_and(|key| key.read_at.elapsed() < KEY_CACHE_AGE_MAX);
        if fresh {
            return;
        }
        if keys.len() >= KEY_CACHE_ENTRIES_MAX {
            keys.clear();
        }
        keys.insert(
            hash,
            CachedKey {
                row: row.clone(),
                read_at: Instant::now(),
            },
        );
    }
}
