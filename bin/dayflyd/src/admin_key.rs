//! The administrator's key: written once, kept by its digest elsewhere.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use dayfly_host::files::write_atomic;
use sha2::{Digest, Sha256};

const RANDOM_BYTES: usize = 32;
/// As hex digits. Little enough that a pipe takes it before anybody reads.
const DIGEST_BYTES: usize = 64;

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

/// Hands a digest to another process.
pub(crate) fn send_digest(digest: &str, mut pipe: impl Write) -> Result<()> {
    pipe.write_all(digest.as_bytes())
        .context("cannot hand over the digest of the administrator's key")
}

/// Takes what [`send_digest`] handed over, to its end.
pub(crate) fn receive_digest(pipe: impl Read) -> Result<String> {
    let mut text = String::with_capacity(DIGEST_BYTES);
    let most = u64::try_from(DIGEST_BYTES)? + 1;
    pipe.take(most)
        .read_to_string(&mut text)
        .context("cannot read the digest of the administrator's key")?;
    ensure!(
        text.len() == DIGEST_BYTES,
        "no digest of the administrator's key on standard input; dayflyd starts this role by itself"
    );
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_arrives_whole_or_not_at_all() {
        let sent = digest("dfk_1");
        let (reader, writer) = io::pipe().unwrap();
        send_digest(&sent, writer).unwrap();
        assert_eq!(receive_digest(reader).unwrap(), sent);
        for wrong in ["", "abc", &format!("{sent}0")] {
            assert!(receive_digest(wrong.as_bytes()).is_err(), "{wrong:?}");
        }
    }
}
