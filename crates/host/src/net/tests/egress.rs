//! What can leave the egress namespace, counted where it would arrive.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::nft;
use super::super::{
    EgressExceptions, EgressNamespace, NetworkError, Uplink, egress_rules_hold,
    ensure_egress_namespace, remove_egress_namespace,
};
use super::{LIMIT, QUIET, Scratch, accept_within, dial, eventually, ip_in, nft_in};
use crate::netns;

/// Samples of every range that nobody may reach.
pub(super) const NEVER: [&str; 22] = [
    "0.0.0.1",
    "10.0.0.5",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.2",
    "168.63.129.16",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.19.255.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.251",
    "240.0.0.1",
    "255.255.255.254",
];
pub(super) const PUBLIC: &str = "93.184.216.34";
const RESOLVER: &str = "10.9.9.9:53";

/// Everything that arrives is counted by where it was meant to go, and every TCP connection to
/// port 80 is taken.
pub(super) struct Sink {
    pub(super) namespace: PathBuf,
    pub(super) listener: TcpListener,
}

impl Sink {
    /// A sink behind the interface `near` of a namespace, which gets a default route to it.
    pub(super) fn behind(scratch: &mut Scratch, namespace: &Path, addresses: [&str; 2]) -> Self {
        let sink = scratch.namespace("sink");
        let path = sink.to_string_lossy().into_owned();
        let [ours, theirs] = addresses;
        let (ours_wide, theirs_wide) = (format!("{ours}/30"), format!("{theirs}/30"));
        let peer = ["peer", "name", "far", "netns", &path];
        ip_in(
            namespace,
            &[&["link", "add", "near", "type", "veth"], &peer[..]].concat(),
        );
        ip_in(namespace, &["address", "add", &ours_wide, "dev", "near"]);
        ip_in(namespace, &["link", "set", "near", "up"]);
        ip_in(namespace, &["link", "set", "lo", "up"]);
        ip_in(&sink, &["address", "add", &theirs_wide, "dev", "far"]);
        ip_in(&sink, &["link", "set", "far", "up"]);
        ip_in(&sink, &["link", "set", "lo", "up"]);
        // Whatever arrives was meant for this one.
        ip_in(
            &sink,
            &[
                "route",
                "add",
                "local",
                "0.0.0.0/0",
                "dev",
                "lo",
                "table",
                "local",
            ],
        );
        ip_in(
            namespace,
            &["route", "add", "default", "via", theirs, "dev", "near"],
        );
        nft_in(
            &sink,
            "table inet sink {
               set seen { type ipv4_addr; flags dynamic; size 65535; }
               chain arrivals {
                 type filter hook prerouting priority raw;
                 iifname \"far\" meta nfproto ipv4 add @seen { ip daddr }
               }
             }",
        );
        let listen = || TcpListener::bind("0.0.0.0:80").unwrap();
        let listener = netns::in_namespace(&sink, listen).unwrap();
        listener.set_nonblocking(true).unwrap();
        Self {
            namespace: sink,
            listener,
        }
    }

    pub(super) fn has_seen(&self, address: &str) -> bool {
        let list = || nft::list_all().map_err(|failed| failed.source);
        let words = netns::in_namespace(&self.namespace, list).unwrap().unwrap();
        words
            .split(|letter: char| letter != '.' && !letter.is_ascii_digit())
            .any(|word| word == address)
    }
}

/// Tries TCP and UDP to an address, without waiting for an answer.
pub(super) fn probe(namespace: &Path, address: &str) {
    let _ = dial(
        namespace,
        &format!("{address}:80"),
        Duration::from_millis(30),
    );
    let address: SocketAddr = format!("{address}:53").parse().unwrap();
    let send = move || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        let _ = socket.send_to(b"probe", address);
    };
    netns::in_namespace(namespace, send).unwrap();
}

/// Only questions to these are excepted.
pub(super) fn to(resolvers: &[&str]) -> EgressExceptions {
    EgressExceptions {
        resolvers: resolvers.iter().map(|one| one.parse().unwrap()).collect(),
        ..EgressExceptions::default()
    }
}

fn ensure(scratch: &mut Scratch, theirs: &Path) -> EgressNamespace {
    ensure_with(scratch, theirs, &to(&[RESOLVER]))
}

fn ensure_with(
    scratch: &mut Scratch,
    theirs: &Path,
    exceptions: &EgressExceptions,
) -> EgressNamespace {
    let path = scratch.path("not-made");
    let uplink = Uplink::Namespace(theirs.to_owned());
    let made = ensure_egress_namespace(&path, "test", &uplink, exceptions).unwrap();
    assert!(!path.exists());
    made
}

#[test]
fn what_nobody_may_reach_is_dropped_and_the_rest_gets_through() {
    let Some(mut scratch) = Scratch::new() else {
        return;
    };
    let theirs = scratch.namespace("theirs");
    // Public addresses on the link itself, so that only the destinations are special.
    let sink = Sink::behind(&mut scratch, &theirs, ["9.9.9.1", "9.9.9.2"]);
    let made = ensure(&mut scratch, &theirs);
    assert_eq!(made.path, theirs);
    for address in NEVER {
        probe(&theirs, address);
    }
    let _near = dial(&theirs, &format!("{PUBLIC}:80"), LIMIT).unwrap();
    assert!(accept_within(&sink.listener, LIMIT).is_some());
    std::thread::sleep(QUIET);
    assert!(sink.has_seen(PUBLIC));
    for address in NEVER {
        assert!(!sink.has_seen(address), "{address} was reached");
    }
    // The same probes reach the sink without the rules, but for the one that stays on the host.
    let path = scratch.path("not-made");
    let uplink = Uplink::Namespace(theirs.clone());
    remove_egress_namespace(&path, "test", &uplink).unwrap();
    for address in NEVER {
        probe(&theirs, address);
    }
    for address in NEVER.into_iter().filter(|address| *address != "127.0.0.2") {
        eventually(address, || sink.has_seen(address));
    }
    assert!(theirs.exists(), "the namespace is its owner's to remove");
}

#[test]
fn resolvers_are_reached_at_their_port_and_nothing_else_of_them() {
    let Some(mut scratch) = Scratch::new() else {
        return;
    };
    let theirs = scratch.namespace("theirs");
    let sink = Sink::behind(&mut scratch, &theirs, ["9.9.9.1", "9.9.9.2"]);
    ensure(&mut scratch, &theirs);
    let resolver = RESOLVER.split(':').next().unwrap();
    let udp = |address: String| {
        let send = move || {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            let _ = socket.send_to(b"probe", address);
        };
        netns::in_namespace(&theirs, send).unwrap();
    };
    udp(format!("{resolver}:54"));
    let _ = dial(
        &theirs,
        &format!("{resolver}:80"),
        Duration::from_millis(30),
    );
    udp(format!("{PUBLIC}:53"));
    std::thread::sleep(QUIET);
    assert!(!sink.has_seen(resolver));
    assert!(!sink.has_seen(PUBLIC), "no datagrams to anybody else");
    udp(RESOLVER.to_owned());
    eventually("the question arrives", || sink.has_seen(resolver));
}

#[test]
fn a_resolver_in_the_namespace_itself_is_reached() {
    let Some(mut scratch) = Scratch::new() else {
        return;
    };
    let theirs = scratch.namespace("theirs");
    ip_in(&theirs, &["link", "set", "lo", "up"]);
    let resolver: SocketAddr = "127.0.0.1:53".parse().unwrap();
    let uplink = Uplink::Namespace(theirs.clone());
    let path = scratch.path("not-made");
    ensure_egress_namespace(&path, "test", &uplink, &to(&["127.0.0.1:53"])).unwrap();
    let bind = move |port| {
        let bind = move || UdpSocket::bind(("127.0.0.1", port)).unwrap();
        let socket = netns::in_namespace(&theirs, bind).unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        socket
    };
    let (server, other, client) = (bind(53), bind(54), bind(0));
    client.send_to(b"who", resolver).unwrap();
    let mut words = [0; 8];
    let (length, from) = server.recv_from(&mut words).unwrap();
    assert_eq!(&words[..length], b"who");
    server.send_to(b"me", from).unwrap();
    let length = client.recv(&mut words).unwrap();
    assert_eq!(&words[..length], b"me");
    let error = client.send_to(b"who", other.local_addr().unwrap());
    assert!(error.is_err(), "another service of the namespace");
}

#[test]
fn nothing_leaves_on_ipv6() {
    let Some(mut scratch) = Scratch::new() else {
        return;
    };
    let theirs = scratch.namespace("theirs");
    let sink = Sink::behind(&mut scratch, &theirs, ["9.9.9.1", "9.9.9.2"]);
    let address = |namespace: &Path, address: &str, interface: &str| {
        let words = ["-6", "address", "add", address, "dev", interface, "nodad"];
        ip_in(namespace, &words);
    };
    address(&theirs, "2606:2800::1/64", "near");
    address(&sink.namespace, "2606:2800::2/64", "far");
    let listen = || TcpListener::bind("[2606:2800::2]:80").unwrap();
    let listener = netns::in_namespace(&sink.namespace, listen).unwrap();
    listener.set_nonblocking(true).unwrap();
    let destination = "[2606:2800::2]:80";
    assert!(dial(&theirs, destination, LIMIT).is_ok());
    assert!(accept_within(&listener, LIMIT).is_some());
    ensure(&mut scratch, &theirs);
    assert!(dial(&theirs, destination, QUIET).is_err());
    assert!(accept_within(&listener, QUIET).is_none());
}

#[test]
fn nothing_comes_in_and_lost_rules_are_noticed_and_restored() {
    let Some(mut scratch) = Scratch::new() else {
        return;
    };
    let theirs = scratch.namespace("theirs");
    let sink = Sink::behind(&mut scratch, &theirs, ["9.9.9.1", "9.9.9.2"]);
    let listen = || TcpListener::bind("0.0.0.0:7000").unwrap();
    let listener = netns::in_namespace(&theirs, listen).unwrap();
    listener.set_nonblocking(true).unwrap();
    let dials = || dial(&sink.namespace, "9.9.9.1:7000", QUIET);
    // The sink takes every address for its own but this one.
    ip_in(
        &sink.namespace,
        &["route", "add", "9.9.9.1/32", "dev", "far", "table", "local"],
    );
    assert!(dials().is_ok());
    ensure(&mut scratch, &theirs);
    let resolvers = [RESOLVER];
    let uplink = Uplink::Namespace(theirs.clone());
    let holds =
        |resolvers: &[&str]| egress_rules_hold(&theirs, "test", &uplink, &to(resolvers)).unwrap();
    assert!(holds(&resolvers));
    assert!(!holds(&[]));
    assert!(dials().is_err());
    nft_in(&theirs, "flush chain inet dayfly_egress output");
    assert!(!holds(&resolvers));
    nft_in(&theirs, "delete table inet dayfly_egress");
    assert!(!holds(&resolvers));
    ensure(&mut scratch, &theirs);
    assert!(holds(&resolvers));
}

#[test]
fn the_hosts_own_namespace_is_refused() {
    let Some(mut scratch) = Scratch::new() else {
        return;
    };
    let path = scratch.path("not-made");
    let uplink = Uplink::Namespace(PathBuf::from("/proc/self/ns/net"));
    let error = ensure_egress_namespace(&path, "test", &uplink, &to(&[])).unwrap_err();
    assert!(matches!(error, NetworkError::Enter { .. }), "{error}");
    let error = std::error::Error::source(&error).unwrap().to_string();
    assert!(error.contains("the host's own"), "{error}");
}

#[test]
fn a_link_to_a_namespace_leads_to_it() {
    let Some(mut scratch) = Scratch::new() else {
        return;
    };
    let theirs = scratch.namespace("theirs");
    let link = scratch.directory.path().join("link");
    std::os::unix::fs::symlink(&theirs, &link).unwrap();
    let made = ensure(&mut scratch, &link);
    assert_eq!(made.path, theirs);
}

#[test]
fn a_namespace_without_an_uplink_is_made_once_and_removed() {
    let Some(mut scratch) = Scratch::new() else {
        return;
    };
    let path = scratch.path("egress");
    let ensure = || ensure_egress_namespace(&path, "test", &Uplink::None, &to(&[])).unwrap();
    // What a crash leaves between the making of the file and the mount on it.
    std::fs::write(&path, "").unwrap();
    let first = ensure();
    let number = || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&path).unwrap());
    let before = number();
    assert_eq!(ensure(), first);
    assert_eq!(number(), before, "found, not made anew");
    assert!(egress_rules_hold(&path, "test", &Uplink::None, &to(&[])).unwrap());
    remove_egress_namespace(&path, "test", &Uplink::None).unwrap();
    remove_egress_namespace(&path, "test", &Uplink::None).unwrap();
    assert!(!path.exists());
}
