//! Which requests are traced, by the names of `OTEL_TRACES_SAMPLER`.

use dayfly_types::{TraceId, TraceParent};

/// Decides once for each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampler {
    /// A caller who has decided is followed.
    follows_parent: bool,
    own: Own,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Own {
    All,
    None,
    /// Trace ids whose lower half is below this, of 2^63.
    Below(u64),
}

impl Default for Sampler {
    fn default() -> Self {
        Self {
            follows_parent: true,
            own: Own::All,
        }
    }
}

impl Sampler {
    /// By its name and `OTEL_TRACES_SAMPLER_ARG`; `None` for what there is not.
    #[must_use]
    pub fn named(name: &str, argument: Option<&str>) -> Option<Self> {
        let (follows_parent, own) = match name.strip_prefix("parentbased_") {
            Some(own) => (true, own),
            None => (false, name),
        };
        let own = match own {
            "always_on" => Own::All,
            "always_off" => Own::None,
            "traceidratio" => Own::of_ratio(argument)?,
            _ => return None,
        };
        Some(Self {
            follows_parent,
            own,
        })
    }

    /// Whether a request is traced, with this id if it begins a trace.
    #[must_use]
    pub fn takes(&self, parent: Option<&TraceParent>, trace: &TraceId) -> bool {
        match (parent, self.own) {
            (Some(parent), _) if self.follows_parent => parent.is_sampled,
            (_, Own::All) => true,
            (_, Own::None) => false,
            (_, Own::Below(bound)) => {
                let [.., a, b, c, d, e, f, g, h] = *trace.bytes();
                u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 1 < bound
            }
        }
    }
}

impl Own {
    fn of_ratio(argument: Option<&str>) -> Option<Self> {
        let ratio = match argument {
            None => 1.0,
            Some(text) => text.parse::<f64>().ok()?,
        };
        if !(0.0..=1.0).contains(&ratio) {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "between 0 and 2^63, and one more or less of those is the same share"
        )]
        Some(Self::Below((ratio * (1_u64 << 63) as f64) as u64))
    }
}

#[cfg(test)]
mod tests {
    use dayfly_types::SpanId;

    use super::*;

    fn trace(lower: u64) -> TraceId {
        let mut bytes = [1; 16];
        bytes[8..].copy_from_slice(&lower.to_be_bytes());
        TraceId::new(bytes).unwrap()
    }

    fn parent(is_sampled: bool) -> TraceParent {
        TraceParent {
            trace: trace(0),
            span: SpanId::new([1; 8]).unwrap(),
            is_sampled,
        }
    }

    #[test]
    fn a_caller_who_has_decided_is_followed() {
        for (name, alone) in [
            ("parentbased_always_on", true),
            ("parentbased_always_off", false),
        ] {
            let sampler = Sampler::named(name, None).unwrap();
            assert!(sampler.takes(Some(&parent(true)), &trace(0)));
            assert!(!sampler.takes(Some(&parent(false)), &trace(0)));
            assert_eq!(sampler.takes(None, &trace(0)), alone);
        }
        let usual = Sampler::named("parentbased_always_on", None);
        assert_eq!(usual, Some(Sampler::default()));
        let always = Sampler::named("always_on", None).unwrap();
        assert!(always.takes(Some(&parent(false)), &trace(0)));
    }

    #[test]
    fn a_share_is_taken_by_the_id() {
        let sampler = Sampler::named("traceidratio", Some("0.25")).unwrap();
        assert!(sampler.takes(None, &trace(u64::MAX / 4 - 2)));
        assert!(!sampler.takes(None, &trace(u64::MAX / 4 + 2)));
        let all = Sampler::named("parentbased_traceidratio", None).unwrap();
        assert!(all.takes(None, &trace(u64::MAX)));
    }

    #[test]
    fn what_there_is_not_is_refused() {
        for (name, argument) in [
            ("jaeger_remote", None),
            ("", None),
            ("traceidratio", Some("2")),
            ("traceidratio", Some("NaN")),
            ("parentbased_traceidratio", Some("half")),
        ] {
            assert_eq!(Sampler::named(name, argument), None, "{name} {argument:?}");
        }
    }
}
