//! What is asked for, and what is told.

use std::net::{Ipv4Addr, SocketAddr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes that are written as hex digits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        hex::decode(text)
            .map(Self)
            .map_err(serde::de::Error::custom)
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Probe {
    Tcp(Tcp),
    Udp(Udp),
    Flood(Flood),
    Scan(Scan),
    Hold(Hold),
}

/// One connection: sends, then reads until it is closed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tcp {
    pub to: SocketAddr,
    /// Each piece in a segment of its own.
    pub pieces: Vec<Bytes>,
    /// Between two pieces.
    pub pause_ms: u64,
    /// Says that nothing more comes when all is sent.
    pub shut: bool,
    /// For the connection as a whole.
    pub limit_ms: u64,
    /// Closes when this much was read, and keeps no more of it.
    pub bytes_max: usize,
    /// Goes on reading behind that, and only counts.
    pub drain: bool,
}

/// One datagram, and what comes of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Udp {
    pub to: SocketAddr,
    pub send: Bytes,
    pub limit_ms: u64,
}

/// Datagrams as fast as they go, from one socket.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Flood {
    pub to: SocketAddr,
    pub packets: Vec<Bytes>,
    /// How often the whole list is sent.
    pub times: usize,
    /// Over when nothing has come for this long.
    pub quiet_ms: u64,
}

/// A connection to each port; something is sent, and whatever comes back is reported.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Scan {
    pub to: Ipv4Addr,
    pub ports: Vec<u16>,
    pub at_once: usize,
    pub send: Bytes,
    pub limit_ms: u64,
}

/// Connections that are opened one after the other and held.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hold {
    pub to: SocketAddr,
    pub count: usize,
    pub send: Bytes,
    /// One byte more of it each time this has passed; 0 sends it at once.
    pub drip_ms: u64,
    /// For how long they are watched once they are all there.
    pub watch_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was there, and was closed in order or by us.
    Connected,
    Refused,
    /// It was there, or nearly, and was reset.
    Reset,
    Unreachable,
    /// Nothing came within the limit.
    Timeout,
    /// Of datagrams: an answer.
    Reply,
    Other,
}

/// What came of a probe. Fields that do not apply are empty.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    pub outcome: Outcome,
    pub ms: u64,
    /// What was read, up to the limit.
    pub bytes: Bytes,
    /// How much was read in all, or how many datagrams.
    pub count: u64,
    /// Of many: how many ended how.
    pub outcomes: Vec<(Outcome, usize)>,
    /// Ports that said anything, with what they said.
    pub spoke: Vec<(u16, Bytes)>,
    /// When each held connection ended, counted from its beginning; absent if it did not.
    pub ended_ms: Vec<Option<u64>>,
    /// The system's own words.
    pub error: Option<String>,
}

impl Report {
    pub(crate) fn new(outcome: Outcome, since: std::time::Instant) -> Self {
        Self {
            outcome,
            ms: milliseconds(since.elapsed()),
            bytes: Bytes::default(),
            count: 0,
            outcomes: Vec::new(),
            spoke: Vec::new(),
            ended_ms: Vec::new(),
            error: None,
        }
    }

    /// How long it took.
    #[must_use]
    pub fn time(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.ms)
    }

    /// What was read, as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.0).into_owned()
    }

    /// How many of many ended so.
    #[must_use]
    pub fn number(&self, outcome: Outcome) -> usize {
        let found = self.outcomes.iter().find(|(kind, _)| *kind == outcome);
        found.map_or(0, |(_, count)| *count)
    }
}

pub(crate) fn milliseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
