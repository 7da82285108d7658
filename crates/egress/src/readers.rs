//! What reads the bytes of guests, and needs nothing else for it.
//!
//! Everything that a guest sends first comes here: its questions for names, the heads of its plain
//! requests, its TLS greetings. They are open to other crates so that they can be attacked alone.

pub use crate::dns::{Parsed, Question, Reply, parse as parse_question};
pub use crate::http::{BadHead, Framing, Head, HeadReader};
pub use crate::tcp::{BrokenHello, Hello, HelloReader};
