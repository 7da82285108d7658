//! Something on the host's own addresses that no guest may reach.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often the canary looks whether it may go.
const LOOK: Duration = Duration::from_millis(50);

/// Listens on every address of the namespace that it was made in, by TCP and UDP, on one port.
#[derive(Debug)]
pub struct HostCanary {
    pub port: u16,
    came: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl HostCanary {
    /// # Panics
    /// When no port is free.
    #[must_use]
    pub fn listen() -> Self {
        let tcp = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let port = tcp.local_addr().unwrap().port();
        let udp = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)).unwrap();
        udp.set_read_timeout(Some(LOOK)).unwrap();
        let (came, stop) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (count, over) = (Arc::clone(&came), Arc::clone(&stop));
        let by_tcp = thread::spawn(move || {
            for stream in tcp.incoming() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                drop(stream);
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let (count, over) = (Arc::clone(&came), Arc::clone(&stop));
        let by_udp = thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                if udp.recv(&mut [0; 1]).is_ok() {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self {
            port,
            came,
            stop,
            threads: vec![by_tcp, by_udp],
        }
    }

    /// How many connections and datagrams came.
    #[must_use]
    pub fn came(&self) -> usize {
        self.came.load(Ordering::Relaxed)
    }
}

impl Drop for HostCanary {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the one that waits for a connection.
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let _ = TcpStream::connect_timeout(&here, LOOK);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
