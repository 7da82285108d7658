//! What every part of one control plane shares.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dayfly_node_api::NodeApi;
use dayfly_trace::{ExportSettings, StartExportError};
use dayfly_types::egress::InternalNetworks;
use dayfly_types::{CellName, NodeId};
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use crate::admission::limit::Limits;
use crate::admission::rates::Rates;
use crate::admission::turns::Turns;
use crate::audit::Audit;
use crate::build::running::Builds;
use crate::conditions::{Condition, Conditions};
use crate::config::ReconcileSettings;
use crate::exec::background::Followed;
use crate::gateway::{Gateway, GatewaySettings};
use crate::http::{ConnectionLimits, Connections};
use crate::metrics::Metrics;
use crate::node_contact::{NodeContact, Patience};
use crate::readiness::Readiness;
use crate::sandbox::known_environments::KnownEnvironments;
use crate::store::{KeyRow, KnownKey, LOCAL_PREFIX, Store, StoreError};
use crate::store_check::StoreCheck;
use crate::template::failures::{self, FailuresTold};
use crate::template::strays::Strays;
use crate::tenancy::key::KeyHash;
use crate::tenancy::key_ends::{KeyEnd, KeyEnds};
use crate::tenancy::sign_in::SignIn;
use crate::time::now_ms;
use crate::trace::{TracedNode, Tracer};
use crate::view::LiveView;

/// A key that was revoked in another process works for at most this long.
const KEY_CACHE_AGE_MAX: Duration = Duration::from_millis(500);
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
    pub(crate) followed: Arc<Followed>,
    /// Woken when the node has not confirmed a network policy.
    pub(crate) unconfirmed_network: Notify,
    pub(crate) gateway: Gateway,
    pub(crate) audit: Audit,
    /// Why it is not well, when it is not.
    pub(crate) conditions: Conditions,
    pub(crate) node_contact: NodeContact,
    pub(crate) store_check: StoreCheck,
    pub(crate) readiness: Readiness,
    pub(crate) rates: Rates,
    pub(crate) key_ends: KeyEnds,
    pub(crate) connections: Arc<Connections>,
    /// Held from the look at what a project has of them to the making of one more.
    pub(crate) volume_turns: Turns,
    pub(crate) snapshot_turns: Turns,
    /// Held while the node takes an order in, or gives one up.
    pub(crate) template_turns: Turns,
    pub(crate) failures_told: FailuresTold,
    pub(crate) strays: Strays,
    pub(crate) environments: KnownEnvironments,
    pub(crate) metrics: Metrics,
    /// Builds of templates.
    pub(crate) builds: Arc<Builds>,
    /// What of private space the operator has opened, and to which projects.
    pub(crate) internal_networks: InternalNetworks,
    /// How people sign in, if they can.
    pub(crate) sign_in: Option<SignIn>,
    /// There when somebody collects traces.
    pub(crate) tracer: Option<Tracer>,
    keys: Mutex<Keys>,
    local_key: Option<KeyHash>,
}

/// What is known of a key.
#[derive(Debug)]
pub(crate) enum LookedUp {
    Usable(Box<KnownKey>, KeyEnd),
    /// Revoked or expired.
    Ended(Box<KeyRow>),
    Unknown,
}

/// Keys that were looked up lately.
#[derive(Debug, Default)]
struct Keys {
    cached: HashMap<KeyHash, CachedKey>,
    /// Another number after every change of a key: what was read before it is not kept.
    changes: u64,
}

#[derive(Debug, Clone)]
struct CachedKey {
    row: KnownKey,
    read_at: Instant,
}

impl Control {
    #[must_use]
    pub fn new(store: Store, node: Arc<dyn NodeApi>, cell: CellName, node_id: NodeId) -> Self {
        let conditions = Conditions::default();
        let detail = "the node process has not answered since this process started";
        conditions.set(Condition::NodeUnreachable, detail.to_owned());
        Self {
            store,
            node,
            view: LiveView::default(),
            limits: Limits::default(),
            cell,
            node_id,
            reconcile: ReconcileSettings::default(),
            tasks: TaskTracker::new(),
            followed: Arc::default(),
            unconfirmed_network: Notify::new(),
            gateway: Gateway::default(),
            audit: Audit::default(),
            conditions,
            node_contact: NodeContact::default(),
            store_check: StoreCheck::default(),
            readiness: Readiness::default(),
            rates: Rates::default(),
            key_ends: KeyEnds::default(),
            connections: Arc::default(),
            volume_turns: Turns::new(1),
            snapshot_turns: Turns::new(1),
            template_turns: Turns::new(1),
            failures_told: FailuresTold::new(failures::RETRY_AFTER),
            strays: Strays::default(),
            environments: KnownEnvironments::default(),
            metrics: Metrics::default(),
            builds: Arc::new(Builds::new(std::env::temp_dir())),
            internal_networks: InternalNetworks::default(),
            sign_in: None,
            tracer: None,
            keys: Mutex::default(),
            local_key: None,
        }
    }

    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    #[must_use]
    pub fn with_internal_networks(mut self, networks: InternalNetworks) -> Self {
        self.internal_networks = networks;
        self
    }

    /// Traces requests, and sends the traces there.
    ///
    /// # Errors
    /// [`StartExportError`].
    pub fn with_traces(mut self, settings: ExportSettings) -> Result<Self, StartExportError> {
        self.tracer = Some(Tracer::start(settings)?);
        self.node = Arc::new(TracedNode(self.node));
        Ok(self)
    }

    #[must_use]
    pub fn with_sign_in(mut self, sign_in: Option<SignIn>) -> Self {
        self.sign_in = sign_in;
        self
    }

    /// Where the files of build contexts are kept while they are built.
    #[must_use]
    pub fn with_build_directory(mut self, directory: PathBuf) -> Self {
        self.builds = Arc::new(Builds::new(directory));
        self
    }

    #[must_use]
    pub fn with_connections(mut self, limits: ConnectionLimits) -> Self {
        self.connections = Arc::new(Connections::new(limits));
        self
    }

    #[must_use]
    pub fn with_reconcile(mut self, settings: ReconcileSettings) -> Self {
        self.reconcile = settings;
        self
    }

    /// The one key of the people on this host that works, whatever the database says: it may not
    /// have been possible to write down that another one ended.
    #[must_use]
    pub fn with_local_key(mut self, key: Option<KeyHash>) -> Self {
        self.local_key = key;
        self
    }

    #[must_use]
    pub fn with_gateway(mut self, settings: GatewaySettings) -> Self {
        self.gateway = Gateway::new(settings);
        self
    }

    /// Why the node cannot be counted on, when it cannot.
    pub(crate) fn node_outage(&self) -> Option<String> {
        let patience = Patience(self.reconcile.node_outage_max);
        self.node_contact.outage(Instant::now(), patience)
    }

    /// The key that a caller presented, when it may be used now.
    ///
    /// # Errors
    /// [`StoreError`] when the database cannot be read.
    pub async fn find_key(&self, presented: &str) -> Result<Option<KnownKey>, StoreError> {
        Ok(match self.look_up_key(presented).await? {
            LookedUp::Usable(known, _) => Some(*known),
            LookedUp::Ended(_) | LookedUp::Unknown => None,
        })
    }

    /// What is known of the key that a caller presented, and when it ends.
    ///
    /// # Errors
    /// [`StoreError`] when the database cannot be read.
    pub(crate) async fn look_up_key(&self, presented: &str) -> Result<LookedUp, StoreError> {
        let Some(hash) = KeyHash::of(presented) else {
            return Ok(LookedUp::Unknown);
        };
        loop {
            let changes = self.keys().changes;
            let found = self.look_up_hash(hash, changes).await?;
            // A key that was revoked between the look and the taking of its end would never end.
            let is_usable = matches!(found, LookedUp::Usable(..));
            if !is_usable || self.keys().changes == changes {
                return Ok(found);
            }
        }
    }

    async fn look_up_hash(&self, hash: KeyHash, changes: u64) -> Result<LookedUp, StoreError> {
        let row = match self.cached_key(hash) {
            Some(row) => row,
            None => match self.store.key_by_hash(&hash.to_hex()).await? {
                Some(row) => row,
                None => return Ok(LookedUp::Unknown),
            },
        };
        let key = &row.key;
        let stored = KeyHash::from_hex(&key.hash).map_err(|_| StoreError::Corrupt {
            table: "api_keys",
            column: "hash",
        })?;
        if !stored.matches(hash) {
            return Ok(LookedUp::Unknown);
        }
        let expired = key.expires_at_ms.is_some_and(|expiry| expiry <= now_ms());
        let is_replaced = key.prefix == LOCAL_PREFIX && self.local_key != Some(hash);
        // Whatever the database says: the end of it may not have been possible to write down.
        let person = key.person.as_ref();
        let is_under_others = person.is_some_and(|person| person.sign_in != self.sign_in_digest());
        if key.revoked_at_ms.is_some() || expired || is_replaced || is_under_others {
            return Ok(LookedUp::Ended(Box::new(row.key)));
        }
        self.cache_key(hash, &row, changes);
        let end = self.key_ends.of(&key.prefix, key.expires_at_ms);
        Ok(LookedUp::Usable(Box::new(row), end))
    }

    /// Of the settings under which people sign in; that of none is the empty text.
    pub(crate) fn sign_in_digest(&self) -> &str {
        self.sign_in.as_ref().map_or("", SignIn::digest)
    }

    fn keys(&self) -> MutexGuard<'_, Keys> {
        // Every change leaves the map whole.
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks every key up again, after one was changed.
    pub(crate) fn forget_keys(&self) {
        let mut keys = self.keys();
        keys.cached.clear();
        keys.changes += 1;
    }

    fn cached_key(&self, hash: KeyHash) -> Option<KnownKey> {
        let keys = self.keys();
        let cached = keys.cached.get(&hash)?;
        (cached.read_at.elapsed() < KEY_CACHE_AGE_MAX).then(|| cached.row.clone())
    }

    fn cache_key(&self, hash: KeyHash, row: &KnownKey, changes: u64) {
        let mut keys = self.keys();
        let cached = keys.cached.get(&hash);
        let is_fresh = cached.is_some_and(|key| key.read_at.elapsed() < KEY_CACHE_AGE_MAX);
        if is_fresh || keys.changes != changes {
            return;
        }
        if keys.cached.len() >= KEY_CACHE_ENTRIES_MAX {
            keys.cached.clear();
        }
        let read_at = Instant::now();
        let row = row.clone();
        keys.cached.insert(hash, CachedKey { row, read_at });
    }
}
