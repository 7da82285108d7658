use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

const RNDADDENTROPY: libc::c_ulong = 0x4008_5203;
const RNDRESEEDCRNG: libc::c_ulong = 0x5207;
const SEED_BYTES: usize = 32;

/// `struct rand_pool_info` with room for one seed.
#[repr(C)]
struct PoolInfo {
    entropy_bits: libc::c_int,
    seed_bytes: libc::c_int,
    seed: [u8; SEED_BYTES],
}

/// Mixes a secret seed into the kernel's randomness and renews its generator at once, so that two
/// guests restored from one image share no random number from here on.
pub(crate) fn reseed(seed: &[u8; SEED_BYTES]) -> io::Result<()> {
    let device = File::options()
        .read(true)
        .write(true)
        .open("/dev/urandom")?;
    let pool = PoolInfo {
        entropy_bits: 256,
        seed_bytes: 32,
        seed: *seed,
    };
    // SAFETY: the descriptor is open for the call, and the kernel reads a `rand_pool_info` whose
    // `seed_bytes` says exactly how long the array behind it is.
    let added = unsafe { libc::ioctl(device.as_raw_fd(), RNDADDENTROPY, &raw const pool) };
    if added < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is open for the call, and this request takes no argument.
    let renewed = unsafe { libc::ioctl(device.as_raw_fd(), RNDRESEEDCRNG) };
    if renewed < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Bytes from the kernel's generator.
pub(crate) fn random_bytes() -> io::Result<[u8; 16]> {
    let mut bytes = [0_u8; 16];
    // SAFETY: the pointer and the length describe the whole of `bytes`, which outlives the call.
    let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if count == 16 {
        Ok(bytes)
    } else {
        Err(io::Error::last_os_error())
    }
}
