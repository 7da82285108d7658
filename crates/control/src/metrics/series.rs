//! Making of series.

use prometheus::{
    GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

/// Makes series of one registry.
pub(super) struct Series<'a>(pub(super) &'a Registry);

impl Series<'_> {
    fn kept<T: prometheus::core::Collector + Clone + 'static>(
        &self,
        made: prometheus::Result<T>,
    ) -> T {
        #[expect(
            clippy::expect_used,
            reason = "names and labels are constants, and every test that starts a server makes them"
        )]
        let made = made.expect("a series has a valid name");
        #[expect(clippy::expect_used, reason = "as above: no name is there twice")]
        self.0
            .register(Box::new(made.clone()))
            .expect("a series is new");
        made
    }

    fn opts(name: &str, help: &str) -> Opts {
        Opts::new(name, help).namespace("dayfly")
    }

    pub(super) fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        self.kept(IntCounterVec::new(Self::opts(name, help), labels))
    }

    pub(super) fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        self.kept(IntGaugeVec::new(Self::opts(name, help), labels))
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> IntGauge {
        self.kept(IntGauge::with_opts(Self::opts(name, help)))
    }

    pub(super) fn sizes(&self, name: &str, help: &str) -> GaugeVec {
        self.kept(GaugeVec::new(Self::opts(name, help), &["kind"]))
    }

    pub(super) fn histograms(
        &self,
        name: &str,
        help: &str,
        labels: &[&str],
        buckets: &[f64],
    ) -> HistogramVec {
        let opts = HistogramOpts::from(Self::opts(name, help)).buckets(buckets.to_vec());
        self.kept(HistogramVec::new(opts, labels))
    }
}
