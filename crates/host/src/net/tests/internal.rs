//! What the kernel opens for internal networks, with no program in front of it.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use super::super::{
    EgressExceptions, GATEWAY_ADDRESS, GUEST_ADDRESS, Uplink, egress_rules_hold,
    ensure_egress_namespace, remove_egress_namespace,
};
use super::egress::{NEVER, PUBLIC, Sink, probe};
use super::{LIMIT, QUIET, Scratch, accept_within, dial, ip_in};
use crate::netns;

const INSTANCE: &str = "inttest";
const INSIDE: [&str; 3] = ["10.20.0.0", "10.20.0.10", "10.20.0.255"];
const BESIDE: [&str; 4] = ["10.19.255.255", "10.20.1.0", "10.11.0.2", "172.20.0.1"];

/// Port 80 of one range, and another port of another.
fn exceptions() -> EgressExceptions {
    let internal = serde_json::json!([
        {"name": "mirror", "projects": ["a"], "ranges": ["10.20.0.0/24"], "ports": [80]},
        {"name": "other", "projects": ["b"], "ranges": ["172.20.0.0/16"], "ports": [81]}]);
    EgressExceptions {
        internal: serde_json::from_value(internal).unwrap(),
        ..EgressExceptions::default()
    }
}

fn ensure(host: &Path, path: &Path, uplink: &Uplink) {
    ensure_with(host, path, uplink, exceptions());
}

fn ensure_with(host: &Path, path: &Path, uplink: &Uplink, exceptions: EgressExceptions) {
    let (path, uplink) = (path.to_owned(), uplink.clone());
    let made = netns::in_namespace(host, move || {
        ensure_egress_namespace(&path, INSTANCE, &uplink, &exceptions).map(drop)
    });
    made.unwrap().unwrap();
}

/// The ranges at their ports and nothing beside them.
fn assert_exactly_open(egress: &Path, sink: &Sink) {
    for address in INSIDE {
        let near = dial(egress, &format!("{address}:80"), LIMIT);
        assert!(near.is_ok(), "{address}: {near:?}");
        assert!(accept_within(&sink.listener, LIMIT).is_some());
    }
    let other_port = dial(egress, "10.20.0.11:81", Duration::from_millis(30));
    assert!(other_port.is_err());
    for address in NEVER.into_iter().chain(BESIDE) {
        probe(egress, address);
    }
    // TCP alone.
    let send = || {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        let _ = socket.send_to(b"probe", "10.20.0.12:80");
    };
    netns::in_namespace(egress, send).unwrap();
    std::thread::sleep(QUIET);
    for address in NEVER.into_iter().chain(BESIDE) {
        assert!(!sink.has_seen(address), "{address} was reached");
    }
    assert!(!sink.has_seen("10.20.0.11") && !sink.has_seen("10.20.0.12"));
}

#[test]
fn an_internal_network_is_open_at_its_ports_and_nothing_beside_it() {
    let Some(mut scratch) = Scratch::new() else {
        return;
    };
    let (host, theirs) = (scratch.namespace("host"), scratch.namespace("theirs"));
    let sink = Sink::behind(&mut scratch, &theirs, ["9.9.9.1", "9.9.9.2"]);
    let path = scratch.path("not-made");
    let uplink = Uplink::Namespace(theirs.clone());
    ensure(&host, &path, &uplink);
    assert_exactly_open(&theirs, &sink);
    // An address of the namespace itself is no internal host.
    ip_in(&theirs, &["address", "add", "10.20.0.33/32", "dev", "lo"]);
    let listen = || TcpListener::bind("10.20.0.33:80").unwrap();
    let own = netns::in_namespace(&theirs, listen).unwrap();
    own.set_nonblocking(true).unwrap();
    assert!(dial(&theirs, "10.20.0.33:80", QUIET).is_err());
    assert!(own.accept().is_err());
    // The host gets an address in the range: noticed, and shut.
    ip_in(&host, &["address", "add", "10.20.0.44/32", "dev", "lo"]);
    let (here, known) = (path.clone(), uplink.clone());
    let holds = netns::in_namespace(&host, move || {
        egress_rules_hold(&here, INSTANCE, &known, &exceptions())
    });
    assert!(!holds.unwrap().unwrap(), "the host has another address");
    ensure(&host, &path, &uplink);
    assert!(dial(&theirs, "10.20.0.44:80", QUIET).is_err());
    assert!(!sink.has_seen("10.20.0.44"));
    assert!(dial(&theirs, "10.20.0.45:80", LIMIT).is_ok());
}

#[test]
fn the_host_forwards_into_an_internal_network_and_keeps_itself_shut() {
    let Some(mut scratch) = Scratch::new() else {
        return;
    };
    let host = scratch.namespace("host");
    let sink = Sink::behind(&mut scratch, &host, ["9.9.9.1", "9.9.9.2"]);
    let path = scratch.path("egress");
    ensure(&host, &path, &Uplink::Nat);
    // Without the rules in front: what the host alone lets through.
    for is_behind_rules in [true, false] {
        if !is_behind_rules {
            super::nft_in(&path, "flush ruleset");
        }
        assert_exactly_open(&path, &sink);
    }
    // An address that the host gets later is shut at once, before anybody looks.
    ip_in(&host, &["address", "add", "10.20.0.44/32", "dev", "lo"]);
    let listen = || TcpListener::bind("0.0.0.0:80").unwrap();
    let service = netns::in_namespace(&host, listen).unwrap();
    service.set_nonblocking(true).unwrap();
    assert!(dial(&path, "10.20.0.44:80", QUIET).is_err());
    assert!(service.accept().is_err());
    assert!(
        dial(&host, "10.20.0.44:80", LIMIT).is_ok(),
        "the service is there"
    );
    remove(&host, &path);
}

fn remove(host: &Path, path: &Path) {
    let path = path.to_owned();
    let gone = netns::in_namespace(host, move || {
        remove_egress_namespace(&path, INSTANCE, &Uplink::Nat)
    });
    gone.unwrap().unwrap();
}

#[test]
fn with_a_proxy_nothing_leaves_but_to_it() {
    let Some(mut scratch) = Scratch::new() else {
        return;
    };
    let host = scratch.namespace("host");
    let sink = Sink::behind(&mut scratch, &host, ["9.9.9.1", "9.9.9.2"]);
    let path = scratch.path("egress");
    let exceptions = EgressExceptions {
        proxy: Some("10.40.0.1:80".parse().unwrap()),
        ..EgressExceptions::default()
    };
    ensure_with(&host, &path, &Uplink::Nat, exceptions);
    for is_behind_rules in [true, false] {
        if !is_behind_rules {
            super::nft_in(&path, "flush ruleset");
        }
        assert!(dial(&path, "10.40.0.1:80", LIMIT).is_ok());
        for place in [
            "10.40.0.1:81".to_owned(),
            "10.40.0.2:80".to_owned(),
            format!("{PUBLIC}:80"),
        ] {
            assert!(dial(&path, &place, QUIET).is_err(), "{place}");
        }
        assert!(!sink.has_seen(PUBLIC) && !sink.has_seen("10.40.0.2"));
    }
    ensure_with(&host, &path, &Uplink::Nat, EgressExceptions::default());
    assert!(
        dial(&path, &format!("{PUBLIC}:80"), LIMIT).is_ok(),
        "the probe works"
    );
    remove(&host, &path);
}

#[test]
fn the_addresses_of_sandboxes_cannot_be_opened() {
    for address in [GATEWAY_ADDRESS, GUEST_ADDRESS] {
        let network = serde_json::json!({"name": "n", "projects": ["*"], "ranges": [address],
            "ports": [80]});
        let read = serde_json::from_value::<dayfly_types::egress::InternalNetwork>(network);
        assert!(
            read.unwrap_err().to_string().contains("of sandboxes"),
            "{address}"
        );
    }
}
