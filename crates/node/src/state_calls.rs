//! Making sandboxes from templates and captures, and captures from sandboxes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dayfly_core::expiry;
use dayfly_core::lifecycle::Phase;
use dayfly_guest_proto::IdentityEvent;
use dayfly_node_api::{
    EnsureSandbox, ForkChild, ForkOutcome, ForkReport, ForkRequest, NodeError, NodeSandboxes,
    SnapshotReport, SnapshotRequest, VariantRequest,
};
use dayfly_snapshots::capture::{CaptureManifest, CapturePurpose};
use dayfly_types::capture::MachineOrigin;
use dayfly_types::{ErrorCode, SandboxId, SnapshotId, limits};
use futures::StreamExt;

use crate::disk_lane::off_runtime;
use crate::journal::{AttachedVolume, JOURNAL_FORMAT, SandboxRecord};
use crate::node::Node;
use crate::origin::{origin_of_capture, origin_of_disk, origin_of_early, origin_of_template};
use crate::relief;
use crate::sandbox::bring_up::{Origin, Start};
use crate::sandbox::owner::{FIRST_GENERATION, Owner};
use crate::sandbox::{CaptureWish, EarlyCapture, ForkSource, Request, SandboxHandle};
use crate::snapshot_reports::snapshot_report;
use crate::templates::ReadyTemplate;
use crate::volumes::VolumeError;

/// What every child has of its own, and what it shares with its source.
const RENEWED: [&str; 6] = [
    "kernel_randomness",
    "hostname",
    "machine_id",
    "boot_id",
    "agent_token",
    "wall_clock",
];
const NOT_RENEWED: [&str; 4] = [
    "user_space_randomness",
    "open_connections",
    "process_ids",
    "secrets_in_memory",
];

impl Node {
    /// The handle of the sandbox, made now if it is not there. A repeat finds the same owner.
    pub(crate) async fn find_or_begin(
        &self,
        wanted: &EnsureSandbox,
    ) -> Result<SandboxHandle, NodeError> {
        if let Some(handle) = self.parts.find(&wanted.id) {
            return same_project(handle, wanted);
        }
        let origin = match &wanted.from_snapshot {
            Some(id) => {
                self.visible_snapshot(id, wanted)?;
                origin_of_capture(&self.parts, id, IdentityEvent::Fork).await?
            }
            None => {
                let template = self.ready_template(wanted)?;
                origin_of_template(&self.parts, template)
            }
        };
        let from = wanted.from_snapshot.clone();
        let from = from.map_or(MachineOrigin::Template, MachineOrigin::Capture);
        self.begin(wanted, origin, from).await
    }

    fn ready_template(&self, wanted: &EnsureSandbox) -> Result<Arc<ReadyTemplate>, NodeError> {
        let templates = &self.parts.templates;
        let Some(size) = wanted.size else {
            return Ok(templates.ready(&wanted.template)?);
        };
        let request = VariantRequest {
            size,
            by: Some(wanted.project.clone()),
            is_awaited: true,
            renew: false,
        };
        Ok(templates.ready_in(&wanted.template, &request)?)
    }

    /// The same for a sandbox whose machine boots on the disk of a snapshot.
    pub(crate) async fn find_or_boot(
        &self,
        disk_of: &SnapshotId,
        mut wanted: EnsureSandbox,
    ) -> Result<SandboxHandle, NodeError> {
        if let Some(handle) = self.parts.find(&wanted.id) {
            return same_project(handle, &wanted);
        }
        self.visible_snapshot(disk_of, &wanted)?;
        // Held until the record names it, also while its bytes are read.
        let _pin = self.parts.pins.pin(disk_of);
        let turn = self.parts.boots.take(&wanted.project, &wanted.id)?;
        let origin = origin_of_disk(&self.parts, disk_of, turn).await?;
        wanted.from_snapshot = Some(disk_of.clone());
        self.begin(&wanted, origin, MachineOrigin::DiskOf(disk_of.clone()))
            .await
    }

    fn visible_snapshot(&self, id: &SnapshotId, wanted: &EnsureSandbox) -> Result<(), NodeError> {
        let captures = &self.parts.captures;
        if captures.damaged().contains(id) {
            // Whose it was cannot be read any more. The next step says that it is damaged.
            return Ok(());
        }
        captures
            .get(id)
            .filter(|manifest| manifest.is_snapshot() && manifest.project == wanted.project)
            .map(drop)
            .ok_or_else(|| NodeError::not_found(format!("no snapshot {id}")))
    }

    /// Admits a sandbox and starts its owner, which does the rest: nothing here waits for a disk,
    /// and nothing of it can be left undone by a caller that stops waiting.
    async fn begin(
        &self,
        wanted: &EnsureSandbox,
        mut origin: Origin,
        from: MachineOrigin,
    ) -> Result<SandboxHandle, NodeError> {
        if let Some(refusal) = self.parts.kept.refusal(&wanted.id) {
            // Its record must not be written over.
            return Err(refusal);
        }
        let record = self.new_record(wanted, &origin, from)?;
        if record.disk != origin.template.restore.disk {
            origin.grow = record.disk;
        }
        let demand = self
            .parts
            .demand(record.class, &record.machine, record.disk);
        let asked = Instant::now();
        let promise = relief::admit(&self.parts, record.class, demand).await?;
        let mut sandboxes = self.parts.sandboxes();
        // Asked again under the lock: two repeats of one call may have come this far.
        if let Some(handle) = sandboxes.get(&wanted.id) {
            return same_project(handle.clone(), wanted);
        }
        self.check_sharing(wanted, &sandboxes)?;
        if !matches!(origin.start, Start::Boot { .. }) {
            origin.turn = Some(self.parts.bring_up_line.join(&wanted.project, asked)?);
        }
        let (owner, handle, incoming) = Owner::new(Arc::clone(&self.parts), record, Some(promise));
        sandboxes.insert(wanted.id.clone(), handle.clone());
        drop(sandboxes);
        tokio::spawn(owner.create_and_run(origin, incoming));
        Ok(handle)
    }

    fn new_record(
        &self,
        wanted: &EnsureSandbox,
        origin: &Origin,
        from: MachineOrigin,
    ) -> Result<SandboxRecord, NodeError> {
        let mut token = [0_u8; 32];
        getrandom::fill(&mut token)
            .map_err(|_| NodeError::internal("no randomness could be had"))?;
        let restore = &origin.template.restore;
        check_sizes(wanted, origin)?;
        let has = restore.disk.unwrap_or(restore.machine.disk);
        let disk = wanted.disk.filter(|disk| *disk > has).or(restore.disk);
        let clock = &self.parts.clock;
        let ttl_seconds = wanted.lifecycle.ttl_seconds;
        Ok(SandboxRecord {
            format: JOURNAL_FORMAT,
            id: wanted.id.clone(),
            project: wanted.project.clone(),
            template: origin.template.name.clone(),
            template_version: origin.template.version.clone(),
            machine: restore.machine.clone(),
            phase: Phase::creating(from),
            generation: FIRST_GENERATION,
            boot_id: self.config.boot_id.clone(),
            expires: expiry::deadline(clock.now(), ttl_seconds),
            expires_wall_ms: expiry::wall_deadline_ms(clock.wall(), ttl_seconds),
            agent_token: hex::encode(token),
            ready_ms: None,
            lifecycle: wanted.lifecycle,
            cpu: wanted.cpu,
            disk,
            from_snapshot: wanted.from_snapshot.clone(),
            volumes: volumes_of(wanted),
            reseed_user_space: wanted.reseed_user_space,
            egress: wanted.egress.clone(),
            egress_epoch: wanted.egress_epoch,
            expires_bridged: false,
            metadata: kept_metadata(wanted),
            created_at_ms: wanted.created_at_ms,
            disk_damaged: false,
            class: wanted.class,
            sleep_reason: None,
            is_restless: false,
            engine: None,
        })
    }

    pub(crate) async fn take_snapshot(
        &self,
        id: &SandboxId,
        request: SnapshotRequest,
    ) -> Result<SnapshotReport, NodeError> {
        let handle = self.find(id)?;
        let project = handle.report().project.clone();
        let captures = self.parts.captures.all();
        let mine = captures
            .iter()
            .filter(|capture| capture.is_snapshot() && capture.project == project);
        if mine.count() >= limits::SNAPSHOTS_MAX {
            let text = format!(
                "the project has {} snapshots, which is the limit",
                limits::SNAPSHOTS_MAX
            );
            return Err(NodeError::new(ErrorCode::TooMany, text));
        }
        let wish = CaptureWish {
            id: request.id,
            purpose: CapturePurpose::Snapshot,
            name: request.name,
            expires_at: request
                .retain_seconds
                .map(|seconds| self.parts.clock.wall() + Duration::from_secs(seconds)),
        };
        let manifest = handle.ask(|reply| Request::Capture { wish, reply }).await?;
        let captures = Arc::clone(&self.parts.captures);
        Ok(off_runtime(move || snapshot_report(&captures, &manifest)).await)
    }

    /// The snapshots that are wanted, newest first.
    pub(crate) async fn snapshot_reports(
        &self,
        is_wanted: impl Fn(&CaptureManifest) -> bool,
    ) -> Vec<SnapshotReport> {
        let mut found = self.parts.captures.all();
        found.retain(|capture| capture.is_snapshot() && is_wanted(capture));
        found.sort_by_key(|capture| std::cmp::Reverse(capture.created_at));
        let captures = Arc::clone(&self.parts.captures);
        let report = move |capture: &Arc<_>| snapshot_report(&captures, capture);
        off_runtime(move || found.iter().map(report).collect()).await
    }

    pub(crate) async fn one_snapshot(&self, id: &SnapshotId) -> Result<SnapshotReport, NodeError> {
        let found = self.parts.captures.get(id);
        let found = found
            .filter(|capture| capture.is_snapshot())
            .ok_or_else(|| NodeError::not_found(format!("no snapshot {id}")))?;
        let captures = Arc::clone(&self.parts.captures);
        Ok(off_runtime(move || snapshot_report(&captures, &found)).await)
    }

    pub(crate) async fn hide_snapshot(&self, id: &SnapshotId) -> Result<(), NodeError> {
        let (captures, id) = (Arc::clone(&self.parts.captures), id.clone());
        crate::sandbox::blocking(move || captures.hide(&id)).await?;
        self.parts.housekeeping.notify_one();
        Ok(())
    }

    pub(crate) async fn make_children(
        &self,
        id: &SandboxId,
        request: ForkRequest,
    ) -> Result<ForkReport, NodeError> {
        if request.children.is_empty() || request.children.len() > limits::FORK_CHILDREN_MAX {
            let text = format!("a fork has 1 to {} children", limits::FORK_CHILDREN_MAX);
            return Err(NodeError::new(ErrorCode::InvalidRequest, text));
        }
        let handle = self.find(id)?;
        // Held until every child's record names the capture.
        let _pin = self.parts.pins.pin(&request.snapshot);
        let wish = CaptureWish {
            id: request.snapshot.clone(),
            purpose: CapturePurpose::Fork,
            name: None,
            expires_at: None,
        };
        let source = handle
            .ask(|reply| Request::ForkCapture { wish, reply })
            .await?;
        let (manifest, mut outcomes) = match source {
            ForkSource::Published(manifest) => (manifest, HashMap::new()),
            ForkSource::Early(early) => self.make_first_children(*early, &request).await?,
        };
        let mut rest = request.children.clone();
        rest.retain(|child| !outcomes.contains_key(&child.id));
        let made: Vec<_> = futures::stream::iter(rest)
            .map(|child| async {
                let id = child.id.clone();
                let made = self.make_child(child, &request.snapshot, None).await;
                (id, made)
            })
            .buffer_unordered(limits::FORK_PARALLEL_MAX)
            .collect()
            .await;
        outcomes.extend(made);
        if request.all_or_nothing {
            self.unmake_all_if_one_failed(&mut outcomes).await;
        }
        let children = request.children.iter().map(|child| {
            let lost = || ForkOutcome::Refused(NodeError::internal("the child was lost"));
            ForkChild {
                id: child.id.clone(),
                outcome: outcomes.remove(&child.id).unwrap_or_else(lost),
            }
        });
        Ok(ForkReport {
            capture: manifest.cost,
            children: children.collect(),
            renewed: RENEWED.map(str::to_owned).to_vec(),
            not_renewed: NOT_RENEWED.map(str::to_owned).to_vec(),
        })
    }

    /// Makes as many children as are made at a time while the capture is made durable. When that
    /// fails, so does the fork: nothing could be captured of such children later.
    async fn make_first_children(
        &self,
        early: EarlyCapture,
        request: &ForkRequest,
    ) -> Result<(Arc<CaptureManifest>, HashMap<SandboxId, ForkOutcome>), NodeError> {
        let first = request.children.iter().take(limits::FORK_PARALLEL_MAX);
        let making = first.map(|child| async {
            let made = self
                .make_child(child.clone(), &request.snapshot, Some(&early))
                .await;
            (child.id.clone(), made)
        });
        let outcomes: HashMap<_, _> = futures::future::join_all(making)
            .await
            .into_iter()
            .collect();
        match early.publish().await {
            Ok(manifest) => Ok((manifest, outcomes)),
            Err(error) => {
                for id in outcomes.keys() {
                    // Deleting cannot fail; it ends when nothing is left.
                    let _ = self.delete_sandbox(id).await;
                }
                Err(error)
            }
        }
    }

    async fn make_child(
        &self,
        child: EnsureSandbox,
        capture: &SnapshotId,
        early: Option<&EarlyCapture>,
    ) -> ForkOutcome {
        let made = async {
            if let Some(handle) = self.parts.find(&child.id) {
                return same_project(handle, &child);
            }
            let origin = match early {
                Some(early) => origin_of_early(&self.parts, early).await?,
                None => origin_of_capture(&self.parts, capture, IdentityEvent::Fork).await?,
            };
            self.begin(&child, origin, MachineOrigin::Capture(capture.clone()))
                .await
        };
        let report = match made.await {
            Ok(handle) => handle.created().await,
            Err(error) => Err(error),
        };
        match report {
            Ok(report) => ForkOutcome::Made(Box::new((*report).clone())),
            Err(error) => ForkOutcome::Refused(error),
        }
    }

    async fn unmake_all_if_one_failed(&self, outcomes: &mut HashMap<SandboxId, ForkOutcome>) {
        let failed = outcomes.values().find_map(|outcome| match outcome {
            ForkOutcome::Refused(error) => Some(error.clone()),
            ForkOutcome::Made(_) => None,
        });
        let Some(error) = failed else {
            return;
        };
        for (id, outcome) in outcomes {
            if matches!(outcome, ForkOutcome::Made(_)) {
                // Deleting cannot fail; it ends when nothing is left.
                let _ = self.delete_sandbox(id).await;
                let text = format!("another child could not be made: {}", error.message);
                *outcome = ForkOutcome::Refused(NodeError::new(error.code, text));
            }
        }
    }

    /// Runs blocking work on volumes.
    pub(crate) async fn volume_work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, VolumeError> + Send + 'static,
    ) -> Result<T, NodeError> {
        match tokio::task::spawn_blocking(work).await {
            Ok(done) => done.map_err(Into::into),
            Err(error) => Err(crate::failure::node_error(
                "the volume could not be changed",
                &error,
            )),
        }
    }
}

/// The labels that fit into a record; more are not worth a longer write with every change.
fn kept_metadata(wanted: &EnsureSandbox) -> BTreeMap<String, String> {
    let bytes = serde_json::to_vec(&wanted.metadata).map_or(usize::MAX, |text| text.len());
    if bytes > limits::RECORD_METADATA_BYTES_MAX {
        return BTreeMap::new();
    }
    wanted.metadata.clone()
}

fn same_project(handle: SandboxHandle, wanted: &EnsureSandbox) -> Result<SandboxHandle, NodeError> {
    if handle.report().project == wanted.project {
        return Ok(handle);
    }
    Err(NodeError::not_found(format!("no sandbox {}", wanted.id)))
}

fn check_sizes(wanted: &EnsureSandbox, origin: &Origin) -> Result<(), NodeError> {
    let invalid = |text: String| Err(NodeError::new(ErrorCode::InvalidRequest, text));
    let restore = &origin.template.restore;
    let machine = &restore.machine;
    let processors = u32::from(machine.vcpus.get());
    if wanted.cpu.is_some_and(|cpu| cpu.get() > processors * 1000) {
        return invalid(format!(
            "cpu can be at most {processors}, the processors of the template"
        ));
    }
    let has = restore.disk.unwrap_or(machine.disk);
    if wanted.disk.is_some_and(|disk| disk < has) {
        return invalid(format!(
            "the disk can be at least {} MiB, what it was captured with",
            has.get()
        ));
    }
    if wanted.volumes.len() > usize::from(machine.spare_disks) {
        return invalid(format!(
            "a sandbox of this template has at most {} volumes",
            machine.spare_disks
        ));
    }
    Ok(())
}

/// What a sandbox is to have, before it has a lease of any.
fn volumes_of(wanted: &EnsureSandbox) -> Vec<AttachedVolume> {
    let attached = (0_u8..).zip(&wanted.volumes).map(|(spare, mount)| {
        let (mount, fence) = (mount.clone(), 0);
        AttachedVolume {
            mount,
            spare,
            fence,
        }
    });
    attached.collect()
}
