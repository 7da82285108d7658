//! How a conversation starts in a stream of leftover bytes.
//!
//! ```text
//! Opening     16 magic, 16 nonce, u16 generation min, u16 generation max, u8 port, 3 zero, u32 crc
//! OpeningAck  16 magic, 16 nonce, u16 generation,     u16 zero,           u8 port, 3 zero, u32 crc
//! ```
//! The checksum covers everything before it. An ack that names generation zero says that the two
//! ends have no generation in common.

use std::fmt;

use crate::frame::SessionTag;
use crate::pair::PortRole;
use crate::{GENERATION_MAX, GENERATION_MIN};

/// Length of either preamble.
pub const PREAMBLE_BYTES: usize = 44;
pub const OPENING_MAGIC: [u8; 16] = *b"\xDFdayfly-opening\n";
pub const ACK_MAGIC: [u8; 16] = *b"\xDFdayfly-answers\n";

/// What makes one conversation different from every other. Drawn by the host for each attempt.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nonce(pub [u8; 16]);

impl Nonce {
    /// What the frames of this conversation carry.
    #[must_use]
    pub fn session_tag(&self) -> SessionTag {
        SessionTag(crc32fast::hash(&self.0))
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nonce({:08x}..)", self.session_tag().0)
    }
}

/// What the host sends first on each port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    pub nonce: Nonce,
    pub port: PortRole,
    pub generation_min: u16,
    pub generation_max: u16,
}

impl Opening {
    /// The opening of a host that speaks what this crate speaks.
    #[must_use]
    pub const fn new(nonce: Nonce, port: PortRole) -> Self {
        Self {
            nonce,
            port,
            generation_min: GENERATION_MIN,
            generation_max: GENERATION_MAX,
        }
    }

    /// The ack that a guest gives: the newest generation both know, or zero.
    #[must_use]
    pub fn answer(&self) -> OpeningAck {
        let newest = self.generation_max.min(GENERATION_MAX);
        let is_common = newest >= self.generation_min && newest >= GENERATION_MIN;
        let generation = if is_common { newest } else { 0 };
        OpeningAck {
            nonce: self.nonce,
            port: self.port,
            generation,
        }
    }

    #[must_use]
    pub fn encode(&self) -> [u8; PREAMBLE_BYTES] {
        let numbers = [self.generation_min, self.generation_max];
        encode(&OPENING_MAGIC, &self.nonce, numbers, self.port)
    }
}

/// What the guest answers on each port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpeningAck {
    pub nonce: Nonce,
    pub port: PortRole,
    /// The generation of this conversation; zero when there is none in common.
    pub generation: u16,
}

impl OpeningAck {
    #[must_use]
    pub fn encode(&self) -> [u8; PREAMBLE_BYTES] {
        encode(&ACK_MAGIC, &self.nonce, [self.generation, 0], self.port)
    }
}

/// A preamble as it stands on the wire, before it is known to be for us.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Preamble {
    pub(crate) nonce: Nonce,
    pub(crate) port: PortRole,
    pub(crate) numbers: [u16; 2],
}

/// Looks for one kind of preamble, byte by byte. Holds less than one preamble.
#[derive(Debug)]
pub(crate) struct Hunter {
    magic: [u8; 16],
    candidate: Vec<u8>,
}

impl Hunter {
    pub(crate) fn for_opening() -> Self {
        Self {
            magic: OPENING_MAGIC,
            candidate: Vec::with_capacity(PREAMBLE_BYTES),
        }
    }

    pub(crate) fn for_ack() -> Self {
        Self {
            magic: ACK_MAGIC,
            candidate: Vec::with_capacity(PREAMBLE_BYTES),
        }
    }

    /// Takes bytes until a whole preamble stands. Gives it and how many bytes were taken.
    pub(crate) fn hunt(&mut self, bytes: &[u8]) -> (Option<Preamble>, usize) {
        let mut taken = 0;
        while let Some(byte) = bytes.get(taken) {
            if self.candidate.is_empty() && *byte != self.magic[0] {
                // Filler and stale bytes come by the ten thousand: pass over them quickly.
                let rest = bytes[taken..]
                    .iter()
                    .position(|byte| *byte == self.magic[0]);
                taken = rest.map_or(bytes.len(), |skipped| taken + skipped);
                continue;
            }
            taken += 1;
            self.candidate.push(*byte);
            self.drop_mismatch();
            if let Some(whole) = self.candidate.first_chunk::<PREAMBLE_BYTES>() {
                if let Some(preamble) = parse(whole) {
                    self.candidate.clear();
                    return (Some(preamble), taken);
                }
                // A magic without a right checksum: its tail may hold the real one.
                self.candidate.remove(0);
                self.drop_mismatch();
            }
        }
        (None, bytes.len())
    }

    fn drop_mismatch(&mut self) {
        while !self.may_still_match() {
            self.candidate.remove(0);
        }
    }

    fn may_still_match(&self) -> bool {
        let length = self.candidate.len().min(self.magic.len());
        self.candidate[..length] == self.magic[..length]
    }
}

fn encode(
    magic: &[u8; 16],
    nonce: &Nonce,
    numbers: [u16; 2],
    port: PortRole,
) -> [u8; PREAMBLE_BYTES] {
    let mut bytes = [0; PREAMBLE_BYTES];
    bytes[..16].copy_from_slice(magic);
    bytes[16..32].copy_from_slice(&nonce.0);
    bytes[32..34].copy_from_slice(&numbers[0].to_le_bytes());
    bytes[34..36].copy_from_slice(&numbers[1].to_le_bytes());
    bytes[36] = port.wire();
    let crc = crc32fast::hash(&bytes[..40]);
    bytes[40..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn parse(bytes: &[u8; PREAMBLE_BYTES]) -> Option<Preamble> {
    let crc = u32::from_le_bytes([bytes[40], bytes[41], bytes[42], bytes[43]]);
    if crc32fast::hash(&bytes[..40]) != crc {
        return None;
    }
    let mut nonce = [0; 16];
    nonce.copy_from_slice(&bytes[16..32]);
    Some(Preamble {
        nonce: Nonce(nonce),
        port: PortRole::from_wire(bytes[36])?,
        numbers: [
            u16::from_le_bytes([bytes[32], bytes[33]]),
            u16::from_le_bytes([bytes[34], bytes[35]]),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunt_finds_a_preamble_behind_a_broken_one() {
        let opening = Opening::new(Nonce([9; 16]), PortRole::Control);
        let mut bytes = opening.encode()[..20].to_vec();
        bytes.extend_from_slice(&opening.encode());
        let mut hunter = Hunter::for_opening();
        let (found, taken) = hunter.hunt(&bytes);
        assert_eq!(found.unwrap().nonce, opening.nonce);
        assert_eq!(taken, bytes.len());
    }

    #[test]
    fn no_common_generation_is_answered_with_zero() {
        let mut opening = Opening::new(Nonce([9; 16]), PortRole::Bulk);
        opening.generation_min = GENERATION_MAX + 1;
        opening.generation_max = GENERATION_MAX + 3;
        assert_eq!(opening.answer().generation, 0);
        opening.generation_min = 1;
        assert_eq!(opening.answer().generation, GENERATION_MAX);
    }
}
