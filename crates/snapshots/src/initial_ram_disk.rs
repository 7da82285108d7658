//! The first file system of a guest: the agent as `/init`, and the kernel modules that it loads.
//!
//! ```text
//! init                 the agent
//! defaults.json        what the image says about commands, where there is one
//! modules/order        names of module files, one a line, in the order of loading
//! modules/NAME.ko      the modules, not compressed
//! dev/console          so that the kernel can give init its standard streams
//! proc sys run tmp     places to mount
//! ```
//! The archive is not compressed: it is a few megabytes, read once for each bake, and the guest
//! then need not spend its first instructions on decompressing.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use dayfly_types::GuestDefaults;

use crate::cpio::CpioWriter;
use crate::files::SEALED_MODE;

const DIRECTORIES: [&str; 6] = ["dev", "modules", "proc", "run", "sys", "tmp"];

/// Why the archive was not written.
#[derive(Debug, thiserror::Error)]
pub enum InitialRamDiskError {
    #[error("cannot read {path}")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the module file {path} has no plain name")]
    ModuleName { path: PathBuf },
    #[error("cannot write the initial RAM disk {path}")]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Writes a new archive at `path` from the agent's static binary and modules in loading order.
///
/// # Errors
/// [`InitialRamDiskError`].
pub fn write_initial_ram_disk(
    path: &Path,
    agent: &Path,
    modules: &[PathBuf],
    defaults: &GuestDefaults,
) -> Result<(), InitialRamDiskError> {
    let agent = read(agent)?;
    let mut contents = Vec::new();
    for module in modules {
        let name = module.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| InitialRamDiskError::ModuleName {
            path: module.clone(),
        })?;
        contents.push((name, read(module)?));
    }
    let defaults = serde_json::to_vec(defaults).map_err(io::Error::from);
    let written = defaults.and_then(|defaults| write(path, &agent, &contents, &defaults));
    written.map_err(|source| InitialRamDiskError::Write {
        path: path.to_owned(),
        source,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, InitialRamDiskError> {
    std::fs::read(path).map_err(|source| InitialRamDiskError::Read {
        path: path.to_owned(),
        source,
    })
}

fn write(
    path: &Path,
    agent: &[u8],
    modules: &[(&str, Vec<u8>)],
    defaults: &[u8],
) -> io::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(SEALED_MODE)
        .open(path)?;
    let mut archive = CpioWriter::new(BufWriter::new(file));
    for directory in DIRECTORIES {
        archive.directory(directory, 0o755)?;
    }
    archive.character_device("dev/console", 0o600, 5, 1)?;
    archive.file("init", 0o755, agent)?;
    archive.file("defaults.json", 0o644, defaults)?;
    let mut order = String::new();
    for (name, _) in modules {
        order.push_str(name);
        order.push('\n');
    }
    archive.file("modules/order", 0o644, order.as_bytes())?;
    for (name, content) in modules {
        archive.file(&format!("modules/{name}"), 0o644, content)?;
    }
    archive.finish()?.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_lists_modules_in_loading_order() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("agent"), b"ELF").unwrap();
        std::fs::write(at("b.ko"), b"module b").unwrap();
        std::fs::write(at("a.ko"), b"module a").unwrap();
        write_initial_ram_disk(
            &at("initrd"),
            &at("agent"),
            &[at("b.ko"), at("a.ko")],
            &GuestDefaults::default(),
        )
        .unwrap();
        let bytes = std::fs::read(at("initrd")).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.contains("b.ko\na.ko\n"));
        assert!(text.contains("modules/a.ko"));
    }

    #[test]
    fn missing_agent_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let error = write_initial_ram_disk(
            &directory.path().join("x"),
            Path::new("/no/agent"),
            &[],
            &GuestDefaults::default(),
        )
        .unwrap_err();
        assert!(error.to_string().contains("/no/agent"));
    }
}
