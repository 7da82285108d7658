//! Tests of the journal.

use super::*;
use crate::glimpse::GlimpsedSlot;
use dayfly_core::lifecycle::{RunningEngine, Sealing};
use dayfly_types::{CellName, EngineProcess, MemoryMib, SlotIndex, Vcpus, VolumeName};

/// A machine in the middle of a capture.
fn running() -> Phase {
    let capture = |name| SnapshotId::parse(name).unwrap();
    running_from(MachineOrigin::Capture(capture("snap-a")))
}

fn running_from(origin: MachineOrigin) -> Phase {
    let capture = |name| SnapshotId::parse(name).unwrap();
    let mut phase = Phase::creating(origin);
    phase.take_engine(RunningEngine {
        slot: SlotIndex(4),
        process: EngineProcess {
            pid: 77,
            start_time_ticks: 99,
        },
        network_start: 9,
    });
    let mut phase = next(&phase, LifecycleEvent::Ready).unwrap();
    let layers = phase.disk_mut().unwrap();
    layers.sealed = vec![capture("snap-b")];
    layers.sealing = Some(Sealing {
        capture: capture("snap-c"),
        layer: "disk-2.img".to_owned(),
        sealed: "disk.img".to_owned(),
    });
    layers.next_layer = 2;
    phase
}

pub(crate) fn sample(byte: u8) -> SandboxRecord {
    SandboxRecord {
        format: JOURNAL_FORMAT,
        id: SandboxId::from_random(&CellName::local(), [byte; 17]),
        project: ProjectId::default_project(),
        template: TemplateName::parse("base").unwrap(),
        template_version: "v1".to_owned(),
        machine: MachineSpec {
            memory: MemoryMib::new(512).unwrap(),
            vcpus: Vcpus::new(1).unwrap(),
            disk: DiskMib::new(2048).unwrap(),
            spare_disks: 3,
        },
        phase: running(),
        generation: Generation(3),
        boot_id: "b".to_owned(),
        expires: Some(Moment(5000)),
        expires_wall_ms: Some(7000),
        agent_token: "t".to_owned(),
        ready_ms: Some(12),
        lifecycle: LifetimeRules::default(),
        cpu: Some(CpuMillis::new(500).unwrap()),
        disk: None,
        from_snapshot: None,
        volumes: vec![AttachedVolume {
            mount: MountedVolume {
                name: VolumeName::parse("data").unwrap(),
                path: "/volumes/data".to_owned(),
                read_only: false,
            },
            spare: 0,
            fence: 7,
        }],
        reseed_user_space: false,
        egress: EgressPolicy::deny(),
        egress_epoch: 2,
        expires_bridged: false,
        metadata: BTreeMap::new(),
        created_at_ms: None,
        disk_damaged: false,
        class: SandboxClass::Reserved,
        sleep_reason: None,
        is_restless: false,
        engine: None,
    }
}

#[test]
fn records_of_former_formats_are_still_read() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let id = sample(1).id;
    let path = journal.sandbox_directory(&id);
    fs::create_dir(&path).unwrap();
    let read = |text: &str| {
        fs::write(path.join(RECORD_FILE), text).unwrap();
        let record = journal.read(&id).unwrap();
        assert_eq!(record.format, JOURNAL_FORMAT);
        assert_eq!(
            record.egress,
            EgressPolicy::deny(),
            "nothing was allowed then"
        );
        record
    };
    let first = read(include_str!("../schema/journal-1.json"));
    let layers = first.phase.disk().unwrap();
    assert!(
        layers.next_layer == 0
            && layers.origin == MachineOrigin::Template
            && first.volumes.is_empty()
    );
    let second = read(include_str!("../schema/journal-2.json"));
    assert_eq!(second.phase.disk().unwrap().next_layer, 2);
}

/// A program of before would capture such a machine over memory that it does not have.
#[test]
fn a_machine_that_was_booted_on_a_disk_is_told_in_a_later_format() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let mut record = sample(1);
    let origin = MachineOrigin::DiskOf(SnapshotId::parse("snap-a").unwrap());
    record.phase = running_from(origin.clone());
    let format_of = |record: &SandboxRecord| {
        journal.write(record).unwrap();
        let path = journal.sandbox_directory(&record.id).join(RECORD_FILE);
        let told: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        told["format"].clone()
    };
    assert_eq!(format_of(&record), JOURNAL_FORMAT_NEWEST);
    let read = journal.read(&record.id).unwrap();
    assert_eq!(read.phase.origin(), Some(&origin));
    // Asleep, it is its capture that says what it lies on.
    record.phase = next(&record.phase, LifecycleEvent::Hibernate).unwrap();
    let asleep = LifecycleEvent::HibernateDone(SnapshotId::parse("snap-h").unwrap());
    record.phase = next(&record.phase, asleep).unwrap();
    assert_eq!(format_of(&record), JOURNAL_FORMAT);
}

/// A program of before this field reads a record with it, and leaves it out when it writes.
#[test]
fn damage_is_written_only_where_there_is_some() {
    let mut record = sample(1);
    let text = serde_json::to_string(&record).unwrap();
    assert!(!text.contains("disk_damaged"));
    assert_eq!(
        serde_json::from_str::<SandboxRecord>(&text).unwrap(),
        record
    );
    record.disk_damaged = true;
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(
        serde_json::from_str::<SandboxRecord>(&text).unwrap(),
        record
    );
}

#[test]
fn a_record_survives_and_its_removal_can_be_repeated() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let record = sample(1);
    journal.write(&record).unwrap();
    let entries = Journal::open(directory.path()).unwrap().entries().unwrap();
    assert!(matches!(&entries[..], [Entry::Record(found)] if **found == record));
    journal.remove(&record.id).unwrap();
    journal.remove(&record.id).unwrap();
    assert!(journal.entries().unwrap().is_empty());
}

#[test]
fn one_damaged_record_does_not_hide_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    journal.write(&sample(1)).unwrap();
    journal.write(&sample(2)).unwrap();
    let broken = journal.sandbox_directory(&sample(2).id).join(RECORD_FILE);
    fs::write(broken, b"{ not json").unwrap();
    let entries = journal.entries().unwrap();
    let whole = entries
        .iter()
        .filter(|entry| matches!(entry, Entry::Record(_)))
        .count();
    assert_eq!((entries.len(), whole), (2, 1));
}

#[test]
fn of_a_later_format_the_slot_is_still_known() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let record = sample(1);
    journal.write(&record).unwrap();
    let path = journal.sandbox_directory(&record.id).join(RECORD_FILE);
    let mut later: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    later["format"] = (JOURNAL_FORMAT_NEWEST + 1).into();
    let mut slot_seen_as = |slot: Option<serde_json::Value>| {
        match slot {
            Some(slot) => later["slot"] = slot,
            None => drop(later.as_object_mut().unwrap().remove("slot")),
        }
        fs::write(&path, later.to_string()).unwrap();
        let found = journal.look(record.id.clone());
        let Entry::Unreadable { glimpse, .. } = found else {
            panic!("{found:?}");
        };
        glimpse
    };
    let seen = slot_seen_as(Some(4.into()));
    assert_eq!(seen.slot, GlimpsedSlot::Named(SlotIndex(4)));
    assert_eq!(seen.project.as_ref(), Some(&record.project));
    assert_eq!(seen.machine.as_ref(), Some(&record.machine));
    let none = slot_seen_as(Some(serde_json::Value::Null));
    assert_eq!(none.slot, GlimpsedSlot::None);
    let strange = slot_seen_as(Some("four".into()));
    assert_eq!(strange.slot, GlimpsedSlot::Unknown);
    assert_eq!(slot_seen_as(None).slot, GlimpsedSlot::Unknown);
}

#[test]
fn only_a_directory_that_never_had_a_record_is_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Journal::open(directory.path()).unwrap();
    let id = sample(1).id;
    let own = journal.sandbox_directory(&id);
    fs::create_dir(&own).unwrap();
    assert!(matches!(journal.look(id.clone()), Entry::Empty { .. }));
    fs::write(own.join(NEW_RECORD_FILE), b"{").unwrap();
    assert!(matches!(journal.look(id.clone()), Entry::Empty { .. }));
    fs::write(own.join("network.log"), b"").unwrap();
    let lost = journal.look(id.clone());
    assert!(matches!(lost, Entry::Unreadable { .. }), "{lost:?}");
    // A removal that was cut short after its first step is no entry, and goes.
    let removed = directory.path().join(format!("{id}{REMOVED_SUFFIX}"));
    fs::rename(&own, &removed).unwrap();
    assert!(journal.entries().unwrap().is_empty());
    journal.sweep().unwrap();
    assert!(!removed.exists());
}

/// The file is read by later versions of this program, so its shape is frozen.
#[test]
fn the_shape_of_a_record_has_not_drifted() {
    let frozen = include_str!("../schema/journal-3.json");
    let frozen: serde_json::Value = serde_json::from_str(frozen).unwrap();
    let live = serde_json::to_value(sample(1)).unwrap();
    assert_eq!(frozen, live, "a changed record needs a new JOURNAL_FORMAT");
}

#[test]
fn the_shape_of_the_record_of_a_booted_machine_has_not_drifted() {
    let frozen = include_str!("../schema/journal-4.json");
    let frozen: serde_json::Value = serde_json::from_str(frozen).unwrap();
    let mut record = sample(1);
    let origin = MachineOrigin::DiskOf(SnapshotId::parse("snap-a").unwrap());
    record.phase = running_from(origin);
    record.format = JOURNAL_FORMAT_NEWEST;
    let live = serde_json::to_value(record).unwrap();
    assert_eq!(frozen, live, "a changed record needs a new JOURNAL_FORMAT");
}

/// What was added since is left out when it says nothing, so that a reader of before is not
/// surprised, and stays as it is as well.
#[test]
fn what_was_added_to_a_record_has_not_drifted() {
    let plain = sample(1);
    let mut full = plain.clone();
    full.metadata.insert("team".to_owned(), "red".to_owned());
    full.created_at_ms = Some(1_700_000_000_000);
    full.expires_bridged = true;
    full.class = SandboxClass::Shared;
    full.sleep_reason = Some(SleepReason::Pressure);
    full.is_restless = true;
    let object = |record: &SandboxRecord| match serde_json::to_value(record) {
        Ok(serde_json::Value::Object(fields)) => fields,
        other => panic!("{other:?}"),
    };
    let (plain, mut added) = (object(&plain), object(&full));
    added.retain(|name, _| !plain.contains_key(name));
    let frozen = serde_json::json!({
        "expires_bridged": true,
        "metadata": {"team": "red"},
        "created_at_ms": 1_700_000_000_000_i64,
        "class": "shared",
        "sleep_reason": "pressure",
        "is_restless": true,
    });
    assert_eq!(serde_json::Value::Object(added), frozen);
    let text = include_str!("../schema/journal-3.json");
    let before: SandboxRecord = serde_json::from_str(text).unwrap();
    assert!(before.metadata.is_empty() && before.created_at_ms.is_none());
}
