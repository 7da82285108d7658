//! Internal networks: what the operator opened to a project is reached by rule, and goes with the
//! rule, the project and the policy.

use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::path::Path;

use dayfly_host::net::{EgressExceptions, Uplink, ensure_egress_namespace};
use dayfly_host::netns;
use dayfly_types::egress::{Decision, DenyReason, EgressPolicy, InternalNetworks};

use super::certificates::client;
use super::guest::{ask, connect, get, hello, say_raw};
use super::name_server;
use super::proxy::Given;
use super::slot::run_in;
use super::world::{World, lifecycle_in, policy, public, wait_until};

pub(crate) const MIRROR: &str = "10.20.0.10";
pub(crate) const NAME: &str = "mirror.corp.test";
pub(crate) const DATABASE: &str = "10.30.0.10";

/// A mirror for one project, by name, and a database for another, by address.
pub(crate) fn networks() -> InternalNetworks {
    serde_json::from_value(serde_json::json!([
        {"name": "mirror", "projects": ["team-a"], "ranges": ["10.20.0.0/24"],
            "hosts": [NAME, "*.repo.corp.test"], "ports": [443, 8080]},
        {"name": "database", "projects": ["team-b"], "ranges": ["10.30.0.0/24"],
            "ports": [5432]}]))
    .unwrap()
}

/// A sandbox that asks for everything that it can name.
pub(crate) fn greedy() -> EgressPolicy {
    let ports = [22, 80, 443, 5432, 8080];
    let rules = serde_json::json!([
        {"id": "corp", "host": "**.corp.test", "ports": ports},
        {"id": "evil", "host": "evil.test", "ports": ports},
        {"id": "all", "network": "0.0.0.0/0", "ports": ports}]);
    policy("allowlist", rules)
}

/// Two sandboxes that ask for everything, of two projects, and the mirror's name.
pub(crate) fn start() -> Option<World> {
    let world = start_in(vec![("team-a", greedy()), ("team-b", greedy())])?;
    world.internet.add_addresses(&[MIRROR]);
    world.internet.names.set_addresses(NAME, &[MIRROR]);
    Some(world)
}

fn start_in(policies: Vec<(&str, EgressPolicy)>) -> Option<World> {
    let given = Given {
        internal: networks(),
        ..Given::default()
    };
    World::start_in(policies, given)
}

/// Asks a host on the mirror's port; where the packets are addressed to does not count.
pub(crate) fn fetch(world: &World, slot: usize, host: &str) -> String {
    let host = host.to_owned();
    world.guest_of(slot, move || get(&format!("{MIRROR}:8080"), &host, "/"))
}

#[test]
fn an_allowed_project_reaches_the_mirror_by_name_and_another_does_not() {
    let Some(world) = start() else {
        return;
    };
    let mirror = world.internet.http(MIRROR, 8080, "mirror");
    let said = fetch(&world, 0, NAME);
    assert!(said.contains("hello from mirror"), "{said}");
    let (_, found) = world.guest_of(0, || ask(NAME));
    assert_eq!(found, [MIRROR.parse::<Ipv4Addr>().unwrap()]);
    let closed = world.kept.wait_decision(Decision::Closed);
    assert_eq!(closed.internal_network.as_deref(), Some("mirror"));
    assert_eq!(closed.rule.as_deref(), Some("corp"));
    assert!(closed.bytes_up > 0 && closed.bytes_down > 0);
    let said = fetch(&world, 0, "MIRROR.Corp.Test.");
    assert!(said.contains("hello from mirror"), "one form: {said}");
    assert_eq!(mirror.requests(), 2);

    let said = fetch(&world, 1, NAME);
    assert!(said.contains("never_address"), "{said}");
    assert!(said.contains("by the operator alone"), "{said}");
    let config = client(&[&world.internet.allowed]);
    let tls = hello(&config, NAME);
    world.guest_of(1, move || say_raw(&format!("{MIRROR}:443"), &tls));
    let (_, found) = world.guest_of(1, || ask(NAME));
    assert!(found.is_empty(), "{found:?}");
    world.kept.wait_denied(DenyReason::NeverAddress);
    assert_eq!(mirror.requests(), 2, "counted at the mirror");
}

#[test]
fn a_range_without_names_is_reached_by_address_at_its_ports() {
    let Some(world) = start() else {
        return;
    };
    const PLACE: &str = "10.30.0.10:5432";
    world.internet.add_addresses(&[DATABASE]);
    let database = world.internet.sink(DATABASE, 5432);
    let other_port = world.internet.sink(DATABASE, 22);
    let before = world.internet.arrivals().never;
    world.guest_of(0, || say_raw(PLACE, b"\x01team-a\n"));
    world.guest_of(1, || say_raw("10.30.0.10:22", b"SSH-2.0-x\r\n"));
    assert_eq!(world.internet.arrivals().never, before);
    world.guest_of(1, || {
        let mut stream = connect(PLACE).unwrap();
        stream.write_all(b"\x01team-b\n").unwrap();
    });
    let closed = world.kept.wait_decision(Decision::Closed);
    assert_eq!(closed.internal_network.as_deref(), Some("database"));
    assert_eq!(database.text(), "\u{1}team-b\n");
    other_port.assert_nothing_came();
}

/// Asks for a name at the database's port, whose zone says that it is the database.
fn ask_in_zone(world: &World) -> (String, Vec<Ipv4Addr>) {
    let said = world.guest(|| get("10.30.0.10:5432", "db.zone.test", "/"));
    let (_, found) = world.guest(|| ask("db.zone.test"));
    (said, found)
}

/// Rules for a zone of public names, and for these ranges, at the database's port.
fn zone_and(mode: &str, ranges: &[&str]) -> EgressPolicy {
    let range =
        |range: &&str| serde_json::json!({"id": range, "network": range, "ports": [5432, 8080]});
    let zone = serde_json::json!({"id": "zone", "host": "**.zone.test", "ports": [5432, 8080]});
    let rules = std::iter::once(zone).chain(ranges.iter().map(range));
    policy(mode, rules.collect())
}

#[test]
fn without_hosts_a_name_leads_inside_only_to_an_address_that_a_rule_names() {
    let Some(world) = start_in(vec![("team-b", zone_and("allowlist", &[]))]) else {
        return;
    };
    world.internet.add_addresses(&[DATABASE]);
    let names = &world.internet.names;
    names.set_addresses("db.zone.test", &[DATABASE]);
    let database = world.internet.http(DATABASE, 5432, "database");
    let other_port = world.internet.http(DATABASE, 8080, "database");
    let before = world.internet.arrivals().never;
    for mode in ["allowlist", "observe"] {
        for ranges in [&[][..], &["10.30.0.11/32", "10.30.0.8/31"]] {
            world.set_policy(zone_and(mode, ranges));
            let (said, found) = ask_in_zone(&world);
            assert!(said.contains("never_address"), "{mode} {ranges:?}: {said}");
            assert!(found.is_empty(), "{mode} {ranges:?}: {found:?}");
        }
    }
    world.set_policy(zone_and("allowlist", &["10.30.0.0/24"]));
    let said = world.guest(|| get("10.30.0.10:8080", "db.zone.test", "/"));
    assert!(
        said.contains("never_address"),
        "a port that is shut: {said}"
    );
    assert_eq!(world.internet.arrivals().never, before);
    database.assert_nothing_came();
    other_port.assert_nothing_came();
    for (mode, range) in [("allowlist", "10.30.0.0/24"), ("observe", "10.30.0.10/32")] {
        world.set_policy(zone_and(mode, &[range]));
        let (said, found) = ask_in_zone(&world);
        assert!(said.contains("hello from database"), "{mode}: {said}");
        assert_eq!(found, [DATABASE.parse::<Ipv4Addr>().unwrap()]);
    }
    assert_eq!(database.requests(), 2);
    let closed = world.kept.wait_decision(Decision::Closed);
    assert_eq!(closed.internal_network.as_deref(), Some("database"));
    let stream = download_from(&world, "10.30.0.10:5432", "db.zone.test");
    let narrower = zone_and("allowlist", &["10.30.0.11/32"]);
    assert_eq!(
        world.set_policy(narrower),
        1,
        "cut, though its name has a rule"
    );
    assert_ends(stream);
    wait_until("the database sees the end", || database.open() == 0);
}

#[test]
fn both_edges_of_a_range_are_inside() {
    let Some(world) = start() else {
        return;
    };
    for (name, edge) in [
        ("first.repo.corp.test", "10.20.0.0"),
        ("last.repo.corp.test", "10.20.0.255"),
    ] {
        world.internet.add_addresses(&[edge]);
        world.internet.names.set_addresses(name, &[edge]);
        let server = world.internet.http(edge, 8080, "edge");
        let said = fetch(&world, 0, name);
        assert!(said.contains("hello from edge"), "{edge}: {said}");
        assert_eq!(server.requests(), 1);
    }
}

/// Opens an endless download from the mirror.
fn download(world: &World) -> std::net::TcpStream {
    download_from(world, "10.20.0.10:8080", NAME)
}

fn download_from(world: &World, place: &'static str, name: &'static str) -> std::net::TcpStream {
    world.guest(move || {
        let mut stream = connect(place).unwrap();
        let request = format!("GET /endless HTTP/1.1\r\nHost: {name}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream.read_exact(&mut [0; 4096]).unwrap();
        stream
    })
}

fn assert_ends(mut stream: std::net::TcpStream) {
    let mut rest = vec![0; 64 << 10];
    while let Ok(1..) = stream.read(&mut rest) {}
}

#[test]
fn an_open_mode_is_no_rule_and_a_lost_rule_ends_what_is_open() {
    let Some(world) = start() else {
        return;
    };
    let mirror = world.internet.http(MIRROR, 8080, "mirror");
    for mode in [public(), policy("observe", serde_json::json!([]))] {
        world.set_policy(greedy());
        let stream = download(&world);
        assert_eq!(world.set_policy(mode), 1, "it is cut");
        assert_ends(stream);
        wait_until("the mirror sees the end", || mirror.open() == 0);
        let before = mirror.connections();
        let said = fetch(&world, 0, NAME);
        assert!(said.contains("never_address"), "{said}");
        let (_, found) = world.guest(|| ask(NAME));
        assert!(found.is_empty(), "{found:?}");
        assert_eq!(mirror.connections(), before);
    }
    let cut = world.kept.wait_decision(Decision::Cut);
    assert_eq!(cut.internal_network.as_deref(), Some("mirror"));
    let rules = serde_json::json!([{"id": "m", "host": NAME, "ports": [8080]}]);
    world.set_policy(policy("observe", rules));
    assert!(
        fetch(&world, 0, NAME).contains("hello from mirror"),
        "a rule beside it is"
    );
}

#[test]
fn the_next_holder_of_a_slot_has_its_own_projects_leave() {
    let Some(world) = start() else {
        return;
    };
    let mirror = world.internet.http(MIRROR, 8080, "mirror");
    let stream = download(&world);
    let mut next = lifecycle_in("team-b", 0, 1);
    next.sandbox = "another".parse().unwrap();
    assert_eq!(world.open(next, 1, greedy()).unwrap(), 1);
    assert_ends(stream);
    let before = mirror.connections();
    let said = fetch(&world, 0, NAME);
    assert!(said.contains("never_address"), "{said}");
    assert_eq!(mirror.connections(), before);
}

/// Loads the kernel's rules on the word of a host that has these addresses.
fn load_rules(world: &World, host: &Path, addresses: &[&str]) {
    let lines = addresses
        .iter()
        .map(|address| format!("addr add {address}/32 dev lo\n"));
    run_in(host, "ip", &["-batch", "-"], &lines.collect::<String>());
    let exceptions = EgressExceptions {
        resolvers: vec![name_server::ADDRESS.parse().unwrap()],
        internal: networks(),
        ..EgressExceptions::default()
    };
    let uplink = Uplink::Namespace(world.internet.egress.clone());
    let path = host.with_extension("unused");
    let loaded = netns::in_namespace(host, move || {
        ensure_egress_namespace(&path, "test", &uplink, &exceptions).map(drop)
    });
    loaded.unwrap().unwrap();
}

#[test]
fn an_address_that_the_host_got_later_is_shut_by_the_kernel() {
    let Some(world) = start() else {
        return;
    };
    const HOST: &str = "10.20.0.7";
    world.internet.add_addresses(&[HOST]);
    let (name, canary) = (
        "host.repo.corp.test",
        world.internet.http(HOST, 8080, "host"),
    );
    world.internet.names.set_addresses(name, &[HOST]);
    let mirror = world.internet.http(MIRROR, 8080, "mirror");
    let directory = tempfile::tempdir().unwrap();
    let host = directory.path().canonicalize().unwrap().join("host");
    netns::create(&host).unwrap();
    load_rules(&world, &host, &[]);
    assert!(
        fetch(&world, 0, name).contains("hello from host"),
        "the probe works"
    );
    let before = canary.connections();
    load_rules(&world, &host, &[HOST]);
    netns::remove(&host).unwrap();
    // It is not told, so the process gives up when its time is over.
    let waiting = world.guest(move || {
        let mut stream = connect(&format!("{MIRROR}:8080")).unwrap();
        let request = format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream
    });
    let failed = world.kept.wait_decision(Decision::Failed);
    drop(waiting);
    assert_eq!(failed.reason, Some(DenyReason::Timeout));
    assert_eq!(canary.connections(), before);
    assert!(fetch(&world, 0, NAME).contains("hello from mirror"));
    assert_eq!(mirror.requests(), 1);
}
