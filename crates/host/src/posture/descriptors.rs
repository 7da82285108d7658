//! Open descriptors, by what they are.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use rustix::fs::{FileType, stat};
use serde::{Deserialize, Serialize};

use crate::process::{ProcessError, gone_or, read_process_file};

/// Stands for a path that the kernel cannot write out.
const NAME_TOO_LONG: &str = "(too long to name)";

/// One open descriptor of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    pub number: u32,
    pub class: DescriptorClass,
    /// A path as its opener saw it, or the kernel's name for what has none.
    pub name: String,
    pub is_writable: bool,
}

/// What a descriptor stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DescriptorClass {
    File,
    Directory,
    CharacterDevice,
    BlockDevice,
    Pipe,
    UnixSocket,
    InternetSocket,
    /// Packet, netlink and all others.
    OtherSocket,
    /// A file that has only ever been in memory.
    Memory,
    EventCounter,
    EventPoll,
    Timer,
    SignalQueue,
    /// An object of the kernel that has no class here, such as a virtual machine.
    Other,
}

pub(super) fn read_descriptors(pid: i32) -> Result<Vec<Descriptor>, ProcessError> {
    let failed = |source| gone_or(pid, "fd", source);
    let before = SocketTables::read(pid);
    let mut descriptors = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd")).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        match read_one(pid, number, &before) {
            Ok(descriptor) => descriptors.push(descriptor),
            // Closed while it was looked at.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
    classify_new_sockets(&mut descriptors, &SocketTables::read(pid));
    descriptors.sort_by_key(|descriptor| descriptor.number);
    Ok(descriptors)
}

/// A connection that was accepted while its process was looked at is in no table from before.
fn classify_new_sockets(descriptors: &mut [Descriptor], after: &SocketTables) {
    for descriptor in descriptors {
        let inode = descriptor.name.strip_prefix("socket:[");
        let inode = inode.and_then(|inode| inode.strip_suffix(']')?.parse().ok());
        if let (DescriptorClass::OtherSocket, Some(inode)) = (descriptor.class, inode) {
            descriptor.class = after.class(inode);
        }
    }
}

fn read_one(pid: i32, number: u32, sockets: &SocketTables) -> io::Result<Descriptor> {
    let link = format!("/proc/{pid}/fd/{number}");
    let name = match fs::read_link(&link) {
        Ok(name) => name.to_string_lossy().into_owned(),
        // A hostile process can go deeper than any path; that must not hide its descriptors.
        Err(error) if error.kind() == io::ErrorKind::InvalidFilename => NAME_TOO_LONG.to_owned(),
        Err(error) => return Err(error),
    };
    // Through the link the kernel answers for the open file itself; no path is walked.
    let status = stat(&link)?;
    let class = match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile if name.starts_with("/memfd:") => DescriptorClass::Memory,
        FileType::RegularFile if !name.starts_with("anon_inode:") => DescriptorClass::File,
        FileType::Directory => DescriptorClass::Directory,
        FileType::CharacterDevice => DescriptorClass::CharacterDevice,
        FileType::BlockDevice => DescriptorClass::BlockDevice,
        FileType::Fifo => DescriptorClass::Pipe,
        FileType::Socket => sockets.class(status.st_ino),
        FileType::RegularFile | FileType::Symlink | FileType::Unknown => anonymous_class(&name),
    };
    let information = fs::read_to_string(format!("/proc/{pid}/fdinfo/{number}"))?;
    Ok(Descriptor {
        number,
        class,
        name,
        is_writable: parse_writable(&information),
    })
}

fn anonymous_class(name: &str) -> DescriptorClass {
    match name {
        "anon_inode:[eventfd]" => DescriptorClass::EventCounter,
        "anon_inode:[eventpoll]" => DescriptorClass::EventPoll,
        "anon_inode:[timerfd]" => DescriptorClass::Timer,
        "anon_inode:[signalfd]" => DescriptorClass::SignalQueue,
        _ => DescriptorClass::Other,
    }
}

/// What cannot be read counts as writable, the worse of the two.
fn parse_writable(information: &str) -> bool {
    let flags = information
        .lines()
        .find_map(|line| line.strip_prefix("flags:"))
        .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    let access = rustix::fs::OFlags::RWMODE.bits();
    flags.is_none_or(|flags| flags & access != rustix::fs::OFlags::RDONLY.bits())
}

/// The sockets of the network namespaces that a process and this one are in, by inode number.
///
/// Both, because a connection that a process accepted belongs to the namespace of its dialler.
struct SocketTables {
    unix: BTreeSet<u64>,
    internet: BTreeSet<u64>,
}

impl SocketTables {
    fn read(pid: i32) -> Self {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let table = |name: &str, column: usize| -> BTreeSet<u64> {
            let file = format!("net/{name}");
            // A protocol that the kernel does not have has no table.
            let read = |pid| read_process_file(pid, &file).unwrap_or_default();
            let text = read(pid) + &read(own);
            let inode = |line: &str| line.split_ascii_whitespace().nth(column)?.parse().ok();
            text.lines().filter_map(inode).collect()
        };
        let internet = [
            "tcp", "tcp6", "udp", "udp6", "udplite", "udplite6", "raw", "raw6",
        ];
        Self {
            unix: table("unix", 6),
            internet: internet.iter().flat_map(|name| table(name, 9)).collect(),
        }
    }

    fn class(&self, inode: u64) -> DescriptorClass {
        if self.unix.contains(&inode) {
            DescriptorClass::UnixSocket
        } else if self.internet.contains(&inode) {
            DescriptorClass::InternetSocket
        } else {
            DescriptorClass::OtherSocket
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn descriptors_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let written = fs::File::create(&path).unwrap();
        let read = fs::File::open(&path).unwrap();
        let opened = fs::File::open(directory.path()).unwrap();
        let null = fs::File::open("/dev/null").unwrap();
        let (near, _far) = UnixStream::pair().unwrap();
        let internet = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let all = read_descriptors(own).unwrap();
        let find = |raw: i32| {
            all.iter()
                .find(|descriptor| descriptor.number == u32::try_from(raw).unwrap())
                .unwrap()
        };
        let classes = [
            (written.as_raw_fd(), DescriptorClass::File),
            (opened.as_raw_fd(), DescriptorClass::Directory),
            (null.as_raw_fd(), DescriptorClass::CharacterDevice),
            (near.as_raw_fd(), DescriptorClass::UnixSocket),
            (internet.as_raw_fd(), DescriptorClass::InternetSocket),
        ];
        for (raw, class) in classes {
            assert_eq!(find(raw).class, class);
        }
        assert!(find(written.as_raw_fd()).is_writable);
        assert!(!find(read.as_raw_fd()).is_writable);
        assert_eq!(find(read.as_raw_fd()).name, path.to_string_lossy());
    }
}
