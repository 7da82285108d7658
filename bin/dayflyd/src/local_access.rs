//! Lets the members of a group of this host use the default project without a key of their own.
//!
//! A file that only they can read says where the API is and has a key, which is a new one each time
//! and no administrator's. The command line reads it when nothing else says where to go. See
//! ADR 0029.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use dayfly_host::files::write_atomic;
use dayfly_installation::Instance;
use serde::{Deserialize, Serialize};

use crate::admin_key;

/// Gone after a reboot.
const DIRECTORY: &str = "/run/dayfly";
const FILE: &str = "local.json";
const GROUPS: &str = "/etc/group";

/// The door, open until this is dropped.
#[derive(Debug)]
pub(crate) struct LocalAccess {
    digest: String,
    _file: LocalFile,
}

impl LocalAccess {
    /// Opens the door for a group. Without one, what an earlier start of this instance left of it
    /// is removed.
    pub(crate) fn open(
        group: Option<&str>,
        instance: &Instance,
        api: SocketAddr,
    ) -> Result<Option<Self>> {
        let file = LocalFile {
            path: Path::new(DIRECTORY).join(FILE),
            instance: instance.instance.clone(),
        };
        let Some(group) = group else {
            drop(file);
            return Ok(None);
        };
        let group = group_id(group).context("local_group")?;
        let key = admin_key::draw()?;
        file.write(group, api, &key)
            .context("cannot write the file for local_group")?;
        let digest = admin_key::digest(&key);
        Ok(Some(Self {
            digest,
            _file: file,
        }))
    }

    /// What the control process is told of the key.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }
}

/// The file of one instance; removed with this, unless it is another's by then.
#[derive(Debug)]
struct LocalFile {
    path: PathBuf,
    instance: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Text {
    url: String,
    key: String,
    /// Whose it is: several daemons may share a host.
    instance: String,
}

impl LocalFile {
    fn write(&self, group: u32, api: SocketAddr, key: &str) -> Result<()> {
        let text = Text {
            url: format!("http://{}", reachable(api)),
            key: key.to_owned(),
            instance: self.instance.clone(),
        };
        let text = serde_json::to_vec_pretty(&text)?;
        if self.place(&text).is_err() {
            // Another daemon that ended just now may have taken the directory along.
            self.place(&text)?;
        }
        chown(&self.path, Some(0), Some(group))?;
        fs::set_permissions(&self.path, fs::Permissions::from_mode(0o640))?;
        Ok(())
    }

    fn place(&self, text: &[u8]) -> Result<()> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(self.directory()?)?;
        // Root's alone until it is whole and has its group.
        Ok(write_atomic(&self.path, text, 0o600)?)
    }

    fn directory(&self) -> Result<&Path> {
        self.path.parent().context("the file is in no directory")
    }

    fn is_ours(&self) -> bool {
        let text = fs::read(&self.path).ok();
        let text = text.and_then(|text| serde_json::from_slice::<Text>(&text).ok());
        text.is_some_and(|text| text.instance == self.instance)
    }
}

impl Drop for LocalFile {
    fn drop(&mut self) {
        if !self.is_ours() {
            return;
        }
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(%error, path = %self.path.display(), "a file stays whose key is over");
        }
        if let Ok(directory) = self.directory() {
            // It stays when something else is in it, and nobody misses it when it is gone.
            let _ = fs::remove_dir(directory);
        }
    }
}

/// An address that stands for all of this host's is reached over loopback.
fn reachable(mut api: SocketAddr) -> SocketAddr {
    if api.ip().is_unspecified() {
        api.set_ip(match api {
            SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::LOCALHOST),
        });
    }
    api
}

/// The number of a group of this host.
///
/// # Errors
/// When there is none of that name, with what to do.
pub(crate) fn group_id(name: &str) -> Result<u32> {
    let groups = fs::read_to_string(GROUPS).with_context(|| format!("cannot read {GROUPS}"))?;
    let missing = || {
        format!(
            "there is no group {name:?} in {GROUPS}; make it (groupadd --system {name}), name \
             another, or take the setting out"
        )
    };
    find_group(&groups, name).with_context(missing)
}

fn find_group(groups: &str, wanted: &str) -> Option<u32> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, id) = (fields.next()?, fields.nth(1)?);
        (name == wanted).then(|| id.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_group_is_found_by_its_whole_name() {
        let groups = "root:x:0:\ndayfly-x:x:7:\ndayfly:x:990:ann,bob\nbad\n";
        assert_eq!(find_group(groups, "dayfly"), Some(990));
        assert_eq!(find_group(groups, "day"), None);
        assert_eq!(find_group(groups, "bad"), None);
    }

    #[test]
    fn every_address_can_be_reached_from_here() {
        let given = |text: &str| reachable(text.parse().unwrap()).to_string();
        assert_eq!(given("0.0.0.0:1"), "127.0.0.1:1");
        assert_eq!(given("[::]:1"), "[::1]:1");
        assert_eq!(given("192.0.2.1:1"), "192.0.2.1:1");
    }

    fn file_of(directory: &Path, instance: &str) -> LocalFile {
        LocalFile {
            path: directory.join("run").join(FILE),
            instance: instance.to_owned(),
        }
    }

    #[test]
    fn only_the_group_reads_the_file_and_only_its_writer_removes_it() {
        if !dayfly_host::privileges::is_root() {
            return;
        }
        let scratch = tempfile::tempdir().unwrap();
        let api = "127.0.0.1:1".parse().unwrap();
        let ours = file_of(scratch.path(), "ours");
        let path = ours.path.clone();
        ours.write(4242, api, "dfk_one").unwrap();
        let found = fs::metadata(&path).unwrap();
        let mode = found.mode() & 0o7777;
        assert_eq!((found.uid(), found.gid(), mode), (0, 4242, 0o640));
        drop(file_of(scratch.path(), "theirs"));
        assert!(path.exists(), "a stranger removed it");
        file_of(scratch.path(), "ours")
            .write(4242, api, "dfk_two")
            .unwrap();
        assert!(!path.parent().unwrap().exists(), "an empty directory stays");
        // Nothing to remove is nothing to say.
        drop(ours);

        let ours = file_of(scratch.path(), "ours");
        ours.write(4242, api, "dfk_three").unwrap();
        let other = path.with_file_name("another's");
        fs::write(&other, "").unwrap();
        drop(ours);
        assert!(other.exists() && !path.exists());
    }
}
