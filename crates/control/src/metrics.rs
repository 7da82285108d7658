//! What Prometheus reads: counted while requests are answered, looked up when somebody asks.
//!
//! No series has the id of a sandbox, a key or a project: their number has no limit, and a graph of
//! a thousand lines says nothing.

mod daemon;
mod exec_outcome;
mod series;

use std::time::Duration;

use dayfly_node_api::{NodeStatus, SharingStatus};
use dayfly_types::ErrorCode;
use http::Method;
use prometheus::{
    Encoder as _, GaugeVec, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Registry,
    TextEncoder,
};

use daemon::DaemonSeries;
pub(crate) use exec_outcome::{ExecCounter, ExecOutcome};
use series::Series;

use crate::conditions::Condition;
use crate::view::SandboxCount;

const MIB: f64 = 1_048_576.0;
/// From a read of the database to a boot.
const REQUEST_BUCKETS: [f64; 14] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0,
];
const STAGE_BUCKETS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0,
];

/// From a small guest on a quiet host to a full disk.
const PAUSE_BUCKETS: [f64; 12] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0,
];

/// Why a sandbox that goes on was stopped for a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CaptureKind {
    Snapshot,
    Fork,
}

impl CaptureKind {
    const ALL: [Self; 2] = [Self::Snapshot, Self::Fork];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Snapshot => "snapshot",
            Self::Fork => "fork",
        }
    }
}

/// The stage that a whole create is told as.
pub(crate) const WHOLE_STAGE: &str = "all";

/// Everything that can be read.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    request_seconds: HistogramVec,
    refusals: IntCounterVec,
    create_seconds: HistogramVec,
    pause_seconds: HistogramVec,
    execs: ExecCounter,
    daemon: DaemonSeries,
    sandboxes: IntGaugeVec,
    parked: IntGaugeVec,
    parked_target: IntGaugeVec,
    slots: IntGaugeVec,
    memory: GaugeVec,
    disk: GaugeVec,
    conditions: IntGaugeVec,
    spans: IntCounterVec,
    pressure_sleeps: IntCounterVec,
    node_up: IntGauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let registry = Registry::new();
        let series = Series(&registry);
        let build = series.gauges("build_info", "The version of this server.", &["version"]);
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        Self {
            requests: series.counters(
                "http_requests_total",
                "Requests that were answered, by the pattern of their route.",
                &["route", "method", "code"],
            ),
            request_seconds: series.histograms(
                "http_request_duration_seconds",
                "From the head of a request to the head of its response.",
                &["route", "method"],
                &REQUEST_BUCKETS,
            ),
            refusals: series.counters(
                "refusals_total",
                "Requests that were refused, by the code of the error.",
                &["code"],
            ),
            create_seconds: series.histograms(
                "sandbox_create_seconds",
                "Stages of creates on the node; the stage `all` is the whole.",
                &["template", "stage"],
                &STAGE_BUCKETS,
            ),
            pause_seconds: pauses(&series),
            execs: ExecCounter::new(&series),
            daemon: DaemonSeries::new(&series),
            sandboxes: series.gauges(
                "sandboxes",
                "Sandboxes that are not deleted.",
                &["state", "template"],
            ),
            parked: series.gauges(
                "pool_parked",
                "Engines that wait for a create.",
                &["template"],
            ),
            parked_target: series.gauges(
                "pool_parked_target",
                "Engines that should wait for a create.",
                &["template"],
            ),
            slots: series.gauges("pool_slots", "Slots that wait for an engine.", &["kind"]),
            memory: series.sizes(
                "memory_bytes",
                "Memory of the host: in all, promised to sandboxes, kept for the host.",
            ),
            disk: series.sizes(
                "disk_bytes",
                "Disk of the host: available, promised to sandboxes, kept for the host.",
            ),
            conditions: series.gauges(
                "degraded",
                "1 for each condition of GET /health that holds, 0 for the others.",
                &["condition"],
            ),
            spans: series.counters(
                "trace_spans_total",
                "Spans of traces, by what became of them: sent or lost.",
                &["outcome"],
            ),
            pressure_sleeps: pressure_sleeps(&series),
            node_up: series.gauge("node_up", "Whether the node process has answered just now."),
            registry,
        }
    }
}

fn pressure_sleeps(series: &Series<'_>) -> IntCounterVec {
    series.counters(
        "pressure_sleeps_total",
        "Idle sandboxes that were to sleep for others, by what became of it.",
        &["outcome"],
    )
}

fn pauses(series: &Series<'_>) -> HistogramVec {
    let pauses = series.histograms(
        "capture_pause_seconds",
        "How long sandboxes that went on stood still for a capture.",
        &["kind"],
        &PAUSE_BUCKETS,
    );
    for kind in CaptureKind::ALL {
        pauses.with_label_values(&[kind.as_str()]);
    }
    pauses
}

/// What is looked up when somebody reads.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    pub(crate) node: Option<NodeStatus>,
    pub(crate) sandboxes: Vec<SandboxCount>,
    pub(crate) conditions: Vec<Condition>,
    /// Spans that were sent and lost until now.
    pub(crate) spans: Option<(u64, u64)>,
    /// Unix seconds.
    pub(crate) certificate_ends_at: Option<i64>,
    /// Of this process.
    pub(crate) restarts: u64,
}

impl Metrics {
    pub(crate) fn answered(&self, method: &Method, route: &str, code: &str, took: Duration) {
        let method = method_label(method);
        self.requests
            .with_label_values(&[route, method, code])
            .inc();
        self.request_seconds
            .with_label_values(&[route, method])
            .observe(took.as_secs_f64());
    }

    pub(crate) fn refused(&self, code: ErrorCode) {
        self.refusals.with_label_values(&[code.as_str()]).inc();
    }

    /// A stage of a create, or the whole of it.
    pub(crate) fn created(&self, template: &str, stage: &str, took: Duration) {
        self.create_seconds
            .with_label_values(&[template, stage])
            .observe(took.as_secs_f64());
    }

    /// A sandbox stood still for a capture, and goes on.
    pub(crate) fn captured(&self, kind: CaptureKind, pause_us: u64) {
        self.pause_seconds
            .with_label_values(&[kind.as_str()])
            .observe(Duration::from_micros(pause_us).as_secs_f64());
    }

    /// Counts commands.
    pub(crate) fn execs(&self) -> ExecCounter {
        self.execs.clone()
    }

    /// All of it, in the text format of Prometheus.
    pub(crate) fn text(&self, looked: &Looked) -> String {
        self.set(looked);
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut text) {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "cannot write the metrics"
            );
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    fn set(&self, looked: &Looked) {
        for condition in Condition::ALL {
            let holds = looked.conditions.contains(condition);
            let gauge = self.conditions.with_label_values(&[condition.as_str()]);
            gauge.set(i64::from(holds));
        }
        // What is no longer there is not shown as it last was.
        for gone in [
            &self.sandboxes,
            &self.parked,
            &self.parked_target,
            &self.slots,
        ] {
            gone.reset();
        }
        for gone in [&self.memory, &self.disk] {
            gone.reset();
        }
        for count in &looked.sandboxes {
            let labels = [count.state.as_str(), count.template.as_str()];
            self.sandboxes.with_label_values(&labels).set(count.count);
        }
        if let Some((sent, lost)) = looked.spans {
            for (outcome, count) in [("sent", sent), ("lost", lost)] {
                let counter = self.spans.with_label_values(&[outcome]);
                counter.inc_by(count.saturating_sub(counter.get()));
            }
        }
        self.daemon.set(looked);
        self.node_up.set(i64::from(looked.node.is_some()));
        if let Some(node) = &looked.node {
            self.set_node(node);
        }
    }

    /// The node counts from its own start; a counter that falls back is one of a new process.
    fn set_sleeps(&self, sharing: &SharingStatus) {
        let sleeps = [
            ("asleep", sharing.put_to_sleep),
            ("stayed_awake", sharing.not_put_to_sleep),
        ];
        for (outcome, count) in sleeps {
            let counter = self.pressure_sleeps.with_label_values(&[outcome]);
            if count < counter.get() {
                counter.reset();
            }
            counter.inc_by(count.saturating_sub(counter.get()));
        }
    }

    fn set_node(&self, node: &NodeStatus) {
        for pool in &node.pools {
            let labels = [pool.template.as_str()];
            self.parked
                .with_label_values(&labels)
                .set(whole(pool.parked));
            self.parked_target
                .with_label_values(&labels)
                .set(whole(pool.target));
        }
        let slots = [
            ("parked", node.parked_slots),
            ("target", node.parked_slots_target),
        ];
        for (kind, count) in slots {
            self.slots.with_label_values(&[kind]).set(whole(count));
        }
        self.set_sleeps(&node.sharing);
        let memory = [
            ("total", node.memory_total_mib),
            ("committed", node.memory_committed_mib),
            ("reserve", node.memory_reserve_mib),
        ];
        let disk = [
            ("available", node.disk_available_mib),
            ("committed", node.disk_committed_mib),
            ("reserve", node.disk_reserve_mib),
        ];
        for (gauge, sizes) in [(&self.memory, memory), (&self.disk, disk)] {
            for (kind, mib) in sizes {
                gauge.with_label_values(&[kind]).set(bytes(mib));
            }
        }
    }
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "a page more or less")]
fn bytes(mib: u64) -> f64 {
    mib as f64 * MIB
}

/// A client may write any word there.
pub(crate) fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
