//! Names to addresses, for one lifecycle: its own cache and its own upstream connections, so that
//! nothing that one sandbox asked for shows in another.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use dayfly_core::egress::may_ever_reach;
use dayfly_types::egress::{DenyReason, HostName, InternalNetwork};
use dayfly_types::limits::EGRESS_RESOLVE_DEADLINE;
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::{Name, RData, RecordType};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use tokio::time::timeout;

/// Addresses of one name that are kept; an answer with all of them fits in the smallest packet.
pub(crate) const ADDRESSES_MAX: usize = 8;
/// Bounds of how long an answer is believed, here and in the guest.
const TTL: std::ops::RangeInclusive<u32> = 1..=60;
/// How long a name without an address is not asked for again.
const ABSENT_TTL: u32 = 5;
const CACHE_NAMES_MAX: usize = 512;
/// Two of them fit into the deadline: by UDP and by TCP, or of two resolvers.
const ATTEMPT_LIMIT: Duration = Duration::from_millis(900);

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// Those that may be reached at some port. Empty when all that came are ones that the sandbox
    /// may not reach whatever its rules say.
    pub(crate) addresses: Vec<Ipv4Addr>,
    /// Seconds from now.
    pub(crate) ttl: u32,
}

/// Why a name has no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResolveError {
    #[error("there is no such name")]
    Absent,
    #[error("the name has no address")]
    Empty,
    #[error("no resolver answered")]
    Unavailable,
    #[error("this host has no resolver")]
    NoResolver,
}

impl ResolveError {
    /// What a record says about it.
    pub(crate) const fn reason(self) -> DenyReason {
        match self {
            Self::Absent | Self::Empty | Self::Unavailable => DenyReason::Unresolvable,
            Self::NoResolver => DenyReason::NoUplink,
        }
    }

    /// Whether it may be otherwise a moment later.
    const fn is_passing(self) -> bool {
        match self {
            Self::Absent | Self::Empty => false,
            Self::Unavailable | Self::NoResolver => true,
        }
    }
}

type Outcome = Result<Vec<Ipv4Addr>, ResolveError>;

/// The resolver of one lifecycle.
#[derive(Debug)]
pub(crate) struct NameResolver {
    servers: Arc<[SocketAddr]>,
    /// What is open to the project of this lifecycle.
    internal: Arc<[InternalNetwork]>,
    /// Made when the first name is asked for: most sandboxes never ask.
    upstream: OnceLock<Option<TokioResolver>>,
    cache: Mutex<HashMap<HostName, (Instant, Outcome)>>,
}

impl NameResolver {
    pub(crate) fn new(servers: Arc<[SocketAddr]>, internal: Arc<[InternalNetwork]>) -> Self {
        Self {
            servers,
            internal,
            upstream: OnceLock::new(),
            cache: Mutex::default(),
        }
    }

    /// # Errors
    /// [`ResolveError`], within [`EGRESS_RESOLVE_DEADLINE`].
    pub(crate) async fn resolve(&self, name: &HostName) -> Result<Resolved, ResolveError> {
        if let Some((expires, outcome)) = self.cached(name) {
            let left = expires.saturating_duration_since(Instant::now()).as_secs();
            let ttl = u32::try_from(left).unwrap_or(*TTL.end());
            return outcome.map(|addresses| Resolved {
                addresses,
                ttl: ttl.clamp(*TTL.start(), *TTL.end()),
            });
        }
        let (outcome, ttl) = self.ask(name).await;
        if !outcome.as_ref().is_err_and(|error| error.is_passing()) {
            self.keep(name, &outcome, ttl);
        }
        outcome.map(|addresses| Resolved { addresses, ttl })
    }

    /// Whether nobody has to be asked for this name.
    pub(crate) fn knows(&self, name: &HostName) -> bool {
        self.cached(name).is_some()
    }

    fn cached(&self, name: &HostName) -> Option<(Instant, Outcome)> {
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let found = cache.get(name)?;
        (found.0 > Instant::now()).then(|| found.clone())
    }

    fn keep(&self, name: &HostName, outcome: &Outcome, ttl: u32) {
        let now = Instant::now();
        let expires = now + Duration::from_secs(ttl.into());
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= CACHE_NAMES_MAX {
            cache.retain(|_, (expires, _)| *expires > now);
        }
        // A cache full of fresh names means that somebody invents them; they are asked for again.
        if cache.len() < CACHE_NAMES_MAX {
            cache.insert(name.clone(), (expires, outcome.clone()));
        }
    }

    async fn ask(&self, name: &HostName) -> (Outcome, u32) {
        let upstream = self.upstream.get_or_init(|| build(&self.servers));
        let Some(upstream) = upstream else {
            return (Err(ResolveError::NoResolver), ABSENT_TTL);
        };
        // Nothing but the canonical name goes upstream. The dot keeps search lists out of it.
        let Ok(question) = Name::from_ascii(format!("{name}.")) else {
            return (Err(ResolveError::Absent), ABSENT_TTL);
        };
        let lookup = upstream.lookup(question, RecordType::A);
        match timeout(EGRESS_RESOLVE_DEADLINE, lookup).await {
            Ok(Ok(found)) => filter(found.answers(), name, &self.internal),
            Ok(Err(error)) => (Err(classify(&error)), ABSENT_TTL),
            Err(_) => (Err(ResolveError::Unavailable), ABSENT_TTL),
        }
    }
}

/// The addresses that may be reached under the name that was asked for, whatever names an answer
/// went through. Those of internal networks are looked at again with the policy and a port.
/// There is no way out by IPv6, so only answers of IPv4 are read.
fn filter(
    records: &[hickory_proto::rr::Record],
    name: &HostName,
    internal: &[InternalNetwork],
) -> (Outcome, u32) {
    let ttl = records.iter().map(|record| record.ttl).min();
    let ttl = ttl.unwrap_or_default().clamp(*TTL.start(), *TTL.end());
    let mut is_answered = false;
    let mut addresses = Vec::new();
    for record in records {
        let RData::A(address) = &record.data else {
            continue;
        };
        is_answered = true;
        let is_new = addresses.len() < ADDRESSES_MAX && !addresses.contains(&address.0);
        if is_new && may_ever_reach(name, address.0, internal) {
            addresses.push(address.0);
        }
    }
    if is_answered {
        (Ok(addresses), ttl)
    } else {
        (Err(ResolveError::Empty), ttl)
    }
}

fn classify(error: &NetError) -> ResolveError {
    let NetError::Dns(DnsError::NoRecordsFound(found)) = error else {
        return ResolveError::Unavailable;
    };
    if found.response_code == ResponseCode::NXDomain {
        ResolveError::Absent
    } else {
        ResolveError::Empty
    }
}

fn build(servers: &[SocketAddr]) -> Option<TokioResolver> {
    if servers.is_empty() {
        return None;
    }
    let servers = servers.iter().map(|server| {
        let with_port = |mut connection: ConnectionConfig| {
            connection.port = server.port();
            connection
        };
        let connections = vec![
            with_port(ConnectionConfig::udp()),
            with_port(ConnectionConfig::tcp()),
        ];
        NameServerConfig::new(server.ip(), true, connections)
    });
    let config = ResolverConfig::from_name_servers(servers.collect());
    let mut options = ResolverOpts::default();
    options.timeout = ATTEMPT_LIMIT;
    options.attempts = 1;
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
    options.preserve_intermediates = false;
    options.num_concurrent_reqs = 1;
    let provider = TokioRuntimeProvider::default();
    TokioResolver::builder_with_config(config, provider)
        .with_options(options)
        .build()
        .ok()
}

#[cfg(test)]
mod tests {
    use hickory_proto::rr::Record;
    use hickory_proto::rr::rdata::{A, CNAME};

    use super::*;

    fn name(text: &str) -> Name {
        Name::from_ascii(text).unwrap()
    }

    fn address(ttl: u32, text: &str) -> Record {
        let data = RData::A(A(text.parse().unwrap()));
        Record::from_rdata(name("a.test."), ttl, data)
    }

    fn kept(records: &[Record]) -> (Outcome, u32) {
        filter(records, &HostName::parse("a.test").unwrap(), &[])
    }

    #[test]
    fn addresses_of_an_internal_network_are_kept_under_its_names() {
        let records = [
            address(9, "10.20.0.10"),
            address(9, "10.21.0.10"),
            address(9, "127.0.0.1"),
        ];
        let network = |host: &str| {
            serde_json::from_value(serde_json::json!({"name": "n", "projects": ["*"],
                "ranges": ["10.20.0.0/16"], "hosts": [host], "ports": [443]}))
        };
        let asked = HostName::parse("a.test").unwrap();
        let filtered = |host| {
            filter(&records, &asked, &[network(host).unwrap()])
                .0
                .unwrap()
        };
        assert_eq!(filtered("a.test"), [Ipv4Addr::new(10, 20, 0, 10)]);
        assert!(filtered("b.test").is_empty());
    }

    #[test]
    fn only_addresses_that_may_be_reached_are_kept() {
        let alias = RData::CNAME(CNAME(name("evil.test.")));
        let records = [
            Record::from_rdata(name("a.test."), 300, alias),
            address(0, "93.184.216.34"),
            address(300, "169.254.169.254"),
            address(300, "10.0.0.1"),
        ];
        let expected = Ok(vec![Ipv4Addr::new(93, 184, 216, 34)]);
        assert_eq!(kept(&records), (expected, 1));
        assert_eq!(kept(&records[2..]), (Ok(Vec::new()), 60));
        assert_eq!(kept(&records[..1]), (Err(ResolveError::Empty), 60));
    }

    #[test]
    fn an_answer_is_cut_to_what_fits() {
        let many: Vec<_> = (1..=100)
            .map(|last| address(30, &format!("93.184.216.{last}")))
            .collect();
        assert_eq!(kept(&many).0.unwrap().len(), ADDRESSES_MAX);
    }

    #[tokio::test]
    async fn without_a_resolver_nobody_can_be_asked() {
        let resolver = NameResolver::new(Arc::from([]), Arc::from([]));
        let name = HostName::parse("a.test").unwrap();
        assert_eq!(resolver.resolve(&name).await, Err(ResolveError::NoResolver));
    }

    #[test]
    fn a_cache_is_bounded() {
        let resolver = NameResolver::new(Arc::from([]), Arc::from([]));
        for number in 0..2 * CACHE_NAMES_MAX {
            let name = HostName::parse(&format!("n{number}.test")).unwrap();
            resolver.keep(&name, &Err(ResolveError::Absent), 60);
        }
        assert_eq!(resolver.cache.lock().unwrap().len(), CACHE_NAMES_MAX);
    }
}
