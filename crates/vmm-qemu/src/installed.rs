//! The engine where distributions install it, as every program of ours runs it.

use std::path::{Path, PathBuf};

use dayfly_vmm::Accelerator;

use crate::driver::QemuConfig;
use crate::version::{EngineVersion, VersionError, engine_version};

/// The engine's program; Debian, Ubuntu and Fedora agree on where it is.
pub const ENGINE_PROGRAM: &str = "/usr/bin/qemu-system-x86_64";
/// Where the engine finds the library that maps memory layers, in its own root.
pub const MEMORY_LIBRARY: &str = "/usr/lib/dayfly/libdayfly_memory.so";

/// Asks the installed engine for its version.
///
/// # Errors
/// [`VersionError`], whose text tells what to install.
///
/// # Cancel safety
/// Dropping the future ends the program.
pub async fn installed_version() -> Result<EngineVersion, VersionError> {
    engine_version(Path::new(ENGINE_PROGRAM)).await
}

impl QemuConfig {
    /// The installed engine, without a root of its own.
    #[must_use]
    pub fn installed(version: EngineVersion, accelerator: Accelerator) -> Self {
        Self {
            root: PathBuf::from("/"),
            build: None,
            program: PathBuf::from(ENGINE_PROGRAM),
            accelerator,
            version,
            memory_library: PathBuf::from(MEMORY_LIBRARY),
        }
    }
}
