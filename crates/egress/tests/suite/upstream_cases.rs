//! A proxy of the operator's that everything public goes through, and nobody speaks to.

use std::io::Read;

use dayfly_types::egress::{Decision, DenyReason};

use super::certificates::client;
use super::guest::{connect, get, get_tls, say_raw};
use super::internal_cases::{MIRROR, NAME, fetch, greedy, networks};
use super::internet::{ALLOWED, EVIL, OTHER};
use super::proxy::Given;
use super::world::World;

/// A public address is the harder case: rules can name it.
const PROXY: &str = OTHER;
const PORT: u16 = 8080;

fn start() -> Option<World> {
    let given = Given {
        internal: networks(),
        proxy: Some(format!("{PROXY}:{PORT}").parse().unwrap()),
        ..Given::default()
    };
    let world = World::start_in(vec![("team-a", greedy())], given)?;
    world.internet.add_addresses(&[MIRROR]);
    world.internet.names.set_addresses(NAME, &[MIRROR]);
    for (name, address) in [
        ("public.corp.test", ALLOWED),
        ("refused.corp.test", EVIL),
        ("proxy.corp.test", PROXY),
        ("meta.corp.test", "169.254.169.254"),
    ] {
        world.internet.names.set_addresses(name, &[address]);
    }
    Some(world)
}

#[test]
fn what_is_public_goes_through_the_proxy_by_address_and_what_is_internal_does_not() {
    let Some(world) = start() else {
        return;
    };
    let proxy = world.internet.proxy(PROXY, PORT, EVIL);
    let plain = world.internet.http(ALLOWED, 80, "plain");
    world.internet.https(ALLOWED, 443, &world.internet.allowed);
    world.internet.greeter(ALLOWED, 22);
    let mirror = world.internet.http(MIRROR, 8080, "mirror");
    let before = world.internet.arrivals().connections;
    let said = world.guest(|| get(&format!("{MIRROR}:80"), "public.corp.test", "/"));
    assert!(said.contains("hello from plain"), "{said}");
    let config = client(&[&world.internet.allowed]);
    let said = world.guest(move || get_tls(&config, &format!("{ALLOWED}:443"), "allowed.test"));
    assert!(said.unwrap().contains("hello from tls"));
    let greeting = world.guest(|| {
        let mut greeting = [0; 14];
        let mut stream = connect(&format!("{ALLOWED}:22")).unwrap();
        stream.read_exact(&mut greeting).map(|()| greeting)
    });
    assert_eq!(&greeting.unwrap(), b"SSH-2.0-test\r\n", "it is heard whole");
    assert_eq!(plain.requests(), 1);
    let asked = proxy.text();
    let asked: Vec<_> = asked
        .lines()
        .filter(|line| line.starts_with("CONNECT"))
        .collect();
    let wanted = [80, 443, 22].map(|port| format!("CONNECT {ALLOWED}:{port} HTTP/1.1"));
    assert_eq!(asked, wanted);
    let left = world.internet.arrivals().connections - before;
    assert_eq!(left, 3, "nothing left beside what the proxy was asked for");
    assert!(fetch(&world, 0, NAME).contains("hello from mirror"));
    assert_eq!((mirror.requests(), proxy.connections()), (1, 3));
}

#[test]
fn nobody_speaks_to_the_proxy_and_it_is_asked_for_nothing_private() {
    let Some(world) = start() else {
        return;
    };
    let proxy = world.internet.proxy(PROXY, PORT, EVIL);
    let request = b"CONNECT 169.254.169.254:80 HTTP/1.1\r\nHost: 169.254.169.254:80\r\n\r\n";
    world.guest(|| say_raw(&format!("{PROXY}:{PORT}"), request));
    for name in ["proxy.corp.test", "meta.corp.test"] {
        let said = world.guest(move || get(&format!("{MIRROR}:{PORT}"), name, "/"));
        assert!(said.contains("never_address"), "{name}: {said}");
    }
    world.kept.wait_denied(DenyReason::NeverAddress);
    proxy.assert_nothing_came();
}

#[test]
fn a_proxy_that_refuses_or_is_gone_is_no_reason_to_go_around_it() {
    let Some(world) = start() else {
        return;
    };
    let attacker = world.internet.sink(EVIL, 80);
    let gone = world.guest(|| get(&format!("{MIRROR}:80"), "refused.corp.test", "/"));
    assert!(gone.starts_with("HTTP/1.1 502 "), "{gone}");
    let proxy = world.internet.proxy(PROXY, PORT, EVIL);
    let refused = world.guest(|| get(&format!("{MIRROR}:80"), "refused.corp.test", "/"));
    assert!(refused.starts_with("HTTP/1.1 502 "), "{refused}");
    world.kept.wait_decision(Decision::Failed);
    assert_eq!(proxy.connections(), 1);
    attacker.assert_nothing_came();
}
