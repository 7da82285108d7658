//! What the figures of a run depend on beside the product.

use std::path::Path;

use anyhow::{Context, Result};
use dayfly_client::Client;
use dayfly_host::mounts::own_mounts;
use dayfly_host::probe::kernel_release;
use serde::Serialize;

/// The host, its engine and the template. The shape is documented; fields are only added.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Environment {
    pub(crate) template: String,
    pub(crate) engine: String,
    pub(crate) engine_version: String,
    pub(crate) accelerator: String,
    pub(crate) isolation: String,
    pub(crate) kernel: String,
    pub(crate) cores: usize,
    pub(crate) parked_engines: u64,
}

impl Environment {
    pub(crate) async fn of(client: &Client, template: &str) -> Result<Self> {
        let node = client.node().await.context("cannot ask for the node")?;
        let targets = node.parked_engines.iter().map(|pool| pool.target);
        Ok(Self {
            template: template.to_owned(),
            parked_engines: targets.max().unwrap_or(0),
            engine: node.engine,
            engine_version: node.engine_version,
            accelerator: node.accelerator,
            isolation: node.isolation,
            kernel: kernel_release(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        })
    }

    /// For a person.
    pub(crate) fn line(&self) -> String {
        format!(
            "{} {} on {}, host kernel {}\n",
            self.engine, self.engine_version, self.accelerator, self.kernel
        )
    }
}

/// The type of the file system that a canonical path is on.
pub(crate) fn file_system_of(path: &Path) -> Result<String> {
    let mounts = own_mounts().context("cannot read the mounts")?;
    let holder = mounts
        .into_iter()
        .filter(|mount| path.starts_with(&mount.mount_point))
        // Of two at one place, the later one is on top.
        .max_by_key(|mount| mount.mount_point.components().count());
    Ok(holder.context("the path is on no mount")?.file_system)
}
