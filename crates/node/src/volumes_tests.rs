//! Who may have a volume, and what becomes of it.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use dayfly_types::{CellName, limits};

use super::*;

fn sandbox(byte: u8) -> SandboxId {
    SandboxId::from_random(&CellName::local(), [byte; 17])
}

fn wanted(size: u64) -> EnsureVolume {
    EnsureVolume {
        project: ProjectId::default_project(),
        name: VolumeName::parse("data").unwrap(),
        size: DiskMib::new(size).unwrap(),
    }
}

fn store() -> (tempfile::TempDir, VolumeStore) {
    let directory = tempfile::tempdir().unwrap();
    let store = VolumeStore::open(directory.path().join("volumes")).unwrap();
    (directory, store)
}

#[test]
fn one_writer_or_many_readers() {
    let (_directory, store) = store();
    let EnsureVolume { project, name, .. } = wanted(16);
    store.ensure(&wanted(16), 1).unwrap();
    let first = store.attach(&project, &name, &sandbox(1), false).unwrap();
    assert_eq!(first.fence, 1);
    let again = store.attach(&project, &name, &sandbox(1), false).unwrap();
    assert_eq!(again, first);
    for read_only in [false, true] {
        let error = store
            .attach(&project, &name, &sandbox(2), read_only)
            .unwrap_err();
        assert!(matches!(error, VolumeError::Busy { by, .. } if by == sandbox(1)));
    }
    assert!(matches!(
        store.delete(&project, &name),
        Err(VolumeError::Busy { .. })
    ));
    store.detach(&project, &name, &sandbox(1)).unwrap();
    store.detach(&project, &name, &sandbox(1)).unwrap();
    for reader in [2, 3] {
        store
            .attach(&project, &name, &sandbox(reader), true)
            .unwrap();
    }
    let error = store.attach(&project, &name, &sandbox(4), false);
    assert!(matches!(error, Err(VolumeError::Busy { .. })));
    store.release_absent(|_| false);
    let next = store.attach(&project, &name, &sandbox(4), false).unwrap();
    assert_eq!(next.fence, 2);
}

#[test]
fn a_lease_survives_a_restart_and_a_stale_one_is_fenced() {
    let (directory, store) = store();
    let EnsureVolume { project, name, .. } = wanted(16);
    store.ensure(&wanted(16), 1).unwrap();
    let lease = store.attach(&project, &name, &sandbox(1), false).unwrap();
    let store = VolumeStore::open(directory.path().join("volumes")).unwrap();
    let resumed = store.resume(&project, &name, &sandbox(1), lease.fence);
    assert_eq!(resumed.unwrap(), lease);
    store.detach(&project, &name, &sandbox(1)).unwrap();
    store.attach(&project, &name, &sandbox(2), false).unwrap();
    let stale = store.resume(&project, &name, &sandbox(1), lease.fence);
    assert!(matches!(stale, Err(VolumeError::Fenced { .. })));
}

#[test]
fn a_volume_grows_and_never_shrinks() {
    let (_directory, store) = store();
    let made = store.ensure(&wanted(16), 1).unwrap();
    assert_eq!(store.ensure(&wanted(16), 2).unwrap(), made);
    let grown = store.ensure(&wanted(64), 3).unwrap();
    assert_eq!((u64::from(grown.size), grown.created_at), (64, 1));
    assert!(matches!(
        store.ensure(&wanted(32), 4),
        Err(VolumeError::Larger { .. })
    ));
    let EnsureVolume { project, name, .. } = wanted(16);
    let disk = store.path(&project, &name).join(DISK_FILE);
    assert_eq!(fs::metadata(&disk).unwrap().len(), 64 << 20);
    run("e2fsck", &["-f", "-n"], &disk).unwrap();
    store.delete(&project, &name).unwrap();
    store.delete(&project, &name).unwrap();
    assert!(!disk.exists());
}

#[test]
fn a_volume_that_is_being_removed_keeps_nobody_from_another() {
    const REMOVER: &str = "remover";
    const LIMIT: Duration = Duration::from_secs(10);
    let (_directory, store) = store();
    let EnsureVolume { project, name, .. } = wanted(16);
    let other = EnsureVolume {
        name: VolumeName::parse("other").unwrap(),
        ..wanted(16)
    };
    store.ensure(&wanted(16), 1).unwrap();
    store.ensure(&other, 1).unwrap();
    let (at_disk, is_at_disk) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let released = Mutex::new(released);
    // The disk stops under the remover, and under nobody else.
    dayfly_host::files::delay_syncs(move || {
        if thread::current().name() == Some(REMOVER) {
            at_disk.send(()).unwrap();
            released.lock().unwrap().recv_timeout(LIMIT).unwrap();
        }
        Duration::ZERO
    });
    let (answered, has_answered) = mpsc::channel();
    thread::scope(|scope| {
        let remover = thread::Builder::new().name(REMOVER.to_owned());
        let removal = remover.spawn_scoped(scope, || store.delete(&project, &name));
        is_at_disk.recv_timeout(LIMIT).unwrap();
        scope.spawn(|| {
            let lease = store.attach(&project, &other.name, &sandbox(1), false);
            let busy = store.attach(&project, &name, &sandbox(1), false);
            answered
                .send((lease, busy, store.reports(None).len()))
                .unwrap();
        });
        let (lease, busy, known) = has_answered.recv_timeout(LIMIT / 2).unwrap();
        release.send(()).unwrap();
        removal.unwrap().join().unwrap().unwrap();
        assert_eq!((lease.unwrap().fence, known), (1, 2));
        assert!(matches!(busy, Err(VolumeError::Maintained(_))), "{busy:?}");
    });
    assert!(matches!(
        store.find(&project, &name),
        Err(VolumeError::Absent(_))
    ));
    assert_eq!(store.find(&project, &other.name).unwrap().fence, 1);
}

#[test]
fn one_project_cannot_take_the_volumes_of_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let greedy = ProjectId::parse("greedy").unwrap();
    for number in 0..limits::VOLUMES_OF_PROJECT_MAX {
        let record = VolumeRecord {
            format: VOLUME_FORMAT,
            project: greedy.clone(),
            name: VolumeName::parse(&format!("v{number}")).unwrap(),
            size: DiskMib::new(16).unwrap(),
            created_at: 1,
            fence: 0,
            writer: None,
            readers: Vec::new(),
        };
        let path = directory.path().join("greedy").join(record.name.as_str());
        fs::create_dir_all(&path).unwrap();
        let text = serde_json::to_vec(&record).unwrap();
        fs::write(path.join(RECORD_FILE), text).unwrap();
    }
    let store = VolumeStore::open(directory.path().to_owned()).unwrap();
    let one_more = EnsureVolume {
        project: greedy,
        ..wanted(16)
    };
    let refused = store.ensure(&one_more, 1);
    assert!(matches!(refused, Err(VolumeError::ShareTaken { .. })));
    store.ensure(&wanted(16), 1).unwrap();
}
