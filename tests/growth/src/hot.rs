//! What callers wait for: each call in turn with the others, while everything in the background goes
//! on at the pace of the product.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use crate::api::Api;
use crate::report::Call;
use crate::times::{Figures, Times};

/// No more than there are of the fewest, so that all pages are of one length.
const PAGE: usize = 10;
/// Longer than a measurement.
const TTL_SECONDS: u64 = 3600;
/// Calls that are not counted: connections are opened, and caches are filled.
const WARM_UP: u32 = 20;

pub(crate) async fn measure(api: &Api, samples: u32) -> Result<BTreeMap<Call, Figures>> {
    let mut times: BTreeMap<Call, Times> = BTreeMap::new();
    // Made first, so it runs.
    let (oldest, _) = api.page(1).await?;
    let oldest = oldest.first().context("there are no sandboxes")?;
    for number in 0..WARM_UP + samples {
        let (id, created) = api.create(TTL_SECONDS).await?;
        let took = [
            (Call::Create, created),
            (Call::Get, api.get(&id).await?),
            (Call::FirstExec, api.exec(&id).await?),
            (Call::Exec, api.exec(&id).await?),
            (Call::GetOldest, api.get(oldest).await?),
            (Call::Page, api.page(PAGE).await?.1),
            (Call::Delete, api.delete(&id).await?),
        ];
        if number >= WARM_UP {
            for (call, took) in took {
                times.entry(call).or_default().add(took);
            }
        }
    }
    Ok(times
        .into_iter()
        .map(|(call, times)| (call, times.figures()))
        .collect())
}
