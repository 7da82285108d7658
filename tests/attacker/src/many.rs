//! Many connections: one to each port, or many to one.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::probe::{Bytes, Hold, Outcome, Report, Scan, Tcp, milliseconds};
use crate::tcp;

/// Enough to know who spoke.
const SAID_BYTES_MAX: usize = 256;
const CONNECT_LIMIT: Duration = Duration::from_secs(8);
const TURN: Duration = Duration::from_millis(20);

#[must_use]
pub fn scan(wish: &Scan) -> Report {
    let started = Instant::now();
    let next = AtomicUsize::new(0);
    let found = Mutex::new((BTreeMap::<Outcome, usize>::new(), Vec::new()));
    thread::scope(|scope| {
        for _ in 0..wish.at_once {
            scope.spawn(|| {
                while let Some(port) = wish.ports.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let report = tcp::run(&one(wish, *port));
                    if let Ok(mut found) = found.lock() {
                        *found.0.entry(report.outcome).or_default() += 1;
                        if report.count > 0 {
                            found.1.push((*port, report.bytes));
                        }
                    }
                }
            });
        }
    });
    let (outcomes, spoke) = found.into_inner().unwrap_or_default();
    Report {
        outcomes: outcomes.into_iter().collect(),
        spoke,
        ..Report::new(Outcome::Connected, started)
    }
}

fn one(wish: &Scan, port: u16) -> Tcp {
    Tcp {
        to: SocketAddr::from((wish.to, port)),
        pieces: vec![wish.send.clone()],
        pause_ms: 0,
        shut: false,
        limit_ms: wish.limit_ms,
        bytes_max: SAID_BYTES_MAX,
        drain: false,
    }
}

struct Held {
    stream: Option<TcpStream>,
    since: Instant,
    sent: usize,
    ended: Option<(Outcome, Duration)>,
}

/// Opens them all, then looks at each in turn until the time is over.
#[must_use]
pub fn hold(wish: &Hold) -> Report {
    let started = Instant::now();
    let mut held: Vec<Held> = (0..wish.count).map(|_| open(wish)).collect();
    let end = Instant::now() + Duration::from_millis(wish.watch_ms);
    let mut said = Vec::new();
    while Instant::now() < end && held.iter().any(|one| one.ended.is_none()) {
        for one in held.iter_mut().filter(|one| one.ended.is_none()) {
            drip(one, wish);
            look(one, &mut said);
        }
        thread::sleep(TURN);
    }
    let mut outcomes = BTreeMap::<Outcome, usize>::new();
    for one in &held {
        let outcome = one.ended.map_or(Outcome::Timeout, |(outcome, _)| outcome);
        *outcomes.entry(outcome).or_default() += 1;
    }
    let ended = |one: &Held| one.ended.map(|(_, time)| milliseconds(time));
    Report {
        outcomes: outcomes.into_iter().collect(),
        ended_ms: held.iter().map(ended).collect(),
        bytes: Bytes(said),
        ..Report::new(Outcome::Connected, started)
    }
}

fn open(wish: &Hold) -> Held {
    let since = Instant::now();
    let mut one = Held {
        stream: None,
        since,
        sent: 0,
        ended: None,
    };
    let opened = TcpStream::connect_timeout(&wish.to, CONNECT_LIMIT).and_then(|mut stream| {
        stream.set_nodelay(true)?;
        if wish.drip_ms == 0 {
            stream.write_all(&wish.send.0)?;
        }
        stream.set_nonblocking(true)?;
        Ok(stream)
    });
    match opened {
        Ok(stream) => one.stream = Some(stream),
        Err(error) => one.ended = Some((tcp::outcome(error.kind()), since.elapsed())),
    }
    one
}

fn drip(one: &mut Held, wish: &Hold) {
    let Some(due) = milliseconds(one.since.elapsed()).checked_div(wish.drip_ms) else {
        return;
    };
    if let (Some(stream), Some(byte)) = (&mut one.stream, wish.send.0.get(one.sent))
        && u64::try_from(one.sent).is_ok_and(|sent| sent <= due)
    {
        // Whether it is closed shows when it is looked at.
        let _ = stream.write_all(&[*byte]);
        one.sent += 1;
    }
}

fn look(one: &mut Held, said: &mut Vec<u8>) {
    let Some(stream) = &mut one.stream else {
        return;
    };
    let mut part = [0; SAID_BYTES_MAX];
    let outcome = match stream.read(&mut part) {
        Ok(0) => Outcome::Connected,
        Ok(count) => {
            said.extend_from_slice(&part[..count.min(SAID_BYTES_MAX.saturating_sub(said.len()))]);
            return;
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => return,
        Err(error) => tcp::outcome(error.kind()),
    };
    one.ended = Some((outcome, one.since.elapsed()));
    one.stream = None;
}
