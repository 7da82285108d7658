//! What the node in memory lets its sandboxes reach.

use dayfly_node_api::{
    EgressCount, EgressDecision, EgressDecisionPage, EgressStatus, EnsureSandbox, NetworkLogPage,
    NetworkReport, NodeError, NodeNetwork, ReadNetworkLog, SetNetwork,
};
use dayfly_types::egress::{Decision, DenyReason, EgressPolicy, EgressRecord, EgressRecordKind};
use dayfly_types::{ErrorCode, ProjectId, SandboxId, SandboxState};

use super::fake_node::FakeNode;

/// What the node knows of one sandbox.
#[derive(Debug, Default)]
pub(super) struct FakeNetwork {
    pub(super) policy: EgressPolicy,
    pub(super) epoch: u64,
    records: Vec<EgressRecord>,
    /// Records that are gone from the beginning.
    dropped: u64,
}

/// What the node has counted of its egress process.
pub(super) fn egress_status() -> EgressStatus {
    let denied = EgressCount {
        kind: EgressRecordKind::Tls,
        decision: Decision::Denied,
        reason: Some(DenyReason::NoRule),
        count: 5,
    };
    EgressStatus {
        restarts: 4,
        decisions: vec![denied],
    }
}

/// What was decided about all sandboxes.
#[derive(Debug, Default)]
pub(super) struct FakeDecisions {
    series: String,
    kept: Vec<EgressDecision>,
    last: u64,
    is_away: bool,
    is_hanging: bool,
    /// What is decided once somebody has read a decision.
    next: Option<(SandboxId, EgressRecord)>,
}

impl FakeDecisions {
    fn add(&mut self, sandbox: SandboxId, record: EgressRecord) {
        self.last += 1;
        self.kept.push(EgressDecision {
            number: self.last,
            project: ProjectId::default_project(),
            sandbox,
            record,
        });
    }

    fn page(&self, request: ReadNetworkLog) -> Result<EgressDecisionPage, NodeError> {
        if self.is_away {
            return Err(NodeError::unavailable("the node is away"));
        }
        let behind = self.kept.iter().filter(|one| one.number > request.after);
        let decisions: Vec<EgressDecision> = behind.take(request.max).cloned().collect();
        let through = match decisions.last() {
            Some(last) if decisions.len() == request.max => last.number,
            _ => self.last,
        };
        Ok(EgressDecisionPage {
            series: self.series.clone(),
            decisions,
            through,
        })
    }
}

/// How a node fails at a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NetworkFailure {
    /// It says no, and has changed nothing.
    Refuses(NodeError),
    /// It takes the policy, and its answer is lost.
    AnswerLost,
}

impl FakeNode {
    /// Fails at policies from the `n`th on; 0 is the next one.
    pub(crate) fn fail_networks(&self, failure: Option<NetworkFailure>, after: usize) {
        self.with(|inner| inner.network_failure = failure.map(|failure| (failure, after)));
    }

    /// Every policy that was asked for, also those that failed.
    pub(crate) fn network_calls(&self) -> Vec<SetNetwork> {
        self.with(|inner| inner.network_calls.clone())
    }

    /// What the node lets a sandbox reach.
    pub(crate) fn network_of(&self, id: &str) -> (EgressPolicy, u64) {
        let id = SandboxId::parse(id).unwrap();
        self.with(|inner| {
            let network = &inner.networks[&id];
            (network.policy.clone(), network.epoch)
        })
    }

    /// Pretends that somebody gave the node a policy behind control's back.
    pub(crate) fn put_network(&self, id: &str, policy: EgressPolicy, epoch: u64) {
        let id = SandboxId::parse(id).unwrap();
        self.with(|inner| {
            let network = inner.networks.entry(id).or_default();
            (network.policy, network.epoch) = (policy, epoch);
        });
    }

    /// Writes down what a sandbox tried. Sequences are the node's.
    pub(crate) fn record(&self, id: &str, records: impl IntoIterator<Item = EgressRecord>) {
        let id = SandboxId::parse(id).unwrap();
        self.with(|inner| {
            let network = inner.networks.entry(id.clone()).or_default();
            for mut record in records {
                record.sequence = network.dropped + network.records.len() as u64 + 1;
                network.records.push(record.clone());
                inner.decisions.add(id.clone(), record);
            }
        });
        self.recorded.notify_waiters();
    }

    /// Decisions that nobody could write down.
    pub(crate) fn lose_decisions(&self, count: u64) {
        self.with(|inner| inner.decisions.last += count);
        self.recorded.notify_waiters();
    }

    /// Forgets every decision, and their numbers.
    pub(crate) fn begin_decisions(&self, series: &str) {
        let decisions = FakeDecisions {
            series: series.to_owned(),
            ..FakeDecisions::default()
        };
        self.with(|inner| inner.decisions = decisions);
    }

    /// Whether the node says what it decided.
    pub(crate) fn hide_decisions(&self, is_away: bool) {
        self.with(|inner| inner.decisions.is_away = is_away);
    }

    /// Writes one down as soon as those before it are read.
    pub(crate) fn record_when_read(&self, id: &str, record: EgressRecord) {
        let id = SandboxId::parse(id).unwrap();
        self.with(|inner| inner.decisions.next = Some((id, record)));
    }

    /// Whoever asks the node what it decided hears nothing.
    pub(crate) fn hang_decisions(&self) {
        self.with(|inner| inner.decisions.is_hanging = true);
    }

    /// Lets those who wait for a record look again.
    pub(crate) fn recorded_nothing(&self) {
        self.recorded.notify_waiters();
    }

    /// Forgets the oldest records.
    pub(crate) fn drop_records(&self, id: &str, count: usize) {
        let id = SandboxId::parse(id).unwrap();
        self.with(|inner| {
            let network = inner.networks.entry(id).or_default();
            network.records.drain(..count);
            network.dropped += count as u64;
        });
    }

    /// Takes the policy that a new sandbox comes with.
    pub(super) fn begin_network(&self, wanted: &EnsureSandbox) {
        let network = FakeNetwork {
            policy: wanted.egress.clone(),
            epoch: wanted.egress_epoch,
            ..FakeNetwork::default()
        };
        self.with(|inner| inner.networks.insert(wanted.id.clone(), network));
    }

    fn next_network_failure(&self) -> Option<NetworkFailure> {
        self.with(|inner| match &mut inner.network_failure {
            Some((failure, 0)) => Some(failure.clone()),
            Some((_, after)) => {
                *after -= 1;
                None
            }
            None => None,
        })
    }

    fn report_network(&self, id: &SandboxId) -> Result<NetworkReport, NodeError> {
        let is_running = self.sandbox_now(id)?.state == SandboxState::Running;
        Ok(self.with(|inner| {
            let network = inner.networks.entry(id.clone()).or_default();
            NetworkReport {
                policy: network.policy.clone(),
                epoch: network.epoch,
                is_enforced: is_running,
            }
        }))
    }

    fn page(&self, id: &SandboxId, request: ReadNetworkLog) -> NetworkLogPage {
        self.with(|inner| {
            let network = inner.networks.entry(id.clone()).or_default();
            let oldest = network.records.first().map_or(0, |record| record.sequence);
            let records = network.records.iter();
            let wanted = records.filter(|record| record.sequence > request.after);
            NetworkLogPage {
                records: wanted.take(request.max).cloned().collect(),
                oldest,
                latest: network.dropped + network.records.len() as u64,
                lost: oldest.saturating_sub(request.after.saturating_add(1)),
            }
        })
    }
}

impl NodeNetwork for FakeNode {
    async fn set_network(
        &self,
        id: &SandboxId,
        wanted: SetNetwork,
    ) -> Result<NetworkReport, NodeError> {
        self.with(|inner| inner.network_calls.push(wanted.clone()));
        let failure = self.next_network_failure();
        if let Some(NetworkFailure::Refuses(error)) = failure {
            return Err(error);
        }
        self.known(id)?;
        self.with(|inner| {
            let network = inner.networks.entry(id.clone()).or_default();
            let is_repeated = network.epoch == wanted.epoch && network.policy == wanted.policy;
            if network.epoch >= wanted.epoch && !is_repeated {
                return Err(NodeError::new(ErrorCode::WrongState, "an older epoch"));
            }
            (network.policy, network.epoch) = (wanted.policy, wanted.epoch);
            Ok(())
        })?;
        if failure == Some(NetworkFailure::AnswerLost) {
            return Err(NodeError::unavailable("the node did not answer in time"));
        }
        self.report_network(id)
    }

    async fn network(&self, id: &SandboxId) -> Result<NetworkReport, NodeError> {
        self.report_network(id)
    }

    async fn network_log(
        &self,
        id: &SandboxId,
        request: ReadNetworkLog,
    ) -> Result<NetworkLogPage, NodeError> {
        self.known(id)?;
        let recorded = self.recorded.notified();
        tokio::pin!(recorded);
        recorded.as_mut().enable();
        let page = self.page(id, request);
        if page.records.is_empty() && !request.wait.is_zero() {
            let _ = tokio::time::timeout(request.wait, recorded).await;
            self.known(id)?;
            return Ok(self.page(id, request));
        }
        Ok(page)
    }
    async fn egress_decisions(
        &self,
        request: ReadNetworkLog,
    ) -> Result<EgressDecisionPage, NodeError> {
        let recorded = self.recorded.notified();
        tokio::pin!(recorded);
        recorded.as_mut().enable();
        if self.with(|inner| inner.decisions.is_hanging) {
            std::future::pending::<()>().await;
        }
        let page = self.with(|inner| inner.decisions.page(request))?;
        if page.through == request.after && !request.wait.is_zero() {
            let _ = tokio::time::timeout(request.wait, recorded).await;
            return self.with(|inner| inner.decisions.page(request));
        }
        self.with(|inner| {
            if let Some((id, record)) = inner.decisions.next.take_if(|_| page.through > 0) {
                inner.decisions.add(id, record);
            }
        });
        Ok(page)
    }
}
