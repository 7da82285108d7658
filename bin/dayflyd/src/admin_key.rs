//! The administrator's key: written once, kept by its digest elsewhere.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use dayfly_host::files::write_atomic;
use sha2::{Digest, Sha256};

const RANDOM_BYTES: usize = 32;

/// Reads the key, or makes it at the first start.
pub(crate) fn ensure(path: &Path) -> Result<String> {
    match fs::read_to_string(path) {
        Ok(text) => return Ok(text.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error).context("cannot read the administrator's key"),
    }
    let mut random = [0_u8; RANDOM_BYTES];
    getrandom::fill(&mut random).context("no randomness")?;
    let key = format!("dfk_{}", hex::encode(random));
    write_atomic(path, format!("{key}\n").as_bytes(), 0o600)
        .context("cannot write the administrator's key")?;
    Ok(key)
}

/// What may be known of a key without knowing it.
pub(crate) fn digest(key: &str) -> String {
    hex::encode(Sha256::digest(key.as_bytes()))
}
