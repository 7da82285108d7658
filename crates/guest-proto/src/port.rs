//! One port as either end sees it: hunt, then decode, and hunt again when decoding fails.

use crate::decode::{DecodeError, Decoder};
use crate::frame::Frame;
use crate::opening::{Hunter, Nonce, Opening, OpeningAck, Preamble};
use crate::pair::PortRole;

/// How many leftover bytes a host skips before it gives a port up. Far more than the buffers
/// between two ends can hold.
pub const STALE_BYTES_MAX: usize = 16 << 20;

/// What the guest's end of a port makes of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// The host opened a conversation. Everything of the former one on this port is void.
    Opened(Opening),
    Frame(Frame),
    /// The bytes stopped making sense. The conversation of this port is over.
    Lost(DecodeError),
}

/// The guest's end of a port. It never fails for good: it hunts for the next opening.
#[derive(Debug)]
pub struct GuestPort {
    role: PortRole,
    state: GuestState,
}

#[derive(Debug)]
enum GuestState {
    Hunting { hunter: Hunter, unread: Vec<u8> },
    Conversing(Decoder),
}

impl GuestPort {
    #[must_use]
    pub fn new(role: PortRole) -> Self {
        Self {
            role,
            state: hunting(Vec::new()),
        }
    }

    /// Takes bytes. Call [`GuestPort::next`] until it gives `None` before the next push.
    pub fn push(&mut self, bytes: &[u8]) {
        match &mut self.state {
            GuestState::Hunting { unread, .. } => unread.extend_from_slice(bytes),
            GuestState::Conversing(decoder) => decoder.push(bytes),
        }
    }

    /// What the pushed bytes mean, one at a time.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would promise an end, and this goes on after the next push"
    )]
    pub fn next(&mut self) -> Option<Received> {
        match &mut self.state {
            GuestState::Hunting { hunter, unread } => {
                let opening = hunt_opening(hunter, unread, self.role)?;
                let mut decoder = Decoder::new(opening.nonce.session_tag());
                decoder.push(unread);
                self.state = GuestState::Conversing(decoder);
                Some(Received::Opened(opening))
            }
            GuestState::Conversing(decoder) => match decoder.next_frame() {
                Ok(frame) => frame.map(Received::Frame),
                Err(error) => {
                    self.hunt_again();
                    Some(Received::Lost(error))
                }
            },
        }
    }

    /// Forgets the conversation. Bytes that were not yet read are hunted through.
    pub fn hunt_again(&mut self) {
        let state = std::mem::replace(&mut self.state, hunting(Vec::new()));
        self.state = match state {
            GuestState::Conversing(decoder) => hunting(decoder.into_unread()),
            GuestState::Hunting { .. } => state,
        };
    }

    /// How many bytes wait in memory.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        match &self.state {
            GuestState::Hunting { unread, .. } => unread.len(),
            GuestState::Conversing(decoder) => decoder.held_bytes(),
        }
    }
}

fn hunting(unread: Vec<u8>) -> GuestState {
    GuestState::Hunting {
        hunter: Hunter::for_opening(),
        unread,
    }
}

fn hunt_opening(hunter: &mut Hunter, unread: &mut Vec<u8>, role: PortRole) -> Option<Opening> {
    loop {
        let (found, taken) = hunter.hunt(unread);
        unread.drain(..taken);
        let Preamble {
            nonce,
            port,
            numbers,
        } = found?;
        if port == role {
            let [generation_min, generation_max] = numbers;
            return Some(Opening {
                nonce,
                port,
                generation_min,
                generation_max,
            });
        }
    }
}

/// Why the host's end of a port cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostPortError {
    #[error("no answer to the opening in {STALE_BYTES_MAX} bytes")]
    TooManyStaleBytes,
    #[error("the bytes of the guest are no frames")]
    Decode(#[source] DecodeError),
}

/// The host's end of a port. It opens once; a failure afterwards is final.
#[derive(Debug)]
pub struct HostPort {
    role: PortRole,
    hunter: Hunter,
    unread: Vec<u8>,
    stale_bytes: usize,
    decoder: Option<Decoder>,
}

impl HostPort {
    #[must_use]
    pub fn new(role: PortRole) -> Self {
        let hunter = Hunter::for_ack();
        Self {
            role,
            hunter,
            unread: Vec::new(),
            stale_bytes: 0,
            decoder: None,
        }
    }

    /// Takes bytes. Drain with [`HostPort::next_ack`] or [`HostPort::next_frame`] before the
    /// next push.
    pub fn push(&mut self, bytes: &[u8]) {
        match &mut self.decoder {
            Some(decoder) => decoder.push(bytes),
            None => self.unread.extend_from_slice(bytes),
        }
    }

    /// The answer to the opening with this very nonce; other bytes are skipped.
    ///
    /// # Errors
    /// [`HostPortError::TooManyStaleBytes`] when there is no end of other bytes.
    pub fn next_ack(&mut self, wanted: Nonce) -> Result<Option<OpeningAck>, HostPortError> {
        loop {
            let (found, taken) = self.hunter.hunt(&self.unread);
            self.unread.drain(..taken);
            self.stale_bytes = self.stale_bytes.saturating_add(taken);
            let Some(Preamble {
                nonce,
                port,
                numbers,
            }) = found
            else {
                return if self.stale_bytes > STALE_BYTES_MAX {
                    Err(HostPortError::TooManyStaleBytes)
                } else {
                    Ok(None)
                };
            };
            if nonce == wanted && port == self.role {
                return Ok(Some(OpeningAck {
                    nonce,
                    port,
                    generation: numbers[0],
                }));
            }
        }
    }

    /// Goes from hunting to frames, after both ports have their ack.
    pub fn converse(&mut self, nonce: Nonce) {
        let mut decoder = Decoder::new(nonce.session_tag());
        decoder.push(&self.unread);
        self.unread = Vec::new();
        self.decoder = Some(decoder);
    }

    /// The next frame, or `None` when more bytes are needed or the port does not converse yet.
    ///
    /// # Errors
    /// [`HostPortError::Decode`] when the guest sends anything but frames of this conversation.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, HostPortError> {
        let Some(decoder) = &mut self.decoder else {
            return Ok(None);
        };
        decoder.next_frame().map_err(HostPortError::Decode)
    }
}
