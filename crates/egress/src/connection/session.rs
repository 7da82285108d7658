//! One connection of a guest, whatever comes over it.

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::time::Duration;

use dayfly_types::egress::{Decision, DenyReason, EgressRecordKind, HostName, NameSource};
use tokio::time::sleep;

use super::socket::{Ending, Socket};
use crate::outlet::{Cut, Facts, Outlet, Passage, Target};

/// A connection over which nothing goes for this long is closed.
const IDLE_LIMIT: Duration = Duration::from_secs(15 * 60);

/// Held by everything that works for one connection.
#[derive(Debug)]
pub(crate) struct Session {
    outlet: Arc<Outlet>,
    destination: SocketAddrV4,
    cut: Cut,
}

impl Session {
    pub(crate) fn new(outlet: &Arc<Outlet>, destination: SocketAddrV4) -> Arc<Self> {
        Arc::new(Self {
            outlet: Arc::clone(outlet),
            destination,
            cut: outlet.new_cut(),
        })
    }

    pub(crate) const fn outlet(&self) -> &Arc<Outlet> {
        &self.outlet
    }

    /// Where the guest's packets are addressed to.
    pub(crate) const fn destination(&self) -> SocketAddrV4 {
        self.destination
    }

    /// Sockets of this connection close by a reset from now on.
    pub(crate) fn reset(&self) {
        self.cut.reset();
    }

    pub(crate) const fn cut(&self) -> &Cut {
        &self.cut
    }

    pub(crate) fn ending(&self) -> Ending {
        Ending::new(self.cut.reset_mark(), self.outlet.closing_mark())
    }

    pub(crate) fn facts(&self, kind: EgressRecordKind, name: Option<HostName>) -> Facts {
        let source = match (&name, kind) {
            (Some(_), EgressRecordKind::Tls) => NameSource::Sni,
            (Some(_), EgressRecordKind::Http) => NameSource::Host,
            (Some(_), EgressRecordKind::Dns | EgressRecordKind::Tcp) | (None, _) => {
                NameSource::None
            }
        };
        Facts {
            kind,
            name,
            source,
            destination: Some(self.destination),
        }
    }

    /// Decides about a name that came over this connection, or about its address.
    ///
    /// # Errors
    /// Why it is denied; that is recorded.
    pub(crate) fn admit(
        &self,
        kind: EgressRecordKind,
        name: Option<HostName>,
    ) -> Result<Passage, DenyReason> {
        let target = self.target(kind, name.clone());
        let facts = self.facts(kind, name);
        let admitted = self.outlet.admit(target, facts.clone(), &self.cut);
        admitted.inspect_err(|reason| self.deny(&facts, *reason))
    }

    pub(crate) fn target(&self, kind: EgressRecordKind, name: Option<HostName>) -> Target {
        let port = self.destination.port();
        name.map_or(Target::Address(self.destination), |name| Target::Name {
            name,
            port,
            kind,
        })
    }

    pub(crate) fn deny(&self, facts: &Facts, reason: DenyReason) {
        self.outlet
            .record(facts.record(Decision::Denied, Some(reason)));
    }

    /// Runs what serves the connection until it is done, must end, or nothing goes over it.
    pub(crate) async fn run(&self, guest: &Socket, serving: impl Future<Output = ()>) {
        tokio::select! {
            () = self.cut.mark().cancelled() => {}
            () = idle(guest) => {}
            () = serving => {}
        }
    }
}

async fn idle(guest: &Socket) {
    let meter = guest.meter();
    loop {
        let before = meter.total();
        sleep(IDLE_LIMIT).await;
        if meter.total() == before {
            return;
        }
    }
}
