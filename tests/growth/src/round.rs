//! All measurements with one number of sandboxes.

use std::time::Instant;

use anyhow::{Result, ensure};

use crate::api::Api;
use crate::home::Home;
use crate::report::Measured;
use crate::{background, control, hot, process, seed};

/// What is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) count: u32,
    pub(crate) running: u32,
    pub(crate) samples: u32,
    /// Nothing but what callers wait for.
    pub(crate) hot_only: bool,
}

/// Measures in this process, which must be fresh.
pub(crate) fn measure(plan: Plan) -> Result<Measured> {
    process::raise_descriptor_limit()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(measure_here(plan))
}

async fn measure_here(plan: Plan) -> Result<Measured> {
    let home = Home::new()?;
    seed::fill(&home, plan).await?;
    let before_kib = process::resident_kib()?;
    let began = Instant::now();
    let node = home.start_node().await?;
    let node_start_us = micros(began);
    let found = node.node.reconciled();
    ensure!(found.adopted == usize::try_from(plan.count)?, "{found:?}");
    let node_kib = process::resident_kib()?.saturating_sub(before_kib);
    let (control, adoption) = control::start(&home, &node, plan.count).await?;
    let api = Api::of(&control);
    let hot = hot::measure(&api, plan.samples).await?;
    let background = if plan.hot_only {
        None
    } else {
        Some(background::measure(&node, &control, &api, plan).await?)
    };
    let all_kib = process::resident_kib()?.saturating_sub(before_kib);
    drop(control);
    node.kill().await?;
    Ok(Measured {
        count: plan.count,
        running: plan.running,
        hot,
        node_start_us,
        adoption_us: u64::try_from(adoption.as_micros())?,
        node_kib,
        all_kib,
        background,
    })
}

pub(crate) fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}
