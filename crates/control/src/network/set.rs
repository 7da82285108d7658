//! Changing what a sandbox may reach.
//!
//! Whatever fails half way leaves the old policy or a narrower one, never a wider one:
//!
//! - A narrower policy is written first and sent second. When the node does not confirm it, it
//!   stays written and is sent until it does; the answer says that it is not in force yet.
//! - A wider policy is sent first, under an epoch that is only reserved, and written second. When
//!   the node does not confirm it, or we die, the old policy is written and sent under a later
//!   epoch, which ends the wider one wherever it arrived.

use std::sync::Arc;

use dayfly_api::{Network, RuleWish};
use dayfly_node_api::{NetworkReport, NodeCalls, NodeError, SetNetwork};
use dayfly_types::egress::{EgressPolicy, InternalNetwork};
use dayfly_types::{ErrorCode, ProjectId, SandboxId, SandboxState};

use crate::control::Control;
use crate::input::Invalid;
use crate::network::read::present;
use crate::network::spec;
use crate::sandbox::create::is_wanted;
use crate::sandbox::read::{FindError, row_alive};
use crate::store::{ExpectedEgress, SandboxRow, StoreError};
use crate::time::now_ms;

/// How often a change is planned anew because another one came first.
const ATTEMPTS_MAX: usize = 3;

/// What becomes of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkChange {
    Replace(EgressPolicy),
    /// More rules for what is there.
    Allow(Vec<RuleWish>),
}

impl NetworkChange {
    fn apply(
        &self,
        current: &EgressPolicy,
        internal: &[InternalNetwork],
    ) -> Result<EgressPolicy, Invalid> {
        match self {
            Self::Replace(policy) => Ok(policy.clone()),
            Self::Allow(rules) => spec::with_rules(current, rules, internal),
        }
    }
}

/// Why a sandbox may reach no more and no less than before.
#[derive(Debug, thiserror::Error)]
pub enum SetNetworkError {
    #[error(transparent)]
    Find(#[from] FindError),
    #[error(transparent)]
    Invalid(#[from] Invalid),
    #[error("somebody else changed the network of this sandbox at the same time")]
    Raced,
    #[error("the node did not confirm the wider network, so the old one stays")]
    NotWidened(#[source] NodeError),
    #[error("cannot record what a sandbox may reach")]
    Store(#[source] StoreError),
    #[error("the work on the network stopped")]
    Stopped,
}

/// Changes what a sandbox may reach, for open connections as well.
///
/// # Errors
/// [`SetNetworkError`].
///
/// # Cancel safety
/// Dropping the future does not stop the work. It may be repeated.
pub async fn change(
    control: Arc<Control>,
    project: ProjectId,
    id: SandboxId,
    change: NetworkChange,
) -> Result<Network, SetNetworkError> {
    let tasks = control.tasks.clone();
    let work = async move { change_to_the_end(&control, &project, &id, &change).await };
    tasks
        .spawn(work)
        .await
        .unwrap_or(Err(SetNetworkError::Stopped))
}

async fn change_to_the_end(
    control: &Control,
    project: &ProjectId,
    id: &SandboxId,
    change: &NetworkChange,
) -> Result<Network, SetNetworkError> {
    let internal = control.internal_networks.of(project);
    for _ in 0..ATTEMPTS_MAX {
        let row = row_alive(control, project, id).await?;
        if !is_wanted(row.state) {
            return Err(FindError::NotFound { id: id.clone() }.into());
        }
        let wanted = change.apply(&row.egress.policy, &internal)?;
        let done = if spec::is_no_wider(&wanted, &row.egress.policy, &internal) {
            narrow(control, &row, &wanted).await?
        } else {
            widen(control, &row, &wanted).await?
        };
        if let Some(network) = done {
            return Ok(network);
        }
    }
    Err(SetNetworkError::Raced)
}

/// Writes, then sends. `None`: another change came first.
async fn narrow(
    control: &Control,
    row: &SandboxRow,
    wanted: &EgressPolicy,
) -> Result<Option<Network>, SetNetworkError> {
    let is_written = *wanted == row.egress.policy && !row.egress.is_widening();
    let epoch = if is_written {
        row.egress.epoch
    } else {
        let epoch = row.egress.reserved + 1;
        let written = control
            .store
            .set_egress(
                expected_egress(row, row.egress.reserved),
                wanted,
                epoch,
                now_ms(),
            )
            .await;
        if !written.map_err(SetNetworkError::Store)? {
            return Ok(None);
        }
        epoch
    };
    let enforced = match send(control, row, epoch, wanted).await {
        Ok(report) => report.is_enforced,
        // A create that is under way will carry what is written now, or be sent it.
        Err(error) if error.code == ErrorCode::NotFound && row.state != SandboxState::Creating => {
            return Err(FindError::NotFound { id: row.id.clone() }.into());
        }
        Err(error) => {
            tracing::warn!(sandbox_id = %row.id, epoch, %error,
                "a narrower network is not confirmed yet");
            control.unconfirmed_network.notify_one();
            false
        }
    };
    Ok(Some(present(wanted, epoch, enforced)))
}

/// Sends, then writes. `None`: another change came first.
async fn widen(
    control: &Control,
    row: &SandboxRow,
    wanted: &EgressPolicy,
) -> Result<Option<Network>, SetNetworkError> {
    let epoch = row.egress.reserved + 1;
    let store = &control.store;
    let reserved = store
        .reserve_egress(expected_egress(row, row.egress.reserved), epoch, now_ms())
        .await;
    if !reserved.map_err(SetNetworkError::Store)? {
        return Ok(None);
    }
    let request = SetNetwork {
        epoch,
        policy: wanted.clone(),
    };
    let report = match control.node.set_network(&row.id, request).await {
        Ok(report) => report,
        Err(error) => {
            take_back(control, row, epoch).await;
            return Err(refused(row, error));
        }
    };
    let written = store
        .set_egress(expected_egress(row, epoch), wanted, epoch, now_ms())
        .await;
    match written {
        Ok(true) => {
            confirm(control, row, epoch).await;
            Ok(Some(present(wanted, epoch, report.is_enforced)))
        }
        // Whoever came in between has sent, or will send, what holds now.
        Ok(false) => Err(SetNetworkError::Raced),
        Err(error) => {
            // The node is wider than the row; the reconciler finds the reserved epoch.
            control.unconfirmed_network.notify_one();
            Err(SetNetworkError::Store(error))
        }
    }
}

fn refused(row: &SandboxRow, error: NodeError) -> SetNetworkError {
    if error.code == ErrorCode::NotFound && row.state != SandboxState::Creating {
        return FindError::NotFound { id: row.id.clone() }.into();
    }
    SetNetworkError::NotWidened(error)
}

/// Puts the policy of the row in the place of one that was sent under `epoch` and may have
/// arrived. Says whether the node has confirmed it. What fails here is done by the reconciler.
pub(crate) async fn take_back(control: &Control, row: &SandboxRow, epoch: u64) -> bool {
    let next = epoch + 1;
    let policy = &row.egress.policy;
    let written = control
        .store
        .set_egress(expected_egress(row, epoch), policy, next, now_ms())
        .await;
    let confirmed = match written {
        Ok(true) => send(control, row, next, policy).await.is_ok(),
        // Another change has a later epoch.
        Ok(false) => true,
        Err(error) => {
            tracing::error!(sandbox_id = %row.id, error = &error as &dyn std::error::Error,
                "cannot record that a wider network was taken back");
            false
        }
    };
    if !confirmed {
        control.unconfirmed_network.notify_one();
    }
    confirmed
}

/// Sends a policy that is written, and writes that the node has it.
pub(crate) async fn send(
    control: &Control,
    row: &SandboxRow,
    epoch: u64,
    policy: &EgressPolicy,
) -> Result<NetworkReport, NodeError> {
    let request = SetNetwork {
        epoch,
        policy: policy.clone(),
    };
    let report = control.node.set_network(&row.id, request).await?;
    confirm(control, row, epoch).await;
    Ok(report)
}

async fn confirm(control: &Control, row: &SandboxRow, epoch: u64) {
    let confirmed = control
        .store
        .confirm_egress(&row.project, &row.id, epoch)
        .await;
    if let Err(error) = confirmed {
        // It is sent once more then, which changes nothing.
        tracing::error!(sandbox_id = %row.id, error = &error as &dyn std::error::Error,
            "cannot record that the node confirmed a network");
    }
}

/// The row as it was read, but for the epoch that was given out since.
pub(crate) fn expected_egress(row: &SandboxRow, reserved: u64) -> ExpectedEgress<'_> {
    ExpectedEgress {
        project: &row.project,
        sandbox: &row.id,
        epoch: row.egress.epoch,
        reserved,
    }
}
