//! Which port is which, and when two of them belong to one conversation.

use crate::opening::Nonce;

/// What a port is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PortRole {
    Control,
    Bulk,
}

impl PortRole {
    #[must_use]
    pub const fn wire(self) -> u8 {
        match self {
            Self::Control => 1,
            Self::Bulk => 2,
        }
    }

    #[must_use]
    pub const fn from_wire(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Control),
            2 => Some(Self::Bulk),
            _ => None,
        }
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Bulk => "bulk",
        }
    }
}

/// The guest's memory of which nonce each port opened with last.
///
/// Frames of either port count only while both ports agree.
#[derive(Debug, Default)]
pub struct Pairing {
    control: Option<Nonce>,
    bulk: Option<Nonce>,
}

impl Pairing {
    /// Notes that a port has opened. The former conversation is over.
    pub fn opened(&mut self, port: PortRole, nonce: Nonce) {
        *self.slot(port) = Some(nonce);
    }

    /// Notes that a port has lost its conversation.
    pub fn lost(&mut self, port: PortRole) {
        *self.slot(port) = None;
    }

    /// The nonce of the conversation, once both ports have opened with it.
    #[must_use]
    pub fn agreed(&self) -> Option<Nonce> {
        self.control.filter(|nonce| self.bulk == Some(*nonce))
    }

    fn slot(&mut self, port: PortRole) -> &mut Option<Nonce> {
        match port {
            PortRole::Control => &mut self.control,
            PortRole::Bulk => &mut self.bulk,
        }
    }
}
