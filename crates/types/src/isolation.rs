//! What stands between a guest and its host.

use serde::{Deserialize, Serialize};

/// `Hardware`: the processor's virtualisation. `Emulated`: a program, for development only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    Hardware,
    Emulated,
}

impl Isolation {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hardware => "hardware",
            Self::Emulated => "emulated",
        }
    }
}
