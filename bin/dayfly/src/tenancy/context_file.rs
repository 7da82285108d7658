//! The context file: names for servers.
//!
//! ```toml
//! current = "lab"
//!
//! [contexts.lab]
//! url = "https://dayfly.example"
//! key_file = "lab.key"      # or key = "..."
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use dayfly_client::{ApiKey, InvalidConfig};
use serde::{Deserialize, Serialize};

/// Neither file has a reason to be longer.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Permission bits of everybody but the owner.
const OTHERS: u32 = 0o077;

/// What the file says.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContextFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    #[serde(default)]
    pub(crate) contexts: BTreeMap<String, Context>,
}

/// One server.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    pub(crate) url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// Relative to the directory of the context file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_file: Option<PathBuf>,
}

// By hand, so that no debug text holds the key.
impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// Why a context file, or a key file, cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ContextFileError {
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} holds a key and others can read it (mode {mode:04o})", path.display())]
    Exposed { path: PathBuf, mode: u32 },
    /// The text of the parser is kept out: it quotes the line, which may hold a key.
    #[error("{} is not a context file: {what}", path.display())]
    Parse { path: PathBuf, what: String },
    #[error("{} holds no usable key", path.display())]
    Key {
        path: PathBuf,
        #[source]
        source: InvalidConfig,
    },
}

/// Reads a context file; `None` when there is none.
pub(crate) fn read(path: &Path) -> Result<Option<ContextFile>, ContextFileError> {
    let (text, mode) = match read_text(path) {
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        outcome => outcome.map_err(|source| ContextFileError::Read {
            path: path.to_owned(),
            source,
        })?,
    };
    let file: ContextFile = toml::from_str(&text).map_err(|error| ContextFileError::Parse {
        path: path.to_owned(),
        what: error.message().to_owned(),
    })?;
    if file.contexts.values().any(|context| context.key.is_some()) {
        check_mode(path, mode)?;
    }
    Ok(Some(file))
}

/// Writes a context file that only its owner can read, as a whole or not at all.
pub(crate) fn write(path: &Path, file: &ContextFile) -> io::Result<()> {
    let text = toml::to_string(file).map_err(io::Error::other)?;
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    // Made with mode 0600, and only then filled.
    let mut new = tempfile::NamedTempFile::new_in(directory)?;
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Reads a file that holds a key and nothing else.
pub(crate) fn read_key(path: &Path) -> Result<ApiKey, ContextFileError> {
    parse_key(path, &read_key_text(path)?)
}

/// As [`read_key`], for whoever stores the key elsewhere.
pub(crate) fn read_key_text(path: &Path) -> Result<String, ContextFileError> {
    let (text, mode) = read_text(path).map_err(|source| ContextFileError::Read {
        path: path.to_owned(),
        source,
    })?;
    check_mode(path, mode)?;
    parse_key(path, &text)?;
    Ok(text.trim().to_owned())
}

fn parse_key(path: &Path, text: &str) -> Result<ApiKey, ContextFileError> {
    ApiKey::parse(text).map_err(|source| ContextFileError::Key {
        path: path.to_owned(),
        source,
    })
}

/// The text and the mode of the same open file, so that neither can be swapped in between.
fn read_text(path: &Path) -> io::Result<(String, u32)> {
    if fs::metadata(path)?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let file = File::open(path)?;
    let mode = file.metadata()?.mode() & 0o7777;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok((text, mode))
}

fn check_mode(path: &Path, mode: u32) -> Result<(), ContextFileError> {
    if mode & OTHERS != 0 {
        return Err(ContextFileError::Exposed {
            path: path.to_owned(),
            mode,
        });
    }
    Ok(())
}
