//! Digests of requests, by which a repeat is told from another request.
//!
//! A request may have secrets in its environment variables, and its digest stays in the database for
//! a day, also after the sandbox and its row's variables are gone. So digests are made with a key
//! that is beside the database and in no backup: whoever has one of those cannot find a secret by
//! trying what it may be.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::StoreError;

const FILE: &str = "requests.key";
const KEY_BYTES: usize = blake3::KEY_LEN;
/// Tells a digest from those of programs that had no key.
const KEYED: &str = "keyed:";

/// What digests are made with.
#[derive(Clone)]
pub(crate) struct RequestKey([u8; KEY_BYTES]);

impl std::fmt::Debug for RequestKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("RequestKey")
    }
}

/// The digest of a request: the same for two exactly when they ask for the same.
#[derive(Clone, PartialEq, Eq)]
pub struct RequestHash {
    keyed: String,
    /// As programs made it that had no key. Compared with, never written.
    plain: String,
}

impl std::fmt::Debug for RequestHash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.keyed)
    }
}

impl RequestHash {
    /// What is written.
    pub(super) fn as_str(&self) -> &str {
        &self.keyed
    }

    /// Whether a row is of the same request. Rows without a key end within a day of an upgrade.
    pub(super) fn is_of(&self, written: &str) -> bool {
        written == self.keyed || written == self.plain
    }
}

impl RequestKey {
    /// Reads the key beside a database, and makes it when there is none. One that is lost or damaged
    /// is replaced: then a repeat of what was asked for before is a conflict, which makes nothing.
    pub(super) fn ensure(database: &Path) -> Result<Self, StoreError> {
        let path = database.with_file_name(FILE);
        let failed = |source| StoreError::RequestKey {
            path: path.clone(),
            source,
        };
        match fs::read(&path) {
            Ok(bytes) => match bytes.try_into() {
                Ok(key) => return Ok(Self(key)),
                Err(_) => {
                    tracing::warn!(path = %path.display(), "the key of requests is damaged and replaced");
                }
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(|_| StoreError::Randomness)?;
        write(&path, &key).map_err(failed)?;
        Ok(Self(key))
    }

    pub(crate) fn hash_of<T: Serialize>(&self, request: &T) -> RequestHash {
        // Maps in requests are sorted, so equal wishes have equal texts.
        let text = serde_json::to_vec(request).unwrap_or_default();
        let keyed = blake3::keyed_hash(&self.0, &text).to_hex();
        RequestHash {
            keyed: format!("{KEYED}{keyed}"),
            plain: hex::encode(Sha256::digest(&text)),
        }
    }

    #[cfg(test)]
    pub(crate) const fn of(key: [u8; KEY_BYTES]) -> Self {
        Self(key)
    }
}

/// Under another name first, so that there is never half a key.
fn write(path: &Path, key: &[u8]) -> io::Result<()> {
    let new: PathBuf = path.with_extension("new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(key)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_digest_cannot_be_made_without_the_key() {
        let request = ("create", "a secret");
        let hash = RequestKey::of([1; KEY_BYTES]).hash_of(&request);
        assert_eq!(hash, RequestKey::of([1; KEY_BYTES]).hash_of(&request));
        let elsewhere = RequestKey::of([2; KEY_BYTES]).hash_of(&request);
        assert_ne!(hash.as_str(), elsewhere.as_str());
        assert!(!hash.is_of(elsewhere.as_str()));
        let text = serde_json::to_vec(&request).unwrap();
        let guessed = [
            hex::encode(Sha256::digest(&text)),
            blake3::hash(&text).to_hex().to_string(),
        ];
        assert!(guessed.iter().all(|guess| !hash.as_str().contains(guess)));
        let other = RequestKey::of([1; KEY_BYTES]).hash_of(&("create", "another"));
        assert!(hash.is_of(hash.as_str()) && !hash.is_of(other.as_str()));
    }

    #[test]
    fn rows_of_programs_without_a_key_are_compared_as_before() {
        let hash = RequestKey::of([1; KEY_BYTES]).hash_of(&"request");
        assert!(hash.is_of(&hex::encode(Sha256::digest(b"\"request\""))));
        assert!(!hash.is_of(&hex::encode(Sha256::digest(b"\"another\""))));
    }

    #[test]
    fn the_key_stays_and_a_damaged_one_is_replaced() {
        let place = tempfile::tempdir().unwrap();
        let database = place.path().join("dayfly.db");
        let first = RequestKey::ensure(&database).unwrap();
        assert_eq!(first.0, RequestKey::ensure(&database).unwrap().0);
        let file = place.path().join(FILE);
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::write(&file, [7; KEY_BYTES - 1]).unwrap();
        let second = RequestKey::ensure(&database).unwrap();
        assert_ne!(first.0, second.0);
        assert_eq!(second.0, RequestKey::ensure(&database).unwrap().0);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
