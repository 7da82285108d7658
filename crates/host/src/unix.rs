//! Unix sockets below directories of any depth, and waiting for one to appear.
//!
//! A socket address holds 107 bytes, and a socket in a directory that a hostile process can write
//! may be a link by the time it is dialled. Both are met by opening first and dialling the
//! descriptor. It must not know what is spoken over a socket.

use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FileType, fstat, inotify};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use tokio::time::{Instant, sleep, timeout_at};

use crate::files::{open_directory, open_without_links};
use crate::sys::watch_readable;

/// How long to wait before dialling again a socket that exists and does not listen yet.
const DIAL_PAUSE: Duration = Duration::from_millis(1);

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerCredentials {
    pub pid: i32,
    pub uid: u32,
    pub gid: u32,
}

/// Dials a socket at a path of any length, refusing links in any component.
///
/// # Errors
/// `ECONNREFUSED` when nobody listens, `WouldBlock` when its queue is full, `ELOOP` for a link, `InvalidInput` when it is no socket.
pub fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    let socket = open_without_links(path)?;
    if FileType::from_raw_mode(fstat(&socket)?.st_mode) != FileType::Socket {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a socket"));
    }
    let kind = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let stream = socket_with(AddressFamily::UNIX, SocketType::STREAM, kind, None)?;
    // A listener that never accepts must not hold its dialler, so the dialling itself does not
    // block; a full queue answers at once.
    connect(&stream, &SocketAddrUnix::new(descriptor_path(&socket))?)?;
    let stream = UnixStream::from(stream);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Listens at a path of any length, refusing links in the directory's path. The socket's own
/// permissions follow the umask, so the directory must be private.
///
/// # Errors
/// `EADDRINUSE` when something is there, else what the kernel said.
pub fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let (directory, name) = split(path)?;
    let directory = open_directory(directory)?;
    UnixListener::bind(descriptor_path(&directory).join(name))
}

/// Asks the kernel who is at the other end.
///
/// # Errors
/// What the kernel said.
pub fn peer_credentials(stream: &UnixStream) -> io::Result<PeerCredentials> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    Ok(PeerCredentials {
        pid: peer.pid.as_raw_nonzero().get(),
        uid: peer.uid.as_raw(),
        gid: peer.gid.as_raw(),
    })
}

/// Waits until something exists at `path`; the directory must exist already. No link is followed.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`] when the limit has passed.
///
/// # Cancel safety
/// Dropping the future changes nothing.
pub async fn wait_for_path(path: &Path, limit: Duration) -> io::Result<()> {
    wait_for_path_until(path, Instant::now() + limit).await
}

/// Dials a socket as soon as it exists and listens.
///
/// # Errors
/// [`io::ErrorKind::TimedOut`] when the limit has passed, else as [`connect_unix`].
///
/// # Cancel safety
/// Dropping the future closes a connection that it may have made.
pub async fn connect_unix_within(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    let deadline = Instant::now() + limit;
    wait_for_path_until(path, deadline).await?;
    loop {
        match connect_unix(path) {
            // Between its `bind` and its `listen`, or with a full queue. No event tells of either.
            Err(error) if is_not_ready(&error) => {
                if Instant::now() >= deadline {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                sleep(DIAL_PAUSE).await;
            }
            other => return other,
        }
    }
}

async fn wait_for_path_until(path: &Path, deadline: Instant) -> io::Result<()> {
    let (directory, _) = split(path)?;
    let directory = open_directory(directory)?;
    // Whoever takes a watch away waits for the whole kernel, often for more than 10 ms.
    if exists(path)? {
        return Ok(());
    }
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
    let appears = inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO;
    inotify::add_watch(&watch, descriptor_path(&directory), appears)?;
    let watch = watch_readable(watch)?;
    // Looked again after the watch stands, so that nothing falls between the two.
    while !exists(path)? {
        let mut ready = timeout_at(deadline, watch.readable())
            .await
            .map_err(|_| io::ErrorKind::TimedOut)??;
        discard_events(watch.get_ref());
        ready.clear_ready();
    }
    Ok(())
}

fn is_not_ready(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock
    )
}

fn exists(path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Empties the queue; which event it was does not matter, because the path is looked at again.
fn discard_events(watch: &OwnedFd) {
    let mut buffer = [const { MaybeUninit::uninit() }; 1024];
    let mut reader = inotify::Reader::new(watch, &mut buffer);
    while reader.next().is_ok() {}
}

fn split(path: &Path) -> io::Result<(&Path, &std::ffi::OsStr)> {
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .zip(path.file_name())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not an absolute path"))
}

fn descriptor_path(descriptor: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::fs::symlink;

    use super::*;

    fn deep_directory(root: &Path) -> PathBuf {
        let path = root
            .canonicalize()
            .unwrap()
            .join("d".repeat(100))
            .join("e".repeat(100));
        fs::create_dir_all(&path).unwrap();
        path
    }

    #[test]
    fn a_socket_with_a_long_path_is_bound_and_dialled() {
        let directory = tempfile::tempdir().unwrap();
        let path = deep_directory(directory.path()).join("engine.sock");
        assert!(path.as_os_str().len() > 200);
        let listener = bind_unix(&path).unwrap();
        let mut near = connect_unix(&path).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(b"hello").unwrap();
        drop(near);
        let mut text = String::new();
        far.read_to_string(&mut text).unwrap();
        assert_eq!(text, "hello");
        let peer = peer_credentials(&far).unwrap();
        assert_eq!(peer.pid, i32::try_from(std::process::id()).unwrap());
        drop(listener);
        let error = connect_unix(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_planted_link_or_file_is_not_dialled() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let _victim = bind_unix(&root.join("victim")).unwrap();
        symlink("victim", root.join("planted")).unwrap();
        assert_eq!(
            connect_unix(&root.join("planted"))
                .unwrap_err()
                .raw_os_error(),
            Some(libc::ELOOP)
        );
        fs::write(root.join("file"), "").unwrap();
        let error = connect_unix(&root.join("file")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[tokio::test]
    async fn a_path_that_appears_ends_the_wait() {
        let directory = tempfile::tempdir().unwrap();
        let path = deep_directory(directory.path()).join("later.sock");
        let limit = Duration::from_secs(10);
        let waiting = connect_unix_within(&path, limit);
        let binding = async { bind_unix(&path).unwrap() };
        let (connected, _listener) = tokio::join!(waiting, binding);
        connected.unwrap();
        wait_for_path(&path, limit).await.unwrap();
    }

    #[tokio::test]
    async fn a_listener_that_never_accepts_does_not_hold_its_dialler() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap().join("full.sock");
        let listener = bind_unix(&path).unwrap();
        // The shortest queue that the kernel keeps.
        rustix::net::listen(&listener, 0).unwrap();
        let _waiting = connect_unix(&path).unwrap();
        let error = connect_unix(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let limit = Duration::from_millis(20);
        let error = connect_unix_within(&path, limit).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_path_that_never_appears_times_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap().join("never");
        let error = wait_for_path(&path, Duration::from_millis(20))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
