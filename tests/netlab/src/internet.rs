//! The world outside: public addresses with servers on them, an attacker, and places that nobody
//! may reach.

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use dayfly_host::netns;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

use crate::certificates::Identity;
use crate::http_server::{Seen, converse};
use crate::name_server::{self, NameServer};
use crate::namespace::run_in;
use crate::proxy;
use crate::site::{Site, serve};

pub const ALLOWED: &str = "93.184.216.34";
pub const OTHER: &str = "93.184.216.35";
pub const EVIL: &str = "198.41.0.4";
/// Addresses with something to steal behind them.
pub const NEVER: [&str; 5] = [
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "168.63.129.16",
    "10.0.0.5",
];

/// Names of the host that packages come from in these tests.
pub const MIRROR_NAMES: [&str; 3] = ["pypi.test", "npm.test", "git.test"];
/// How long a server may take to listen.
const LISTEN_LIMIT: Duration = Duration::from_secs(10);

/// Everything outside, with the namespace beside it that traffic of guests leaves from.
#[derive(Debug)]
pub struct Internet {
    pub egress: PathBuf,
    pub outside: PathBuf,
    runtime: Option<Runtime>,
    pub names: Arc<NameServer>,
    pub allowed: Identity,
    pub evil: Identity,
    pub mirror: Identity,
}

/// Packets that arrived at the outer end of the cable since it was laid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrivals {
    /// To addresses that nobody may reach.
    pub never: u64,
    /// Neither TCP nor a question to the name server: nothing of the kind may leave.
    pub stray: u64,
    /// First packets of connections.
    pub connections: u64,
    pub questions: u64,
}

impl Internet {
    /// # Panics
    /// When the namespaces cannot be made.
    #[must_use]
    pub fn make(directory: &Path) -> Self {
        let (egress, outside) = (directory.join("egress"), directory.join("outside"));
        netns::create(&egress).unwrap();
        netns::create(&outside).unwrap();
        lay_cable(&egress, &outside);
        let runtime = netns::in_namespace(&outside, || {
            let mut runtime = tokio::runtime::Builder::new_multi_thread();
            runtime.worker_threads(1).enable_all().build().unwrap()
        });
        let internet = Self {
            egress,
            outside,
            runtime: Some(runtime.unwrap()),
            names: Arc::default(),
            allowed: Identity::new(&["allowed.test", "www.allowed.test"]),
            evil: Identity::new(&["evil.test"]),
            mirror: Identity::new(&MIRROR_NAMES),
        };
        internet.start_name_server();
        internet
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().unwrap()
    }

    fn start_name_server(&self) {
        for (name, address) in [
            ("allowed.test", ALLOWED),
            ("www.allowed.test", ALLOWED),
            ("other.test", OTHER),
            ("evil.test", EVIL),
        ] {
            self.names.set_addresses(name, &[address]);
        }
        let (udp, tcp) = (Arc::clone(&self.names), Arc::clone(&self.names));
        self.wait_for(async move {
            let socket = UdpSocket::bind(name_server::ADDRESS).await.unwrap();
            let listener = TcpListener::bind(name_server::ADDRESS).await.unwrap();
            tokio::spawn(udp.serve_udp(socket));
            tokio::spawn(tcp.serve_tcp(listener));
        });
    }

    /// Waits for something inside the runtime, from a thread that may belong to another one.
    fn wait_for<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let (send, receive) = mpsc::sync_channel(1);
        self.runtime().spawn(async move {
            // Nobody listens any more when it took too long.
            let _ = send.send(work.await);
        });
        receive.recv_timeout(LISTEN_LIMIT).unwrap()
    }

    fn listen(&self, address: &str, port: u16) -> TcpListener {
        let place = format!("{address}:{port}");
        self.wait_for(async move { TcpListener::bind(place).await.unwrap() })
    }

    /// Gives the world outside more addresses.
    pub fn add_addresses(&self, addresses: &[&str]) {
        let lines = addresses
            .iter()
            .map(|address| format!("addr add {address}/32 dev lo\n"));
        let lines: String = lines.collect();
        run_in(&self.outside, "ip", &["-batch", "-"], &lines);
    }

    /// A server that says nothing and keeps what it hears.
    #[must_use]
    pub fn sink(&self, address: &str, port: u16) -> Arc<Seen> {
        let listener = self.listen(address, port);
        let seen = Arc::<Seen>::default();
        let kept = Arc::clone(&seen);
        self.runtime().spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let visit = seen.begin();
                tokio::spawn(async move {
                    let mut buffer = vec![0; 64 << 10];
                    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                        visit.add(&buffer[..count]);
                    }
                });
            }
        });
        kept
    }

    /// The same for datagrams. Each one counts as a connection.
    #[must_use]
    pub fn udp_sink(&self, address: &str, port: u16) -> Arc<Seen> {
        let place = format!("{address}:{port}");
        let socket = self.wait_for(async move { UdpSocket::bind(place).await.unwrap() });
        let seen = Arc::<Seen>::default();
        let kept = Arc::clone(&seen);
        self.runtime().spawn(async move {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(count) = socket.recv(&mut buffer).await {
                seen.begin().add(&buffer[..count]);
            }
        });
        kept
    }

    /// A server that speaks first, as SSH does.
    pub fn greeter(&self, address: &str, port: u16) {
        let listener = self.listen(address, port);
        self.runtime().spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                stream.write_all(b"SSH-2.0-test\r\n").await.unwrap();
                let mut rest = Vec::new();
                let _ = stream.read_to_end(&mut rest).await;
            }
        });
    }

    /// A proxy that takes CONNECT for any address but one, and keeps what it was asked for.
    pub fn proxy(&self, address: &str, port: u16, refused: &'static str) -> Arc<Seen> {
        let listener = self.listen(address, port);
        let seen = Arc::<Seen>::default();
        let kept = Arc::clone(&seen);
        self.runtime().spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(proxy::serve(stream, refused, seen.begin()));
            }
        });
        kept
    }

    pub fn http(&self, address: &str, port: u16, name: &'static str) -> Arc<Seen> {
        let listener = self.listen(address, port);
        let seen = Arc::<Seen>::default();
        let kept = Arc::clone(&seen);
        self.runtime().spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(converse(stream, name, seen.begin()));
            }
        });
        kept
    }

    /// The same behind TLS. What is seen is what was encrypted.
    pub fn https(&self, address: &str, port: u16, identity: &Identity) -> Arc<Seen> {
        let listener = self.listen(address, port);
        let acceptor = TlsAcceptor::from(identity.server());
        let seen = Arc::<Seen>::default();
        let kept = Arc::clone(&seen);
        self.runtime().spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, visit) = (acceptor.clone(), seen.begin());
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        converse(stream, "tls", visit).await;
                    }
                });
            }
        });
        kept
    }

    /// Files behind TLS, under the names of the mirror.
    pub fn site(&self, address: &str, port: u16, site: Site) -> Arc<Seen> {
        for name in MIRROR_NAMES {
            self.names.set_addresses(name, &[address]);
        }
        let listener = self.listen(address, port);
        let acceptor = TlsAcceptor::from(self.mirror.server());
        let (seen, site) = (Arc::<Seen>::default(), Arc::new(site));
        let kept = Arc::clone(&seen);
        self.runtime().spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, visit) = (acceptor.clone(), seen.begin());
                let site = Arc::clone(&site);
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, &site, &visit).await;
                    }
                });
            }
        });
        kept
    }

    /// Anybody who gets here has broken out.
    #[must_use]
    pub fn canaries(&self) -> Vec<Arc<Seen>> {
        let ports = [80, 443];
        let places = NEVER
            .iter()
            .flat_map(|address| ports.map(|port| (*address, port)));
        places
            .map(|(address, port)| self.sink(address, port))
            .collect()
    }

    /// Counts at the outer end of the cable, whoever is meant and whether anybody listens there.
    #[must_use]
    pub fn arrivals(&self) -> Arrivals {
        let listed = run_in(&self.outside, "nft", &["-j", "list", "counters"], "");
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        let count = |name: &str| {
            let mut counters = listed["nftables"].as_array().unwrap().iter();
            let found = counters.find(|entry| entry["counter"]["name"] == name);
            found.unwrap()["counter"]["packets"].as_u64().unwrap()
        };
        Arrivals {
            never: count("never"),
            stray: count("stray"),
            connections: count("connections"),
            questions: count("questions"),
        }
    }
}

/// Connects the two and counts at the outer end.
fn lay_cable(egress: &Path, outside: &Path) {
    let off = || std::fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1").unwrap();
    // The kernel's own greetings to neighbours would be counted.
    netns::in_namespace(egress, off).unwrap();
    let cable = format!(
        "link add up0 type veth peer name down0 netns {}\n\
         addr add 100.64.0.1/30 dev up0\n\
         link set lo up\n",
        outside.display()
    );
    run_in(egress, "ip", &["-batch", "-"], &cable);
    run_in(outside, "nft", &["-f", "-"], include_str!("arrivals.nft"));
    let mut side = "addr add 100.64.0.2/30 dev down0\nlink set lo up\n\
                    link set down0 up\n"
        .to_owned();
    for address in [ALLOWED, OTHER, EVIL, "9.9.9.9", "8.8.8.8"]
        .iter()
        .chain(&NEVER)
    {
        side += &format!("addr add {address}/32 dev lo\n");
    }
    run_in(outside, "ip", &["-batch", "-"], &side);
    let up = "link set up0 up\nroute add default via 100.64.0.2\n";
    run_in(egress, "ip", &["-batch", "-"], up);
}

impl Drop for Internet {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        for path in [&self.egress, &self.outside] {
            netns::remove(path).unwrap();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpStream, UdpSocket};

    use super::*;

    /// Every count moves when something really comes, so one that stands still is a proof.
    #[test]
    fn what_comes_out_of_the_cable_is_counted() {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: network namespaces need root");
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let internet = Internet::make(&directory.path().canonicalize().unwrap());
        assert_eq!(internet.arrivals(), Arrivals::default());
        let sink = internet.sink("10.0.0.5", 80);
        let datagrams = internet.udp_sink(EVIL, 4000);
        let sent = netns::in_namespace(&internet.egress, || {
            let stream = TcpStream::connect("10.0.0.5:80").unwrap();
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            for place in [
                format!("{EVIL}:4000"),
                "169.254.169.254:123".to_owned(),
                name_server::ADDRESS.to_owned(),
            ] {
                socket.send_to(b"x", place).unwrap();
            }
            stream
        });
        let deadline = std::time::Instant::now() + LISTEN_LIMIT;
        while datagrams.text() != "x" || sink.open() != 1 || internet.arrivals().questions != 1 {
            assert!(std::time::Instant::now() < deadline, "it never came");
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(sent);
        let arrivals = internet.arrivals();
        assert_eq!((arrivals.connections, arrivals.stray), (1, 2));
        assert!(arrivals.never >= 3, "{arrivals:?}");
    }
}
