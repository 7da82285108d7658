//! How often something may happen. Pure: the time comes in.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use dayfly_types::egress::HostName;
use dayfly_types::limits::{EGRESS_RULES_MAX, EGRESS_WILDCARD_NAMES_PER_MINUTE};

const WINDOW: Duration = Duration::from_secs(60);
/// How long a [`Sampler`] counts before it begins again.
pub(crate) const SAMPLE_WINDOW: Duration = Duration::from_secs(1);

/// So many in a second, and twice as many at once.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    per_second: u32,
    tokens: f64,
    at: Instant,
}

impl TokenBucket {
    pub(crate) fn new(per_second: u32, now: Instant) -> Self {
        Self {
            per_second,
            tokens: f64::from(per_second) * 2.0,
            at: now,
        }
    }

    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let gained = now.saturating_duration_since(self.at).as_secs_f64();
        let most = f64::from(self.per_second) * 2.0;
        self.tokens = f64::from(self.per_second)
            .mul_add(gained, self.tokens)
            .min(most);
        self.at = now;
        let has_one = self.tokens >= 1.0;
        if has_one {
            self.tokens -= 1.0;
        }
        has_one
    }
}

/// How many different names were asked for by each wildcard rule in this minute. A name in a
/// question reaches whoever serves its zone, so a wildcard is a way to send bytes out.
#[derive(Debug)]
pub(crate) struct DistinctNames {
    since: Instant,
    names: HashMap<String, HashSet<HostName>>,
}

impl DistinctNames {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            since: now,
            names: HashMap::new(),
        }
    }

    /// Whether this name may still be asked for by that rule.
    pub(crate) fn admit(&mut self, rule: &str, name: &HostName, now: Instant) -> bool {
        if now.saturating_duration_since(self.since) >= WINDOW {
            self.names.clear();
            self.since = now;
        }
        if !self.names.contains_key(rule) {
            // Policies change; more rules than one has within a minute are not kept apart.
            if self.names.len() >= EGRESS_RULES_MAX {
                return false;
            }
            self.names.insert(rule.to_owned(), HashSet::new());
        }
        let Some(names) = self.names.get_mut(rule) else {
            return false;
        };
        if names.contains(name) {
            return true;
        }
        if names.len() >= EGRESS_WILDCARD_NAMES_PER_MINUTE {
            return false;
        }
        names.insert(name.clone())
    }
}

/// So many of one kind in each second; the others are counted, and the last of them is kept to tell
/// of them when no other one comes.
#[derive(Debug)]
pub(crate) struct Sampler<T> {
    window: Option<Instant>,
    let_through: u32,
    held_back: u64,
    last: Option<T>,
}

/// One that is let through, with how many were held back since the one before.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Sampled<T> {
    pub(crate) value: T,
    pub(crate) suppressed: u64,
}

impl<T> Default for Sampler<T> {
    fn default() -> Self {
        Self {
            window: None,
            let_through: 0,
            held_back: 0,
            last: None,
        }
    }
}

impl<T> Sampler<T> {
    fn is_in_window(&self, now: Instant) -> bool {
        self.window
            .is_some_and(|start| now.saturating_duration_since(start) < SAMPLE_WINDOW)
    }

    /// The value again when it is let through.
    pub(crate) fn admit(&mut self, value: T, per_second: u32, now: Instant) -> Option<Sampled<T>> {
        if !self.is_in_window(now) {
            self.window = Some(now);
            self.let_through = 0;
        }
        if self.let_through >= per_second {
            self.held_back += 1;
            self.last = Some(value);
            return None;
        }
        self.let_through += 1;
        self.last = None;
        let suppressed = std::mem::take(&mut self.held_back);
        Some(Sampled { value, suppressed })
    }

    pub(crate) const fn is_holding(&self) -> bool {
        self.held_back > 0
    }

    /// The last that was held back, once its window is over and no other one came.
    pub(crate) fn release(&mut self, now: Instant) -> Option<Sampled<T>> {
        if self.is_in_window(now) {
            return None;
        }
        let value = self.last.take()?;
        let suppressed = std::mem::take(&mut self.held_back).saturating_sub(1);
        Some(Sampled { value, suppressed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_twice_the_rate_and_then_the_rate_holds() {
        let start = Instant::now();
        let mut bucket = TokenBucket::new(100, start);
        let burst = (0..1000).filter(|_| bucket.take(start)).count();
        assert_eq!(burst, 200);
        let later = (1..=1000)
            .filter(|millis| bucket.take(start + Duration::from_millis(*millis)))
            .count();
        assert!((99..=100).contains(&later), "{later}");
    }

    #[test]
    fn a_wildcard_has_sixty_names_in_a_minute_and_a_known_name_costs_nothing() {
        let start = Instant::now();
        let mut names = DistinctNames::new(start);
        let name = |number: u32| HostName::parse(&format!("n{number}.allowed.test")).unwrap();
        let admitted = (0..1000)
            .filter(|n| names.admit("wild", &name(*n), start))
            .count();
        assert_eq!(admitted, EGRESS_WILDCARD_NAMES_PER_MINUTE);
        assert!(names.admit("wild", &name(0), start));
        assert!(names.admit("other", &name(999), start));
        assert!(names.admit("wild", &name(999), start + WINDOW));
    }

    #[test]
    fn what_was_held_back_is_told_by_the_next() {
        let start = Instant::now();
        let mut sampler = Sampler::default();
        let told = (0..60).filter_map(|n| sampler.admit(n, 50, start)).count();
        assert_eq!(told, 50);
        let later = start + SAMPLE_WINDOW;
        let next = sampler.admit(60, 50, later).unwrap();
        assert_eq!((next.value, next.suppressed), (60, 10));
        assert_eq!(sampler.admit(61, 50, later).unwrap().suppressed, 0);
    }

    #[test]
    fn what_was_held_back_is_told_when_no_other_comes() {
        let start = Instant::now();
        let mut sampler = Sampler::default();
        for number in 0..60 {
            sampler.admit(number, 50, start);
        }
        assert!(sampler.is_holding());
        assert_eq!(sampler.release(start), None);
        let last = sampler.release(start + SAMPLE_WINDOW).unwrap();
        assert_eq!((last.value, last.suppressed), (59, 9));
        assert!(!sampler.is_holding());
        assert_eq!(sampler.release(start + SAMPLE_WINDOW), None);
    }
}
