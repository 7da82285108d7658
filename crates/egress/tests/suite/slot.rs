//! One slot and the guest behind it, as the node makes them, with a cable in place of the tap.

use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use dayfly_host::netns;
pub(crate) use dayfly_netlab::namespace::run_in;

/// Two namespaces with a cable between them.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) inside: PathBuf,
    pub(crate) guest: PathBuf,
    /// The node keeps them: a process that is started anew is handed the same ones.
    pub(crate) sockets: Sockets,
}

impl Slot {
    pub(crate) fn make(directory: &Path, number: u32) -> Self {
        let inside = directory.join(format!("slot{number}"));
        let guest = directory.join(format!("guest{number}"));
        netns::create(&inside).unwrap();
        netns::create(&guest).unwrap();
        let cable = format!(
            "link add tap0 type veth peer name eth0 netns {}\n\
             addr add 10.11.0.1/24 dev tap0\n\
             link set lo up\n\
             link set tap0 up\n",
            guest.display()
        );
        run_in(&inside, "ip", &["-batch", "-"], &cable);
        let side = "addr add 10.11.0.2/24 dev eth0\n\
                    link set lo up\n\
                    link set eth0 up\n\
                    route add default via 10.11.0.1\n";
        run_in(&guest, "ip", &["-batch", "-"], side);
        run_in(&inside, "nft", &["-f", "-"], include_str!("slot.nft"));
        let sockets = netns::in_namespace(&inside, || Sockets {
            tcp: TcpListener::bind("10.11.0.1:5017").unwrap().into(),
            dns_udp: UdpSocket::bind("10.11.0.1:5353").unwrap().into(),
            dns_tcp: TcpListener::bind("10.11.0.1:5353").unwrap().into(),
        });
        Self {
            inside,
            guest,
            sockets: sockets.unwrap(),
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        for path in [&self.inside, &self.guest] {
            netns::remove(path).unwrap();
        }
    }
}

#[derive(Debug)]
pub(crate) struct Sockets {
    tcp: OwnedFd,
    dns_udp: OwnedFd,
    dns_tcp: OwnedFd,
}

impl Sockets {
    pub(crate) fn borrow(&self) -> [BorrowedFd<'_>; 3] {
        [self.tcp.as_fd(), self.dns_udp.as_fd(), self.dns_tcp.as_fd()]
    }
}
