//! The control process: HTTP, gateway, database. It owns nothing that needs root.

use anyhow::{Context, Result};
use dayfly_control::{ControlConfig, GatewaySettings, KeyHash, ReconcileSettings, Server};
use dayfly_host::privileges::drop_to;
use dayfly_installation::{DataDirectory, runtime};
use dayfly_mcp::{HomeSettings, SandboxReach};
use dayfly_types::{CellName, NodeId};

use crate::args::RunArguments;
use crate::hand_over::HandOver;
use crate::pulse;

/// Gives up root and serves until SIGTERM.
pub(crate) fn run(arguments: &RunArguments) -> Result<()> {
    let received = HandOver::receive(std::io::stdin())?;
    let given = received.words;
    let settings = given.settings;
    let directory = DataDirectory::open(&settings.data_dir)?;
    let instance = directory
        .instance()?
        .context("the data directory has no instance")?;
    // Before the runtime starts its threads: a process cannot change the ids of threads that it
    // already has in one step.
    let uid = instance.control_uid();
    drop_to(uid, uid).context("the control process must not run as root")?;
    crate::end_with_parent(arguments)?;
    let digest = given.admin_key_sha256;
    let digest = digest.context("no digest of the administrator's key")?;
    let key = |text: &str| KeyHash::from_hex(text).context("what was handed over is no digest");
    let home = HomeSettings {
        // The key says which: a client without a session has no other than those that it names.
        reach: SandboxReach::Project,
        ..HomeSettings::default()
    };
    let make_mcp = dayfly_mcp_mount::mount(settings.api_host, home);
    let config = ControlConfig {
        listener: received.listener.context("no socket to serve the API on")?,
        database: directory.database(),
        node_socket: directory.node_socket(),
        admin_key: key(&digest)?,
        local_key: given.local_key_sha256.as_deref().map(key).transpose()?,
        cell: CellName::local(),
        node_id: node_id(&instance.instance)?,
        reconcile: ReconcileSettings::default(),
        gateway: GatewaySettings {
            preview: settings.preview_domain,
            ..GatewaySettings::default()
        },
    };
    runtime::block_on(async move {
        let stop = runtime::stop_on_signal()?;
        let voice = pulse::give()?;
        let server = Server::bind(config).await;
        let server = server.context("the control process failed")?;
        let server = server.with_mcp(make_mcp);
        voice.is_ready();
        server.serve(stop.cancelled_owned()).await;
        Ok(())
    })
}

/// The node's name is its instance's.
pub(crate) fn node_id(instance: &str) -> Result<NodeId> {
    NodeId::parse(&format!("node-{instance}")).context("the instance makes no node id")
}
