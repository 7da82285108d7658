//! Names to addresses in a program that is linked statically.
//!
//! The C library's own resolver loads what `/etc/nsswitch.conf` names into the process. In a static
//! program those come with a second C library, of another version, and it may end right there. So a
//! static one reads `/etc/hosts` and asks the name servers of `/etc/resolv.conf` by itself. Names
//! that only a module of the host knows, as of `mdns` or `mymachines`, it does not find.

use std::net::IpAddr;

/// As many name servers as the C library takes.
const SERVERS_MAX: usize = 3;
const SEARCHED_MAX: usize = 6;

/// What `/etc/resolv.conf` says.
#[derive(Debug, Default, PartialEq, Eq)]
struct ResolverFile {
    servers: Vec<IpAddr>,
    searched: Vec<String>,
}

impl ResolverFile {
    fn parse(text: &str) -> Self {
        let mut file = Self::default();
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                // An address with a zone is of one link, and not of use to a parser of addresses.
                Some("nameserver") => file
                    .servers
                    .extend(words.next().and_then(|word| word.parse::<IpAddr>().ok())),
                Some("search" | "domain") => {
                    file.searched = words.take(SEARCHED_MAX).map(str::to_owned).collect();
                }
                _ => {}
            }
        }
        file.servers.truncate(SERVERS_MAX);
        file
    }
}

#[cfg(target_feature = "crt-static")]
pub(crate) use resolver::Names;

#[cfg(target_feature = "crt-static")]
mod resolver {
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};

    use hickory_resolver::TokioResolver;
    use hickory_resolver::config::{NameServerConfig, ResolverConfig};
    use hickory_resolver::net::runtime::TokioRuntimeProvider;
    use hickory_resolver::proto::rr::Name as DnsName;
    use reqwest::dns::{Addrs, Name, Resolve, Resolving};

    use super::ResolverFile;

    const FILE: &str = "/etc/resolv.conf";

    /// The names of this host and of its name servers.
    #[derive(Debug)]
    pub(crate) struct Names(Option<TokioResolver>);

    impl Names {
        pub(crate) fn of_host() -> Self {
            let text = std::fs::read_to_string(FILE).unwrap_or_default();
            let ResolverFile {
                mut servers,
                searched,
            } = ResolverFile::parse(&text);
            if servers.is_empty() {
                // What the C library does.
                servers.push(IpAddr::from(Ipv4Addr::LOCALHOST));
            }
            let searched = searched
                .iter()
                .filter_map(|name| DnsName::from_utf8(name).ok());
            let servers = servers.into_iter().map(NameServerConfig::udp_and_tcp);
            let config = ResolverConfig::from_parts(None, searched.collect(), servers.collect());
            let provider = TokioRuntimeProvider::default();
            Self(
                TokioResolver::builder_with_config(config, provider)
                    .build()
                    .ok(),
            )
        }
    }

    impl Resolve for Names {
        fn resolve(&self, name: Name) -> Resolving {
            let resolver = self.0.clone();
            Box::pin(async move {
                let resolver = resolver.ok_or("the resolver could not be set up")?;
                let found = resolver.lookup_ip(name.as_str()).await?;
                let found: Vec<SocketAddr> = found
                    .iter()
                    .map(|address| SocketAddr::new(address, 0))
                    .collect();
                Ok(Box::new(found.into_iter()) as Addrs)
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_searched_domains_are_read() {
        let text = "# made by hand\nnameserver 192.0.2.1\nnameserver fe80::1%eth0\n\
                    nameserver 2001:db8::1\nsearch a.example b.example\noptions ndots:2\nnameserver\n";
        let found = ResolverFile::parse(text);
        let servers: Vec<String> = found.servers.iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["192.0.2.1", "2001:db8::1"]);
        assert_eq!(found.searched, ["a.example", "b.example"]);
        assert_eq!(ResolverFile::parse(""), ResolverFile::default());
    }
}
