//! Sending network policies until the node has confirmed them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use dayfly_node_api::{NodeCalls, NodeError};
use dayfly_types::{Backoff, ErrorCode};

use crate::control::Control;
use crate::network::set::{expected_egress, send, take_back};
use crate::store::{SandboxRow, StoreError};
use crate::time::now_ms;

const RETRY_FIRST: Duration = Duration::from_millis(500);

/// Sends at once, and again for as long as something is unconfirmed.
pub(super) async fn confirm_always(control: &Arc<Control>) -> Result<Infallible, NodeError> {
    let interval = control.reconcile.interval;
    let mut backoff = Backoff::new(RETRY_FIRST.min(interval), interval);
    loop {
        let is_all = match confirm_once(control).await {
            Ok(is_all) => is_all,
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "cannot look for unconfirmed networks"
                );
                false
            }
        };
        if is_all {
            backoff.reset();
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                () = control.unconfirmed_network.notified() => {}
            }
        } else {
            tokio::time::sleep(backoff.pause()).await;
        }
    }
}

/// Sends what is unconfirmed. Says whether everything is confirmed now.
async fn confirm_once(control: &Control) -> Result<bool, StoreError> {
    // A database that the node does not know must not say what its sandboxes may reach.
    if !control.view.is_known() {
        return Ok(false);
    }
    let rows = control.store.unconfirmed_networks(&control.node_id).await?;
    let mut is_all = true;
    for row in rows {
        is_all &= confirm_row(control, &row).await?;
    }
    Ok(is_all)
}

async fn confirm_row(control: &Control, row: &SandboxRow) -> Result<bool, StoreError> {
    if row.egress.is_widening() {
        let age_ms = now_ms().saturating_sub(row.egress.changed_at_ms);
        let lost_after = control.reconcile.network_lost_after.as_millis();
        let is_lost = u128::try_from(age_ms).unwrap_or_default() >= lost_after;
        // Else whoever asks the node for it is still at it.
        return Ok(is_lost && take_back(control, row, row.egress.reserved).await);
    }
    match send(control, row, row.egress.epoch, &row.egress.policy).await {
        Ok(_) => Ok(true),
        Err(error) if error.code == ErrorCode::WrongState => overtake(control, row).await,
        // Another part of the reconciler sees to a sandbox that the node has lost.
        Err(error) => {
            tracing::debug!(sandbox_id = %row.id, %error, "a network is still unconfirmed");
            Ok(false)
        }
    }
}

/// The node may have a later epoch than the row, when the database was put back to an older
/// state. The row is still the truth, so it gets a later one.
async fn overtake(control: &Control, row: &SandboxRow) -> Result<bool, StoreError> {
    let Ok(report) = control.node.network(&row.id).await else {
        return Ok(false);
    };
    if report.epoch < row.egress.epoch {
        return Ok(false);
    }
    let epoch = report.epoch + 1;
    tracing::warn!(sandbox_id = %row.id, epoch, "the node has a later network than the database");
    control
        .store
        .set_egress(
            expected_egress(row, row.egress.reserved),
            &row.egress.policy,
            epoch,
            now_ms(),
        )
        .await?;
    Ok(false)
}
