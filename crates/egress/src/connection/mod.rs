//! One connection of a guest and the one that is dialed for it, whatever they say.

mod dial;
mod linger;
mod session;
mod socket;

pub(crate) use dial::{Dialed, NotDialed, dial_address, dial_name};
pub(crate) use linger::{LINGER_LIMIT, linger};
pub(crate) use session::Session;
pub(crate) use socket::{Socket, Stream};
