//! Which trace a request belongs to, as the W3C recommendation "Trace Context" writes it.

use std::fmt;

use crate::limits::{TRACEPARENT_BYTES_MAX, TRACESTATE_BYTES_MAX, TRACESTATE_MEMBERS_MAX};

/// The header's name, of requests to the API and of calls to the node.
pub const TRACEPARENT: &str = "traceparent";
pub const TRACESTATE: &str = "tracestate";

/// Length of the form that is defined today.
const BYTES: usize = 55;
/// The version that is no version.
const NO_VERSION: u8 = 0xff;
const SAMPLED: u8 = 1;

/// All spans of one trace have it. Never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// One span. Never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

impl TraceId {
    /// `None` for zero, which stands for none.
    #[must_use]
    pub fn new(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    #[must_use]
    pub const fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl SpanId {
    /// `None` for zero, which stands for none.
    #[must_use]
    pub fn new(bytes: [u8; 8]) -> Option<Self> {
        (bytes != [0; 8]).then_some(Self(bytes))
    }

    #[must_use]
    pub const fn bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The span that a request is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    pub trace: TraceId,
    pub span: SpanId,
    /// Whether the caller keeps this trace.
    pub is_sampled: bool,
}

impl TraceParent {
    /// Reads the header; `None` for whatever is not well formed, which is as if it were not there.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() < BYTES || bytes.len() > TRACEPARENT_BYTES_MAX {
            return None;
        }
        let (known, rest) = bytes.split_at(BYTES);
        let [version] = hex(known.get(..2)?)?;
        let is_whole = match version {
            NO_VERSION => false,
            0 => rest.is_empty(),
            // A later version begins in the same way and may go on behind a dash.
            _ => rest.first().is_none_or(|next| *next == b'-'),
        };
        let dashes = [2, 35, 52];
        if !is_whole || dashes.iter().any(|at| known.get(*at) != Some(&b'-')) {
            return None;
        }
        let [flags] = hex(known.get(53..)?)?;
        Some(Self {
            trace: TraceId::new(hex(known.get(3..35)?)?)?,
            span: SpanId::new(hex(known.get(36..52)?)?)?,
            is_sampled: flags & SAMPLED != 0,
        })
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = u8::from(self.is_sampled);
        write!(f, "00-{}-{}-{flags:02x}", self.trace, self.span)
    }
}

/// Lower case alone, as the recommendation wants it.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: &u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    if text.len() != 2 * N {
        return None;
    }
    let mut found = [0; N];
    for (byte, pair) in found.iter_mut().zip(text.chunks_exact(2)) {
        let [high, low] = pair else { return None };
        *byte = digit(high)? << 4 | digit(low)?;
    }
    Some(found)
}

/// What other systems want carried along, from all headers of the name; `None` when there is
/// nothing, or more than has to be carried.
#[must_use]
pub fn trace_state<'a>(values: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut whole = String::new();
    for value in values {
        let comma = usize::from(!whole.is_empty());
        if whole.len() + comma + value.len() > TRACESTATE_BYTES_MAX {
            return None;
        }
        if !whole.is_empty() {
            whole.push(',');
        }
        whole.push_str(value.trim());
    }
    let is_plain = whole.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let members = whole.split(',').count();
    let fits = is_plain && members <= TRACESTATE_MEMBERS_MAX && !whole.is_empty();
    fits.then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn what_is_read_is_written_again() {
        let parent = TraceParent::parse(GOOD).unwrap();
        assert!(parent.is_sampled);
        assert_eq!(parent.to_string(), GOOD);
        let off = GOOD.replace("-01", "-00");
        let parent = TraceParent::parse(&off).unwrap();
        assert!(!parent.is_sampled);
        assert_eq!(parent.to_string(), off);
        // Other flags mean nothing yet.
        let flags = GOOD.replace("-01", "-03");
        assert!(TraceParent::parse(&flags).unwrap().is_sampled);
    }

    #[test]
    fn a_later_version_may_be_longer() {
        let later = format!("cc{}", &GOOD[2..]);
        assert!(TraceParent::parse(&later).is_some());
        assert!(TraceParent::parse(&format!("{later}-what-else")).is_some());
        assert!(TraceParent::parse(&format!("{later}.what-else")).is_none());
        let long = format!("{later}-{}", "a".repeat(TRACEPARENT_BYTES_MAX));
        assert!(TraceParent::parse(&long).is_none());
    }

    #[test]
    fn what_is_not_well_formed_is_as_if_it_were_not_there() {
        let zero_trace = GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32));
        let zero_span = GOOD.replace("b7ad6b7169203331", &"0".repeat(16));
        let wrong = [
            "",
            "00",
            &GOOD[..54],
            &format!("{GOOD}-"),
            &format!("{GOOD}-00"),
            &format!(" {GOOD}"),
            &format!("ff{}", &GOOD[2..]),
            &GOOD.to_uppercase(),
            &GOOD.replace('-', "_"),
            &GOOD.replace("b7ad", "b7g!"),
            &GOOD.replace("b7ad", "b7é"),
            &format!("0x{}", &GOOD[2..]),
            &zero_trace,
            &zero_span,
            &"a".repeat(1 << 16),
        ];
        for text in wrong {
            assert_eq!(TraceParent::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_state_of_others_is_bounded() {
        let state = |values: &[&str]| trace_state(values.iter().copied());
        assert_eq!(state(&["a=1", " b=2"]).as_deref(), Some("a=1,b=2"));
        assert_eq!(state(&[]), None);
        assert_eq!(state(&[""]), None);
        assert_eq!(state(&["a=\u{7f}"]), None);
        assert_eq!(state(&["a=é"]), None);
        assert!(state(&[&"a".repeat(TRACESTATE_BYTES_MAX)]).is_some());
        assert_eq!(state(&[&"a".repeat(TRACESTATE_BYTES_MAX + 1)]), None);
        assert_eq!(state(&["a", &"a".repeat(TRACESTATE_BYTES_MAX - 1)]), None);
        assert_eq!(state(&[&"a,".repeat(TRACESTATE_MEMBERS_MAX)]), None);
    }
}
