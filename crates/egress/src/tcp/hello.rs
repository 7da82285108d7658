//! Reading the name out of a TLS handshake, with the parser of a TLS library: it puts a hello
//! together that is spread over many records.

use std::fmt;

use rustls::server::Acceptor;

/// The first byte of a TLS record that holds a handshake.
pub(crate) const HANDSHAKE: u8 = 0x16;

/// What a whole hello says.
#[derive(Debug, PartialEq, Eq)]
pub struct Hello {
    /// As the client wrote it. None when there is none, or an address.
    pub name: Option<String>,
    /// All that came so far, to be sent on.
    pub bytes: Vec<u8>,
}

/// No hello can come of these bytes.
#[derive(Debug, thiserror::Error)]
#[error("the handshake is not one")]
pub struct BrokenHello;

/// Takes bytes until there is a hello.
pub struct HelloReader {
    acceptor: Acceptor,
    taken: usize,
}

// By hand: the library's reader has no such text.
impl fmt::Debug for HelloReader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("HelloReader");
        shown.field("taken", &self.taken).finish_non_exhaustive()
    }
}

impl Default for HelloReader {
    fn default() -> Self {
        Self::new()
    }
}

impl HelloReader {
    #[must_use]
    pub fn new() -> Self {
        Self {
            acceptor: Acceptor::default(),
            taken: 0,
        }
    }

    /// Looks at all bytes that came so far. What was looked at before is not looked at again.
    ///
    /// # Errors
    /// [`BrokenHello`].
    pub fn look(&mut self, bytes: &[u8]) -> Result<Option<Hello>, BrokenHello> {
        while self.taken < bytes.len() {
            let mut rest = &bytes[self.taken..];
            let count = self.acceptor.read_tls(&mut rest).map_err(|_| BrokenHello)?;
            if count == 0 {
                return Err(BrokenHello);
            }
            self.taken += count;
            if let Some(accepted) = self.acceptor.accept().map_err(|_| BrokenHello)? {
                let name = accepted.client_hello().server_name().map(str::to_owned);
                return Ok(Some(Hello {
                    name,
                    bytes: bytes.to_vec(),
                }));
            }
        }
        Ok(None)
    }
}
