//! What a daemon on this host has written for its group (`local_group`): where it is, and a key.
//!
//! The directory is root's, so whoever wrote the file could as well have replaced this program.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;

use serde::Deserialize;

use super::context_file::Context;
use crate::env_vars::Environment;

const FILE_BYTES_MAX: u64 = 1 << 16;

/// The context that the file is.
pub(crate) struct LocalAccess {
    pub(crate) context: Context,
    pub(crate) path: PathBuf,
}

/// Why it cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LocalAccessError {
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    // The parser's words are kept out: they may quote the key.
    #[error("{} is not what a dayflyd of this version writes", path.display())]
    Parse { path: PathBuf },
}

// What is not known here is for other readers.
#[derive(Deserialize)]
struct Text {
    url: String,
    key: String,
}

/// Reads the file; `None` when there is none, or when it is not for this user.
pub(crate) fn read(environment: &Environment) -> Result<Option<LocalAccess>, LocalAccessError> {
    let Some(path) = environment.local_access.clone() else {
        return Ok(None);
    };
    let mut text = String::new();
    let opened =
        File::open(&path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    match opened {
        Ok(_) => {}
        Err(error) if is_not_for_us(&error) => return Ok(None),
        Err(source) => return Err(LocalAccessError::Read { path, source }),
    }
    let Ok(Text { url, key }) = serde_json::from_str(&text) else {
        return Err(LocalAccessError::Parse { path });
    };
    let context = Context {
        url,
        key: Some(key),
        key_file: None,
    };
    Ok(Some(LocalAccess { context, path }))
}

fn is_not_for_us(error: &io::Error) -> bool {
    let kind = error.kind();
    kind == io::ErrorKind::NotFound || kind == io::ErrorKind::PermissionDenied
}
