//! Calls to the node as spans: the call, what the node says of it, and the stages of a machine that
//! came up in it.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use dayfly_node_api::{
    AttachExec, ContextLines, EnsureExec, ExecEvents, FileBytes, FileChanges, FileRead, FileWrite,
    ForkOutcome, GuestPath, NodeApi, NodeCall, NodeError, NodeReply, NodeTiming, PortStream,
    SandboxReport, StdinWrite, Watch, WatchFiles, traced,
};
use dayfly_trace::{Attribute, SpanKind};
use dayfly_types::exec::ExecInfo;
use dayfly_types::file::OpenedFile;
use dayfly_types::limits::TRACE_STAGES_PER_REPORT_MAX;
use dayfly_types::{SandboxId, SpanId, TraceParent};

use super::Here;

/// What happens inside the guest, by the node's clock: nothing that a guest says is a time here.
const OF_GUEST: [&str; 5] = ["agent", "identity", "disks", "thaw", "programs"];
const NS_PER_US: u64 = 1000;

/// A node whose calls are traced.
#[derive(Debug)]
pub(crate) struct TracedNode(pub(crate) Arc<dyn NodeApi>);

/// A call that is over, on the node's side.
struct Served {
    here: Here,
    span: SpanId,
    times: (u64, u64),
}

/// Makes a call as a part of the request's trace, if there is one.
async fn call<T>(
    name: &'static str,
    work: impl Future<Output = Result<T, NodeError>>,
) -> (Result<T, NodeError>, Option<Served>) {
    let Some(here) = Here::current() else {
        return (work.await, None);
    };
    let trace = Arc::clone(&here.trace);
    let (span, began) = (trace.new_span(), trace.now_ns());
    let parent = TraceParent {
        trace: trace.id(),
        span,
        is_sampled: true,
    };
    let (reply, timing) = traced(parent, work).await;
    let times = (began, trace.now_ns());
    let title: Cow<'static, str> = Cow::Owned(format!("node.{name}"));
    let mut asked = trace.span(span, here.span, title.clone(), SpanKind::Client, times);
    if let Err(error) = &reply {
        asked.has_failed = true;
        let code = Attribute::from(error.code.as_str());
        asked.attributes.push(("error.type", code));
    }
    trace.add(asked);
    let served = timing.map(|timing| {
        let own = trace.new_span();
        let times = inside(times, timing);
        trace.add(trace.span(own, span, title, SpanKind::Server, times));
        Served {
            here,
            span: own,
            times,
        }
    });
    (reply, served)
}

async fn opened<T>(
    name: &'static str,
    work: impl Future<Output = Result<T, NodeError>>,
) -> Result<T, NodeError> {
    call(name, work).await.0
}

/// The node's own times of a call. Whatever they are, they lie within ours.
fn inside(ours: (u64, u64), timing: NodeTiming) -> (u64, u64) {
    let began = timing.began_us.saturating_mul(NS_PER_US);
    let took = timing.took_us.saturating_mul(NS_PER_US);
    between(ours, began, took)
}

fn between((first, last): (u64, u64), began: u64, took: u64) -> (u64, u64) {
    let began = began.clamp(first, last);
    (began, began.saturating_add(took).min(last))
}

impl Served {
    /// The stages of a machine that came up in this call. Those of an earlier one began before it.
    fn tell_stages(&self, report: &SandboxReport, is_new: bool) {
        let Some(began) = report.stages_began_us else {
            return;
        };
        let mut at = began.saturating_mul(NS_PER_US);
        // A report has whole microseconds.
        if at.saturating_add(NS_PER_US) < self.times.0 || at > self.times.1 {
            return;
        }
        if is_new {
            let waited = at.saturating_sub(self.times.0);
            self.tell("node.admit".into(), between(self.times, 0, waited), report);
        }
        for stage in report.stages.iter().take(TRACE_STAGES_PER_REPORT_MAX) {
            let took = stage.micros.saturating_mul(NS_PER_US);
            let times = between(self.times, at, took);
            at = at.saturating_add(took);
            let is_of_guest = OF_GUEST.contains(&stage.name.as_str());
            let place = if is_of_guest { "guest" } else { "node" };
            self.tell(format!("{place}.{}", stage.name).into(), times, report);
        }
    }

    fn tell(&self, name: Cow<'static, str>, times: (u64, u64), report: &SandboxReport) {
        let trace = &self.here.trace;
        let mut span = trace.span(trace.new_span(), self.span, name, SpanKind::Internal, times);
        span.attributes = vec![
            ("dayfly.sandbox_id", report.id.to_string().into()),
            ("dayfly.template", report.template.to_string().into()),
        ];
        trace.add(span);
    }
}

/// Machines that a reply is about, and whether they were asked for by this call.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "most replies are about no machine, and a new one that is has no stages here until \
              it is named"
)]
fn machines(reply: &NodeReply) -> Vec<(&SandboxReport, bool)> {
    match reply {
        NodeReply::EnsureSandbox(report) | NodeReply::BootSandbox(report) => vec![(report, true)],
        NodeReply::Wake(report) | NodeReply::Rollback(report) => vec![(report, false)],
        NodeReply::Fork(report) => {
            let outcomes = report.children.iter().map(|child| &child.outcome);
            let made = outcomes.filter_map(|outcome| match outcome {
                ForkOutcome::Made(report) => Some((&**report, false)),
                ForkOutcome::Refused(_) => None,
            });
            made.collect()
        }
        _ => Vec::new(),
    }
}

#[async_trait]
impl NodeApi for TracedNode {
    async fn call(&self, asked: NodeCall) -> Result<NodeReply, NodeError> {
        let (reply, served) = call(asked.name(), self.0.call(asked)).await;
        if let (Ok(reply), Some(served)) = (&reply, served) {
            for (report, is_new) in machines(reply) {
                served.tell_stages(report, is_new);
            }
        }
        reply
    }

    async fn watch(&self) -> Result<Watch, NodeError> {
        self.0.watch().await
    }

    async fn exec(&self, id: &SandboxId, request: EnsureExec) -> Result<ExecEvents, NodeError> {
        opened("exec", self.0.exec(id, request)).await
    }

    async fn attach_exec(
        &self,
        id: &SandboxId,
        request: AttachExec,
    ) -> Result<(ExecInfo, ExecEvents), NodeError> {
        opened("attach_exec", self.0.attach_exec(id, request)).await
    }

    async fn write_stdin(
        &self,
        id: &SandboxId,
        request: StdinWrite,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        opened("write_stdin", self.0.write_stdin(id, request, content)).await
    }

    async fn context(&self, id: &SandboxId, line: String) -> Result<ContextLines, NodeError> {
        opened("context", self.0.context(id, line)).await
    }

    async fn read_file(
        &self,
        id: &SandboxId,
        request: FileRead,
    ) -> Result<(OpenedFile, FileBytes), NodeError> {
        opened("read_file", self.0.read_file(id, request)).await
    }

    async fn write_file(
        &self,
        id: &SandboxId,
        request: FileWrite,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        opened("write_file", self.0.write_file(id, request, content)).await
    }

    async fn watch_files(
        &self,
        id: &SandboxId,
        request: WatchFiles,
    ) -> Result<FileChanges, NodeError> {
        opened("watch_files", self.0.watch_files(id, request)).await
    }

    async fn pack_tree(&self, id: &SandboxId, request: GuestPath) -> Result<FileBytes, NodeError> {
        opened("pack_tree", self.0.pack_tree(id, request)).await
    }

    async fn unpack_tree(
        &self,
        id: &SandboxId,
        request: GuestPath,
        content: FileBytes,
    ) -> Result<u64, NodeError> {
        opened("unpack_tree", self.0.unpack_tree(id, request, content)).await
    }

    async fn connect_port(&self, id: &SandboxId, port: u16) -> Result<PortStream, NodeError> {
        opened("connect_port", self.0.connect_port(id, port)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_node_says_lies_within_its_call() {
        let ours = (1_000_000, 9_000_000);
        let timing = |began_us, took_us| NodeTiming { began_us, took_us };
        assert_eq!(inside(ours, timing(2000, 3000)), (2_000_000, 5_000_000));
        assert_eq!(inside(ours, timing(0, 3000)), (1_000_000, 4_000_000));
        assert_eq!(inside(ours, timing(8000, 9000)), (8_000_000, 9_000_000));
        let last = (9_000_000, 9_000_000);
        assert_eq!(inside(ours, timing(u64::MAX, u64::MAX)), last);
    }
}
