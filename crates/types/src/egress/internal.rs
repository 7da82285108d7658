//! Networks inside private space that the operator has opened, for each project.
//!
//! They only permit: a sandbox still needs a rule of its own. A range that could hold the host's
//! loopback, a metadata service or a sandbox cannot be written at all, so nobody has to look for it
//! later. The host's other addresses change while it runs; the kernel's rules keep those shut.

use std::net::Ipv4Addr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::{HostName, HostPattern, InvalidPolicy, Ipv4Network, Ports};
use crate::ProjectId;
use crate::limits;

/// What can be opened: private addresses, and the shared address space of providers. Everything
/// else that is shut stays shut for everybody.
const OPENABLE: [Ipv4Network; 4] = [
    Ipv4Network::constant(Ipv4Addr::new(10, 0, 0, 0), 8),
    Ipv4Network::constant(Ipv4Addr::new(100, 64, 0, 0), 10),
    Ipv4Network::constant(Ipv4Addr::new(172, 16, 0, 0), 12),
    Ipv4Network::constant(Ipv4Addr::new(192, 168, 0, 0), 16),
];
/// Inside of that, what nobody opens: services that a cloud or a tunnel has at the same address on
/// every host, and the addresses that every sandbox and its gateway have.
const CLOSED_INSIDE: [(Ipv4Network, &str); 3] = [
    (
        Ipv4Network::constant(Ipv4Addr::new(100, 100, 100, 200), 32),
        "the metadata service of a cloud",
    ),
    (
        Ipv4Network::constant(Ipv4Addr::new(100, 100, 100, 100), 32),
        "the local service of a tunnel",
    ),
    (
        Ipv4Network::constant(Ipv4Addr::new(10, 11, 0, 0), 24),
        "the addresses of sandboxes themselves",
    ),
];
const NAME_BYTES_MAX: usize = 50;
const ALL_PROJECTS: &str = "*";

/// Whose sandboxes may be let through.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Projects {
    All,
    Named(Vec<ProjectId>),
}

/// One of them. Its ranges are private, apart from each other, and hold nothing that must stay shut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked", into = "Unchecked")]
pub struct InternalNetwork {
    name: String,
    projects: Projects,
    ranges: Vec<Ipv4Network>,
    /// The names that lead into the ranges. None: no name does, only rules for addresses do.
    hosts: Option<Vec<HostPattern>>,
    ports: Ports,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    name: String,
    projects: Vec<String>,
    ranges: Vec<Ipv4Network>,
    #[serde(
        default,
        deserialize_with = "listed_hosts",
        skip_serializing_if = "Option::is_none"
    )]
    hosts: Option<Vec<HostPattern>>,
    ports: Vec<u16>,
}

/// `null` is no way to leave them out: whoever wrote it may have meant that there are none.
fn listed_hosts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<HostPattern>>, D::Error> {
    let hosts = Option::<Vec<HostPattern>>::deserialize(deserializer)?;
    hosts
        .map(Some)
        .ok_or_else(|| D::Error::custom(InvalidInternalNetwork::Hosts))
}

/// Why such a network is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidInternalNetwork {
    #[error("the name of an internal network has 1 to 50 lower case letters, digits or hyphens")]
    Name,
    #[error(
        "an internal network names its projects, or all of them as [\"*\"], which stands alone"
    )]
    Projects,
    #[error("`{0}` is no project")]
    Project(String),
    #[error(
        "an internal network has 1 to {} ranges",
        limits::INTERNAL_NETWORK_ENTRIES_MAX
    )]
    Ranges,
    #[error(
        "{0} is not inside 10.0.0.0/8, 100.64.0.0/10, 172.16.0.0/12 or 192.168.0.0/16; a rule of a \
         sandbox opens public addresses, and nothing opens loopback, link-local, multicast and \
         reserved ones"
    )]
    NotPrivate(Ipv4Network),
    #[error("{range} overlaps {closed}, {what}; write ranges beside it")]
    Closed {
        range: Ipv4Network,
        closed: Ipv4Network,
        what: &'static str,
    },
    #[error("the ranges {0} and {1} overlap; write the wider one alone")]
    Overlap(Ipv4Network, Ipv4Network),
    #[error(
        "`hosts` has 1 to {} names; leave it out if addresses alone decide",
        limits::INTERNAL_NETWORK_ENTRIES_MAX
    )]
    Hosts,
    #[error(transparent)]
    Ports(InvalidPolicy),
    #[error(
        "there are at most {} internal networks",
        limits::INTERNAL_NETWORKS_MAX
    )]
    TooMany,
    #[error("two internal networks have the name {0}")]
    SameName(String),
}

impl TryFrom<Unchecked> for InternalNetwork {
    type Error = InvalidInternalNetwork;

    fn try_from(unchecked: Unchecked) -> Result<Self, InvalidInternalNetwork> {
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let name = unchecked.name;
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_plain) {
            return Err(InvalidInternalNetwork::Name);
        }
        check_ranges(&unchecked.ranges)?;
        let is_listed = |count: usize| (1..=limits::INTERNAL_NETWORK_ENTRIES_MAX).contains(&count);
        let hosts = unchecked.hosts;
        if hosts.as_ref().is_some_and(|hosts| !is_listed(hosts.len())) {
            return Err(InvalidInternalNetwork::Hosts);
        }
        Ok(Self {
            name,
            projects: projects(&unchecked.projects)?,
            ranges: unchecked.ranges,
            hosts,
            ports: Ports::new(unchecked.ports).map_err(InvalidInternalNetwork::Ports)?,
        })
    }
}

fn projects(named: &[String]) -> Result<Projects, InvalidInternalNetwork> {
    if matches!(named, [only] if only == ALL_PROJECTS) {
        return Ok(Projects::All);
    }
    let has_all = named.iter().any(|one| one == ALL_PROJECTS);
    if named.is_empty() || named.len() > limits::INTERNAL_NETWORK_ENTRIES_MAX || has_all {
        return Err(InvalidInternalNetwork::Projects);
    }
    let parse = |one: &String| {
        ProjectId::parse(one).map_err(|_| InvalidInternalNetwork::Project(one.clone()))
    };
    named
        .iter()
        .map(parse)
        .collect::<Result<_, _>>()
        .map(Projects::Named)
}

fn check_ranges(ranges: &[Ipv4Network]) -> Result<(), InvalidInternalNetwork> {
    if ranges.is_empty() || ranges.len() > limits::INTERNAL_NETWORK_ENTRIES_MAX {
        return Err(InvalidInternalNetwork::Ranges);
    }
    for (index, range) in ranges.iter().enumerate() {
        if !OPENABLE.into_iter().any(|wide| range.is_within(wide)) {
            return Err(InvalidInternalNetwork::NotPrivate(*range));
        }
        let mut closed = CLOSED_INSIDE.into_iter();
        if let Some((closed, what)) = closed.find(|(closed, _)| range.overlaps(*closed)) {
            return Err(InvalidInternalNetwork::Closed {
                range: *range,
                closed,
                what,
            });
        }
        if let Some(other) = ranges[..index].iter().find(|other| other.overlaps(*range)) {
            return Err(InvalidInternalNetwork::Overlap(*other, *range));
        }
    }
    Ok(())
}

impl From<InternalNetwork> for Unchecked {
    fn from(network: InternalNetwork) -> Self {
        Self {
            name: network.name,
            projects: match network.projects {
                Projects::All => vec![ALL_PROJECTS.to_owned()],
                Projects::Named(projects) => projects.into_iter().map(String::from).collect(),
            },
            ranges: network.ranges,
            hosts: network.hosts,
            ports: network.ports.into(),
        }
    }
}

impl InternalNetwork {
    /// What records call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    #[must_use]
    pub fn is_for(&self, project: &ProjectId) -> bool {
        match &self.projects {
            Projects::All => true,
            Projects::Named(projects) => projects.contains(project),
        }
    }

    #[must_use]
    pub fn ranges(&self) -> &[Ipv4Network] {
        &self.ranges
    }

    /// The names that lead into the ranges; none when no name does, and only a rule for an address.
    #[must_use]
    pub fn hosts(&self) -> Option<&[HostPattern]> {
        self.hosts.as_deref()
    }

    #[must_use]
    pub const fn ports(&self) -> &Ports {
        &self.ports
    }

    #[must_use]
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        self.ranges.iter().any(|range| range.contains(address))
    }

    /// Whether the operator permits a connection to this address under this name, or under none.
    /// Without a port: at some port. Which rule of the sandbox it takes besides is another matter.
    #[must_use]
    pub fn opens(&self, name: Option<&HostName>, port: Option<u16>, address: Ipv4Addr) -> bool {
        let is_named = match (&self.hosts, name) {
            (None, _) => true,
            (Some(hosts), Some(name)) => hosts.iter().any(|host| host.matches(name)),
            (Some(_), None) => false,
        };
        is_named && port.is_none_or(|port| self.ports.contains(port)) && self.contains(address)
    }
}

/// All that the operator has opened, each under a name of its own.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "Vec<InternalNetwork>", into = "Vec<InternalNetwork>")]
pub struct InternalNetworks(Vec<InternalNetwork>);

impl InternalNetworks {
    #[must_use]
    pub fn as_slice(&self) -> &[InternalNetwork] {
        &self.0
    }

    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those of one project.
    #[must_use]
    pub fn of(&self, project: &ProjectId) -> Vec<InternalNetwork> {
        let its_own = self.0.iter().filter(|network| network.is_for(project));
        its_own.cloned().collect()
    }

    /// Takes out those that hold one of these addresses, and gives them with the address.
    #[must_use]
    pub fn remove_holding(&mut self, addresses: &[Ipv4Addr]) -> Vec<(InternalNetwork, Ipv4Addr)> {
        let mut taken = Vec::new();
        self.0.retain(|network| {
            let held = addresses.iter().find(|one| network.contains(**one));
            taken.extend(held.map(|address| (network.clone(), *address)));
            held.is_none()
        });
        taken
    }
}

impl TryFrom<Vec<InternalNetwork>> for InternalNetworks {
    type Error = InvalidInternalNetwork;

    fn try_from(networks: Vec<InternalNetwork>) -> Result<Self, InvalidInternalNetwork> {
        if networks.len() > limits::INTERNAL_NETWORKS_MAX {
            return Err(InvalidInternalNetwork::TooMany);
        }
        for (index, network) in networks.iter().enumerate() {
            if networks[..index].iter().any(|one| one.name == network.name) {
                return Err(InvalidInternalNetwork::SameName(network.name.clone()));
            }
        }
        Ok(Self(networks))
    }
}

impl From<InternalNetworks> for Vec<InternalNetwork> {
    fn from(networks: InternalNetworks) -> Self {
        networks.0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn network(change: impl FnOnce(&mut Value)) -> Result<InternalNetwork, String> {
        let mut value = json!({"name": "mirror", "projects": ["team-a"],
            "ranges": ["10.20.0.0/16"], "hosts": ["mirror.corp.example"], "ports": [443, 8080]});
        change(&mut value);
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    fn with_range(range: &str) -> Result<InternalNetwork, String> {
        network(|value| value["ranges"] = json!([range]))
    }

    #[test]
    fn it_opens_what_is_written_and_nothing_beside() {
        let network = network(|_| {}).unwrap();
        let name = |text| HostName::parse(text).unwrap();
        let (mirror, other) = (name("mirror.corp.example"), name("other.corp.example"));
        let inside = Ipv4Addr::new(10, 20, 255, 255);
        assert!(network.opens(Some(&mirror), Some(443), inside));
        assert!(network.opens(Some(&mirror), None, inside));
        assert!(!network.opens(Some(&mirror), Some(22), inside));
        assert!(!network.opens(Some(&other), Some(443), inside));
        assert!(!network.opens(None, Some(443), inside), "hosts are names");
        for outside in ["10.19.255.255", "10.21.0.0", "127.0.0.1", "93.184.216.34"] {
            assert!(!network.opens(Some(&mirror), Some(443), outside.parse().unwrap()));
        }
        assert!(network.is_for(&ProjectId::parse("team-a").unwrap()));
        assert!(!network.is_for(&ProjectId::parse("team-b").unwrap()));
    }

    #[test]
    fn what_must_stay_shut_cannot_be_written() {
        for range in [
            "0.0.0.0/0",
            "0.0.0.0/8",
            "8.0.0.0/5",
            "93.184.216.0/24",
            "100.0.0.0/8",
            "127.0.0.0/8",
            "127.0.0.1",
            "168.63.129.16",
            "169.254.0.0/16",
            "169.254.169.254",
            "172.0.0.0/8",
            "192.0.0.0/24",
            "192.0.0.0/8",
            "198.18.0.0/15",
            "224.0.0.0/4",
            "255.255.255.255",
            "fd00:ec2::254",
            "fe80::/10",
            "10.20.0.1/16",
        ] {
            assert!(with_range(range).is_err(), "{range}");
        }
        for (range, what) in [
            ("100.64.0.0/10", "metadata"),
            ("100.100.0.0/16", "metadata"),
            ("100.100.100.200", "metadata"),
            ("100.100.100.100", "tunnel"),
            ("100.100.100.0/25", "tunnel"),
            ("10.0.0.0/8", "sandboxes"),
            ("10.11.0.2", "sandboxes"),
            ("10.11.0.0/16", "sandboxes"),
        ] {
            let error = with_range(range).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
        for range in [
            "10.20.0.0/16",
            "100.64.0.0/16",
            "172.16.0.0/12",
            "192.168.0.0/16",
        ] {
            assert!(with_range(range).is_ok(), "{range}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let wrong: [(&str, Value); 12] = [
            ("name", json!("Mirror")),
            ("name", json!("")),
            ("projects", json!([])),
            ("projects", json!(["*", "team-a"])),
            ("projects", json!(["Team A"])),
            ("ranges", json!([])),
            ("ranges", json!(["10.20.0.0/16", "10.20.1.0/24"])),
            ("hosts", json!([])),
            ("hosts", json!(null)),
            ("hosts", json!(["*"])),
            ("ports", json!([])),
            ("port", json!([443])),
        ];
        for (key, value) in wrong {
            let text = format!("{key} = {value}");
            assert!(network(|network| network[key] = value).is_err(), "{text}");
        }
        for key in ["name", "projects", "ranges", "ports"] {
            let without = |network: &mut Value| drop(network.as_object_mut().unwrap().remove(key));
            assert!(network(without).is_err(), "without {key}");
        }
        let twice = vec![network(|_| {}).unwrap(); 2];
        let error = InternalNetworks::try_from(twice).unwrap_err();
        assert_eq!(error, InvalidInternalNetwork::SameName("mirror".to_owned()));
    }

    #[test]
    fn they_survive_their_text_and_are_found_by_project() {
        let all = network(|value| {
            value["name"] = json!("all");
            value["projects"] = json!(["*"]);
            value.as_object_mut().unwrap().remove("hosts");
        });
        let networks = vec![network(|_| {}).unwrap(), all.unwrap()];
        let mut networks = InternalNetworks::try_from(networks).unwrap();
        let text = serde_json::to_string(&networks).unwrap();
        let again: InternalNetworks = serde_json::from_str(&text).unwrap();
        assert_eq!(again, networks);
        let names = |project: &str| {
            let found = networks.of(&ProjectId::parse(project).unwrap());
            found
                .iter()
                .map(|one| one.name().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names("team-a"), ["mirror", "all"]);
        assert_eq!(names("team-b"), ["all"]);
        let here = Ipv4Addr::new(10, 20, 0, 7);
        let elsewhere = Ipv4Addr::new(10, 21, 0, 7);
        assert!(networks.remove_holding(&[elsewhere]).is_empty());
        assert_eq!(networks.remove_holding(&[here]).len(), 2);
        assert!(networks.is_empty());
    }
}
