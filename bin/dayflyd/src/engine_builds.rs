//! The builds of the engine on this host: the installed one, and those that something still needs.
//!
//! Each is a root below `node/engine-roots`, see [`dayfly_host::engine_root`]. The file `installed`
//! there names the one that the node started with.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use dayfly_host::engine_root::{
    EngineRoot, EngineRootError, EngineRootSpec, KeptRoot, RootFile, check_root,
    ensure_engine_root, kept_roots, remove_root, retired_mark, roots_without_record, sweep_roots,
};
use dayfly_host::files::write_atomic;
use dayfly_installation::{DataDirectory, sibling_program};
use dayfly_node::baker::KeptBuilds;
use dayfly_node::engine_users::{EngineUse, EngineUser};
use dayfly_vmm::{Accelerator, EngineBuild};
use dayfly_vmm_qemu::{
    ENGINE_PROGRAM, EngineVersion, KeptQemu, MEMORY_LIBRARY, QemuConfig, engine_label,
};

/// The name of the memory library beside the programs.
const MEMORY_LIBRARY_FILE: &str = "libdayfly_memory.so";
/// Firmware that the engine loads.
const FIRMWARE: [&str; 2] = ["/usr/share/qemu/qboot.rom", "/usr/share/qemu/pvh.bin"];
/// How often a program that changes while it is read is read again.
const INSTALL_TRIES: usize = 3;
/// Names the build that is installed, below the store.
const INSTALLED_FILE: &str = "installed";

/// The roots of engines below a data directory.
#[derive(Debug, Clone)]
pub(crate) struct EngineBuilds {
    store: PathBuf,
}

/// A build that is there, and what is known of it.
#[derive(Debug, Clone)]
pub(crate) struct Build {
    pub(crate) root: KeptRoot,
    pub(crate) version: EngineVersion,
    pub(crate) is_installed: bool,
    pub(crate) is_retired: bool,
    /// Its files are what they were when it was made.
    pub(crate) is_whole: bool,
}

impl Build {
    /// Whether somebody could be restored by this build if the one that saved him were not there.
    pub(crate) fn can_stand_in_for(&self, user: &EngineUser) -> bool {
        self.is_usable() && self.version.to_string() == user.engine.version
    }

    fn is_usable(&self) -> bool {
        !self.is_retired && self.is_whole
    }

    pub(crate) fn saved(&self, user: &EngineUser) -> bool {
        let build = user.engine.build.as_ref();
        build.is_some_and(|build| build.as_str() == self.root.id)
    }
}

impl EngineBuilds {
    pub(crate) fn of(directory: &DataDirectory) -> Self {
        Self {
            store: directory.node().join("engine-roots"),
        }
    }

    /// Makes the root of the installed engine, unless it is there. For the node alone.
    pub(crate) async fn install(&self) -> Result<(EngineVersion, EngineRoot)> {
        std::fs::create_dir_all(&self.store)
            .context("cannot make the directory of engine roots")?;
        sweep_roots(&self.store).context("cannot sweep the engine roots")?;
        let (version, root) = self.make_installed().await?;
        // Installed again, it is not what the operator retired any more.
        let mark = retired_mark(&self.store, &root.id);
        if mark.exists() {
            std::fs::remove_file(&mark).context("cannot use a build that was retired")?;
        }
        write_atomic(&self.store.join(INSTALLED_FILE), root.id.as_bytes(), 0o644)
            .context("cannot note the installed engine")?;
        Ok((version, root))
    }

    /// A package may be installed just now: what was asked, read and copied must be one program.
    async fn make_installed(&self) -> Result<(EngineVersion, EngineRoot)> {
        let mut last = None;
        for _ in 0..INSTALL_TRIES {
            let found = engine_label(Path::new(ENGINE_PROGRAM)).await;
            let (version, label) = found.context("no engine that can be used")?;
            let root = ensure_engine_root(&installed_root(label.clone())?, &self.store);
            let again = engine_label(Path::new(ENGINE_PROGRAM)).await;
            let (_, again) = again.context("no engine that can be used")?;
            match root {
                Ok(root) if again == label => return Ok((version, root)),
                Ok(_) => {}
                Err(error @ EngineRootError::Changed { .. }) => last = Some(error),
                Err(error) => return Err(error).context("cannot make the engine's root"),
            }
        }
        let error = last.map_or_else(|| anyhow!("its version changed"), Into::into);
        Err(error.context("the engine is being replaced just now; start again"))
    }

    /// Every build that is there, oldest first. Reads all bytes of those that are not installed.
    pub(crate) fn all(&self) -> Result<Vec<Build>> {
        let installed = match std::fs::read_to_string(self.store.join(INSTALLED_FILE)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            other => other.context("cannot read which engine is installed")?,
        };
        let roots = kept_roots(&self.store).context("cannot list the engine roots")?;
        let build = |root: KeptRoot| {
            let is_installed = root.id == installed;
            Some(Build {
                version: EngineVersion::of_label(&root.label)?,
                is_installed,
                is_retired: self.retired_mark(&root.id).exists(),
                is_whole: is_installed || self.is_whole(&root.id),
                root,
            })
        };
        Ok(roots.into_iter().filter_map(build).collect())
    }

    pub(crate) fn retired_mark(&self, id: &str) -> PathBuf {
        retired_mark(&self.store, id)
    }

    fn is_whole(&self, id: &str) -> bool {
        let checked = check_root(&self.store, id);
        if let Err(error) = &checked {
            let error = dayfly_types::error_chain(error);
            tracing::error!(build = id, error, "a kept engine is damaged");
        }
        checked.is_ok()
    }

    /// The earlier builds that are whole, for the engine.
    pub(crate) fn kept(&self, accelerator: Accelerator) -> Result<Vec<KeptQemu>> {
        let all = self.all()?.into_iter();
        let earlier = all.filter(|build| !build.is_installed && build.is_whole);
        let kept = earlier.map(|build| KeptQemu {
            retired: self.retired_mark(&build.root.id),
            config: config(build.root.path, &build.root.id, build.version, accelerator),
        });
        Ok(kept.collect())
    }
}

/// How an engine is run in a root.
pub(crate) fn config(
    root: PathBuf,
    id: &str,
    version: EngineVersion,
    accelerator: Accelerator,
) -> QemuConfig {
    QemuConfig {
        root,
        build: Some(EngineBuild::new(id)),
        ..QemuConfig::installed(version, accelerator)
    }
}

/// What the installed engine needs to run, and nothing else.
fn installed_root(label: String) -> Result<EngineRootSpec> {
    let firmware = FIRMWARE
        .iter()
        .filter(|path| Path::new(path).exists())
        .map(|path| RootFile::same(*path));
    let library = RootFile {
        source: sibling_program(MEMORY_LIBRARY_FILE)?,
        target: PathBuf::from(MEMORY_LIBRARY),
    };
    Ok(EngineRootSpec {
        label,
        program: PathBuf::from(ENGINE_PROGRAM),
        files: firmware.chain([library]).collect(),
        mount_directories: vec![PathBuf::from("/run"), PathBuf::from("/template")],
        mount_files: Vec::new(),
    })
}

/// Who needs each build: whoever it saved, and whoever was saved by a build of the same version
/// that cannot be used, or of which it is not known which one it was.
pub(crate) fn users_of<'a>(
    build: &Build,
    all: &[Build],
    users: &'a [EngineUser],
) -> Vec<&'a EngineUser> {
    let is_known = |user: &EngineUser| {
        let mut usable = all.iter().filter(|build| build.is_usable());
        usable.any(|build| build.saved(user))
    };
    let needs =
        |user: &&EngineUser| build.saved(user) || (!is_known(user) && build.can_stand_in_for(user));
    users.iter().filter(needs).collect()
}

impl EngineBuilds {
    /// Every build that none of `users` could need, by name. A root without a record is an older
    /// program's, and nobody knows of which version: it stays while somebody needs one that is not
    /// here under its name.
    fn unneeded(&self, users: &[EngineUser]) -> Result<Vec<String>> {
        let all = self.all()?;
        let is_needed = |build: &&Build| {
            let mut needed_by = users_of(build, &all, users).into_iter();
            match build.is_retired {
                true => needed_by.any(|user| matches!(user.what, EngineUse::Running(_))),
                false => needed_by.next().is_some(),
            }
        };
        let earlier = all.iter().filter(|build| !build.is_installed);
        let unneeded = earlier.filter(|build| !is_needed(build));
        let mut unknown =
            roots_without_record(&self.store).context("cannot list the engine roots")?;
        let is_here = |user: &EngineUser| all.iter().any(|build| build.saved(user));
        if !users.iter().all(is_here) {
            unknown.clear();
        }
        let unneeded = unneeded.map(|build| build.root.id.clone());
        Ok(unneeded.chain(unknown).collect())
    }
}

impl KeptBuilds for EngineBuilds {
    fn remove_unneeded(&self, users: &[EngineUser]) {
        let unneeded = self.unneeded(users).unwrap_or_else(|error| {
            tracing::warn!(error = format!("{error:#}"), "engine roots stay");
            Vec::new()
        });
        for build in unneeded {
            match remove_root(&self.store, &build) {
                Ok(()) => tracing::info!(build, "removed an engine that nothing needs"),
                Err(error) => {
                    let error = dayfly_types::error_chain(&error);
                    tracing::warn!(build, error, "an engine root stays");
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "engine_builds_tests.rs"]
mod tests;
