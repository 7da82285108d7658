//! The rules against real packets, in namespaces that the tests make and remove.

mod egress;
mod frames;
mod guest;
mod internal;
mod nat;
mod slot;
mod spoofing;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;

use super::program::{IP, NFT};
use crate::netns;

/// How long something that must happen may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(10);
/// How long to wait for something that must not happen.
const QUIET: Duration = Duration::from_millis(300);

/// Namespaces that go with the test.
struct Scratch {
    directory: TempDir,
    namespaces: Vec<PathBuf>,
}

impl Scratch {
    /// `None` when the tests cannot run here, with the reason on standard output.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: network namespaces need root");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        Some(Self {
            directory,
            namespaces: Vec::new(),
        })
    }

    /// A path for a namespace, which is removed at the end whoever makes it.
    fn path(&mut self, name: &str) -> PathBuf {
        let path = self.directory.path().canonicalize().unwrap().join(name);
        self.namespaces.push(path.clone());
        path
    }

    fn namespace(&mut self, name: &str) -> PathBuf {
        let path = self.path(name);
        netns::create(&path).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for path in &self.namespaces {
            netns::remove(path).unwrap();
        }
    }
}

fn ip_in(namespace: &Path, arguments: &[&str]) {
    let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
    let ran = netns::in_namespace(namespace, move || {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        IP.run(&arguments, "")
    });
    ran.unwrap().unwrap();
}

fn nft_in(namespace: &Path, rules: &str) -> String {
    let rules = rules.to_owned();
    let ran = netns::in_namespace(namespace, move || NFT.run(&["-f", "-"], &rules));
    ran.unwrap().unwrap()
}

/// Dials from inside a namespace.
fn dial(namespace: &Path, address: &str, limit: Duration) -> std::io::Result<TcpStream> {
    let address: SocketAddr = address.parse().unwrap();
    netns::in_namespace(namespace, move || {
        TcpStream::connect_timeout(&address, limit)
    })
    .unwrap()
}

/// Takes the next connection, if one comes in time.
fn accept_within(listener: &TcpListener, limit: Duration) -> Option<TcpStream> {
    is_readable(listener, limit).then(|| listener.accept().unwrap().0)
}

fn is_readable(descriptor: impl AsFd, limit: Duration) -> bool {
    let limit = Timespec::try_from(limit).unwrap();
    let mut watched = [PollFd::new(&descriptor, PollFlags::IN)];
    poll(&mut watched, Some(&limit)).unwrap() > 0
}

/// Looks again until a claim holds.
fn eventually(claim: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "never came true: {claim}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
