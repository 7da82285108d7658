//! What the way through the program costs, beside a cable without it, in one run.
//!
//! `cargo test --release -p dayfly-egress-process -- --ignored --nocapture bench`

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use dayfly_host::netns;

use super::suite::guest::connect;
use super::suite::internet::EVIL;
use super::suite::slot::run_in;
use super::suite::world::{World, policy};

const BULK_BYTES: usize = 128 << 20;
const PART_BYTES: usize = 256 << 10;
/// Many short ones in turn, so that both meet the same other work of the machine.
const BULK_RUNS: usize = 41;
const ROUND_TRIPS: usize = 2000;
const CONNECTIONS: usize = 300;
const DIRECT: &str = "198.18.0.1";
const BULK_PORT: u16 = 7001;
const ECHO_PORT: u16 = 7002;

/// Goals of the design.
const RATIO_MIN: f64 = 0.5;
const ADDED_MAX: Duration = Duration::from_millis(1);

/// Takes bytes and says when it has had them all, and says back single bytes.
fn serve(namespace: &Path, address: &str) {
    let namespace = namespace.to_owned();
    for port in [BULK_PORT, ECHO_PORT] {
        let place = format!("{address}:{port}");
        let listener = netns::in_namespace(&namespace, move || TcpListener::bind(place).unwrap());
        let listener = listener.unwrap();
        // Ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                stream.set_nodelay(true).unwrap();
                thread::spawn(move || {
                    if port == BULK_PORT {
                        take(&mut stream);
                    } else {
                        echo(&mut stream);
                    }
                });
            }
        });
    }
}

fn take(stream: &mut TcpStream) {
    let mut part = vec![0; PART_BYTES];
    while let Ok(1..) = stream.read(&mut part) {}
    let _ = stream.write_all(b"!");
}

fn echo(stream: &mut TcpStream) {
    let mut byte = [0];
    while stream.read_exact(&mut byte).is_ok() {
        stream.write_all(&byte).unwrap();
    }
}

fn bulk(address: &str) -> f64 {
    let mut stream = connect(&format!("{address}:{BULK_PORT}")).unwrap();
    let part = vec![b'x'; PART_BYTES];
    let started = Instant::now();
    for _ in 0..BULK_BYTES / PART_BYTES {
        stream.write_all(&part).unwrap();
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    stream.read_exact(&mut [0]).unwrap();
    let mebibytes = f64::from(u32::try_from(BULK_BYTES >> 20).unwrap());
    mebibytes / started.elapsed().as_secs_f64()
}

fn round_trips(address: &str) -> Vec<Duration> {
    let mut stream = connect(&format!("{address}:{ECHO_PORT}")).unwrap();
    let turn = |_| {
        let started = Instant::now();
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0]).unwrap();
        started.elapsed()
    };
    sorted((0..ROUND_TRIPS).map(turn).collect())
}

/// From the first packet to the first byte back.
fn first_bytes(address: &str) -> Vec<Duration> {
    let turn = |_| {
        let started = Instant::now();
        let mut stream = connect(&format!("{address}:{ECHO_PORT}")).unwrap();
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0]).unwrap();
        started.elapsed()
    };
    sorted((0..CONNECTIONS).map(turn).collect())
}

fn sorted(mut times: Vec<Duration>) -> Vec<Duration> {
    times.sort();
    times
}

fn report(what: &str, direct: &[Duration], through: &[Duration]) -> Duration {
    let at = |times: &[Duration], percent: usize| times[times.len() * percent / 100];
    let micros = |time: Duration| time.as_micros();
    let added = at(through, 50).saturating_sub(at(direct, 50));
    println!(
        "{what}: n {}, direct p50 {} us p99 {} us, through p50 {} us p99 {} us, added p50 {} us",
        through.len(),
        micros(at(direct, 50)),
        micros(at(direct, 99)),
        micros(at(through, 50)),
        micros(at(through, 99)),
        micros(added),
    );
    added
}

#[test]
#[ignore = "it measures, and wants the machine for itself"]
fn bench_through_beside_direct() {
    let rules = serde_json::json!([
        {"id": "bench", "network": format!("{EVIL}/32"), "ports": [BULK_PORT, ECHO_PORT]}]);
    let Some(world) = World::start(&[policy("allowlist", rules)]) else {
        return;
    };
    let outside = world.internet.outside.clone();
    let cable = format!(
        "link add direct0 type veth peer name direct1 netns {}\n\
         addr add 198.18.0.2/30 dev direct0\nlink set direct0 up\n",
        outside.display()
    );
    run_in(&world.slots[0].guest, "ip", &["-batch", "-"], &cable);
    let side = "addr add 198.18.0.1/30 dev direct1\nlink set direct1 up\n";
    run_in(&outside, "ip", &["-batch", "-"], side);
    serve(&outside, DIRECT);
    serve(&outside, EVIL);
    let runs: Vec<(f64, f64)> = (0..BULK_RUNS)
        .map(|_| world.guest(|| (bulk(DIRECT), bulk(EVIL))))
        .collect();
    let at = |values: Vec<f64>, percent: usize| {
        let mut values = values;
        values.sort_by(f64::total_cmp);
        values[values.len() * percent / 100]
    };
    let ratio = at(
        runs.iter()
            .map(|(direct, through)| through / direct)
            .collect(),
        50,
    );
    for (what, percent) in [("p50", 50), ("worst", 1), ("best", 99)] {
        let direct = at(runs.iter().map(|run| run.0).collect(), percent);
        let through = at(runs.iter().map(|run| run.1).collect(), percent);
        println!(
            "bulk: n {BULK_RUNS}, {what} direct {direct:.0} MiB/s, through {through:.0} MiB/s"
        );
    }
    println!("bulk: median ratio of a pair {ratio:.2}");
    let (direct, through) = world.guest(|| (round_trips(DIRECT), round_trips(EVIL)));
    let added = report("round trip", &direct, &through);
    let (direct, through) = world.guest(|| (first_bytes(DIRECT), first_bytes(EVIL)));
    let added_first = report("connection to first byte", &direct, &through);
    assert!(
        ratio >= RATIO_MIN,
        "throughput is {ratio:.2} of a direct cable"
    );
    assert!(
        added <= ADDED_MAX && added_first <= ADDED_MAX,
        "{added:?} {added_first:?}"
    );
}
