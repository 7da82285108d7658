//! Which lifecycle has which slot.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use dayfly_types::egress::EgressPolicy;
use rustix::net::SocketType;
use tokio::net::{TcpListener, UdpSocket};

use crate::options::Options;
use crate::outlet::Outlet;
use crate::packet::is_inet;
use crate::protocol::{OPEN_DESCRIPTORS, SandboxRun};
use crate::records::Outbox;
use crate::{dns, tcp};

/// Why a call changed nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RefusedCall {
    #[error("the lifecycle is not open")]
    NotOpen,
    #[error("epoch {given} is older than {current}")]
    OldEpoch { given: u64, current: u64 },
    #[error("start {given} is older than {current}")]
    OldStart { given: u64, current: u64 },
    #[error("a lifecycle opens with {OPEN_DESCRIPTORS} sockets: TCP, DNS by UDP, DNS by TCP")]
    Sockets,
    #[error("the sockets could not be watched")]
    Watch(#[source] std::io::Error),
}

/// The sockets of one lifecycle, inside its network namespace.
struct Sockets {
    tcp: TcpListener,
    dns_udp: UdpSocket,
    dns_tcp: TcpListener,
}

/// Everything that is open, by slot. One task owns it: the one that the node talks to.
#[derive(Debug)]
pub(crate) struct Outlets {
    by_slot: BTreeMap<u32, Arc<Outlet>>,
    outbox: Arc<Outbox>,
    options: Options,
}

impl Outlets {
    pub(crate) fn new(outbox: Arc<Outbox>, options: Options) -> Self {
        Self {
            by_slot: BTreeMap::new(),
            outbox,
            options,
        }
    }

    pub(crate) fn list(&self) -> Vec<(SandboxRun, u64)> {
        let outlets = self.by_slot.values();
        outlets
            .map(|outlet| (outlet.lifecycle().clone(), outlet.epoch()))
            .collect()
    }

    /// Serves a lifecycle in place of whatever the slot had. Returns how many connections that
    /// ended.
    ///
    /// # Errors
    /// [`RefusedCall`]; what the slot had goes on.
    pub(crate) async fn open(
        &mut self,
        lifecycle: SandboxRun,
        epoch: u64,
        policy: EgressPolicy,
        descriptors: Vec<OwnedFd>,
    ) -> Result<u32, RefusedCall> {
        if let Some(outlet) = self.by_slot.get(&lifecycle.slot) {
            check_age(outlet, &lifecycle, epoch)?;
        }
        let sockets = watch(descriptors)?;
        let cut = self.close_slot(lifecycle.slot).await;
        let slot = lifecycle.slot;
        let outlet = Outlet::new(
            lifecycle,
            epoch,
            policy,
            Arc::clone(&self.outbox),
            &self.options,
        );
        outlet.spawn(Arc::clone(&outlet).release_records());
        outlet.spawn(tcp::accept(Arc::clone(&outlet), sockets.tcp));
        outlet.spawn(dns::serve_udp(Arc::clone(&outlet), sockets.dns_udp));
        outlet.spawn(dns::serve_tcp(Arc::clone(&outlet), sockets.dns_tcp));
        self.by_slot.insert(slot, outlet);
        Ok(cut)
    }

    /// # Errors
    /// [`RefusedCall`].
    pub(crate) async fn set_policy(
        &self,
        lifecycle: &SandboxRun,
        epoch: u64,
        policy: EgressPolicy,
    ) -> Result<u32, RefusedCall> {
        let outlet = self.find(lifecycle).ok_or(RefusedCall::NotOpen)?;
        check_age(outlet, lifecycle, epoch)?;
        Ok(outlet.set_policy(epoch, policy).await)
    }

    /// Ends everything of a lifecycle, and nothing of another one in its slot.
    pub(crate) async fn close(&mut self, lifecycle: &SandboxRun) -> u32 {
        if self.find(lifecycle).is_none() {
            return 0;
        }
        self.close_slot(lifecycle.slot).await
    }

    async fn close_slot(&mut self, slot: u32) -> u32 {
        match self.by_slot.remove(&slot) {
            Some(outlet) => outlet.close().await,
            None => 0,
        }
    }

    pub(crate) async fn close_all(&mut self) {
        while let Some((_, outlet)) = self.by_slot.pop_first() {
            outlet.close().await;
        }
    }

    fn find(&self, lifecycle: &SandboxRun) -> Option<&Arc<Outlet>> {
        let outlet = self.by_slot.get(&lifecycle.slot)?;
        (outlet.lifecycle() == lifecycle).then_some(outlet)
    }
}

/// A message that was overtaken by a later one must not undo it.
fn check_age(outlet: &Outlet, lifecycle: &SandboxRun, epoch: u64) -> Result<(), RefusedCall> {
    let open = outlet.lifecycle();
    if open.sandbox != lifecycle.sandbox {
        return Ok(());
    }
    if lifecycle.start < open.start {
        return Err(RefusedCall::OldStart {
            given: lifecycle.start,
            current: open.start,
        });
    }
    let current = outlet.epoch();
    if epoch < current {
        return Err(RefusedCall::OldEpoch {
            given: epoch,
            current,
        });
    }
    Ok(())
}

fn watch(descriptors: Vec<OwnedFd>) -> Result<Sockets, RefusedCall> {
    let Ok([tcp, dns_udp, dns_tcp]) = <[OwnedFd; OPEN_DESCRIPTORS]>::try_from(descriptors) else {
        return Err(RefusedCall::Sockets);
    };
    let kinds = [
        (&tcp, SocketType::STREAM),
        (&dns_udp, SocketType::DGRAM),
        (&dns_tcp, SocketType::STREAM),
    ];
    for (socket, kind) in kinds {
        if !is_inet(socket, kind).unwrap_or_default() {
            return Err(RefusedCall::Sockets);
        }
    }
    let listener = |socket: OwnedFd| {
        let listener = std::net::TcpListener::from(socket);
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    };
    let udp = |socket: OwnedFd| {
        let socket = std::net::UdpSocket::from(socket);
        socket.set_nonblocking(true)?;
        UdpSocket::from_std(socket)
    };
    Ok(Sockets {
        tcp: listener(tcp).map_err(RefusedCall::Watch)?,
        dns_udp: udp(dns_udp).map_err(RefusedCall::Watch)?,
        dns_tcp: listener(dns_tcp).map_err(RefusedCall::Watch)?,
    })
}
