//! Execs as control and node speak of them. JSON, additive only.

use dayfly_types::ExecId;
use dayfly_types::exec::ExecSpec;
use serde::{Deserialize, Serialize};

/// A process to run in a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnsureExec {
    #[serde(flatten)]
    pub spec: ExecSpec,
    /// Given to the process at once, then its standard input ends. Base 64 on the wire, because
    /// a JSON list of numbers is four times as long as its bytes.
    #[serde(default, with = "base64_bytes")]
    pub input: Option<Vec<u8>>,
    /// Leaves standard input open for [`NodeApi::write_stdin`](crate::NodeApi::write_stdin).
    #[serde(default)]
    pub keeps_stdin_open: bool,
}

impl EnsureExec {
    /// A command without input.
    #[must_use]
    pub const fn new(spec: ExecSpec) -> Self {
        Self {
            spec,
            input: None,
            keeps_stdin_open: false,
        }
    }
}

/// A reader for an exec that was started before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachExec {
    pub exec: ExecId,
    /// Where to begin; without it the stream is not read.
    pub stdout_offset: Option<u64>,
    pub stderr_offset: Option<u64>,
}

/// Input for an exec.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StdinWrite {
    pub exec: ExecId,
    /// Where the first byte is in the input as a whole; what was taken already is left out.
    /// Without it the bytes are added.
    #[serde(default)]
    pub offset: Option<u64>,
    /// Nothing follows these bytes.
    #[serde(default)]
    pub is_last: bool,
}

mod base64_bytes {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        bytes: &Option<Vec<u8>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        bytes
            .as_ref()
            .map(|bytes| STANDARD.encode(bytes))
            .serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| STANDARD.decode(text).map_err(serde::de::Error::custom))
            .transpose()
    }
}
