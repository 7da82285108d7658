//! The link to the host, with a namespace in the part of the host.

use std::path::{Path, PathBuf};

use super::super::{
    EgressNamespace, NetworkError, Uplink, egress_rules_hold, ensure_egress_namespace, nft,
    remove_egress_namespace,
};
use super::egress::{NEVER, PUBLIC, Sink, probe, to};
use super::{LIMIT, QUIET, Scratch, accept_within, dial, ip_in};
use crate::netns;

const INSTANCE: &str = "nattest";

fn on_host<T: Send + 'static>(host: &Path, work: impl FnOnce() -> T + Send + 'static) -> T {
    netns::in_namespace(host, work).unwrap()
}

fn ensure(host: &Path, path: &Path, uplink: Uplink) -> Result<EgressNamespace, NetworkError> {
    let path = path.to_owned();
    on_host(host, move || {
        ensure_egress_namespace(&path, INSTANCE, &uplink, &to(&[]))
    })
}

fn remove(host: &Path, path: &Path) {
    let path: PathBuf = path.to_owned();
    on_host(host, move || {
        remove_egress_namespace(&path, INSTANCE, &Uplink::Nat)
    })
    .unwrap();
}

fn state(host: &Path) -> (String, String, String) {
    on_host(host, || {
        let read = |path: &str| std::fs::read_to_string(path).unwrap();
        let interfaces = super::super::interface_names().unwrap().join(" ");
        let forwarding = read("/proc/sys/net/ipv4/ip_forward");
        let rules = nft::list_all().map_err(|failed| failed.source).unwrap();
        (interfaces, forwarding, rules)
    })
}

#[test]
fn the_host_carries_public_traffic_and_nothing_else() {
    let Some(mut scratch) = Scratch::new() else {
        return;
    };
    let host = scratch.namespace("host");
    on_host(&host, || {
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "0").unwrap()
    });
    let sink = Sink::behind(&mut scratch, &host, ["9.9.9.1", "9.9.9.2"]);
    let before = state(&host);
    let path = scratch.path("egress");
    let made = ensure(&host, &path, Uplink::Nat).unwrap();
    let link = made.nat.clone().unwrap();
    assert_eq!(link.interface, "dfy-nattest");
    assert_eq!(link.host_address.to_string(), "100.127.253.1");
    assert_eq!(
        ensure(&host, &path, Uplink::Nat).unwrap(),
        made,
        "found again"
    );

    let _near = dial(&path, &format!("{PUBLIC}:80"), LIMIT).unwrap();
    let far = accept_within(&sink.listener, LIMIT).unwrap();
    assert_eq!(
        far.peer_addr().unwrap().ip().to_string(),
        "9.9.9.1",
        "the host's own address"
    );
    for address in NEVER {
        probe(&path, address);
    }
    std::thread::sleep(QUIET);
    for address in NEVER {
        assert!(!sink.has_seen(address), "{address} was reached");
    }
    remove(&host, &path);
    remove(&host, &path);
    assert_eq!(state(&host), before);
    assert!(!path.exists());
}

#[test]
fn a_program_without_its_rules_is_stopped_by_the_host() {
    let Some(mut scratch) = Scratch::new() else {
        return;
    };
    let host = scratch.namespace("host");
    let sink = Sink::behind(&mut scratch, &host, ["9.9.9.1", "9.9.9.2"]);
    let path = scratch.path("egress");
    let link = ensure(&host, &path, Uplink::Nat).unwrap().nat.unwrap();
    super::nft_in(&path, "flush ruleset");
    for address in NEVER {
        probe(&path, address);
    }
    // Neither the host itself, by either of its addresses.
    let listen = || std::net::TcpListener::bind("0.0.0.0:22").unwrap();
    let service = on_host(&host, listen);
    service.set_nonblocking(true).unwrap();
    for address in [link.host_address.to_string(), "9.9.9.1".to_owned()] {
        assert!(
            dial(&path, &format!("{address}:22"), QUIET).is_err(),
            "{address}"
        );
    }
    assert!(
        dial(&host, "127.0.0.1:22", LIMIT).is_ok(),
        "the service is there"
    );
    for address in NEVER {
        assert!(!sink.has_seen(address), "{address} was reached");
    }
    let _near = dial(&path, &format!("{PUBLIC}:80"), LIMIT).unwrap();
    remove(&host, &path);
}

#[test]
fn a_host_that_did_not_forward_forwards_for_nobody_else() {
    let Some(mut scratch) = Scratch::new() else {
        return;
    };
    let host = scratch.namespace("host");
    on_host(&host, || {
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "0").unwrap()
    });
    let sink = Sink::behind(&mut scratch, &host, ["9.9.9.1", "9.9.9.2"]);
    // A neighbour on another side of the host.
    let neighbour = scratch.namespace("neighbour");
    let there = neighbour.to_string_lossy().into_owned();
    let peer = ["peer", "name", "eth0", "netns", &there];
    ip_in(
        &host,
        &[&["link", "add", "lan", "type", "veth"], &peer[..]].concat(),
    );
    ip_in(&host, &["address", "add", "8.1.1.1/30", "dev", "lan"]);
    ip_in(&host, &["link", "set", "lan", "up"]);
    ip_in(&neighbour, &["address", "add", "8.1.1.2/30", "dev", "eth0"]);
    ip_in(&neighbour, &["link", "set", "eth0", "up"]);
    ip_in(&neighbour, &["route", "add", "default", "via", "8.1.1.1"]);
    ip_in(
        &sink.namespace,
        &[
            "route",
            "add",
            "8.1.1.0/30",
            "via",
            "9.9.9.1",
            "table",
            "local",
        ],
    );
    let path = scratch.path("egress");
    ensure(&host, &path, Uplink::Nat).unwrap();
    assert!(dial(&neighbour, &format!("{PUBLIC}:80"), QUIET).is_err());
    // It would have gone through, had the host forwarded for everybody.
    super::nft_in(&host, "delete table inet dayfly_forwarding");
    assert!(dial(&neighbour, &format!("{PUBLIC}:80"), LIMIT).is_ok());
    remove(&host, &path);
}

#[test]
fn what_the_host_lost_is_noticed_and_restored() {
    let Some(mut scratch) = Scratch::new() else {
        return;
    };
    let host = scratch.namespace("host");
    let sink = Sink::behind(&mut scratch, &host, ["9.9.9.1", "9.9.9.2"]);
    let path = scratch.path("egress");
    let holds = || {
        let path = path.clone();
        on_host(&host, move || {
            egress_rules_hold(&path, INSTANCE, &Uplink::Nat, &to(&[])).unwrap()
        })
    };
    ensure(&host, &path, Uplink::Nat).unwrap();
    let losses = [
        "flush chain inet dayfly_nat_nattest outgoing",
        "delete table inet dayfly_nat_nattest",
    ];
    for loss in losses {
        assert!(holds(), "before: {loss}");
        super::nft_in(&host, loss);
        assert!(!holds(), "after: {loss}");
        ensure(&host, &path, Uplink::Nat).unwrap();
    }
    on_host(&host, || {
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "0").unwrap()
    });
    assert!(!holds(), "without forwarding");
    ensure(&host, &path, Uplink::Nat).unwrap();
    assert!(holds());
    let _near = dial(&path, &format!("{PUBLIC}:80"), LIMIT).unwrap();
    assert!(accept_within(&sink.listener, LIMIT).is_some());
    remove(&host, &path);
}

#[test]
fn another_uplink_takes_the_place_of_the_link() {
    let Some(mut scratch) = Scratch::new() else {
        return;
    };
    let host = scratch.namespace("host");
    let path = scratch.path("egress");
    ensure(&host, &path, Uplink::Nat).unwrap();
    assert!(state(&host).0.contains("dfy-nattest"));
    let made = ensure(&host, &path, Uplink::None).unwrap();
    assert_eq!(made.nat, None);
    let (interfaces, _, rules) = state(&host);
    assert_eq!(interfaces, "lo");
    assert!(rules.is_empty(), "{rules}");
    // A link whose other end went with its namespace is made anew.
    ensure(&host, &path, Uplink::Nat).unwrap();
    netns::remove(&path).unwrap();
    ensure(&host, &path, Uplink::Nat).unwrap();
    remove(&host, &path);
}
