//! What the daemon gives to the processes that it starts: the settings, the digest of the
//! administrator's key, a lock to hold until they end, and the sockets that the API is served on,
//! with the certificate for one of them.
//!
//! One message on the standard input, which no list of processes shows, and one for each
//! certificate that replaces another later. The sockets were made by the daemon: a port that is
//! taken ends it at its start, and connections wait while the control process is started again.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use anyhow::{Context, Result, ensure};
use dayfly_types::limits::{INTERNAL_NETWORKS_BYTES_MAX, REGISTRIES_BYTES_MAX, SIGN_IN_BYTES_MAX};
use rustix::io::retry_on_intr;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recv, recvmsg,
    send, sendmsg, socketpair,
};
use serde::{Deserialize, Serialize};

use crate::args::RunArguments;
use crate::tls::{CertificateText, FILE_BYTES_MAX};

/// Internal networks, who may sign in, and the two files of a certificate at their largest, with as
/// much again for what JSON makes longer (a line end in a file becomes two characters), and what
/// else is set.
const MESSAGE_BYTES_MAX: usize = 256 << 10;
const OTHER_SETTINGS_BYTES_MAX: usize = 64 << 10;
const _: () = assert!(
    2 * ((INTERNAL_NETWORKS_BYTES_MAX + SIGN_IN_BYTES_MAX) as u64 + 2 * FILE_BYTES_MAX)
        + OTHER_SETTINGS_BYTES_MAX as u64
        <= MESSAGE_BYTES_MAX as u64
);
// The node has registries in the place of the certificate, which only control has.
const _: () = assert!(REGISTRIES_BYTES_MAX as u64 <= 2 * FILE_BYTES_MAX);

/// The words of a hand-over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandOver {
    pub(crate) settings: RunArguments,
    /// For the control process alone.
    pub(crate) admin_key_sha256: Option<String>,
    /// The same of the key of the people on this host, if there is one.
    pub(crate) local_key_sha256: Option<String>,
    /// For the control process alone, where TLS is served.
    pub(crate) certificate: Option<CertificateText>,
    /// Times that the process of this role ended unasked and was started again. A daemon from before
    /// an upgrade does not say.
    #[serde(default)]
    pub(crate) restarts: u64,
}

/// The sockets that the API is served on.
#[derive(Debug)]
pub(crate) struct Listeners<T> {
    pub(crate) plain: T,
    pub(crate) tls: Option<T>,
    pub(crate) metrics: Option<T>,
}

/// What a process was given.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) words: HandOver,
    /// Held until the process ends: the next daemon waits for that.
    pub(crate) _lock: OwnedFd,
    /// For the control process alone.
    pub(crate) listeners: Option<Listeners<TcpListener>>,
}

/// The way to a process that runs.
#[derive(Debug)]
pub(crate) struct ToProcess(OwnedFd);

impl ToProcess {
    /// Gives it another certificate to show.
    pub(crate) fn give(&self, certificate: &CertificateText) -> Result<()> {
        let text = serde_json::to_vec(certificate)?;
        ensure!(
            text.len() <= MESSAGE_BYTES_MAX,
            "the certificate is too long"
        );
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        send(&self.0, &text, flags).context("cannot hand a certificate over")?;
        Ok(())
    }
}

/// Waits for the next certificate; `None` when there will be none any more.
pub(crate) fn next_certificate(from: impl AsFd) -> Result<Option<CertificateText>> {
    let mut text = vec![0; MESSAGE_BYTES_MAX];
    let (count, _) = retry_on_intr(|| recv(&from, &mut text[..], RecvFlags::empty()))
        .context("cannot read from the daemon")?;
    if count == 0 {
        return Ok(None);
    }
    let text = serde_json::from_slice(&text[..count]).context("cannot read a certificate")?;
    Ok(Some(text))
}

impl HandOver {
    /// The end that a child reads as its standard input, where all of this is already, and ours.
    pub(crate) fn send(
        &self,
        lock: BorrowedFd<'_>,
        listeners: Option<&Listeners<TcpListener>>,
    ) -> Result<(OwnedFd, ToProcess)> {
        let text = serde_json::to_vec(self)?;
        ensure!(text.len() <= MESSAGE_BYTES_MAX, "the settings are too long");
        let flags = SocketFlags::CLOEXEC;
        let (here, there) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .context("cannot make a pair of sockets")?;
        // The kernel refuses a message that is longer than the buffer, which is shorter by default.
        set_socket_send_buffer_size(&here, MESSAGE_BYTES_MAX)
            .context("cannot make room for the settings")?;
        let mut descriptors = vec![lock];
        if let Some(Listeners {
            plain,
            tls,
            metrics,
        }) = listeners
        {
            let all = [Some(plain), tls.as_ref(), metrics.as_ref()];
            descriptors.extend(all.into_iter().flatten().map(AsFd::as_fd));
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        beside.push(SendAncillaryMessage::ScmRights(&descriptors));
        sendmsg(
            &here,
            &[IoSlice::new(&text)],
            &mut beside,
            SendFlags::empty(),
        )
        .context("cannot hand the settings over")?;
        Ok((there, ToProcess(here)))
    }

    /// Takes what was sent.
    pub(crate) fn receive(from: impl AsFd) -> Result<Received> {
        let mut text = vec![0; MESSAGE_BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
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
        let words: Self = serde_json::from_slice(&text).context("cannot read the settings")?;
        let lock = descriptors.next().context("no lock was handed over")?;
        let mut listener = || descriptors.next().map(TcpListener::from);
        let plain = listener();
        // Those that the settings name, in the order in which they were sent.
        let tls = words.settings.tls_listen.and_then(|_| listener());
        let metrics = words.settings.metrics_listen.and_then(|_| listener());
        Ok(Received {
            words,
            _lock: lock,
            listeners: plain.map(|plain| Listeners {
                plain,
                tls,
                metrics,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use dayfly_installation::DataDirectory;

    use super::*;

    #[test]
    fn words_and_socket_arrive() {
        let given = ["dayflyd".into(), "--metrics-listen=127.0.0.1:1".into()];
        let settings = RunArguments {
            tls_listen: Some("127.0.0.1:2".parse().unwrap()),
            ..crate::settings::resolve(&given).unwrap().arguments
        };
        let sent = HandOver {
            settings,
            admin_key_sha256: Some("ab".to_owned()),
            local_key_sha256: None,
            certificate: Some(certificate("first")),
            restarts: 3,
        };
        let bind = || TcpListener::bind("127.0.0.1:0").unwrap();
        let listeners = Listeners {
            plain: bind(),
            tls: Some(bind()),
            metrics: Some(bind()),
        };
        let place = tempfile::tempdir().unwrap();
        let directory = DataDirectory::open(place.path()).unwrap();
        let lock = directory.lock().unwrap();
        let (input, process) = sent.send(lock.of_processes(), Some(&listeners)).unwrap();
        let received = HandOver::receive(&input).unwrap();
        assert_eq!(received.words, sent);
        let got = received.listeners.unwrap();
        let address = |listener: &TcpListener| listener.local_addr().unwrap();
        assert_eq!(address(&got.plain), address(&listeners.plain));
        let others = |one: Listeners<TcpListener>| [one.tls.unwrap(), one.metrics.unwrap()];
        let (got, given) = (others(got), others(listeners));
        assert_eq!(got.map(|one| address(&one)), given.map(|one| address(&one)));
        for text in ["second", "third"] {
            process.give(&certificate(text)).unwrap();
        }
        for text in ["second", "third"] {
            let next = next_certificate(&input).unwrap();
            assert_eq!(next, Some(certificate(text)));
        }
        drop(process);
        assert_eq!(next_certificate(&input).unwrap(), None);
        let (input, _) = sent.send(lock.of_processes(), None).unwrap();
        let received = HandOver::receive(&input).unwrap();
        assert!(received.listeners.is_none());
    }

    #[test]
    fn the_longest_settings_arrive() {
        let network = |number: usize| {
            let ranges: Vec<_> = (100..160)
                .map(|third| format!("10.20.{third}.0/24"))
                .collect();
            serde_json::json!({"name": format!("network-{number}"), "projects": ["*"],
                "ranges": ranges, "ports": [443]})
        };
        let networks: Vec<_> = (0..29).map(network).collect();
        let networks = serde_json::to_string(&networks).unwrap();
        assert!(networks.len() > INTERNAL_NETWORKS_BYTES_MAX / 10 * 9);
        let given = [
            "dayflyd".into(),
            format!("--internal-network={networks}").into(),
        ];
        let file = "\n".repeat(FILE_BYTES_MAX.try_into().unwrap());
        let certificate = CertificateText {
            chain: file.clone(),
            key: file,
        };
        let sent = HandOver {
            settings: crate::settings::resolve(&given).unwrap().arguments,
            admin_key_sha256: None,
            local_key_sha256: None,
            certificate: Some(certificate.clone()),
            restarts: 0,
        };
        let place = tempfile::tempdir().unwrap();
        let directory = DataDirectory::open(place.path()).unwrap();
        let lock = directory.lock().unwrap();
        let (input, process) = sent.send(lock.of_processes(), None).unwrap();
        assert_eq!(HandOver::receive(&input).unwrap().words, sent);
        process.give(&certificate).unwrap();
        assert_eq!(next_certificate(&input).unwrap(), Some(certificate));
    }

    fn certificate(text: &str) -> CertificateText {
        CertificateText {
            chain: text.to_owned(),
            key: "key".to_owned(),
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(writer);
        assert!(HandOver::receive(&reader).is_err());
    }
}
