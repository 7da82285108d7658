//! What is known of the daemon's own processes: how often each was started again, what the egress
//! process decided, and until when the certificate holds.

use dayfly_node_api::EgressStatus;
use dayfly_types::egress::{Decision, DenyReason, EgressRecordKind};
use prometheus::{IntCounterVec, IntGaugeVec};

use super::Looked;
use super::series::Series;

/// What a decision that needs no reason has for one.
const NO_REASON: &str = "none";

#[derive(Debug)]
pub(super) struct DaemonSeries {
    decisions: IntCounterVec,
    restarts: IntCounterVec,
    /// Without labels, and absent where TLS is not served.
    certificate: IntGaugeVec,
}

impl DaemonSeries {
    pub(super) fn new(series: &Series<'_>) -> Self {
        Self {
            decisions: series.counters(
                "egress_decisions_total",
                "What was decided about connections and DNS queries of sandboxes.",
                &["kind", "decision", "reason"],
            ),
            restarts: series.counters(
                "process_restarts_total",
                "Times that a process of the daemon ended unasked and was started again.",
                &["process"],
            ),
            certificate: series.gauges(
                "tls_certificate_expiry_timestamp_seconds",
                "When the certificate that is shown ends, in Unix time.",
                &[],
            ),
        }
    }

    pub(super) fn set(&self, looked: &Looked) {
        // Others count, and begin anew with their process; whoever reads knows such counters.
        self.decisions.reset();
        self.restarts.reset();
        self.certificate.reset();
        if let Some(seconds) = looked.certificate_ends_at {
            let no_labels: [&str; 0] = [];
            self.certificate.with_label_values(&no_labels).set(seconds);
        }
        self.restarted("control", looked.restarts);
        if let Some(node) = &looked.node {
            self.restarted("node", node.restarts);
            self.restarted("egress", node.egress.restarts);
            self.decided(&node.egress);
        }
    }

    fn restarted(&self, process: &str, times: u64) {
        self.restarts.with_label_values(&[process]).inc_by(times);
    }

    fn decided(&self, egress: &EgressStatus) {
        let counter = |kind: EgressRecordKind, decision: Decision, reason: Option<DenyReason>| {
            let reason = reason.map_or(NO_REASON, DenyReason::as_str);
            let labels = [kind.as_str(), decision.as_str(), reason];
            self.decisions.with_label_values(&labels)
        };
        // There from the start, so that the first one is seen as more than none.
        for kind in EgressRecordKind::ALL {
            counter(kind, Decision::Allowed, None);
            for reason in DenyReason::ALL {
                counter(kind, Decision::Denied, Some(reason));
            }
        }
        for one in &egress.decisions {
            counter(one.kind, one.decision, one.reason).inc_by(one.count);
        }
    }
}
