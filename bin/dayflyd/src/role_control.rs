//! The control process: HTTP, gateway, database. It owns nothing that needs root.

use std::net::TcpListener;
use std::sync::Arc;

use anyhow::{Context, Result};
use dayfly_control::{
    Certificate, ControlConfig, GatewaySettings, KeyHash, ReconcileSettings, Server,
    ShownCertificate, TrustedProxies,
};
use dayfly_host::privileges::drop_to;
use dayfly_installation::{DataDirectory, runtime};
use dayfly_mcp::{HomeSettings, SandboxReach};
use dayfly_types::{CellName, NodeId};

use crate::args::RunArguments;
use crate::hand_over::{HandOver, next_certificate};
use crate::tls::CertificateText;
use crate::{pulse, sign_in, traces};

/// Gives up root and serves until SIGTERM.
pub(crate) fn run(arguments: &RunArguments) -> Result<()> {
    let received = HandOver::receive(std::io::stdin())?;
    let given = received.words;
    let settings = given.settings;
    let directory = DataDirectory::open(&settings.data_dir)?;
    let instance = directory
        .instance()?
        .context("the data directory has no instance")?;
    let sign_in = sign_in::usable(settings.sign_in.as_ref());
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
    let listeners = received.listeners;
    let listeners = listeners.context("no socket to serve the API on")?;
    let proxies = TrustedProxies::new(settings.trusted_proxy);
    let tls = tls_door(listeners.tls, given.certificate.as_ref())?;
    let node = node_id(&instance.instance)?;
    let traces = traces::from_environment()?;
    let config = ControlConfig {
        listener: listeners.plain,
        database: directory.database(),
        node_socket: directory.node_socket(),
        admin_key: key(&digest)?,
        local_key: given.local_key_sha256.as_deref().map(key).transpose()?,
        cell: CellName::local(),
        traces: traces.map(|settings| traces::with_instance(settings, &node)),
        node_id: node,
        reconcile: ReconcileSettings::default(),
        gateway: GatewaySettings {
            preview: settings.preview_domain,
            ..GatewaySettings::default()
        },
        internal_networks: settings.internal_network,
        sign_in,
    };
    runtime::block_on(async move {
        let stop = runtime::stop_on_signal()?;
        let voice = pulse::give()?;
        let server = Server::bind(config).await;
        let server = server.context("the control process failed")?;
        let mut server = server.with_mcp(make_mcp).with_trusted_proxies(proxies);
        server = server.with_builder(dayfly_build_mount::mount());
        if let Some((listener, shown)) = tls {
            follow_certificates(Arc::clone(&shown));
            server = server.with_tls(listener, shown)?;
        }
        if let Some(listener) = listeners.metrics {
            server = server.with_metrics(listener, given.restarts)?;
        }
        voice.is_ready();
        server.serve(stop.cancelled_owned()).await;
        Ok(())
    })
}

/// The socket for TLS, and what is shown there.
fn tls_door(
    listener: Option<TcpListener>,
    certificate: Option<&CertificateText>,
) -> Result<Option<(TcpListener, Arc<ShownCertificate>)>> {
    let Some(listener) = listener else {
        return Ok(None);
    };
    let certificate = certificate
        .context("no certificate for TLS")?
        .certificate()?;
    Ok(Some((
        listener,
        Arc::new(ShownCertificate::new(certificate)),
    )))
}

/// Shows each certificate that the daemon hands over from now on. A thread, because one read that
/// waits is all there is to it; it ends with the daemon.
fn follow_certificates(shown: Arc<ShownCertificate>) {
    std::thread::spawn(move || {
        while let Some(certificate) = received_certificate() {
            shown.replace(certificate);
            tracing::info!("another certificate is shown from now on");
        }
    });
}

fn received_certificate() -> Option<Certificate> {
    let text = next_certificate(std::io::stdin());
    match text.and_then(|text| text.map(|text| text.certificate()).transpose()) {
        Ok(certificate) => certificate,
        // The daemon gives none that it cannot read itself.
        Err(error) => {
            let error = format!("{error:#}");
            tracing::error!(error, "no other certificate is shown until the next start");
            None
        }
    }
}

/// The node's name is its instance's.
pub(crate) fn node_id(instance: &str) -> Result<NodeId> {
    NodeId::parse(&format!("node-{instance}")).context("the instance makes no node id")
}
