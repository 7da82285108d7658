//! Slots without a jail: a directory and a plain process each.
//!
//! For benchmarks of the bare engine and for driver tests, with guests that are trusted. Nothing
//! here isolates anything, and no privilege is needed. A program that dies between the start of a
//! process and the note of it leaves that process behind.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use async_trait::async_trait;
use dayfly_host::process::{Pidfd, ProcessError, ProcessIdentity};
use dayfly_types::CpuMillis;
use dayfly_types::limits::{SLOTS_MAX, TEARDOWN_STEP_DEADLINE};
use dayfly_vmm::{
    CpuWeight, EngineCommand, EngineProcess, EngineView, LaunchError, Slot, SlotError, SlotIndex,
    SlotProvider, file_names,
};

/// The run directory of a slot, below the slot's own.
const RUN_DIRECTORY: &str = "run";
/// Who was started in the slot. Outside the run directory, where the engine cannot write.
const PROCESS_FILE: &str = "process.json";

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Slots as directories below one directory.
#[derive(Debug, Clone)]
pub struct BareSlots {
    directory: PathBuf,
}

impl BareSlots {
    /// Uses an existing directory. Slots that are in it already can be listed and released.
    ///
    /// # Errors
    /// When the directory cannot be found.
    pub fn new(directory: &Path) -> io::Result<Self> {
        Ok(Self {
            directory: directory.canonicalize()?,
        })
    }

    fn slot_directory(&self, index: SlotIndex) -> PathBuf {
        self.directory.join(index.0.to_string())
    }

    fn slot(&self, index: SlotIndex) -> Slot {
        let run_directory = self.slot_directory(index).join(RUN_DIRECTORY);
        Slot {
            index,
            engine_run_directory: run_directory.clone(),
            run_directory,
            engine_view: EngineView::Bare,
        }
    }

    fn acquire_blocking(&self) -> Result<Slot, SlotError> {
        for number in 0..SLOTS_MAX {
            let index = SlotIndex(number);
            match fs::create_dir(self.slot_directory(index)) {
                Ok(()) => {
                    let slot = self.slot(index);
                    fs::create_dir(&slot.run_directory)
                        .map_err(|error| step(index, "make the run directory", error))?;
                    return Ok(slot);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(step(index, "make the directory", error)),
            }
        }
        Err(SlotError::Exhausted { limit: SLOTS_MAX })
    }

    fn launch_blocking(
        &self,
        slot: &Slot,
        command: &EngineCommand,
    ) -> Result<EngineProcess, LaunchError> {
        let log = open_log(&slot.run_directory).map_err(|error| launch("open the log", error))?;
        let errors = log
            .try_clone()
            .map_err(|error| launch("open the log", error))?;
        let child = Command::new(&command.program)
            .args(&command.arguments)
            .envs(
                command
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(|error| launch("start the program", error))?;
        let pid = i32::try_from(child.id()).map_err(|error| launch("read the pid", error))?;
        // Until it is waited for, even an ended child keeps its pid, so this is the child.
        let identity = ProcessIdentity::of(pid).map_err(|error| launch("identify it", error))?;
        let note = serde_json::to_vec(&identity).map_err(|error| launch("note it", error))?;
        fs::write(self.slot_directory(slot.index).join(PROCESS_FILE), note)
            .map_err(|error| launch("note it", error))?;
        Ok(EngineProcess {
            pid,
            start_time_ticks: identity.start_time_ticks,
        })
    }

    fn release_blocking(&self, index: SlotIndex) -> Result<(), SlotError> {
        let directory = self.slot_directory(index);
        match fs::read(directory.join(PROCESS_FILE)) {
            // A note that was cut off names nobody.
            Ok(note) => match serde_json::from_slice(&note) {
                Ok(identity) => {
                    end(identity).map_err(|error| step(index, "end the engine", error))?
                }
                Err(error) => tracing::warn!(slot = index.0, %error, "cannot read a process note"),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(step(index, "read the process note", error)),
        }
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(step(index, "remove the directory", error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn list_blocking(&self) -> io::Result<Vec<SlotIndex>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let name = entry?.file_name();
            if let Some(number) = name.to_str().and_then(|name| name.parse().ok()) {
                found.push(SlotIndex(number));
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}

#[async_trait]
impl SlotProvider for BareSlots {
    async fn acquire(&self) -> Result<Slot, SlotError> {
        let slots = self.clone();
        let lost = |error| step(SlotIndex(0), "run the acquire", error);
        tokio::task::spawn_blocking(move || slots.acquire_blocking())
            .await
            .map_err(lost)?
    }

    async fn reopen(&self, index: SlotIndex) -> Result<Slot, SlotError> {
        let slot = self.slot(index);
        let found = tokio::fs::metadata(&slot.run_directory).await;
        found.map_err(|error| step(index, "find the run directory", error))?;
        Ok(slot)
    }

    async fn launch(
        &self,
        slot: &Slot,
        command: EngineCommand,
    ) -> Result<EngineProcess, LaunchError> {
        let (slots, slot) = (self.clone(), slot.clone());
        tokio::task::spawn_blocking(move || slots.launch_blocking(&slot, &command))
            .await
            .map_err(|error| launch("run the launch", error))?
    }

    async fn limit_cpu(&self, _index: SlotIndex, _cpu: CpuMillis) -> Result<(), SlotError> {
        // Nothing is limited here.
        Ok(())
    }

    async fn weigh_cpu(&self, _index: SlotIndex, _weight: CpuWeight) -> Result<(), SlotError> {
        Ok(())
    }

    async fn close_directory(&self, _slot: &Slot) -> Result<(), SlotError> {
        Ok(())
    }

    async fn release(&self, index: SlotIndex) -> Result<(), SlotError> {
        let slots = self.clone();
        tokio::task::spawn_blocking(move || slots.release_blocking(index))
            .await
            .map_err(|error| step(index, "run the release", error))?
    }

    async fn list(&self) -> Result<Vec<SlotIndex>, SlotError> {
        let slots = self.clone();
        let failed = |error: Cause| step(SlotIndex(0), "list the directory", error);
        tokio::task::spawn_blocking(move || slots.list_blocking())
            .await
            .map_err(|error| failed(error.into()))?
            .map_err(|error| failed(error.into()))
    }
}

fn open_log(run_directory: &Path) -> io::Result<File> {
    let path = run_directory.join(file_names::CONSOLE_LOG);
    OpenOptions::new().append(true).create(true).open(path)
}

/// Ends and reaps a process. One that is gone, or whose pid is another's, is no error.
fn end(identity: ProcessIdentity) -> Result<(), Cause> {
    let pidfd = match Pidfd::open(identity) {
        Ok(pidfd) => pidfd,
        Err(ProcessError::Gone { .. } | ProcessError::Recycled { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    pidfd.kill()?;
    if !pidfd.wait_blocking(TEARDOWN_STEP_DEADLINE) {
        return Err("the engine outlives its kill".into());
    }
    // How it ended interests nobody now; without this it would stay a zombie.
    let _ = pidfd.reap();
    Ok(())
}

fn step(slot: SlotIndex, what: &'static str, source: impl Into<Cause>) -> SlotError {
    SlotError::Step {
        slot,
        what,
        source: source.into(),
    }
}

fn launch(step: &str, source: impl Into<Cause>) -> LaunchError {
    LaunchError::Step {
        step: step.to_owned(),
        source: source.into(),
    }
}

#[cfg(test)]
mod tests {
    use dayfly_types::{MemoryMib, Vcpus};
    use dayfly_vmm::{Accelerator, SlotLimits};

    use super::*;

    fn sleeper() -> EngineCommand {
        EngineCommand {
            root: "/".into(),
            program: "/bin/sleep".into(),
            arguments: vec!["600".to_owned()],
            environment: Vec::new(),
            mounts: Vec::new(),
            devices: Vec::new(),
            limits: SlotLimits {
                memory: MemoryMib::new(128).unwrap(),
                vcpus: Vcpus::new(1).unwrap(),
            },
            accelerator: Accelerator::Tcg,
        }
    }

    #[tokio::test]
    async fn release_ends_the_process_and_leaves_nothing_also_in_a_later_life() {
        let directory = tempfile::tempdir().unwrap();
        let slots = BareSlots::new(directory.path()).unwrap();
        let slot = slots.acquire().await.unwrap();
        let process = slots.launch(&slot, sleeper()).await.unwrap();
        let later = BareSlots::new(directory.path()).unwrap();
        assert_eq!(later.reopen(slot.index).await.unwrap(), slot);
        assert_eq!(later.list().await.unwrap(), [slot.index]);
        later.release(slot.index).await.unwrap();
        later.release(slot.index).await.unwrap();
        assert!(later.list().await.unwrap().is_empty());
        let gone = ProcessIdentity::of(process.pid);
        assert!(gone.is_err() || gone.unwrap().start_time_ticks != process.start_time_ticks);
    }

    #[tokio::test]
    async fn a_program_that_is_absent_is_named_in_the_error() {
        let directory = tempfile::tempdir().unwrap();
        let slots = BareSlots::new(directory.path()).unwrap();
        let slot = slots.acquire().await.unwrap();
        let command = EngineCommand {
            program: "/nonexistent".into(),
            ..sleeper()
        };
        let error = slots.launch(&slot, command).await.unwrap_err();
        assert!(error.to_string().contains("start the program"));
    }

    #[tokio::test]
    async fn indices_are_reused_only_after_release() {
        let directory = tempfile::tempdir().unwrap();
        let slots = BareSlots::new(directory.path()).unwrap();
        let first = slots.acquire().await.unwrap();
        let second = slots.acquire().await.unwrap();
        assert_ne!(first.index, second.index);
        slots.release(first.index).await.unwrap();
        assert_eq!(slots.acquire().await.unwrap().index, first.index);
    }
}
