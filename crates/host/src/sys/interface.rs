//! Network interfaces of the calling thread's namespace, by requests that need no library.

use std::io;
use std::mem;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::check;

const TUN_DEVICE: &str = "/dev/net/tun";
/// Flags of `linux/if_arp.h`: the entry is complete, and it never ages.
const NEIGHBOUR_FLAGS: libc::c_int = 0x02 | 0x04;

/// Makes a tap interface, or attaches to the one of that name, and gives the end that frames are
/// read from and written to.
///
/// # Errors
/// `EBUSY` when somebody else is attached, else what the kernel said.
pub(crate) fn open_tap(name: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let tap = rustix::fs::open(TUN_DEVICE, flags, Mode::empty())?;
    let mut wanted = named_request(name)?;
    wanted.ifr_ifru.ifru_flags = short_flags(libc::IFF_TAP | libc::IFF_NO_PI)?;
    // SAFETY: `tap` is open for the call. The kernel reads one `ifreq`, which `wanted` is, and
    // writes the interface's name back into it; it is ours alone.
    let result = unsafe { libc::ioctl(tap.as_raw_fd(), libc::TUNSETIFF, &raw mut wanted) };
    check(libc::c_long::from(result))?;
    Ok(tap)
}

/// Lets the interface outlive `tap`, and lets a process of this user and group without any
/// capability attach to it, and nobody else.
///
/// # Errors
/// What the kernel said.
pub(crate) fn keep_tap(tap: &OwnedFd, owner: u32) -> io::Result<()> {
    let settings = [
        (libc::TUNSETOWNER, owner),
        (libc::TUNSETGROUP, owner),
        (libc::TUNSETPERSIST, 1),
    ];
    for (request, value) in settings {
        let value = libc::c_ulong::from(value);
        // SAFETY: `tap` is open for the call, and these three requests take a number as their
        // argument; no memory is reached through it.
        let result = unsafe { libc::ioctl(tap.as_raw_fd(), request, value) };
        check(libc::c_long::from(result))?;
    }
    Ok(())
}

/// A setting of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Setting {
    HardwareAddress([u8; 6]),
    Address(Ipv4Addr),
    /// After the address, which brings one by its class.
    Netmask(Ipv4Addr),
    BytesMax(u16),
    Up,
}

/// Changes an interface.
///
/// # Errors
/// `ENODEV` when there is none of that name, else what the kernel said.
pub(crate) fn set_interface(name: &str, setting: Setting) -> io::Result<()> {
    let socket = any_socket()?;
    let mut wanted = named_request(name)?;
    let value = &mut wanted.ifr_ifru;
    let request = match setting {
        Setting::HardwareAddress(address) => {
            value.ifru_hwaddr = hardware_address(address);
            libc::SIOCSIFHWADDR
        }
        Setting::Address(address) => {
            value.ifru_addr = internet_address(address)?;
            libc::SIOCSIFADDR
        }
        Setting::Netmask(mask) => {
            value.ifru_netmask = internet_address(mask)?;
            libc::SIOCSIFNETMASK
        }
        Setting::BytesMax(bytes) => {
            value.ifru_mtu = libc::c_int::from(bytes);
            libc::SIOCSIFMTU
        }
        Setting::Up => {
            value.ifru_flags = short_flags(libc::IFF_UP | libc::IFF_RUNNING)?;
            libc::SIOCSIFFLAGS
        }
    };
    // SAFETY: `socket` is open for the call. Each of these requests reads one `ifreq` and writes
    // none; `wanted` is one, its name ends in a zero byte, and the member that the request reads
    // was set beside it.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), request, &raw const wanted) };
    check(libc::c_long::from(result)).map(drop)
}

/// Writes down for good which hardware address a neighbour has, so that nothing it says counts.
///
/// # Errors
/// What the kernel said.
pub(crate) fn pin_neighbour(name: &str, address: Ipv4Addr, hardware: [u8; 6]) -> io::Result<()> {
    let socket = any_socket()?;
    // SAFETY: `arpreq` is plain C data, for which all zeroes is a valid value.
    let mut wanted: libc::arpreq = unsafe { mem::zeroed() };
    wanted.arp_pa = internet_address(address)?;
    wanted.arp_ha = hardware_address(hardware);
    wanted.arp_flags = NEIGHBOUR_FLAGS;
    wanted.arp_dev = interface_name(name)?;
    // SAFETY: `socket` is open for the call, and the kernel reads one `arpreq`, which `wanted` is,
    // and writes none.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSARP, &raw const wanted) };
    check(libc::c_long::from(result)).map(drop)
}

/// The kernel takes requests about interfaces on any socket of the namespace.
fn any_socket() -> io::Result<OwnedFd> {
    let kind = SocketType::DGRAM;
    Ok(socket_with(
        AddressFamily::INET,
        kind,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

fn named_request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: `ifreq` is plain C data, for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    request.ifr_name = interface_name(name)?;
    Ok(request)
}

/// A name with a zero byte behind it.
fn interface_name(name: &str) -> io::Result<[libc::c_char; libc::IFNAMSIZ]> {
    let mut result = [0; libc::IFNAMSIZ];
    if name.is_empty() || name.len() >= result.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, byte) in result.iter_mut().zip(name.bytes()) {
        *place = libc::c_char::from_ne_bytes([byte]);
    }
    Ok(result)
}

fn short_flags(flags: libc::c_int) -> io::Result<libc::c_short> {
    libc::c_short::try_from(flags).map_err(io::Error::other)
}

/// Family, port and address as the kernel lays them out, both in the order of the network.
fn internet_address(address: Ipv4Addr) -> io::Result<libc::sockaddr> {
    let family = libc::sa_family_t::try_from(libc::AF_INET).map_err(io::Error::other)?;
    Ok(raw_address(family, 2, &address.octets()))
}

fn hardware_address(address: [u8; 6]) -> libc::sockaddr {
    raw_address(libc::ARPHRD_ETHER, 0, &address)
}

fn raw_address(family: libc::sa_family_t, offset: usize, bytes: &[u8]) -> libc::sockaddr {
    let mut data = [0; 14];
    for (place, byte) in data.iter_mut().skip(offset).zip(bytes) {
        *place = libc::c_char::from_ne_bytes([*byte]);
    }
    libc::sockaddr {
        sa_family: family,
        sa_data: data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_does_not_fit_is_refused() {
        assert!(interface_name("").is_err());
        assert!(interface_name("sixteen-letters-").is_err());
        assert_eq!(interface_name("fifteen-letters").unwrap()[15], 0);
    }

    #[test]
    fn an_address_stands_behind_the_port() {
        let address = internet_address(Ipv4Addr::new(10, 11, 0, 1)).unwrap();
        assert_eq!(address.sa_data[..6], [0, 0, 10, 11, 0, 1]);
    }
}
