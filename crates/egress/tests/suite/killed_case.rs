//! The process is killed while bytes go through it.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dayfly_types::egress::Decision;
use hickory_proto::rr::RecordType;

use super::guest::{ask_raw, connect, get, question};
use super::internet::{ALLOWED, EVIL};
use super::world::{World, allow, lifecycle, wait_until};

/// Keeps trying to get bytes out, to a place that is allowed and to one that never is.
fn keep_trying(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        for (address, host) in [(ALLOWED, "allowed.test"), (EVIL, "evil.test")] {
            let Ok(mut stream) = connect(&format!("{address}:80")) else {
                continue;
            };
            let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
            let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(request.as_bytes());
            let mut said = Vec::new();
            let _ = stream.read_to_end(&mut said);
        }
        let packet = question("evil.test", RecordType::A).to_vec().unwrap();
        let _ = ask_raw("8.8.8.8", &packet, Duration::from_millis(50));
    }
}

/// What something comes to once it has not changed for half a second.
fn settled<T: PartialEq>(count: impl Fn() -> T) -> T {
    let mut last = (count(), Instant::now());
    wait_until("it settles", || {
        let now = count();
        if now != last.0 {
            last = (now, Instant::now());
        }
        last.1.elapsed() > Duration::from_millis(500)
    });
    last.0
}

#[test]
fn n14_killed_under_traffic_and_started_anew_nothing_leaves_in_between() {
    let Some(mut world) = World::start(&[allow("allowed.test")]) else {
        return;
    };
    let allowed = world.internet.http(ALLOWED, 80, "allowed");
    let attacker = world.internet.http(EVIL, 80, "evil");
    let stop = Arc::new(AtomicBool::new(false));
    let guest = world.slots[0].guest.clone();
    let stopping = Arc::clone(&stop);
    let trying = thread::spawn(move || {
        dayfly_host::netns::in_namespace(&guest, move || keep_trying(&stopping)).unwrap();
    });
    wait_until("bytes go through", || allowed.requests() > 5);
    let mut open = world.guest(|| {
        let mut stream = connect(&format!("{ALLOWED}:80")).unwrap();
        let request = b"GET /endless HTTP/1.1\r\nHost: allowed.test\r\n\r\n";
        stream.write_all(request).unwrap();
        stream.read_exact(&mut [0; 4096]).unwrap();
        stream
    });
    let client = world.client().clone();
    world.proxy.kill();
    world.wait_until_over(&client);
    // What it had sent by then still arrives.
    let count = || (allowed.requests(), world.internet.names.questions().len());
    let (requests, questions) = settled(count);
    let mut rest = Vec::new();
    // What was under way is over, whatever was in flight.
    let _ = open.read_to_end(&mut rest);
    let outcome = world.guest(|| {
        let mut stream = connect(&format!("{ALLOWED}:80")).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(1)))
            .unwrap();
        stream
            .write_all(b"GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n")
            .unwrap();
        stream.read(&mut [0; 1])
    });
    assert!(outcome.is_err(), "nobody answers while it is down");
    assert_eq!(allowed.requests(), requests, "and nothing left");
    assert_eq!(world.internet.names.questions().len(), questions);
    world.proxy.start_again();
    assert_eq!(world.reconnect(), [], "a new one serves nobody by itself");
    assert_eq!(allowed.requests(), requests);
    world
        .open(lifecycle(0, 1), 1, allow("allowed.test"))
        .unwrap();
    let said = world.guest(|| get(&format!("{ALLOWED}:80"), "allowed.test", "/"));
    assert!(said.contains("hello from allowed"), "{said}");
    let said = world.guest(|| get(&format!("{EVIL}:80"), "evil.test", "/"));
    assert!(said.starts_with("HTTP/1.1 403 "), "{said}");
    stop.store(true, Ordering::Relaxed);
    trying.join().unwrap();
    attacker.assert_nothing_came();
    assert!(
        !world
            .internet
            .names
            .questions()
            .contains(&"evil.test".to_owned())
    );
    world.kept.wait_decision(Decision::Closed);
}
