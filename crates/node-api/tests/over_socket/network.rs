//! Policies and their record over the socket.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use async_trait::async_trait;
use dayfly_node_api::{
    EnsureSandbox, NetworkLog, NetworkReport, NodeError, NodeNetwork, ReadNetworkLog, SetNetwork,
};
use dayfly_types::egress::{
    Decision, DenyReason, EgressPolicy, EgressRecord, HostName, NameSource, RecordKind,
};
use dayfly_types::{ErrorCode, SandboxId};

use crate::small_node::SmallNode;
use crate::start;

fn policy() -> EgressPolicy {
    let text = r#"{"mode":"observe","rules":[
        {"id":"one","host":"**.example.com","ports":[443]},
        {"id":"two","network":"93.184.216.0/24"}]}"#;
    serde_json::from_str(text).unwrap()
}

/// A record in which every field says something.
fn record(sequence: u64) -> EgressRecord {
    let address = SocketAddrV4::new(Ipv4Addr::new(93, 184, 216, 34), 443);
    EgressRecord {
        sequence,
        at_ms: 5,
        kind: RecordKind::Tls,
        decision: Decision::Cut,
        name: Some(HostName::parse("a.example.com").unwrap()),
        name_source: NameSource::Sni,
        destination: Some(address),
        dialed: Some(address),
        answers: vec![*address.ip()],
        rule: Some("one".to_owned()),
        reason: Some(DenyReason::ModeDeny),
        would_deny: true,
        bytes_up: 1,
        bytes_down: 2,
        duration_ms: 3,
        suppressed: 4,
    }
}

#[async_trait]
impl NodeNetwork for SmallNode {
    async fn set_network(
        &self,
        _: &SandboxId,
        wanted: SetNetwork,
    ) -> Result<NetworkReport, NodeError> {
        if wanted.epoch == 1 {
            return Err(NodeError::new(ErrorCode::WrongState, "older"));
        }
        Ok(NetworkReport {
            policy: wanted.policy,
            epoch: wanted.epoch,
            is_enforced: true,
        })
    }

    async fn network(&self, _: &SandboxId) -> Result<NetworkReport, NodeError> {
        Ok(NetworkReport {
            policy: EgressPolicy::deny(),
            epoch: 3,
            is_enforced: false,
        })
    }

    async fn network_log(
        &self,
        _: &SandboxId,
        request: ReadNetworkLog,
    ) -> Result<NetworkLog, NodeError> {
        Ok(NetworkLog {
            records: vec![record(request.after + 1), record(request.after + 2)],
            oldest: u64::try_from(request.max).unwrap(),
            latest: u64::try_from(request.wait.as_millis()).unwrap(),
            lost: 7,
        })
    }
}

#[tokio::test]
async fn a_policy_arrives_whole_and_an_old_one_is_refused() {
    let world = start();
    let set = async |epoch| {
        let policy = policy();
        let wanted = SetNetwork { epoch, policy };
        world.client.set_network(&world.id, wanted).await
    };
    let report = set(2).await.unwrap();
    assert_eq!((report.policy, report.epoch), (policy(), 2));
    assert!(report.is_enforced);
    assert_eq!(set(1).await.unwrap_err().code, ErrorCode::WrongState);
    let report = world.client.network(&world.id).await.unwrap();
    assert_eq!((report.epoch, report.is_enforced), (3, false));
}

#[tokio::test]
async fn records_arrive_as_they_were_written() {
    let world = start();
    let request = ReadNetworkLog {
        after: 40,
        max: 9,
        wait: Duration::from_millis(1500),
    };
    let log = world.client.network_log(&world.id, request).await.unwrap();
    let wanted = NetworkLog {
        records: vec![record(41), record(42)],
        oldest: 9,
        latest: 1500,
        lost: 7,
    };
    assert_eq!(log, wanted);
}

#[test]
fn a_wish_of_before_there_were_policies_reaches_nothing() {
    let text = r#"{"id":"sb-local-x","project":"default","template":"base"}"#;
    let wanted: EnsureSandbox = serde_json::from_str(text).unwrap();
    assert_eq!(wanted.egress, EgressPolicy::deny());
    assert_eq!(wanted.egress_epoch, 0);
}
