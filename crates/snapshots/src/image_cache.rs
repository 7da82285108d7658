//! Built images by the hash of what went into them.
//!
//! ```text
//! images/
//!   .staging/RANDOM/        being built; swept after a crash
//!   root-KEY/               base.img, contents.json
//!   kernel-KEY/             vmlinuz, *.ko, contents.json
//! ```
//! A second directory may be named by the environment; entries are copied from it before anything
//! is built and to it afterwards. Copied and not linked: whoever owns that directory could write
//! through a link into every sandbox. Within one directory, equal files are one file
//! ([`crate::sharing`]).

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use dayfly_host::files::sync_directory;
use serde::{Deserialize, Serialize};

use crate::digest::{DIGEST_KIND, digest_files, hash_json};
use crate::files;
use crate::manifest::{SealedFile, is_plain_name};
use crate::sharing::share;
use crate::staging::{self, StagingDirectory, StagingError};

/// Names a further image cache, which outlives this node's directory.
pub const IMAGE_CACHE_ENVIRONMENT: &str = "DAYFLYD_IMAGE_CACHE";
const CONTENTS_FILE: &str = "contents.json";

/// Why an entry was not added.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    #[error("cannot stage the image")]
    Stage(#[source] StagingError),
    #[error("cannot write the image file {name}")]
    File {
        name: String,
        #[source]
        source: io::Error,
    },
    #[error("cannot give the image its name {path}")]
    Rename {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// The name of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ImageKey(String);

impl ImageKey {
    /// `kind` says what the entry holds, `ingredients` is everything that decides its content.
    pub(crate) fn new(kind: &str, ingredients: &impl Serialize) -> Self {
        let hash = hash_json(ingredients);
        Self(format!("{kind}-{}", hash.get(..32).unwrap_or(&hash)))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ImageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What an entry holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Contents {
    pub(crate) digest_kind: String,
    /// A word about the entry, such as the kernel's version.
    pub(crate) label: String,
    /// In an order that means something to whoever made the entry.
    pub(crate) files: Vec<SealedFile>,
}

impl Contents {
    /// Whether this program can read it, and it names nothing outside of its directory.
    pub(crate) fn check(&self) -> io::Result<()> {
        let invalid = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidData, text));
        if self.digest_kind != DIGEST_KIND {
            return invalid("another kind of digest");
        }
        let mut names: Vec<&str> = self.files.iter().map(|file| file.name.as_str()).collect();
        if !names.iter().all(|name| is_plain_name(name)) || names.contains(&CONTENTS_FILE) {
            return invalid("a name that is no plain file name");
        }
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return invalid("one name twice");
        }
        Ok(())
    }
}

/// A checked entry.
#[derive(Debug, Clone)]
pub(crate) struct CacheEntry {
    pub(crate) label: String,
    /// In the order in which they were given.
    pub(crate) files: Vec<PathBuf>,
}

/// The images of one node.
#[derive(Debug, Clone)]
pub struct ImageCache {
    directory: PathBuf,
    shared: Option<PathBuf>,
}

impl ImageCache {
    #[must_use]
    pub fn new(directory: PathBuf, shared: Option<PathBuf>) -> Self {
        Self { directory, shared }
    }

    /// With the shared directory that [`IMAGE_CACHE_ENVIRONMENT`] names, if it names one.
    #[must_use]
    pub fn from_environment(directory: PathBuf) -> Self {
        let shared = std::env::var_os(IMAGE_CACHE_ENVIRONMENT).filter(|path| !path.is_empty());
        Self::new(directory, shared.map(PathBuf::from))
    }

    /// The same without the shared directory.
    pub(crate) fn alone(&self) -> Self {
        Self::new(self.directory.clone(), None)
    }

    /// Removes what a crash left half-built.
    ///
    /// # Errors
    /// [`StagingError::Sweep`].
    pub fn sweep(&self) -> Result<usize, StagingError> {
        staging::sweep(&self.directory)
    }

    /// Where its own entries are.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// What a checked entry holds.
    pub(crate) fn contents(&self, key: &ImageKey) -> io::Result<Contents> {
        read_contents(&self.directory.join(key.as_str()))
    }

    pub(crate) fn stage(&self) -> Result<StagingDirectory, StagingError> {
        StagingDirectory::make(&self.directory)
    }

    /// Opens an entry after checking its bytes; a damaged one is removed. Looks into the shared
    /// directory when this node has none.
    pub(crate) fn open(&self, key: &ImageKey) -> Option<CacheEntry> {
        let own = self.directory.join(key.as_str());
        if own.exists() {
            match read_entry(&own) {
                Ok(entry) => return Some(entry),
                Err(error) => {
                    tracing::warn!(%key, %error, "a cached image is damaged and is removed");
                    let _ = staging::discard(&self.directory, &own);
                }
            }
        }
        let shared = self.shared.as_ref()?.join(key.as_str());
        if !shared.exists() {
            return None;
        }
        match self.import(&shared, &own) {
            Ok(entry) => Some(entry),
            Err(error) => {
                tracing::warn!(%key, %error, "cannot use an image of the shared cache");
                None
            }
        }
    }

    /// Removes this node's own entries of a kind, but for `keep`.
    pub(crate) fn remove_others(&self, kind: &str, keep: &[ImageKey]) {
        let Ok(entries) = std::fs::read_dir(&self.directory) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let rest = name.strip_prefix(kind);
            let is_of_kind = rest.is_some_and(|rest| rest.starts_with('-'));
            if !is_of_kind || keep.iter().any(|key| key.as_str() == name) {
                continue;
            }
            if let Err(error) = staging::discard(&self.directory, &entry.path()) {
                tracing::warn!(entry = name, %error, "cannot remove a disk that nothing needs");
            }
        }
    }

    /// Publishes what was built in `staging` under `key`.
    pub(crate) fn commit(
        &self,
        key: &ImageKey,
        staging: StagingDirectory,
        label: &str,
        names: Vec<String>,
    ) -> Result<CacheEntry, CacheError> {
        let contents = contents_of(staging.path(), label, names)?;
        self.place(key, staging, contents)
    }

    /// Publishes what lies in `staging` and was looked at. What another entry has too is stored once.
    pub(crate) fn place(
        &self,
        key: &ImageKey,
        staging: StagingDirectory,
        contents: Contents,
    ) -> Result<CacheEntry, CacheError> {
        share(&self.directory, staging.path(), &contents);
        let text = serde_json::to_vec_pretty(&contents).map_err(|error| CacheError::File {
            name: CONTENTS_FILE.to_owned(),
            source: error.into(),
        })?;
        files::write_new(
            &staging.path().join(CONTENTS_FILE),
            &text,
            files::SEALED_MODE,
        )
        .and_then(|()| sync_directory(staging.path()))
        .map_err(|source| CacheError::File {
            name: CONTENTS_FILE.to_owned(),
            source,
        })?;
        let path = self.directory.join(key.as_str());
        let entry = CacheEntry {
            label: contents.label,
            files: contents
                .files
                .iter()
                .map(|file| path.join(&file.name))
                .collect(),
        };
        staging
            .rename(&path)
            .and_then(|()| sync_directory(&self.directory))
            .map_err(|source| CacheError::Rename {
                path: path.clone(),
                source,
            })?;
        self.export(key, &path);
        Ok(entry)
    }

    fn import(&self, shared: &Path, own: &Path) -> io::Result<CacheEntry> {
        copy_entry(&self.directory, shared, own)?;
        read_entry(own)
    }

    /// Best effort: the image is built, whether others can have it or not.
    fn export(&self, key: &ImageKey, own: &Path) {
        let Some(shared) = &self.shared else { return };
        let target = shared.join(key.as_str());
        if target.exists() {
            return;
        }
        if let Err(error) = copy_entry(shared, own, &target) {
            tracing::warn!(%key, %error, "cannot add the image to the shared cache");
        }
    }
}

/// Copies an entry through a staging directory under `root`, and keeps it only if it is whole.
fn copy_entry(root: &Path, from: &Path, to: &Path) -> io::Result<()> {
    let staging = StagingDirectory::make(root).map_err(io::Error::other)?;
    let contents = read_contents(from)?;
    let names = contents.files.iter().map(|file| file.name.as_str());
    for name in names.chain([CONTENTS_FILE]) {
        let target = staging.path().join(name);
        files::copy(&from.join(name), &target)?;
        files::seal(&target)?;
    }
    read_entry(staging.path())?;
    share(root, staging.path(), &contents);
    sync_directory(staging.path())?;
    staging.rename(to)?;
    sync_directory(root)
}

pub(crate) fn read_contents(directory: &Path) -> io::Result<Contents> {
    let text = std::fs::read(directory.join(CONTENTS_FILE))?;
    let contents: Contents = serde_json::from_slice(&text)?;
    contents.check()?;
    Ok(contents)
}

/// Reads an entry and checks every byte of it.
fn read_entry(directory: &Path) -> io::Result<CacheEntry> {
    let contents = read_contents(directory)?;
    let mut paths = Vec::new();
    let mut open = Vec::new();
    for file in &contents.files {
        let path = directory.join(&file.name);
        open.push(files::open_regular(&path)?);
        paths.push(path);
    }
    for (file, digest) in contents.files.iter().zip(digest_files(&open)) {
        if digest? != file.digest {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                file.name.clone(),
            ));
        }
    }
    Ok(CacheEntry {
        label: contents.label,
        files: paths,
    })
}

pub(crate) fn contents_of(
    directory: &Path,
    label: &str,
    names: Vec<String>,
) -> Result<Contents, CacheError> {
    let mut open = Vec::new();
    for name in &names {
        let path = directory.join(name);
        let file = files::seal(&path).and_then(|()| files::open_regular(&path));
        open.push(file.map_err(|source| CacheError::File {
            name: name.clone(),
            source,
        })?);
    }
    let digests = digest_files(&open);
    let mut entries = Vec::new();
    for ((name, file), digest) in names.into_iter().zip(&open).zip(digests) {
        match digest.and_then(|digest| Ok((digest, file.metadata()?.len()))) {
            Ok((digest, bytes)) => entries.push(SealedFile {
                name,
                bytes,
                digest,
            }),
            Err(source) => return Err(CacheError::File { name, source }),
        }
    }
    let digest_kind = DIGEST_KIND.to_owned();
    Ok(Contents {
        digest_kind,
        label: label.to_owned(),
        files: entries,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn add(cache: &ImageCache, key: &ImageKey) -> CacheEntry {
        let staging = cache.stage().unwrap();
        std::fs::write(staging.path().join("b.ko"), b"module b").unwrap();
        std::fs::write(staging.path().join("a.ko"), b"module a").unwrap();
        cache
            .commit(
                key,
                staging,
                "6.12",
                vec!["b.ko".to_owned(), "a.ko".to_owned()],
            )
            .unwrap()
    }

    fn names(entry: &CacheEntry) -> Vec<&str> {
        entry
            .files
            .iter()
            .map(|path| path.file_name().unwrap().to_str().unwrap())
            .collect()
    }

    #[test]
    fn entry_is_found_again_in_its_order() {
        let root = tempfile::tempdir().unwrap();
        let cache = ImageCache::new(root.path().join("images"), None);
        let key = ImageKey::new("kernel", &1);
        assert!(cache.open(&key).is_none());
        add(&cache, &key);
        let entry = cache.open(&key).unwrap();
        assert_eq!(names(&entry), ["b.ko", "a.ko"]);
        assert_eq!(entry.label, "6.12");
        assert!(cache.open(&ImageKey::new("kernel", &2)).is_none());
    }

    #[test]
    fn damaged_entry_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let cache = ImageCache::new(root.path().join("images"), None);
        let key = ImageKey::new("kernel", &1);
        let entry = add(&cache, &key);
        std::fs::set_permissions(&entry.files[0], PermissionsExt::from_mode(0o644)).unwrap();
        std::fs::write(&entry.files[0], b"MODULE B").unwrap();
        assert!(cache.open(&key).is_none());
        assert!(!entry.files[0].exists());
    }

    #[test]
    fn shared_cache_serves_a_second_node_and_damage_in_it_does_not_spread() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let key = ImageKey::new("kernel", &1);
        add(&ImageCache::new(at("first"), Some(at("shared"))), &key);
        let second = ImageCache::new(at("second"), Some(at("shared")));
        assert_eq!(names(&second.open(&key).unwrap()), ["b.ko", "a.ko"]);
        let shared = at("shared").join(key.as_str()).join("a.ko");
        std::fs::set_permissions(&shared, PermissionsExt::from_mode(0o644)).unwrap();
        std::fs::write(&shared, b"MODULE A").unwrap();
        assert!(second.open(&key).is_some());
        let third = ImageCache::new(at("third"), Some(at("shared")));
        assert!(third.open(&key).is_none());
        assert!(!at("third").join(key.as_str()).exists());
    }
}
