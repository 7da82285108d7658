//! The life of a bake's machine: boot, warm up, freeze, capture, end.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::Path;

use dayfly_guest_client::{AgentClient, QuiesceSpec};
use dayfly_host::files::open_without_links;
use dayfly_snapshots::{ProgressReporter, Staging, file_names as template_files};
use dayfly_vmm::{BootSpec, CaptureSpec, Slot, Vm, file_names};

use super::error::BakeError;
use super::ports::BakeDeps;
use super::template::blocking;
use super::warm_up::{self, WarmUp};
use crate::console::told;
use crate::effects::{Effect, Effects};
use crate::guest::open_agent;

/// How much of the console an error quotes.
const CONSOLE_TAIL_BYTES: u64 = 800;

/// What is left of the machine.
#[derive(Debug)]
pub(super) struct Captured {
    pub(super) staging: Staging,
    pub(super) protocol_generation: u32,
}

/// Boots, warms up and captures. Afterwards the machine is gone and its files are in `staging`.
/// On an error it may still run: the slot's release ends it.
pub(super) async fn boot_and_capture(
    deps: &BakeDeps,
    slot: &Slot,
    what: WarmUp<'_>,
    spec: &BootSpec,
    staging: Staging,
    progress: &ProgressReporter,
) -> Result<Captured, BakeError> {
    progress.report("booting", 0);
    let mut vm = deps
        .engine
        .boot(slot, spec)
        .await
        .map_err(BakeError::Boot)?;
    let agent = find_agent(deps, slot, vm.as_mut()).await?;
    let status = agent.status().await.map_err(BakeError::Status)?;
    let warm_progress = progress.part(40, 90);
    let warming = warm_up::run(&agent, what, deps.limits.command, &warm_progress);
    tokio::select! {
        warmed = warming => warmed.map_err(BakeError::WarmUp)?,
        exit = vm.wait() => {
            return Err(BakeError::Ended { exit, console: console_tail(slot).await });
        }
    }
    progress.report("capturing", 90);
    freeze(vm.as_mut(), agent, slot).await?;
    let staging = take_files(deps.effects.clone(), slot, staging).await?;
    let protocol_generation = u32::from(status.generation);
    Ok(Captured {
        staging,
        protocol_generation,
    })
}

/// Waits for the agent's first answer, or for the machine to end before it.
async fn find_agent(
    deps: &BakeDeps,
    slot: &Slot,
    vm: &mut dyn Vm,
) -> Result<AgentClient, BakeError> {
    tokio::select! {
        opened = open_agent(&slot.run_directory, deps.limits.boot) => match opened {
            Ok(agent) => Ok(agent),
            Err(source) => {
                Err(BakeError::NoAgent { console: console_tail(slot).await, source })
            }
        },
        exit = vm.wait() => Err(BakeError::Ended { exit, console: console_tail(slot).await }),
    }
}

/// Freezes the guest and writes its device state; its memory is in its file already.
async fn freeze(vm: &mut dyn Vm, agent: AgentClient, slot: &Slot) -> Result<(), BakeError> {
    agent
        .quiesce(QuiesceSpec::default())
        .await
        .map_err(BakeError::Quiesce)?;
    // The ports close before the pause, so that the guest is captured without a host.
    drop(agent);
    let control = |what| move |source| BakeError::Control { what, source };
    vm.pause().await.map_err(control("paused"))?;
    let device_state = slot.run_directory.join(file_names::DEVICE_STATE);
    vm.capture(&CaptureSpec::devices(device_state))
        .await
        .map_err(BakeError::Capture)?;
    vm.kill().await.map_err(control("ended"))
}

/// Takes what the machine left in its slot. Nothing writes there any more.
async fn take_files(effects: Effects, slot: &Slot, staging: Staging) -> Result<Staging, BakeError> {
    let run = slot.run_directory.clone();
    blocking(move || {
        let take = || {
            staging.take_memory(&run.join(file_names::MEMORY_IMAGE))?;
            let device_state = run.join(file_names::DEVICE_STATE);
            staging.take(&device_state, template_files::DEVICE_STATE)?;
            let disk = run.join(file_names::WRITABLE_DISK);
            staging.take(&disk, template_files::BAKED_LAYER)
        };
        let taken = effects.around(Effect::TemplateTake, take);
        taken.map_err(BakeError::Stage)?;
        Ok(staging)
    })
    .await
}

/// The end of what the guest's kernel and its agent said, on one line.
async fn console_tail(slot: &Slot) -> String {
    let path = slot.run_directory.join(file_names::CONSOLE_LOG);
    let read = tokio::task::spawn_blocking(move || read_tail(&path));
    let bytes = read.await.ok().and_then(Result::ok).unwrap_or_default();
    told(&String::from_utf8_lossy(&bytes))
}

fn read_tail(path: &Path) -> io::Result<Vec<u8>> {
    // The engine can write this directory, so what lies there may be a link or a pipe.
    let found = File::from(open_without_links(path)?);
    if !found.metadata()?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut file = File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(CONSOLE_TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(CONSOLE_TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}
