//! New ids, from the system's randomness.

use dayfly_types::ids::ID_RANDOM_BYTES;

/// The system has no randomness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot draw a random id")]
pub struct NoRandomness;

/// What an id is made from.
///
/// # Errors
/// [`NoRandomness`].
pub(crate) fn draw() -> Result<[u8; ID_RANDOM_BYTES], NoRandomness> {
    let mut random = [0; ID_RANDOM_BYTES];
    getrandom::fill(&mut random).map_err(|_| NoRandomness)?;
    Ok(random)
}
