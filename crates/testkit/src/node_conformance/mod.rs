//! What every node does, whatever its machines are made of, as one suite over the contract.
//!
//! It runs on the real node over simulated machines, on the same through the inner protocol, and on
//! every node that a test makes up: what a made-up node does differently, its tests do not show.

mod contents;
mod states;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use dayfly_node_api::{
    EnsureExec, EnsureSandbox, NodeApi, NodeCalls, NodeError, SandboxReport, SnapshotRequest,
};
use dayfly_types::egress::EgressPolicy;
use dayfly_types::exec::{ExecCommand, ExecSpec};
use dayfly_types::{
    CellName, ErrorCode, ExecId, LifetimeRules, ProjectId, SandboxClass, SandboxId, SnapshotId,
    TemplateName,
};

use crate::conformance::{Claim, Failure, Report, ensure};

/// A node under test, which has a template `base` and room for five sandboxes.
#[derive(Debug)]
struct Subject {
    node: Arc<dyn NodeApi>,
    numbers: AtomicU32,
}

/// Makes every claim about a node. Each takes away what it made.
pub async fn run(node: Arc<dyn NodeApi>) -> Report {
    let subject = Subject {
        node,
        numbers: AtomicU32::new(1),
    };
    let mut report = Report::default();
    states::run(&subject, &mut report).await;
    contents::run(&subject, &mut report).await;
    report
}

/// Fails unless a call was refused with this code.
fn refused<T: std::fmt::Debug>(answer: Result<T, NodeError>, code: ErrorCode) -> Claim {
    match answer {
        Err(error) if error.code == code => Ok(()),
        other => Err(format!("{} was expected: {other:?}", code.as_str()).into()),
    }
}

fn project() -> Result<ProjectId, Failure> {
    Ok(ProjectId::parse("conformance")?)
}

impl Subject {
    fn number(&self) -> u32 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// A sandbox that nobody has asked for.
    fn wanted(&self) -> Result<EnsureSandbox, Failure> {
        let mut random = [0xC0; 17];
        random[..4].copy_from_slice(&self.number().to_be_bytes());
        Ok(EnsureSandbox {
            id: SandboxId::from_random(&CellName::local(), random),
            project: project()?,
            template: TemplateName::parse("base")?,
            size: None,
            from_snapshot: None,
            lifecycle: LifetimeRules::default(),
            cpu: None,
            disk: None,
            volumes: Vec::new(),
            reseed_user_space: false,
            egress: EgressPolicy::deny(),
            egress_epoch: 1,
            metadata: BTreeMap::new(),
            created_at_ms: None,
            class: SandboxClass::Reserved,
        })
    }

    async fn made(&self) -> Result<SandboxReport, Failure> {
        Ok(self.node.ensure_sandbox(self.wanted()?).await?)
    }

    fn snapshot(&self) -> Result<SnapshotRequest, Failure> {
        Ok(SnapshotRequest {
            id: SnapshotId::parse(&format!("snap-conformance-{}", self.number()))?,
            name: Some("kept".to_owned()),
            retain_seconds: None,
        })
    }

    fn exec(&self) -> Result<EnsureExec, Failure> {
        let id = ExecId::parse(&format!("ex-conformance-{}", self.number()))?;
        let command = ExecCommand::Argv(vec!["echo".to_owned(), "hello".to_owned()]);
        Ok(EnsureExec::new(ExecSpec::new(id, command)))
    }

    async fn delete(&self, ids: impl IntoIterator<Item = &SandboxId>) -> Claim {
        for id in ids {
            self.node.delete_sandbox(id).await?;
        }
        Ok(())
    }
}
