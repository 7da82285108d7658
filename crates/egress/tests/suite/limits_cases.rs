//! A guest that takes all it can get, or takes its time.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dayfly_types::egress::{Decision, DenyReason};
use dayfly_types::limits::{EGRESS_CONNECTIONS_MAX, EGRESS_PEEK_DEADLINE};
use hickory_proto::rr::RecordType;

use super::guest::{ask, connect, question, read_to_end};
use super::internet::{ALLOWED, EVIL};
use super::world::{World, allow, policy, wait_until};

#[test]
fn b13_a_sandbox_has_so_many_connections_and_its_neighbour_has_its_own() {
    let rules = serde_json::json!([{"id": "all", "network": "198.41.0.0/24", "ports": [7]}]);
    let both = [
        policy("allowlist", rules.clone()),
        policy("allowlist", rules),
    ];
    let Some(world) = World::start(&both) else {
        return;
    };
    let sink = world.internet.sink(EVIL, 7);
    let address = format!("{EVIL}:7");
    let mut held: Vec<std::io::Result<TcpStream>> = world.guest(move || {
        let open = |_| {
            let mut stream = connect(&address)?;
            stream.write_all(b"x")?;
            Ok(stream)
        };
        (0..300).map(open).collect()
    });
    world.kept.wait_denied(DenyReason::Limit);
    // One beyond the bound is reset as soon as it is there, wherever its client is by then.
    let is_reset = |stream: &mut std::io::Result<TcpStream>| {
        let Ok(stream) = stream else {
            return true;
        };
        let limit = Some(Duration::from_millis(200));
        stream.set_read_timeout(limit).unwrap();
        let error = stream.read_exact(&mut [0; 1]).unwrap_err();
        error.kind() == ErrorKind::ConnectionReset
    };
    let beyond = held.split_off(EGRESS_CONNECTIONS_MAX);
    assert!(beyond.into_iter().all(|mut stream| is_reset(&mut stream)));
    assert!(!is_reset(&mut held[0]) && !is_reset(&mut held[EGRESS_CONNECTIONS_MAX - 1]));
    wait_until("all that were let through have arrived", || {
        sink.bytes().len() == EGRESS_CONNECTIONS_MAX
    });
    let address = format!("{EVIL}:7");
    world.guest_of(1, move || {
        connect(&address).unwrap().write_all(b"neighbour").unwrap()
    });
    wait_until("the neighbour is served", || {
        sink.text().ends_with("neighbour")
    });
    drop(held);
    world.kept.wait_decision(Decision::Closed);
    let address = format!("{EVIL}:7");
    wait_until("what was given back can be taken again", || {
        let address = address.clone();
        world.guest(move || connect(&address).unwrap().write_all(b"again").is_ok())
            && sink.text().ends_with("again")
    });
}

#[test]
fn b14_a_connection_that_takes_its_time_is_closed_at_the_deadline() {
    let Some(world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let sink = world.internet.sink(ALLOWED, 443);
    let plain = world.internet.sink(ALLOWED, 80);
    let openings: [(u16, &[u8]); 5] = [
        (443, b""),
        (443, b"\x16"),
        (443, b"\x16\x03\x01\x02\x00\x01"),
        (80, b"GE"),
        (80, b"GET / HTTP/1.1\r\nHost: allow"),
    ];
    let took = world.guest(move || {
        let started = Instant::now();
        let mut streams: Vec<TcpStream> = (0..50)
            .map(|number| {
                let (port, opening) = openings[number % openings.len()];
                let mut stream = connect(&format!("{ALLOWED}:{port}")).unwrap();
                stream.write_all(opening).unwrap();
                stream
            })
            .collect();
        for stream in &mut streams {
            read_to_end(stream);
        }
        started.elapsed()
    });
    let limit = EGRESS_PEEK_DEADLINE;
    assert!(
        took >= limit && took < limit + Duration::from_secs(10),
        "{took:?}"
    );
    world.kept.wait_denied(DenyReason::Timeout);
    sink.assert_nothing_came();
    plain.assert_nothing_came();
}

#[test]
fn c12_a_flood_is_answered_at_a_hundred_a_second_and_the_neighbour_is_served() {
    let both = [allow("allowed.test"), allow("allowed.test")];
    let Some(world) = World::start(&both) else {
        return;
    };
    let started = Instant::now();
    let answered = world.guest(|| {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.connect(("10.11.0.1", 53)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        let packet = question("evil.test", RecordType::A).to_vec().unwrap();
        for _ in 0..10_000 {
            socket.send(&packet).unwrap();
        }
        let mut answered = 0;
        while socket.recv(&mut [0; 512]).is_ok() {
            answered += 1;
        }
        answered
    });
    let seconds = started.elapsed().as_secs_f64();
    let most = 200.0 + 100.0 * seconds;
    assert!(
        answered >= 100 && f64::from(answered) <= most + 1.0,
        "{answered} in {seconds} s"
    );
    let asked = Instant::now();
    assert_eq!(world.guest_of(1, || ask("allowed.test")).1.len(), 1);
    assert!(asked.elapsed() < Duration::from_secs(1));
    let suppressed = world
        .kept
        .wait("a count of the rest", |record| record.suppressed > 0);
    assert_eq!(suppressed.decision, Decision::Denied);
}

/// Low, so that the host is rarely what holds the traffic back.
const RATE: u32 = 2_000_000;
/// Long enough that the burst at the beginning is a small part of it.
const SENDING: Duration = Duration::from_secs(3);

#[test]
fn b18_what_passes_is_the_rate_of_the_sandbox_over_all_its_connections() {
    let mut steady = 0.0;
    // Never more, however busy the host is; and as much in one of three worlds.
    for _ in 0..3 {
        let rules = serde_json::json!([{"id": "all", "network": "198.41.0.0/24", "ports": [7]}]);
        let rate = NonZeroU64::new(RATE.into());
        let Some(world) = World::start_with(&[policy("allowlist", rules)], rate) else {
            return;
        };
        let share = share_of_the_rate(&world);
        assert!(share.whole < 1.1, "{share:?}");
        steady = share.steady;
        if steady > 0.9 {
            return;
        }
    }
    panic!("{steady}");
}

/// What passed, of what the rate allows in the same time.
#[derive(Debug)]
struct Share {
    /// From before the first connection: the most that this can be is the rate and its burst.
    whole: f64,
    /// From the first bytes that came: what it takes a busy host to connect says nothing of
    /// the rate.
    steady: f64,
}

/// Three connections, of which each alone would send as much as it can.
fn share_of_the_rate(world: &World) -> Share {
    let sink = world.internet.sink(EVIL, 7);
    let is_over = Arc::new(AtomicBool::new(false));
    let began = Instant::now();
    let start = |_| {
        let is_over = Arc::clone(&is_over);
        world.guest(move || {
            let mut stream = connect(&format!("{EVIL}:7")).unwrap();
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) && stream.write_all(&[7; 16 << 10]).is_ok() {
                }
            })
        })
    };
    let senders: Vec<_> = (0..3).map(start).collect();
    wait_until("the first bytes come", || !sink.bytes().is_empty());
    let (before, first) = (sink.bytes().len(), Instant::now());
    wait_until("the time is over", || first.elapsed() >= SENDING);
    let (passed, last) = (sink.bytes().len(), Instant::now());
    is_over.store(true, Ordering::Relaxed);
    let share = Share {
        whole: of_the_rate(passed, last - began),
        steady: of_the_rate(passed - before, last - first),
    };
    println!("passed {passed} bytes in {:?}: {share:?}", last - began);
    for sender in senders {
        sender.join().unwrap();
    }
    share
}

#[expect(clippy::cast_precision_loss, reason = "far from the limit")]
fn of_the_rate(passed: usize, took: Duration) -> f64 {
    passed as f64 / (f64::from(RATE) * took.as_secs_f64())
}
