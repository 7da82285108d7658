//! What makes one sandbox different from its template and its siblings.

use std::fmt;

use dayfly_types::SandboxId;
use serde::{Deserialize, Serialize};

/// Everything that a restored guest must be given before user code may run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub sandbox_id: SandboxId,
    pub hostname: String,
    pub machine_id: MachineId,
    pub wall_clock_unix_nanos: u64,
    pub entropy: Entropy,
    pub agent_token: AgentToken,
    /// What this identity is for; hooks in the guest are told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<IdentityEvent>,
    /// Asks hooks in the guest to renew the randomness of programs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reseed_user_space: bool,
}

/// Why a guest is given an identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IdentityEvent {
    Create,
    Fork,
    Wake,
    Rollback,
    /// A word that this side does not know yet.
    #[serde(other)]
    Unknown,
}

impl IdentityEvent {
    /// The word on the wire, which hooks see too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Fork => "fork",
            Self::Wake => "wake",
            Self::Rollback => "rollback",
            Self::Unknown => "unknown",
        }
    }
}

/// What became of an identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identified {
    pub sandbox_id: SandboxId,
    /// In the order in which they ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookResult>,
    /// What is different from now on, in words such as `machine_id`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renewed: Vec<String>,
    /// What this guest still has in common with whatever it is a copy of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_renewed: Vec<String>,
}

/// How one hook of the guest ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookResult {
    /// The name of its file. Comes from the guest, so it is not to be trusted.
    pub name: String,
    /// 128 plus the signal for a hook that died by one; absent when it could not be started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
}

/// The content of `/etc/machine-id`: 32 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MachineId(String);

impl MachineId {
    /// Makes an id from randomness that the caller drew.
    #[must_use]
    pub fn from_random(random: [u8; 16]) -> Self {
        Self(to_hex(&random))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A text that is not 32 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("machine id is not 32 lower-case hexadecimal digits")]
pub struct InvalidMachineId;

impl TryFrom<String> for MachineId {
    type Error = InvalidMachineId;
    fn try_from(text: String) -> Result<Self, InvalidMachineId> {
        let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() == 32 && text.bytes().all(is_digit) {
            Ok(Self(text))
        } else {
            Err(InvalidMachineId)
        }
    }
}

impl From<MachineId> for String {
    fn from(id: MachineId) -> String {
        id.0
    }
}

/// Randomness for the guest's kernel. Secret, so it has no readable `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Entropy(pub [u8; 32]);

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy(secret)")
    }
}

/// A text that is not 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("entropy is not 64 hexadecimal digits")]
pub struct InvalidEntropy;

impl TryFrom<String> for Entropy {
    type Error = InvalidEntropy;
    fn try_from(text: String) -> Result<Self, InvalidEntropy> {
        let mut bytes = [0; 32];
        let text = text.as_bytes();
        if text.len() != 64 {
            return Err(InvalidEntropy);
        }
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let high = char::from(pair[0]).to_digit(16).ok_or(InvalidEntropy)?;
            let low = char::from(pair[1]).to_digit(16).ok_or(InvalidEntropy)?;
            *byte = u8::try_from(high * 16 + low).map_err(|_| InvalidEntropy)?;
        }
        Ok(Self(bytes))
    }
}

impl From<Entropy> for String {
    fn from(entropy: Entropy) -> String {
        to_hex(&entropy.0)
    }
}

/// What the agent will show to services of its node. Secret, so it has no readable `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentToken(String);

impl AgentToken {
    #[must_use]
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    /// The token itself. Never log it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for AgentToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AgentToken(secret)")
    }
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_round_trips_and_stays_out_of_debug() {
        let entropy = Entropy([0xA7; 32]);
        let text = String::from(entropy.clone());
        assert_eq!(text.len(), 64);
        assert_eq!(Entropy::try_from(text).unwrap(), entropy);
        assert!(!format!("{entropy:?}").contains("a7"));
        assert_eq!(Entropy::try_from("zz".repeat(32)), Err(InvalidEntropy));
        assert_eq!(Entropy::try_from("é".repeat(32)), Err(InvalidEntropy));
    }

    #[test]
    fn machine_id_takes_only_its_alphabet() {
        assert!(MachineId::try_from("0123456789abcdef0123456789abcdef".to_owned()).is_ok());
        assert!(MachineId::try_from("0123456789ABCDEF0123456789abcdef".to_owned()).is_err());
        assert!(MachineId::try_from("../../etc/passwd".to_owned()).is_err());
    }
}
