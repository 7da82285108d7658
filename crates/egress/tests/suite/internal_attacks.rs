//! Ways to make something else of a rule about an internal network. Each is counted where it would
//! arrive: at the outer end of the cable, at the mirror, and in the process's own namespace.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};

use dayfly_host::netns;
use dayfly_types::egress::DenyReason;

use super::certificates::client;
use super::guest::{ask, connect, get, hello, read_to_end, say, say_raw};
use super::internal_cases::{DATABASE, MIRROR, NAME, fetch, start};
use super::internet::{EVIL, NEVER};
use super::name_server::Entry;
use super::world::{World, wait_until};

/// Whom a name of the mirror's could be made to stand for.
const TARGETS: [(&str, &str); 21] = [
    ("a metadata service", "169.254.169.254"),
    ("the metadata service of tasks", "169.254.170.2"),
    ("a metadata service in shared space", "100.100.100.200"),
    ("a metadata service at a public address", "168.63.129.16"),
    ("the process's loopback", "127.0.0.1"),
    ("another loopback address", "127.8.8.8"),
    ("this host", "0.0.0.0"),
    ("the process itself", "100.64.0.1"),
    ("the other end of its cable", "100.64.0.2"),
    ("a neighbour", "10.11.0.2"),
    ("a gateway of sandboxes", "10.11.0.1"),
    ("one before the range", "10.19.255.255"),
    ("one behind the range", "10.20.1.0"),
    ("another private address", "10.0.0.5"),
    ("the network of another project", DATABASE),
    ("a private address of another block", "172.16.0.1"),
    ("a home network", "192.168.0.1"),
    ("link local", "169.254.0.1"),
    ("multicast", "224.0.0.251"),
    ("broadcast", "255.255.255.255"),
    ("a network for benchmarks", "198.18.0.1"),
];

/// Somebody who listens on every address of the process's own namespace.
fn listen_inside(world: &World) -> TcpListener {
    let listen = || TcpListener::bind("0.0.0.0:8080").unwrap();
    let listener = netns::in_namespace(&world.internet.egress, listen).unwrap();
    listener.set_nonblocking(true).unwrap();
    listener
}

#[test]
fn a_name_of_the_mirror_that_stands_for_anything_else_leads_nowhere() {
    let Some(world) = start() else {
        return;
    };
    let inside = listen_inside(&world);
    let config = client(&[&world.internet.allowed]);
    let before = world.internet.arrivals();
    for (number, (what, target)) in TARGETS.into_iter().enumerate() {
        let name = format!("n{number}.repo.corp.test");
        world.internet.names.set_addresses(&name, &[target]);
        let said = fetch(&world, 0, &name);
        assert!(said.contains("never_address"), "{what}: {said}");
        let tls = hello(&config, &name);
        let said = world.guest(move || say_raw(&format!("{MIRROR}:443"), &tls));
        assert_eq!(super::guest::alert(&said), Some(49), "{what}");
        let asked = name.clone();
        let (_, found) = world.guest(move || ask(&asked));
        assert!(found.is_empty(), "{what}: {found:?}");
        // At the port of the other project's network.
        let said = world.guest(move || get(&format!("{MIRROR}:5432"), &name, "/"));
        assert!(said.contains("never_address"), "{what}: {said}");
        say_to_address(&world, target);
    }
    world.kept.wait_denied(DenyReason::NeverAddress);
    let after = world.internet.arrivals();
    assert_eq!(
        after.never, before.never,
        "nothing left for such an address"
    );
    assert_eq!(after.connections, before.connections, "nor for any other");
    assert!(
        inside.accept().is_err(),
        "nobody came to the process itself"
    );
    let mirror = world.internet.http(MIRROR, 8080, "mirror");
    assert!(fetch(&world, 0, NAME).contains("hello from mirror"));
    assert_eq!(mirror.requests(), 1, "the probe works");
    world.internet.add_addresses(&[DATABASE]);
    let database = world.internet.sink(DATABASE, 5432);
    world.guest_of(1, || {
        let mut stream = connect("10.30.0.10:5432").unwrap();
        stream.write_all(b"\x01team-b\n").unwrap();
    });
    wait_until("it works for the other project", || {
        database.text() == "\u{1}team-b\n"
    });
}

/// Speaks to an address itself, which the widest rule names, at the ports of both networks.
fn say_to_address(world: &World, target: &'static str) {
    let address = target.parse::<Ipv4Addr>().unwrap();
    if address.is_multicast() || address.is_broadcast() || address.is_unspecified() {
        return;
    }
    for port in [5432, 8080] {
        // What is the guest's own stays in the guest, where nobody listens.
        let _ = world.guest(move || {
            let mut stream = connect(&format!("{target}:{port}"))?;
            stream.write_all(b"\x01give me the keys\n")
        });
    }
}

#[test]
fn nobody_reaches_the_mirror_under_another_name_form_or_port() {
    let Some(world) = start() else {
        return;
    };
    let mirror = world.internet.http(MIRROR, 8080, "mirror");
    let others = [22, 80, 5432].map(|port| world.internet.sink(MIRROR, port));
    let names = &world.internet.names;
    let alias = || Entry::Alias(NAME.to_owned(), vec![MIRROR.parse().unwrap()]);
    names.set("evil.test", alias());
    for name in [
        "xn--mirror-x.corp.test",
        "evil.mirror.corp.test",
        "a.b.repo.corp.test",
        "repo.corp.test",
        "mirror.corp.test.evil.corp.test",
        "mirror-corp.corp.test",
    ] {
        names.set_addresses(name, &[MIRROR]);
        let said = fetch(&world, 0, name);
        assert!(said.contains("never_address"), "{name}: {said}");
    }
    assert!(
        fetch(&world, 0, "evil.test").contains("never_address"),
        "an alias"
    );
    for host in [
        MIRROR,
        "169082890",
        "0x0a14000a",
        "012.024.0.012",
        "10.20.10",
        "[::ffff:10.20.0.10]",
        "mirror.corp.test:22",
        "mirror.corp.test@evil.test",
        "mirror.corp.test%00.evil.test",
        "mirror..corp.test",
    ] {
        let said = fetch(&world, 0, host);
        assert!(!said.contains("hello"), "{host}: {said}");
    }
    for port in [22, 80, 5432] {
        let said = world.guest(move || get(&format!("{MIRROR}:{port}"), NAME, "/"));
        assert!(!said.contains("hello"), "{port}: {said}");
    }
    let config = client(&[&world.internet.allowed]);
    for bytes in [
        b"\x01raw\n".to_vec(),
        b"SSH-2.0-x\r\n".to_vec(),
        hello(&config, "evil.test"),
        hello(&config, "a.b.repo.corp.test"),
    ] {
        world.guest(move || say_raw(&format!("{MIRROR}:8080"), &bytes));
    }
    mirror.assert_nothing_came();
    for other in &others {
        other.assert_nothing_came();
    }
    assert_eq!(world.internet.arrivals().never, 0);
    assert!(
        fetch(&world, 0, NAME).contains("hello from mirror"),
        "the probe works"
    );
}

#[test]
fn a_request_that_says_two_things_reaches_neither() {
    let Some(world) = start() else {
        return;
    };
    let mirror = world.internet.http(MIRROR, 8080, "mirror");
    let attacker = world.internet.http(EVIL, 8080, "evil");
    let mut canaries = world.internet.canaries();
    // Whatever a request says, it would be dialled at the port that the guest connects to.
    canaries.extend(NEVER.map(|address| world.internet.sink(address, 8080)));
    for head in [
        format!("GET http://10.0.0.5/ HTTP/1.1\r\nHost: {NAME}\r\n\r\n"),
        format!("GET http://169.254.169.254/ HTTP/1.1\r\nHost: {NAME}\r\n\r\n"),
        format!("GET http://{NAME}/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nHost: {NAME}\r\nHost: 10.0.0.5\r\n\r\n"),
        "CONNECT 10.0.0.5:80 HTTP/1.1\r\nHost: 10.0.0.5:80\r\n\r\n".to_owned(),
        format!("CONNECT {NAME}:8080 HTTP/1.1\r\nHost: {NAME}:8080\r\n\r\n"),
    ] {
        let shown = head.clone();
        let said = world.guest(move || say(&format!("{MIRROR}:8080"), head.as_bytes()));
        assert!(said.starts_with("HTTP/1.1 400 "), "{shown}: {said}");
    }
    mirror.assert_nothing_came();
    attacker.assert_nothing_came();
    // Where the mirror sends it is the guest's affair, and decided anew.
    let said = world.guest(|| get("169.254.169.254:80", "169.254.169.254", "/latest/"));
    assert!(said.contains("never_address"), "{said}");
    for canary in &canaries {
        canary.assert_nothing_came();
    }
}

/// Two requests on one connection: the first for the mirror, the second for another name.
fn mirror_and_then(world: &World, name: &'static str) -> String {
    world.guest(move || {
        let mut stream = connect(&format!("{MIRROR}:8080")).unwrap();
        let both = format!(
            "GET /redirect HTTP/1.1\r\nHost: {NAME}\r\n\r\n\
             GET /latest HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(both.as_bytes()).unwrap();
        String::from_utf8(read_to_end(&mut stream)).unwrap()
    })
}

#[test]
fn on_a_connection_that_stands_the_next_request_is_decided_by_itself() {
    let Some(world) = start() else {
        return;
    };
    let mirror = world.internet.http(MIRROR, 8080, "mirror");
    let attacker = world.internet.http(EVIL, 8080, "evil");
    let names = &world.internet.names;
    names.set_addresses("x.corp.test", &[MIRROR]);
    names.set_addresses("y.corp.test", &[EVIL]);
    let said = mirror_and_then(&world, "x.corp.test");
    assert!(
        said.contains("302 Found") && said.contains("never_address"),
        "{said}"
    );
    assert_eq!(mirror.requests(), 1, "the first alone");
    attacker.assert_nothing_came();
    let said = mirror_and_then(&world, "y.corp.test");
    assert!(
        said.contains("302 Found") && said.contains("hello from evil"),
        "a second request is served where it may be: {said}"
    );
    assert_eq!((mirror.requests(), attacker.requests()), (2, 1));
}

#[test]
fn of_several_addresses_only_the_permitted_one_is_dialled_and_each_time_anew() {
    let Some(world) = start() else {
        return;
    };
    let mirror = world.internet.http(MIRROR, 8080, "mirror");
    world.internet.add_addresses(&["10.20.1.0"]);
    let beyond = world.internet.sink("10.20.1.0", 8080);
    let metadata = world.internet.sink("169.254.169.254", 8080);
    let names = &world.internet.names;
    let bad = ["169.254.169.254", "10.20.1.0", "127.0.0.1", MIRROR];
    names.set_addresses("mixed.repo.corp.test", &bad);
    let said = fetch(&world, 0, "mixed.repo.corp.test");
    assert!(said.contains("hello from mirror"), "{said}");
    let (_, found) = world.guest(|| ask("mixed.repo.corp.test"));
    assert_eq!(found, [MIRROR.parse::<Ipv4Addr>().unwrap()]);
    let turns = [MIRROR, "169.254.169.254"].map(|text| vec![text.parse().unwrap()]);
    names.set("turns.repo.corp.test", Entry::InTurn(turns.to_vec()));
    assert!(fetch(&world, 0, "turns.repo.corp.test").contains("hello from mirror"));
    wait_until("the first answer is over", || {
        fetch(&world, 0, "turns.repo.corp.test").contains("never_address")
    });
    metadata.assert_nothing_came();
    beyond.assert_nothing_came();
    assert!(mirror.requests() >= 2);
}
