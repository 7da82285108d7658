use std::io;
use std::mem;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// A setting of a network interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    Address(Ipv4Addr),
    /// After the address, which brings one by its class.
    Netmask(Ipv4Addr),
    BytesMax(u16),
    Up(Kind),
}

/// What an interface leads to. It is told together with being up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Loopback,
    Ethernet,
}

/// Changes an interface.
pub(crate) fn set_interface(name: &str, setting: Setting) -> io::Result<()> {
    let socket = any_socket()?;
    // SAFETY: `ifreq` is plain C data, for which all zeroes is a valid value.
    let mut wanted: libc::ifreq = unsafe { mem::zeroed() };
    // The last byte stays zero, so the name ends.
    let places = wanted.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1);
    for (place, byte) in places.zip(name.bytes()) {
        *place = libc::c_char::from_ne_bytes([byte]);
    }
    let value = &mut wanted.ifr_ifru;
    let request = match setting {
        Setting::Address(address) => {
            value.ifru_addr = internet_address(address);
            libc::SIOCSIFADDR
        }
        Setting::Netmask(mask) => {
            value.ifru_netmask = internet_address(mask);
            libc::SIOCSIFNETMASK
        }
        Setting::BytesMax(bytes) => {
            value.ifru_mtu = libc::c_int::from(bytes);
            libc::SIOCSIFMTU
        }
        Setting::Up(kind) => {
            let up = libc::IFF_UP | libc::IFF_RUNNING;
            let flags = match kind {
                Kind::Loopback => up,
                Kind::Ethernet => up | libc::IFF_MULTICAST,
            };
            value.ifru_flags = libc::c_short::try_from(flags).unwrap_or_default();
            libc::SIOCSIFFLAGS
        }
    };
    // SAFETY: the socket is open for the call. Each of these requests reads one `ifreq` and writes
    // none; `wanted` is one, with a name that ends in a zero byte, and the member that the request
    // reads was set beside it.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), request, &raw const wanted) };
    check(result)
}

/// Sends everything that no interface leads to directly to this neighbour.
pub(crate) fn add_default_route(gateway: Ipv4Addr) -> io::Result<()> {
    let socket = any_socket()?;
    // SAFETY: `rtentry` is plain C data, for which all zeroes, with a null pointer in place of the
    // name of an interface, is a valid value.
    let mut wanted: libc::rtentry = unsafe { mem::zeroed() };
    wanted.rt_dst = internet_address(Ipv4Addr::UNSPECIFIED);
    wanted.rt_genmask = internet_address(Ipv4Addr::UNSPECIFIED);
    wanted.rt_gateway = internet_address(gateway);
    wanted.rt_flags = libc::RTF_UP | libc::RTF_GATEWAY;
    // SAFETY: the socket is open for the call, and the kernel reads one `rtentry`, which `wanted`
    // is; its pointer is null, so nothing is read through it.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCADDRT, &raw const wanted) };
    check(result)
}

/// The kernel takes requests about interfaces and routes on any socket.
fn any_socket() -> io::Result<OwnedFd> {
    let kind = SocketType::DGRAM;
    Ok(socket_with(
        AddressFamily::INET,
        kind,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Family, port and address as the kernel lays them out.
fn internet_address(address: Ipv4Addr) -> libc::sockaddr {
    let mut data = [0; 14];
    for (place, byte) in data.iter_mut().skip(2).zip(address.octets()) {
        *place = libc::c_char::from_ne_bytes([byte]);
    }
    libc::sockaddr {
        sa_family: libc::sa_family_t::try_from(libc::AF_INET).unwrap_or_default(),
        sa_data: data,
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
