//! The task that listens to the node.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dayfly_node_api::{NodeCalls, NodeError, Watch};
use dayfly_types::Backoff;
use futures::StreamExt;

use super::{Sweep, network, sample};
use crate::conditions::Condition;
use crate::control::Control;
use crate::node_contact::Patience;
use crate::time::now_ms;

const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// Watches the node for as long as the future is polled.
pub async fn watch(control: Arc<Control>) {
    let mut backoff = Backoff::new(BACKOFF_MIN, BACKOFF_MAX);
    let mut sweep = Sweep::default();
    loop {
        let started = Instant::now();
        let Err(error) = watch_once(&control, &mut sweep).await;
        control.view.set_connected(false);
        let detail = "the node process does not answer; sandboxes go on".to_owned();
        control.conditions.set(Condition::NodeUnreachable, detail);
        let patience = Patience(control.reconcile.node_outage_max);
        control.node_contact.lost(Instant::now(), patience);
        if started.elapsed() > BACKOFF_MAX {
            backoff.reset();
        }
        let pause = backoff.pause();
        tracing::debug!(%error, retry_ms = pause.as_millis(), "the node is not being watched");
        tokio::time::sleep(pause).await;
    }
}

/// Watches until the connection breaks.
async fn watch_once(control: &Arc<Control>, sweep: &mut Sweep) -> Result<Infallible, NodeError> {
    let reports = control.node.watch().await?;
    control.view.set_status(control.node.status().await?);
    control.node_contact.found(Instant::now());
    control.conditions.clear(Condition::NodeUnreachable);
    control.view.set_connected(true);
    tracing::info!(node_id = %control.node_id, "watching the node");
    // Side by side, so that a slow delete does not hold up the news.
    let (never, _, _, _) = tokio::try_join!(
        listen(control, reports),
        compare(control, sweep),
        network::confirm_always(control),
        sample::sample_always(control)
    )?;
    match never {}
}

async fn listen(control: &Control, mut reports: Watch) -> Result<Infallible, NodeError> {
    while let Some(report) = reports.next().await {
        let report = report?;
        if let Err(error) = control.store.apply_report(&report, now_ms()).await {
            tracing::error!(sandbox_id = %report.id, error = &error as &dyn std::error::Error,
                "cannot record what the node said");
        }
        control.view.apply(report);
    }
    Err(NodeError::unavailable("the node ended the watch"))
}

async fn compare(control: &Arc<Control>, sweep: &mut Sweep) -> Result<Infallible, NodeError> {
    loop {
        sweep.run(control).await?;
        tokio::time::sleep(control.reconcile.interval).await;
    }
}
