//! Claims about a machine that was started from nothing.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use dayfly_vmm::{
    BootSpec, CaptureKind, CaptureSpec, DiskFiles, EngineCaptureError, MemoryImage, RestoreSpec,
    Slot, Vm, file_names,
};

use super::observe::{ensure_running, ensure_still, guest_answers, hash};
use super::{Claim, Failure, Template, World, ensure, in_slot};

/// What a failed boot quotes.
const CONSOLE_TAIL_BYTES: usize = 4000;

pub(super) async fn capabilities(world: &World) -> Claim {
    let found = world.engine.capabilities();
    ensure!(!found.engine_version.is_empty(), "no engine version");
    ensure!(!found.cpu_model.is_empty(), "no processor model");
    ensure!(
        found.can_capture(CaptureKind::DeviceOnly),
        "cannot capture what the suite captures"
    );
    ensure!(found.can_park, "cannot park what the suite parks");
    Ok(())
}

pub(super) async fn boot_and_capture(world: &World) -> Result<Template, Failure> {
    in_slot(world, async |slot| {
        let spec = world.fixture.boot_spec();
        let mut vm = world.engine.boot(slot, &spec).await?;
        let is_up = guest_answers(slot, world.fixture.boot_limit()).await;
        ensure!(
            is_up,
            "the guest did not come up; its console:\n{}",
            console(slot)
        );
        pause_and_resume(slot, vm.as_mut()).await?;
        capture_requires_pause(slot, vm.as_mut()).await?;
        capture_leaves_the_machine_paused(slot, vm.as_mut(), &spec).await?;
        vm.resume().await?;
        ensure_running(slot).await?;
        vm.pause().await?;
        let state = slot.run_directory.join(file_names::DEVICE_STATE);
        vm.capture(&CaptureSpec::devices(&state)).await?;
        vm.kill().await?;
        seal(world, slot, spec).await
    })
    .await
}

async fn pause_and_resume(slot: &Slot, vm: &mut dyn Vm) -> Claim {
    vm.resume().await?;
    vm.pause().await?;
    vm.pause().await?;
    ensure_still(slot).await?;
    vm.resume().await?;
    vm.resume().await?;
    ensure_running(slot).await
}

async fn capture_requires_pause(slot: &Slot, vm: &mut dyn Vm) -> Claim {
    let result = vm
        .capture(&CaptureSpec::devices(
            slot.run_directory.join("early.state"),
        ))
        .await;
    let is_refused = matches!(result, Err(EngineCaptureError::Refused(_)));
    ensure!(is_refused, "a running machine was captured: {result:?}");
    ensure_running(slot).await
}

async fn capture_leaves_the_machine_paused(slot: &Slot, vm: &mut dyn Vm, spec: &BootSpec) -> Claim {
    vm.pause().await?;
    let outside = vm
        .capture(&CaptureSpec::devices(
            slot.run_directory.join("../outside.state"),
        ))
        .await;
    ensure!(outside.is_err(), "a capture left the run directory");
    let state = slot.run_directory.join("first.state");
    let captured = vm.capture(&CaptureSpec::devices(&state)).await?;
    let length = fs::metadata(&state)?.len();
    let told = captured.device_state_bytes;
    ensure!(
        told == length && length > 0,
        "told {told} bytes, wrote {length}"
    );
    let memory = spec.machine.memory.bytes();
    ensure!(
        length < memory / 16,
        "{length} bytes of device state carry memory"
    );
    ensure_still(slot).await
}

/// The end of what engine and kernel wrote.
fn console(slot: &Slot) -> String {
    let bytes = fs::read(slot.run_directory.join(file_names::CONSOLE_LOG)).unwrap_or_default();
    let start = bytes.len().saturating_sub(CONSOLE_TAIL_BYTES);
    String::from_utf8_lossy(&bytes[start..]).into_owned()
}

/// Moves what was captured to where engines only read it.
async fn seal(world: &World, slot: &Slot, boot: BootSpec) -> Result<Template, Failure> {
    let keep = |name: &str| -> Result<PathBuf, Failure> {
        let target = world.directory.join(name);
        fs::rename(slot.run_directory.join(name), &target)?;
        fs::set_permissions(&target, Permissions::from_mode(0o444))?;
        Ok(target)
    };
    let memory_image = keep(file_names::MEMORY_IMAGE)?;
    let device_state = keep(file_names::DEVICE_STATE)?;
    let sealed_disk = keep(file_names::WRITABLE_DISK)?;
    let hash = hash(Path::new(&memory_image)).await?;
    let DiskFiles {
        base,
        base_parts,
        mut sealed,
        empty_layer,
    } = boot.disks;
    sealed.push(sealed_disk);
    let spec = RestoreSpec {
        machine: boot.machine,
        kernel: boot.kernel,
        initial_ram_disk: boot.initial_ram_disk,
        disks: DiskFiles {
            base,
            base_parts,
            sealed,
            empty_layer,
        },
        memory_image: MemoryImage::File(memory_image.clone()),
        memory_layers: Vec::new(),
        device_state,
        disk: None,
        build: None,
        volumes: Vec::new(),
    };
    Ok(Template {
        spec,
        memory_image,
        hash,
    })
}
