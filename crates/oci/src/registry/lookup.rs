//! Names to addresses: by the system, or by servers that somebody named, where there is no system to
//! ask.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use dayfly_types::limits::REGISTRY_CONNECT_DEADLINE;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;

#[derive(Debug, Clone)]
pub(super) enum Lookup {
    System,
    Servers(Arc<TokioResolver>),
}

impl Lookup {
    pub(super) fn new(servers: &[SocketAddr]) -> io::Result<Self> {
        if servers.is_empty() {
            return Ok(Self::System);
        }
        let servers = servers.iter().map(|server| {
            let with_port = |mut connection: ConnectionConfig| {
                connection.port = server.port();
                connection
            };
            let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(with_port);
            NameServerConfig::new(server.ip(), true, connections.to_vec())
        });
        let config = ResolverConfig::from_name_servers(servers.collect());
        let mut options = ResolverOpts::default();
        options.timeout = REGISTRY_CONNECT_DEADLINE / 4;
        options.use_hosts_file = ResolveHosts::Never;
        let provider = TokioRuntimeProvider::default();
        let resolver = TokioResolver::builder_with_config(config, provider)
            .with_options(options)
            .build()
            .map_err(io::Error::other)?;
        Ok(Self::Servers(Arc::new(resolver)))
    }

    pub(super) async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        match self {
            Self::System => {
                let found = tokio::net::lookup_host((name, 0)).await?;
                Ok(found.map(|one| one.ip()).collect())
            }
            Self::Servers(resolver) => {
                let found = resolver.ipv4_lookup(name).await.map_err(io::Error::other)?;
                let records = found.answers().iter();
                let address = |record: &hickory_resolver::proto::rr::Record| record.data.ip_addr();
                Ok(records.filter_map(address).collect())
            }
        }
    }
}
