//! One connection that was let through, from its decision to its end.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::Instant;

use dayfly_core::egress::is_never;
use dayfly_types::egress::{
    Decision, DenyReason, EgressRecord, EgressRecordKind, HostName, NameSource,
};

use super::Outlet;
use super::verdict::Allowed;
use crate::meter::Meter;

/// What is known about a connection or a question, allowed or not.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) kind: EgressRecordKind,
    pub(crate) name: Option<HostName>,
    pub(crate) source: NameSource,
    pub(crate) destination: Option<SocketAddrV4>,
}

impl Facts {
    pub(crate) fn record(&self, decision: Decision, reason: Option<DenyReason>) -> EgressRecord {
        EgressRecord {
            sequence: 0,
            at_ms: 0,
            kind: self.kind,
            decision,
            name: self.name.clone(),
            name_source: self.source,
            destination: self.destination,
            dialed: None,
            answers: Vec::new(),
            rule: None,
            internal_network: None,
            reason,
            would_deny: false,
            bytes_up: 0,
            bytes_down: 0,
            duration_ms: 0,
            suppressed: 0,
        }
    }

    pub(crate) fn allowed(&self, allowed: &Allowed, decision: Decision) -> EgressRecord {
        let mut record = self.record(decision, None);
        record.rule.clone_from(&allowed.rule);
        record.would_deny = allowed.would_deny;
        record
    }

    pub(crate) fn answered(
        &self,
        allowed: &Allowed,
        answers: &[Ipv4Addr],
        internal_network: Option<&str>,
    ) -> EgressRecord {
        let mut record = self.allowed(allowed, Decision::Allowed);
        record.answers = answers.to_vec();
        record.internal_network = internal_network.map(str::to_owned);
        record
    }
}

/// A connection on the list of its outlet. Dropping it strikes it off and records how it ended.
#[derive(Debug)]
pub(crate) struct Passage {
    outlet: Arc<Outlet>,
    id: u64,
    facts: Facts,
    allowed: Allowed,
    since: Instant,
    state: State,
}

#[derive(Debug)]
enum State {
    Dialing,
    Open {
        dialed: SocketAddrV4,
        meter: Arc<Meter>,
    },
    /// Its end is recorded already.
    Over,
}

impl Passage {
    pub(super) fn new(outlet: Arc<Outlet>, id: u64, facts: Facts, allowed: Allowed) -> Self {
        Self {
            outlet,
            id,
            facts,
            allowed,
            since: Instant::now(),
            state: State::Dialing,
        }
    }

    pub(crate) const fn outlet(&self) -> &Arc<Outlet> {
        &self.outlet
    }

    /// The rule that let it through.
    pub(crate) fn rule(&self) -> Option<&str> {
        self.allowed.rule.as_deref()
    }

    /// Says where it will be dialled, before it is.
    ///
    /// # Errors
    /// Why it may not be, by the policy of this moment.
    pub(crate) fn aim(&self, addresses: &[SocketAddrV4]) -> Result<(), DenyReason> {
        let inside = addresses.iter().filter(|one| is_never(*one.ip()));
        let inside: Vec<_> = inside.copied().collect();
        if !inside.is_empty() {
            self.outlet.lead_inside(self.id, inside)?;
        }
        Ok(())
    }

    /// The way to an address that was aimed at: straight into an internal network, otherwise through
    /// the proxy, if there is one.
    pub(crate) fn way_to(&self, address: SocketAddrV4) -> Option<SocketAddrV4> {
        let is_internal = self.internal_network(address).is_some();
        self.outlet.proxy().filter(|_| !is_internal)
    }

    fn internal_network(&self, dialed: SocketAddrV4) -> Option<&str> {
        let name = self.facts.name.as_ref();
        self.outlet
            .internal_network(name, Some(dialed.port()), *dialed.ip())
    }

    /// A record with where the connection goes.
    fn record(
        &self,
        allowed: &Allowed,
        decision: Decision,
        dialed: Option<SocketAddrV4>,
    ) -> EgressRecord {
        let mut record = self.facts.allowed(allowed, decision);
        record.dialed = dialed;
        let internal = dialed.and_then(|dialed| self.internal_network(dialed));
        record.internal_network = internal.map(str::to_owned);
        record
    }

    /// The connection to the outside stands.
    pub(crate) fn opened(&mut self, dialed: SocketAddrV4, meter: Arc<Meter>) {
        self.state = State::Open { dialed, meter };
        self.record_again(&self.allowed);
    }

    /// Records one more decision for the connection that stands.
    pub(crate) fn record_again(&self, allowed: &Allowed) {
        let dialed = match self.state {
            State::Open { dialed, .. } => Some(dialed),
            State::Dialing | State::Over => None,
        };
        self.outlet
            .record(self.record(allowed, Decision::Allowed, dialed));
    }

    /// What the name stands for is not let through after all.
    pub(crate) fn denied(mut self, reason: DenyReason) {
        self.state = State::Over;
        let mut record = self.facts.allowed(&self.allowed, Decision::Denied);
        record.reason = Some(reason);
        self.outlet.record(record);
    }

    /// Nobody answered.
    pub(crate) fn failed(mut self, dialed: Option<SocketAddrV4>, reason: Option<DenyReason>) {
        self.state = State::Over;
        let mut record = self.record(&self.allowed, Decision::Failed, dialed);
        record.reason = reason;
        self.outlet.record(record);
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        let is_cut = self.outlet.strike(self.id);
        let decision = if is_cut {
            Decision::Cut
        } else {
            Decision::Closed
        };
        let (dialed, meter) = match &self.state {
            State::Over => return,
            // Given up by the guest before anything was sent anywhere.
            State::Dialing if !is_cut => return,
            State::Dialing => (None, None),
            State::Open { dialed, meter } => (Some(*dialed), Some(meter)),
        };
        let mut record = self.record(&self.allowed, decision, dialed);
        if let Some(meter) = meter {
            record.bytes_up = meter.written();
            record.bytes_down = meter.read();
        }
        let duration = self.since.elapsed().as_millis();
        record.duration_ms = u64::try_from(duration).unwrap_or(u64::MAX);
        self.outlet.record(record);
    }
}
