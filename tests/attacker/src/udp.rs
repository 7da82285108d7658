//! Datagrams.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use crate::probe::{Bytes, Flood, Outcome, Report, Udp};
use crate::tcp::failed;

const DATAGRAM_BYTES_MAX: usize = 64 << 10;

fn socket(to: std::net::SocketAddr, limit_ms: u64) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.set_broadcast(true)?;
    socket.set_read_timeout(Some(Duration::from_millis(limit_ms.max(1))))?;
    // So that an error that comes back is told.
    socket.connect(to)?;
    Ok(socket)
}

#[must_use]
pub fn run(wish: &Udp) -> Report {
    let started = Instant::now();
    let mut part = vec![0; DATAGRAM_BYTES_MAX];
    let asked = socket(wish.to, wish.limit_ms).and_then(|socket| {
        socket.send(&wish.send.0)?;
        socket.recv(&mut part)
    });
    match asked {
        Ok(count) => Report {
            bytes: Bytes(part[..count].to_vec()),
            count: 1,
            ..Report::new(Outcome::Reply, started)
        },
        Err(error) => failed(&error, started),
    }
}

/// Sends everything, and counts answers until it is quiet.
#[must_use]
pub fn flood(wish: &Flood) -> Report {
    let started = Instant::now();
    let socket = match socket(wish.to, wish.quiet_ms) {
        Ok(socket) => socket,
        Err(error) => return failed(&error, started),
    };
    for _ in 0..wish.times {
        for packet in &wish.packets {
            // A full queue loses some, as a flood does.
            let _ = socket.send(&packet.0);
        }
    }
    let mut answered = 0;
    let mut part = vec![0; DATAGRAM_BYTES_MAX];
    let mut first = Bytes::default();
    while let Ok(count) = socket.recv(&mut part) {
        if answered == 0 {
            first = Bytes(part[..count].to_vec());
        }
        answered += 1;
    }
    Report {
        bytes: first,
        count: answered,
        ..Report::new(Outcome::Reply, started)
    }
}
