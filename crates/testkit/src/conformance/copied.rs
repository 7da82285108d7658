//! Claims about copies: a machine that was itself restored is captured and goes on, and what was
//! captured becomes another machine.

use std::fs::{self, File};
use std::path::Path;

use dayfly_vmm::{
    Afterwards, BootSpec, CaptureSpec, EngineCaptureError, EngineKind, MemoryCapture, MemoryImage,
    MemoryLayer, RestoreSpec, Slot, Vm, file_names,
};

use super::observe::{ensure_running, ensure_still, guest_answers};
use super::{Claim, Failure, Template, World, ensure, in_slot};
use crate::kernel_notes_writes;

/// How many copies of copies are made.
const DEPTH: usize = 3;

pub(super) async fn a_copy_of_a_copy_runs(world: &World, template: &Template) -> Claim {
    let mut spec = template.spec.clone();
    for depth in 0..DEPTH {
        let directory = world.directory.join(format!("copy-{depth}"));
        fs::create_dir(&directory)?;
        spec = in_slot(world, async |slot| {
            let parked = world.engine.park(slot, &spec).await?;
            let mut vm = parked.restore().await?;
            ensure_running(slot).await?;
            let (copy, pages) = copy(slot, vm.as_mut(), &spec, &directory).await?;
            if world.engine.capabilities().engine != EngineKind::Fake {
                let all = spec.machine.memory.bytes() / dayfly_vmm::PAGE_BYTES;
                ensure!(pages < all / 4, "{pages} of {all} pages were saved");
            }
            ensure_running(slot).await?;
            both_run(world, slot, &copy).await?;
            Ok(copy)
        })
        .await?;
    }
    Ok(())
}

/// A machine that boots with memory of its own, on the disk of another, is a machine like any other.
pub(super) async fn a_machine_over_nothing_is_copied(world: &World, template: &Template) -> Claim {
    let directory = world.directory.join("booted-copy");
    fs::create_dir(&directory)?;
    let spec = RestoreSpec {
        memory_image: MemoryImage::Zeros,
        ..template.spec.clone()
    };
    in_slot(world, async |slot| {
        let boot = BootSpec::with_disks_of(&spec);
        let mut vm = world.engine.boot(slot, &boot).await?;
        let is_up = guest_answers(slot, world.fixture.boot_limit()).await;
        ensure!(is_up, "the guest did not come up");
        let kept = fs::read_to_string(slot.run_directory.join(file_names::CONSOLE_LOG));
        let kept = kept.unwrap_or_default();
        // The engine warns there that a bare slot has no network; nothing else may be kept.
        let mut of_guest = kept.lines().filter(|line| !line.contains(": warning: "));
        ensure!(of_guest.next().is_none(), "its console is kept: {kept}");
        let (copy, _) = copy(slot, vm.as_mut(), &spec, &directory).await?;
        ensure_running(slot).await?;
        both_run(world, slot, &copy).await
    })
    .await
}

/// The machine that was captured and its copy, at the same time.
async fn both_run(world: &World, original: &Slot, copy: &RestoreSpec) -> Claim {
    in_slot(world, async |slot| {
        let parked = world.engine.park(slot, copy).await?;
        let _vm = parked.restore().await?;
        ensure_running(slot).await?;
        ensure_running(original).await
    })
    .await
}

/// A capture that may write less than has changed writes nothing, and can be asked for again.
async fn over_its_limit(vm: &mut dyn Vm, capture: &CaptureSpec) -> Claim {
    let mut capture = capture.clone();
    let Some(memory) = capture.memory.as_mut() else {
        return Ok(());
    };
    memory.bytes_max = 0;
    let layer = memory.layer.clone();
    let refused = vm.capture(&capture).await;
    let is_refused = matches!(refused, Err(EngineCaptureError::TooMuch { .. }));
    ensure!(is_refused, "captured beyond its limit: {refused:?}");
    let written = fs::metadata(layer)?.len();
    ensure!(written == 0, "{written} bytes were written all the same");
    Ok(())
}

/// A machine that is copied ahead runs on, and each round copies no more than there is. The copy
/// that is made of it afterwards is as whole as any. An engine that cannot tell what its guest
/// writes says so each time.
async fn copied_ahead(slot: &Slot, vm: &mut dyn Vm, capture: &CaptureSpec) -> Claim {
    let Some(memory) = &capture.memory else {
        return Ok(());
    };
    let limited = MemoryCapture {
        bytes_max: 0,
        ..memory.clone()
    };
    let first = match vm.copy_ahead(&limited).await {
        Err(EngineCaptureError::TooMuch { .. }) => vm.copy_ahead(memory).await?,
        Ok(None) => None,
        other => return Err(format!("copied beyond its limit: {other:?}").into()),
    };
    ensure!(
        first.is_some() || !kernel_notes_writes(),
        "the kernel notes writes, and nothing was copied ahead"
    );
    let again = vm.copy_ahead(memory).await?;
    ensure!(
        first.is_some() == again.is_some(),
        "copied {first:?} bytes, then {again:?}"
    );
    ensure!(
        first.is_none_or(|bytes| bytes > 0 && bytes <= memory.bytes),
        "copied {first:?} bytes"
    );
    ensure_running(slot).await
}

/// Captures the machine, which goes on. Gives the copy, and how many pages were saved for it.
async fn copy(
    slot: &Slot,
    vm: &mut dyn Vm,
    spec: &RestoreSpec,
    directory: &Path,
) -> Result<(RestoreSpec, u64), Failure> {
    let layer = directory.join("memory.layer");
    File::create(&layer)?;
    let capture = CaptureSpec {
        device_state: slot.run_directory.join(file_names::DEVICE_STATE),
        memory: Some(MemoryCapture {
            layer: layer.clone(),
            bytes: spec.machine.memory.bytes(),
            bytes_max: spec.machine.memory.bytes(),
            patch: None,
        }),
        afterwards: Afterwards::GoesOn,
    };
    // The second time as after a capture that came to nothing behind the first.
    for _ in 0..2 {
        let prepared = vm.prepare_seal("disk-2.img", &spec.disks.empty_layer);
        prepared.await?;
    }
    let before = vm.writable_disk().await?;
    vm.pause().await?;
    over_its_limit(vm, &capture).await?;
    ensure!(
        !vm.waits_for_room().await?,
        "a paused machine waits for room"
    );
    vm.resume().await?;
    copied_ahead(slot, vm, &capture).await?;
    vm.pause().await?;
    let captured = vm.capture(&capture).await?;
    let sealed = vm.seal_disk("disk-2.img").await?;
    ensure_still(slot).await?;
    ensure!(sealed == before, "sealed {sealed}, wrote to {before}");
    let now = vm.writable_disk().await?;
    ensure!(now == "disk-2.img", "the guest writes to {now}");
    vm.resume().await?;
    let sealed = slot.run_directory.join(&sealed);
    fs::rename(sealed, directory.join("disk.layer"))?;
    fs::rename(&capture.device_state, directory.join("device.state"))?;
    ensure!(!captured.extents.is_empty(), "no page has changed");
    let pages: u64 = captured.extents.iter().map(|extent| extent.count).sum();
    let mut copy = spec.clone();
    copy.device_state = directory.join("device.state");
    copy.disks.sealed.push(directory.join("disk.layer"));
    copy.memory_layers.push(MemoryLayer {
        file: layer,
        extents: captured.extents,
    });
    Ok((copy, pages))
}
