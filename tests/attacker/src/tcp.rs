//! One connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::probe::{Bytes, Outcome, Report, Tcp};

const PART_BYTES: usize = 64 << 10;

#[must_use]
pub fn run(wish: &Tcp) -> Report {
    let started = Instant::now();
    let end = started + Duration::from_millis(wish.limit_ms);
    let mut stream = match connect(wish, end) {
        Ok(stream) => stream,
        Err(error) => return failed(&error, started),
    };
    // One that is reset early cannot be written to; what it said before still counts.
    let sent = send(&mut stream, wish);
    let mut read = Reading::default();
    let outcome = read.all(&mut stream, wish, end);
    Report {
        bytes: Bytes(read.kept),
        count: read.count,
        error: sent.err().map(|error| error.to_string()),
        ..Report::new(outcome, started)
    }
}

fn connect(wish: &Tcp, end: Instant) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&wish.to, left(end))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn send(stream: &mut TcpStream, wish: &Tcp) -> std::io::Result<()> {
    let pause = Duration::from_millis(wish.pause_ms);
    for (number, piece) in wish.pieces.iter().enumerate() {
        if number > 0 {
            thread::sleep(pause);
        }
        stream.write_all(&piece.0)?;
    }
    if wish.shut {
        stream.shutdown(Shutdown::Write)?;
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Reading {
    kept: Vec<u8>,
    count: u64,
}

impl Reading {
    fn all(&mut self, stream: &mut TcpStream, wish: &Tcp, end: Instant) -> Outcome {
        let mut part = vec![0; PART_BYTES];
        loop {
            if stream.set_read_timeout(Some(left(end))).is_err() {
                return Outcome::Other;
            }
            let count = match stream.read(&mut part) {
                Ok(0) => return Outcome::Connected,
                Ok(count) => count,
                Err(error) => return outcome(error.kind()),
            };
            self.count += u64::try_from(count).unwrap_or(u64::MAX);
            let room = wish.bytes_max.saturating_sub(self.kept.len());
            self.kept.extend_from_slice(&part[..count.min(room)]);
            if self.kept.len() >= wish.bytes_max && !wish.drain {
                return Outcome::Connected;
            }
        }
    }
}

/// Never zero, which would mean for ever.
pub(crate) fn left(end: Instant) -> Duration {
    let left = end.saturating_duration_since(Instant::now());
    left.max(Duration::from_millis(1))
}

pub(crate) fn failed(error: &std::io::Error, started: Instant) -> Report {
    Report {
        error: Some(error.to_string()),
        ..Report::new(outcome(error.kind()), started)
    }
}

/// Errors that are none of these are nothing that a network does.
const OUTCOMES: [(ErrorKind, Outcome); 8] = [
    (ErrorKind::ConnectionRefused, Outcome::Refused),
    (ErrorKind::ConnectionReset, Outcome::Reset),
    (ErrorKind::ConnectionAborted, Outcome::Reset),
    (ErrorKind::BrokenPipe, Outcome::Reset),
    (ErrorKind::HostUnreachable, Outcome::Unreachable),
    (ErrorKind::NetworkUnreachable, Outcome::Unreachable),
    (ErrorKind::WouldBlock, Outcome::Timeout),
    (ErrorKind::TimedOut, Outcome::Timeout),
];

pub(crate) fn outcome(kind: ErrorKind) -> Outcome {
    let found = OUTCOMES.iter().find(|(known, _)| *known == kind);
    found.map_or(Outcome::Other, |(_, outcome)| *outcome)
}
