//! The sandbox that a client has without asking for one: made at its first use, and deleted with
//! the client, or kept by a name.
//!
//! A client's own sandbox has a short time to live, which is renewed while the client is there. One
//! that vanishes renews nothing, so that nothing is left of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dayfly_api::{ChangeLifecycle, CreateSandbox, OnTimeout, RuleWish};
use dayfly_client::Client;
use dayfly_types::ErrorCode;
use dayfly_types::limits::{
    MCP_CREATED_MAX, MCP_HIBERNATE_SECONDS, MCP_LEASE_SECONDS_DEFAULT, MCP_SNAPSHOT_RETAIN_SECONDS,
};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::error::{ToolError, told};
use crate::named_sandbox::named;
use crate::tools::unless_cancelled;

/// The template with interpreters that keep their state, which `run_code` needs.
const TEMPLATE: &str = "code-interpreter";
/// A lease is renewed so often within its length that two failures do not end it.
const RENEWALS: u64 = 3;

/// What sandboxes of a client are made like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeSettings {
    pub kind: HomeKind,
    pub template: String,
    /// What they may reach; absent: what the project's default says.
    pub allow: Option<Vec<String>>,
    pub reach: SandboxReach,
}

/// Which sandboxes a client may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxReach {
    /// Its own, and those that it created: a model that was talked into it does nothing to others,
    /// and does not leave its network by way of them.
    OwnOnly,
    /// Every one that its key may use.
    Project,
}

/// Whose the sandbox is that a client has without asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HomeKind {
    /// The client's own. Deleted with the client, or so many seconds after it vanished.
    Own { lease_seconds: u64 },
    /// The project's, by a name; made when it is not there, and never deleted.
    Named {
        name: String,
        ttl_seconds: Option<u64>,
    },
}

impl Default for HomeSettings {
    fn default() -> Self {
        Self {
            kind: HomeKind::Own {
                lease_seconds: MCP_LEASE_SECONDS_DEFAULT,
            },
            template: TEMPLATE.to_owned(),
            allow: None,
            reach: SandboxReach::OwnOnly,
        }
    }
}

impl HomeSettings {
    pub(crate) fn wish(&self) -> CreateSandbox {
        let labels = BTreeMap::from([("client".to_owned(), "mcp".to_owned())]);
        let rules = self.allow.as_ref();
        CreateSandbox {
            template: Some(self.template.clone()),
            metadata: Some(labels),
            idle_seconds: Some(MCP_HIBERNATE_SECONDS),
            on_timeout: Some(OnTimeout::Hibernate),
            egress_allowlist: rules.map(|hosts| hosts.iter().map(RuleWish::text).collect()),
            ..CreateSandbox::default()
        }
    }
}

/// The sandbox of one client.
#[derive(Debug)]
pub(crate) struct Home {
    settings: HomeSettings,
    /// Held by whoever makes it, so that two first calls make one.
    making: tokio::sync::Mutex<()>,
    occupied: Mutex<Option<Occupied>>,
    /// Ids of those that the client asked for, the newest last.
    created: Mutex<VecDeque<String>>,
}

/// A sandbox that is there.
#[derive(Debug)]
struct Occupied {
    id: String,
    client: Client,
    /// Those that were taken of it, which go with it.
    snapshots: Vec<String>,
    renewal: Option<AbortHandle>,
}

impl Drop for Occupied {
    fn drop(&mut self) {
        if let Some(renewal) = &self.renewal {
            renewal.abort();
        }
    }
}

impl Home {
    pub(crate) fn new(settings: HomeSettings) -> Self {
        Self {
            settings,
            making: tokio::sync::Mutex::default(),
            occupied: Mutex::default(),
            created: Mutex::default(),
        }
    }

    pub(crate) const fn settings(&self) -> &HomeSettings {
        &self.settings
    }

    fn occupied(&self) -> MutexGuard<'_, Option<Occupied>> {
        // Every change leaves it whole.
        self.occupied.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sandbox, if it was made already.
    pub(crate) fn id(&self) -> Option<String> {
        self.occupied().as_ref().map(|one| one.id.clone())
    }

    /// The sandbox, which is made now if it is not there.
    pub(crate) async fn sandbox(
        &self,
        client: &Client,
        cancel: &CancellationToken,
    ) -> Result<String, ToolError> {
        // Whoever is before it may wait for a machine for minutes.
        let _turn = unless_cancelled(cancel, self.making.lock()).await?;
        if let Some(id) = self.id() {
            return Ok(id);
        }
        let (id, renewal) = match &self.settings.kind {
            HomeKind::Named { name, ttl_seconds } => {
                let found = named(client, &self.settings, name, *ttl_seconds);
                (unless_cancelled(cancel, found).await??.id, None)
            }
            HomeKind::Own { lease_seconds } => {
                let id = self.make(client, *lease_seconds, cancel).await?;
                let renewing = renew(client.clone(), id.clone(), *lease_seconds);
                (id, Some(tokio::spawn(renewing).abort_handle()))
            }
        };
        *self.occupied() = Some(Occupied {
            id: id.clone(),
            client: client.clone(),
            snapshots: Vec::new(),
            renewal,
        });
        Ok(id)
    }

    async fn make(
        &self,
        client: &Client,
        lease_seconds: u64,
        cancel: &CancellationToken,
    ) -> Result<String, ToolError> {
        let wish = CreateSandbox {
            ttl_seconds: Some(lease_seconds),
            ..self.settings.wish()
        };
        let made = client.create_when_ready_unless(&wish, cancel.cancelled(), |_| {});
        let made = made.await?.ok_or(ToolError::Cancelled)?;
        Ok(made.id)
    }

    fn is_own(&self) -> bool {
        matches!(self.settings.kind, HomeKind::Own { .. })
    }

    /// How long a snapshot of a sandbox is kept: those of a client's own go with it.
    pub(crate) fn retains(&self, sandbox: &str) -> Option<u64> {
        let is_this = self.id().as_deref() == Some(sandbox);
        (is_this && self.is_own()).then_some(MCP_SNAPSHOT_RETAIN_SECONDS)
    }

    /// Remembers a snapshot that goes with the sandbox.
    pub(crate) fn took(&self, sandbox: &str, snapshot: &str) {
        if let Some(one) = self.occupied().as_mut().filter(|one| one.id == sandbox) {
            one.snapshots.push(snapshot.to_owned());
        }
    }

    fn created(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.created.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a sandbox that the client created.
    pub(crate) fn keep(&self, sandbox: &str) {
        let mut created = self.created();
        if created.len() >= MCP_CREATED_MAX {
            created.pop_front();
        }
        created.push_back(sandbox.to_owned());
    }

    /// Whether the client may use a sandbox of this id.
    pub(crate) fn is_reached(&self, sandbox: &str) -> bool {
        let is_own = || self.id().as_deref() == Some(sandbox);
        self.settings.reach == SandboxReach::Project
            || is_own()
            || self.created().iter().any(|id| id == sandbox)
    }

    /// The sandbox that a client named, if it may use it.
    pub(crate) async fn reached(&self, client: &Client, named: &str) -> Result<String, ToolError> {
        if self.is_reached(named) {
            return Ok(named.to_owned());
        }
        let found = client.get_sandbox(named).await?;
        if self.is_reached(&found.id) || self.is_home_name(named) {
            return Ok(found.id);
        }
        Err(ToolError::hinted(
            format!(
                "{} is not a sandbox of this client's",
                crate::names::named(named)
            ),
            "use your own or one that you created; a server that was started with \
             --all-sandboxes reaches the others",
        ))
    }

    fn is_home_name(&self, given: &str) -> bool {
        matches!(&self.settings.kind, HomeKind::Named { name, .. } if name == given)
    }

    /// The sandbox is gone: the next use makes another.
    pub(crate) fn forget(&self, sandbox: &str) {
        self.created().retain(|id| id != sandbox);
        let mut occupied = self.occupied();
        if occupied.as_ref().is_some_and(|one| one.id == sandbox) {
            *occupied = None;
        }
    }

    /// Deletes what is the client's own.
    pub(crate) async fn end(&self) {
        let gone = self.occupied().take();
        if let Some(gone) = gone.filter(|_| self.is_own()) {
            leave(gone).await;
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let is_own = self.is_own();
        let gone = self.occupied().take().filter(|_| is_own);
        let runtime = tokio::runtime::Handle::try_current();
        if let (Some(gone), Ok(runtime)) = (gone, runtime) {
            runtime.spawn(leave(gone));
        }
    }
}

/// Deletes a sandbox and its snapshots. What fails is left to its time to live.
async fn leave(gone: Occupied) {
    if let Err(error) = gone.client.delete_sandbox(&gone.id).await {
        tracing::warn!(
            sandbox_id = gone.id,
            error = told(&error),
            "cannot delete a sandbox"
        );
    }
    for snapshot in &gone.snapshots {
        if let Err(error) = gone.client.delete_snapshot(snapshot).await {
            tracing::warn!(
                snapshot_id = snapshot,
                error = told(&error),
                "cannot delete a snapshot"
            );
        }
    }
}

/// Keeps a sandbox alive for as long as this runs.
async fn renew(client: Client, id: String, lease_seconds: u64) {
    let change = ChangeLifecycle {
        ttl_seconds: Some(Some(lease_seconds)),
        ..ChangeLifecycle::default()
    };
    loop {
        let pause = Duration::from_secs((lease_seconds / RENEWALS).max(1));
        tokio::time::sleep(pause).await;
        match client.set_lifecycle(&id, &change).await {
            Ok(_) => {}
            Err(error) if error.api_code() == Some(ErrorCode::NotFound) => return,
            Err(error) => {
                tracing::warn!(
                    sandbox_id = id,
                    error = told(&error),
                    "cannot renew a lease"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dayfly_client::ClientConfig;

    use super::*;

    #[tokio::test]
    async fn who_waits_for_the_first_call_can_be_cancelled() {
        let home = Home::new(HomeSettings::default());
        let client = Client::new(ClientConfig {
            url: "http://127.0.0.1:9".to_owned(),
            key: None,
        })
        .unwrap();
        let _somebody_makes_it = home.making.lock().await;
        let cancel = CancellationToken::new();
        cancel.cancel();
        let waited = home.sandbox(&client, &cancel).await;
        assert!(matches!(waited, Err(ToolError::Cancelled)), "{waited:?}");
    }

    #[test]
    fn those_that_a_client_created_are_remembered_up_to_a_limit() {
        let home = Home::new(HomeSettings::default());
        for number in 0..=MCP_CREATED_MAX {
            home.keep(&number.to_string());
        }
        assert!(!home.is_reached("0"));
        assert!(home.is_reached("1"));
        home.forget("1");
        assert!(!home.is_reached("1"));
    }
}
