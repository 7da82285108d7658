//! What the node and the egress process say to each other: JSON, one message in each packet.
//!
//! ```text
//! node                                      egress process
//!  Hello{protocol}                       ->  Hello{protocol, open}
//!  Open{lifecycle, epoch, policy} + fds  ->  Done{cut} | Refused{why}
//!  SetPolicy{lifecycle, epoch, policy}   ->  Done{cut} | Refused{why}
//!  Close{lifecycle}                      ->  Done{cut}
//!                                        <-  Records, Lost   at any time
//! ```
//!
//! Calls are answered in order. Each may be repeated: the same epoch again changes nothing, an
//! older one is refused.

use dayfly_types::egress::{EgressPolicy, EgressRecord};
use dayfly_types::{ProjectId, SandboxId};
use serde::{Deserialize, Serialize};

/// Grows when the two sides would misunderstand each other.
pub const PROTOCOL: u32 = 2;
/// The largest policy that can be written fits in here.
pub const PACKET_BYTES_MAX: usize = 256 << 10;
/// The sockets that come with [`EgressRequest::Open`]: all TCP, questions by UDP, questions by TCP.
pub const OPEN_DESCRIPTORS: usize = 3;
/// Records in one packet, so that the longest of them still fit.
pub const PACKET_RECORDS_MAX: usize = 64;
/// Records that wait for the node, over all lifecycles.
pub const WAITING_RECORDS_MAX: usize = 4096;

/// One start of one sandbox in one slot. Nothing of one is visible in another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SandboxRun {
    pub sandbox: SandboxId,
    /// Whose it is: internal networks are open to projects.
    pub project: ProjectId,
    pub slot: u32,
    /// Counts the starts of engines for that sandbox; never used twice.
    pub start: u64,
}

/// A request with the number that its answer carries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EgressCall {
    pub id: u64,
    pub request: EgressRequest,
}

/// What the node asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EgressRequest {
    Hello {
        protocol: u32,
    },
    /// Serves a lifecycle on the sockets that come with it, in place of whatever the slot had.
    Open {
        lifecycle: SandboxRun,
        epoch: u64,
        policy: EgressPolicy,
    },
    /// Changes the policy. Connections that it does not allow have ended when the answer comes.
    SetPolicy {
        lifecycle: SandboxRun,
        epoch: u64,
        policy: EgressPolicy,
    },
    /// Ends everything of a lifecycle. One that is not open is no error.
    Close {
        lifecycle: SandboxRun,
    },
}

/// The answer to one request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EgressAnswer {
    Hello {
        protocol: u32,
        /// Every lifecycle that is being served, with the epoch of its policy.
        open: Vec<(SandboxRun, u64)>,
    },
    Done {
        /// Connections that were ended by it.
        cut: u32,
    },
    /// Nothing was changed.
    Refused { why: String },
}

/// What the egress process sends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EgressMessage {
    Answer {
        id: u64,
        answer: EgressAnswer,
    },
    Records(Vec<RunRecord>),
    /// So many records of a lifecycle were dropped because nobody took them.
    Lost {
        lifecycle: SandboxRun,
        count: u64,
    },
}

/// A record and whose it is. Its sequence is 0: the node counts, because it outlives this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    pub lifecycle: SandboxRun,
    pub record: EgressRecord,
}

#[cfg(test)]
mod tests {
    use dayfly_types::limits::{EGRESS_PORTS_MAX, EGRESS_RULES_MAX};

    use super::*;

    fn lifecycle() -> SandboxRun {
        SandboxRun {
            sandbox: SandboxId::parse(&"s".repeat(50)).unwrap(),
            project: ProjectId::parse(&"p".repeat(50)).unwrap(),
            slot: u32::MAX,
            start: u64::MAX,
        }
    }

    #[test]
    fn the_largest_policy_fits_in_a_packet() {
        let host = [
            "h".repeat(63),
            "h".repeat(63),
            "h".repeat(63),
            "h".repeat(58),
        ]
        .join(".");
        let ports: Vec<u16> = (0..EGRESS_PORTS_MAX)
            .map(|port| 65_000 + u16::try_from(port).unwrap())
            .collect();
        let rules: Vec<_> = (0..EGRESS_RULES_MAX)
            .map(|number| {
                let id = format!("{number:0>300}");
                serde_json::json!({"id": id, "host": format!("**.{host}"), "ports": ports})
            })
            .collect();
        let policy = serde_json::json!({"mode": "allowlist", "rules": rules});
        let call = EgressCall {
            id: u64::MAX,
            request: EgressRequest::Open {
                lifecycle: lifecycle(),
                epoch: u64::MAX,
                policy: serde_json::from_value(policy).unwrap(),
            },
        };
        let bytes = serde_json::to_vec(&call).unwrap();
        assert!(bytes.len() <= PACKET_BYTES_MAX, "{} bytes", bytes.len());
        assert_eq!(serde_json::from_slice::<EgressCall>(&bytes).unwrap(), call);
    }

    #[test]
    fn messages_survive_their_text() {
        for message in [
            EgressMessage::Answer {
                id: 1,
                answer: EgressAnswer::Hello {
                    protocol: PROTOCOL,
                    open: vec![(lifecycle(), 3)],
                },
            },
            EgressMessage::Answer {
                id: 2,
                answer: EgressAnswer::Done { cut: 2 },
            },
            EgressMessage::Records(Vec::new()),
            EgressMessage::Lost {
                lifecycle: lifecycle(),
                count: 7,
            },
        ] {
            let text = serde_json::to_string(&message).unwrap();
            assert_eq!(
                serde_json::from_str::<EgressMessage>(&text).unwrap(),
                message
            );
        }
    }
}
