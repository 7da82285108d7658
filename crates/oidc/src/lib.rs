//! Who a person is, by the word of an OpenID provider.
//!
//! [`Provider::verify`] takes an ID token that a person's client got from the provider and gives
//! what the provider says of them, or why its word is not taken. What a person may do is not decided
//! here.
//!
//! `address.rs` says which providers can be asked, `fetch.rs` asks, `keys.rs` has what it signs with,
//! `ring_verifier.rs` checks a signature, `claims.rs` everything else that a token says.
#![forbid(unsafe_code)]

mod address;
mod claims;
mod fetch;
mod keys;
mod provider;
mod ring_verifier;

pub use address::{InvalidIssuer, Issuer};
pub use claims::Person;
pub use fetch::{Endpoints, FetchError, InvalidAuthority};
pub use provider::{Provider, ProviderSettings, TokenRefusal};
