//! The way out of this host: the namespace that traffic leaves from, and the process that decides.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use dayfly_host::CgroupTree;
use dayfly_host::engine_root::{EngineRootSpec, ensure_engine_root};
use dayfly_host::net::{EgressExceptions, Uplink};
use dayfly_installation::{DataDirectory, Instance, sibling_program};
use dayfly_node::egress::{
    self, EgressGate, EgressHome, EgressProcess, EgressSpool, HostEgress, NetworkLogs,
};
use dayfly_types::egress::InternalNetworks;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::args::RunArguments;
use crate::egress_proxy::EgressProxy;
use crate::internal_network;

const PROGRAM: &str = "dayfly-egress";
const DNS_PORT: u16 = 53;
/// How long the first create may have to wait for the process.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);
/// Where resolvers are written down; the second has the real ones when the first has a stub.
const RESOLVER_FILES: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
/// As many resolvers as libc takes.
const RESOLVERS_MAX: usize = 3;

/// The gate of this host, and what keeps it.
#[derive(Debug)]
pub(crate) struct Egress {
    gate: Arc<HostEgress>,
    home: EgressHome,
    netns: PathBuf,
    pub(crate) logs: Arc<NetworkLogs>,
    pub(crate) spool: Arc<EgressSpool>,
}

impl Egress {
    pub(crate) fn open(
        arguments: &RunArguments,
        directory: &DataDirectory,
        instance: &Instance,
        cgroups: CgroupTree,
    ) -> Result<Self> {
        let here = directory.node().join("egress");
        std::fs::create_dir_all(&here).context("cannot make the directory of the egress")?;
        let resolvers = match arguments.egress_resolver.as_slice() {
            [] => host_resolvers(),
            given => given.to_vec(),
        };
        let mut home = EgressHome {
            path: here.join("netns"),
            instance: instance.instance.clone(),
            uplink: arguments.egress_uplink.clone().into(),
            exceptions: EgressExceptions {
                resolvers,
                internal: internal_network::open(&arguments.internal_network),
                proxy: arguments.egress_proxy.map(EgressProxy::address),
            },
        };
        let netns = ensure_home(&mut home)?;
        let process = EgressProcess {
            cgroups,
            jail_program: sibling_program("dayfly-jail")?,
            root: root(&here.join("roots"))?,
            program: sibling_program(PROGRAM)?,
            run_directory: here.join("run"),
            uid: instance.egress_uid(),
            netns: netns.clone(),
            resolvers: home.exceptions.resolvers.clone(),
            bytes_per_second: NonZeroU64::new(arguments.egress_rate),
            internal_networks: home.exceptions.internal.clone(),
            proxy: home.exceptions.proxy,
            log_format: arguments.log_format,
        };
        let logs = Arc::new(NetworkLogs::new(directory.node().join("sandboxes")));
        let spool = Arc::new(EgressSpool::new(here.join("decisions")));
        let gate = HostEgress::new(
            process,
            directory.node().join("netns"),
            Arc::clone(&logs),
            Arc::clone(&spool),
        );
        Ok(Self {
            gate,
            home,
            netns,
            logs,
            spool,
        })
    }

    /// The namespace that traffic leaves the host from.
    pub(crate) fn netns(&self) -> &Path {
        &self.netns
    }

    pub(crate) fn resolvers(&self) -> &[SocketAddr] {
        &self.home.exceptions.resolvers
    }

    /// What is open inside, as the host is now.
    pub(crate) fn internal_networks(&self) -> &InternalNetworks {
        &self.home.exceptions.internal
    }

    pub(crate) fn gate(&self) -> Arc<dyn EgressGate> {
        Arc::clone(&self.gate) as _
    }

    /// Ends when somebody decides about connections, or after a while without.
    pub(crate) fn connected(&self) -> impl Future<Output = ()> + use<> {
        let gate = Arc::clone(&self.gate);
        async move { gate.connected(CONNECT_LIMIT).await }
    }

    /// Keeps the process and the rules until `stop`.
    pub(crate) fn keep(self, stop: &CancellationToken) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let auditing = egress::audit(Arc::clone(&self.gate), self.home.clone(), stop.clone());
        let running = self.gate.run(stop.clone());
        tasks.spawn(async move {
            let (is_over, ()) = tokio::join!(running, auditing);
            let removed = is_over.then(|| self.home.remove()).transpose();
            if let Err(error) = removed {
                let error = dayfly_types::error_chain(&error);
                tracing::warn!(error, "the egress namespace could not be removed");
            }
        });
        tasks
    }
}

/// A host that cannot be given a way out still runs sandboxes; they reach nothing.
fn ensure_home(home: &mut EgressHome) -> Result<PathBuf> {
    match home.ensure() {
        Ok(path) => Ok(path),
        Err(error) if home.uplink == Uplink::Nat => {
            let error = dayfly_types::error_chain(&error);
            tracing::error!(error, "no way out of this host; sandboxes reach nothing");
            home.uplink = Uplink::None;
            home.ensure().context("cannot make the egress namespace")
        }
        Err(error) => Err(error).context("cannot make the egress namespace"),
    }
}

/// A directory with the program, what it is linked with, and nothing else.
fn root(store: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(store).context("cannot make the directory of roots")?;
    let spec = EngineRootSpec {
        label: PROGRAM.to_owned(),
        program: sibling_program(PROGRAM)?,
        files: Vec::new(),
        mount_directories: vec![PathBuf::from("/run")],
        mount_files: Vec::new(),
    };
    let made = ensure_engine_root(&spec, store).context("cannot make the root of the egress")?;
    Ok(made.path)
}

/// The resolvers of this host that another namespace can reach. One on the loopback address is
/// only reachable from here.
fn host_resolvers() -> Vec<SocketAddr> {
    for file in RESOLVER_FILES {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let found: Vec<SocketAddr> = text
            .lines()
            .filter_map(|line| line.strip_prefix("nameserver"))
            .filter_map(|rest| rest.trim().parse::<IpAddr>().ok())
            .filter(|address| address.is_ipv4() && !address.is_loopback())
            .map(|address| SocketAddr::new(address, DNS_PORT))
            .take(RESOLVERS_MAX)
            .collect();
        if !found.is_empty() {
            return found;
        }
    }
    tracing::warn!("no resolver found; give one with --egress-resolver, or names stay unknown");
    Vec::new()
}
