//! What the daemon gives to the processes that it starts: the settings, the digest of the
//! administrator's key, a lock to hold until they end, and the socket that the API is served on.
//!
//! One message on the standard input, which no list of processes shows. The socket was made by the
//! daemon: a port that is taken ends it at its start, and connections wait while the control process
//! is started again.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use anyhow::{Context, Result, ensure};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg,
    sendmsg, socketpair,
};
use serde::{Deserialize, Serialize};

use crate::args::RunArguments;

/// Many times what settings are.
const MESSAGE_BYTES_MAX: usize = 65_536;

/// The words of a hand-over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandOver {
    pub(crate) settings: RunArguments,
    /// For the control process alone.
    pub(crate) admin_key_sha256: Option<String>,
    /// The same of the key of the people on this host, if there is one.
    pub(crate) local_key_sha256: Option<String>,
}

/// What a process was given.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) words: HandOver,
    /// Held until the process ends: the next daemon waits for that.
    pub(crate) _lock: OwnedFd,
    /// For the control process alone.
    pub(crate) listener: Option<TcpListener>,
}

impl HandOver {
    /// The end that a child reads as its standard input; all of it is sent already.
    pub(crate) fn send(
        &self,
        lock: BorrowedFd<'_>,
        listener: Option<&TcpListener>,
    ) -> Result<OwnedFd> {
        let text = serde_json::to_vec(self)?;
        ensure!(text.len() <= MESSAGE_BYTES_MAX, "the settings are too long");
        let flags = SocketFlags::CLOEXEC;
        let (here, there) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .context("cannot make a pair of sockets")?;
        let listener = listener.iter().map(|listener| listener.as_fd());
        let descriptors: Vec<_> = [lock].into_iter().chain(listener).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        beside.push(SendAncillaryMessage::ScmRights(&descriptors));
        sendmsg(
            &here,
            &[IoSlice::new(&text)],
            &mut beside,
            SendFlags::empty(),
        )
        .context("cannot hand the settings over")?;
        Ok(there)
    }

    /// Takes what was sent.
    pub(crate) fn receive(from: impl AsFd) -> Result<Received> {
        let mut text = vec![0; MESSAGE_BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            from,
            &mut [IoSliceMut::new(&mut text)],
            &mut beside,
            RecvFlags::CMSG_CLOEXEC,
        );
        let received = received
            .context("no settings on standard input; dayflyd starts this role by itself")?;
        let is_whole = !received
            .flags
            .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
        ensure!(is_whole, "the settings were cut off");
        text.truncate(received.bytes);
        let mut descriptors = Vec::new();
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                descriptors.extend(received);
            }
        }
        let mut descriptors = descriptors.into_iter();
        let words = serde_json::from_slice(&text).context("cannot read the settings")?;
        Ok(Received {
            words,
            _lock: descriptors.next().context("no lock was handed over")?,
            listener: descriptors.next().map(TcpListener::from),
        })
    }
}

#[cfg(test)]
mod tests {
    use dayfly_installation::DataDirectory;

    use super::*;

    #[test]
    fn words_and_socket_arrive() {
        let given = ["dayflyd".into()];
        let sent = HandOver {
            settings: crate::settings::resolve(&given).unwrap().arguments,
            admin_key_sha256: Some("ab".to_owned()),
            local_key_sha256: None,
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = tempfile::tempdir().unwrap();
        let directory = DataDirectory::open(place.path()).unwrap();
        let lock = directory.lock().unwrap();
        let input = sent.send(lock.of_processes(), Some(&listener)).unwrap();
        let received = HandOver::receive(&input).unwrap();
        assert_eq!(received.words, sent);
        let address = received.listener.unwrap().local_addr().unwrap();
        assert_eq!(address, listener.local_addr().unwrap());
        let input = sent.send(lock.of_processes(), None).unwrap();
        let received = HandOver::receive(&input).unwrap();
        assert!(received.listener.is_none());
    }

    #[test]
    fn anything_else_is_refused() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(writer);
        assert!(HandOver::receive(&reader).is_err());
    }
}
