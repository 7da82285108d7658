//! What a guest can reach through its slot.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use rustix::net::sockopt::ip_original_dst;

use super::super::{
    CONNECTIONS_MAX, make_slot_network, open_slot_sockets, restore_slot_rules, slot_rules_hold,
    slot_rules_version,
};
use super::guest::World;
use super::{LIMIT, QUIET, Scratch, accept_within, dial, eventually, ip_in, is_readable, nft_in};
use crate::netns;

#[test]
fn tcp_to_any_address_arrives_with_its_true_destination() {
    let Some(world) = World::new() else { return };
    for destination in [
        "93.184.216.34:443",
        "169.254.169.254:80",
        "192.168.1.1:22",
        "10.11.0.1:80",
        "10.11.0.1:5353",
        "255.255.255.254:1",
    ] {
        let mut near = dial(&world.guest, destination, LIMIT).unwrap();
        let mut far = accept_within(&world.tcp, LIMIT).unwrap();
        let told = ip_original_dst(&far).unwrap();
        assert_eq!(told.to_string(), destination);
        near.write_all(b"hello").unwrap();
        let mut words = [0; 5];
        far.set_nonblocking(false).unwrap();
        far.read_exact(&mut words).unwrap();
        assert_eq!(&words, b"hello");
    }
}

#[test]
fn questions_to_any_resolver_arrive_and_their_answers_return() {
    let Some(world) = World::new() else { return };
    for resolver in ["8.8.8.8:53", "10.11.0.1:53", "169.254.169.253:53"] {
        let near = world.inside(move || {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.connect(resolver).unwrap();
            socket.send(b"who").unwrap();
            socket
        });
        assert!(is_readable(&world.dns_udp, LIMIT));
        let mut words = [0; 8];
        let (length, from) = world.dns_udp.recv_from(&mut words).unwrap();
        assert_eq!(&words[..length], b"who");
        world.dns_udp.send_to(b"me", from).unwrap();
        near.set_read_timeout(Some(LIMIT)).unwrap();
        let length = near.recv(&mut words).unwrap();
        assert_eq!(&words[..length], b"me");
        let _near = dial(&world.guest, resolver, LIMIT).unwrap();
        assert!(accept_within(&world.dns_tcp, LIMIT).is_some());
        assert!(!is_readable(&world.tcp, Duration::ZERO));
    }
}

#[test]
fn other_datagrams_are_refused_at_once() {
    let Some(world) = World::new() else { return };
    let before = world.denials().udp;
    for _ in 0..20 {
        let refused = world.inside(|| -> io::Error {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.connect("93.184.216.34:443").unwrap();
            socket.set_read_timeout(Some(LIMIT)).unwrap();
            socket.send(b"quic").unwrap();
            socket.recv(&mut [0; 8]).unwrap_err()
        });
        assert_eq!(refused.kind(), io::ErrorKind::HostUnreachable, "{refused}");
    }
    assert_eq!(world.denials().udp, before + 20);
}

#[test]
fn the_ports_themselves_are_refused() {
    let Some(world) = World::new() else { return };
    let error = dial(&world.guest, "10.11.0.1:5017", LIMIT).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    let error = world.inside(|| -> io::Error {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.connect("10.11.0.1:5353").unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        socket.send(b"who").unwrap();
        socket.recv(&mut [0; 8]).unwrap_err()
    });
    assert_eq!(error.kind(), io::ErrorKind::HostUnreachable, "{error}");
    assert!(!is_readable(&world.tcp, QUIET));
    assert!(!is_readable(&world.dns_udp, Duration::ZERO));
}

#[test]
fn connections_beyond_the_limit_are_reset_and_closed_ones_make_room() {
    let Some(world) = World::new() else { return };
    let mut open = Vec::new();
    let mut refused = 0;
    for _ in 0..300 {
        match dial(&world.guest, "93.184.216.34:80", LIMIT) {
            Ok(near) => open.push((near, accept_within(&world.tcp, LIMIT))),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => refused += 1,
            Err(error) => panic!("neither open nor refused: {error}"),
        }
    }
    let limit = usize::from(CONNECTIONS_MAX);
    assert!((limit - 2..=limit).contains(&open.len()), "{}", open.len());
    assert_eq!(open.len() + refused, 300);
    assert!(world.denials().connections >= 44);
    drop(open);
    eventually("there is room again", || {
        let near: io::Result<TcpStream> = dial(&world.guest, "93.184.216.34:80", LIMIT);
        near.is_ok_and(|_near| accept_within(&world.tcp, LIMIT).is_some())
    });
}

#[test]
fn without_rules_nothing_leaves_and_they_can_be_restored() {
    let Some(world) = World::new() else { return };
    assert!(slot_rules_hold(&world.slot).unwrap());
    let version = slot_rules_version(&world.slot).unwrap();
    assert_eq!(slot_rules_version(&world.slot).unwrap(), version);
    for damage in [
        "flush ruleset",
        "delete table netdev dayfly",
        "flush chain inet dayfly output",
        "add table inet somebody_elses",
        "insert rule inet dayfly input accept",
    ] {
        nft_in(&world.slot, damage);
        assert!(!slot_rules_hold(&world.slot).unwrap(), "{damage}");
        assert_ne!(slot_rules_version(&world.slot).unwrap(), version);
        if damage == "flush ruleset" {
            let error = dial(&world.guest, "93.184.216.34:80", QUIET).unwrap_err();
            assert_ne!(error.kind(), io::ErrorKind::ConnectionRefused);
            assert!(!is_readable(&world.tcp, Duration::ZERO));
        }
        restore_slot_rules(&world.slot).unwrap();
        assert!(slot_rules_hold(&world.slot).unwrap(), "{damage}");
    }
    let _near = dial(&world.guest, "93.184.216.34:80", LIMIT).unwrap();
    assert!(accept_within(&world.tcp, LIMIT).is_some());
}

#[test]
fn a_way_out_is_noticed() {
    let Some(world) = World::new() else { return };
    ip_in(&world.slot, &["link", "add", "extra", "type", "veth"]);
    assert!(!slot_rules_hold(&world.slot).unwrap());
    ip_in(&world.slot, &["link", "delete", "extra"]);
    assert!(slot_rules_hold(&world.slot).unwrap());
    let forward = |value: &'static str| {
        let set = move || std::fs::write("/proc/sys/net/ipv4/ip_forward", value);
        netns::in_namespace(&world.slot, set).unwrap().unwrap();
    };
    forward("1");
    assert!(!slot_rules_hold(&world.slot).unwrap());
    restore_slot_rules(&world.slot).unwrap();
    assert!(slot_rules_hold(&world.slot).unwrap());
}

#[test]
fn sockets_can_be_opened_again_and_the_network_goes_with_its_namespace() {
    let Some(mut scratch) = Scratch::new() else {
        return;
    };
    let slot = scratch.namespace("slot");
    let watcher = scratch.namespace("watcher");
    make_slot_network(&slot, 64_000).unwrap();
    let first = open_slot_sockets(&slot).unwrap();
    let second = open_slot_sockets(&slot).unwrap();
    // Ends of such a pair end together, so the one outside tells when the namespace is gone.
    let path = slot.to_string_lossy().into_owned();
    ip_in(
        &watcher,
        &[
            "link", "add", "canary", "type", "veth", "peer", "netns", &path,
        ],
    );
    let canary = || {
        let text = netns::in_namespace(&watcher, || {
            std::fs::read_to_string("/proc/thread-self/net/dev").unwrap()
        });
        text.unwrap().contains("canary")
    };
    drop(first);
    netns::remove(&slot).unwrap();
    std::thread::sleep(QUIET);
    assert!(canary(), "sockets that are open keep the namespace");
    drop(second);
    eventually("the namespace is gone", || !canary());
}

#[test]
fn the_namespace_of_the_caller_stays_what_it_was() {
    let Some(mut scratch) = Scratch::new() else {
        return;
    };
    let slot = scratch.namespace("slot");
    let number = || {
        File::open("/proc/thread-self/ns/net")
            .unwrap()
            .metadata()
            .unwrap()
            .ino()
    };
    let before = number();
    make_slot_network(&slot, 64_000).unwrap();
    let sockets = open_slot_sockets(&slot).unwrap();
    assert_eq!(number(), before);
    assert!(
        rustix::io::fcntl_getfd(&sockets.tcp)
            .unwrap()
            .contains(rustix::io::FdFlags::CLOEXEC)
    );
    let error = make_slot_network(&scratch.path("absent"), 64_000).unwrap_err();
    assert!(error.to_string().contains("cannot enter"), "{error}");
}

#[test]
#[ignore = "measures; run by name with --nocapture"]
fn measure() {
    let Some(mut scratch) = Scratch::new() else {
        return;
    };
    let timed = |name: &str, work: &mut dyn FnMut(usize)| {
        let mut times: Vec<_> = (0..20)
            .map(|number| {
                let start = Instant::now();
                work(number);
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        println!("{name}: median {:?}, longest {:?}", times[10], times[19]);
    };
    let paths: Vec<_> = (0..20)
        .map(|number| scratch.path(&number.to_string()))
        .collect();
    timed("netns::create", &mut |number| {
        netns::create(&paths[number]).unwrap()
    });
    timed("make_slot_network", &mut |number| {
        make_slot_network(&paths[number], 64_000).unwrap();
    });
    timed("open_slot_sockets", &mut |number| {
        open_slot_sockets(&paths[number]).unwrap();
    });
    timed("slot_rules_hold", &mut |number| {
        assert!(slot_rules_hold(&paths[number]).unwrap());
    });
    timed("slot_rules_version", &mut |number| {
        slot_rules_version(&paths[number]).unwrap();
    });
    timed("restore_slot_rules", &mut |number| {
        restore_slot_rules(&paths[number]).unwrap()
    });
}
