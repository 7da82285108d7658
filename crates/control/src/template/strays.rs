//! Templates on the node that no project has: an order that reached the node after it was given up.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use dayfly_node_api::NodeCalls;
use dayfly_types::TemplateName;
use dayfly_types::ordered_template::is_ordered_name;

use crate::control::Control;

/// Those that were seen, and since when. A row may be about to be written, or to go.
#[derive(Debug, Default)]
pub(crate) struct Strays {
    seen: Mutex<HashMap<TemplateName, Instant>>,
    looked_at: Mutex<Option<Instant>>,
}

impl Strays {
    /// Whether to look again; not at once after a start. A look asks the node for all templates.
    fn is_time(&self, age: Duration) -> bool {
        let mut looked_at = self
            .looked_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let last = looked_at.get_or_insert_with(Instant::now);
        let is_time = last.elapsed() >= age / 5;
        if is_time {
            *last = Instant::now();
        }
        is_time
    }

    /// Notes those of now, and gives those that have been here for long.
    fn old(&self, now: &HashSet<TemplateName>, age: Duration) -> Vec<TemplateName> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.retain(|name, _| now.contains(name));
        let mut old = Vec::new();
        for name in now {
            let since = seen.entry(name.clone()).or_insert_with(Instant::now);
            if since.elapsed() >= age {
                old.push(name.clone());
            }
        }
        old
    }
}

/// Has the node give up what has had no row for long. What was made from it stays.
pub(crate) async fn forget(control: &Control) {
    if !control.strays.is_time(control.reconcile.stray_after) {
        return;
    }
    // First the node: what is ordered after this has its row already.
    let Ok(reports) = control.node.templates().await else {
        return;
    };
    let ordered: HashSet<TemplateName> = reports
        .into_iter()
        .map(|report| report.name)
        .filter(is_ordered_name)
        .collect();
    let strays = match control.store.order_names().await {
        Ok(names) => &ordered - &names,
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "cannot read which templates projects have");
            return;
        }
    };
    for name in control.strays.old(&strays, control.reconcile.stray_after) {
        tracing::warn!(template = %name, "giving up a template that no project has");
        if let Err(error) = control.node.forget_template(&name).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(template = %name, error, "it could not be given up yet");
        }
    }
}
