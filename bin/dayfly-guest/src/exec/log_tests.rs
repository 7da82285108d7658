use super::*;

const MIB: u64 = 1 << 20;

fn byte_at(offset: u64) -> u8 {
    let mixed = offset.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (offset >> 7);
    mixed.to_le_bytes()[3]
}

fn bytes(from: u64, until: u64) -> Vec<u8> {
    (from..until).map(byte_at).collect()
}

struct Place {
    directory: Rc<LogDirectory>,
    parent: tempfile::TempDir,
}

fn place(disk_bytes: Option<u64>) -> Place {
    let parent = tempfile::tempdir().unwrap();
    let mut directory = LogDirectory::new(parent.path().join("execs"));
    directory.disk_bytes = disk_bytes;
    Place {
        directory: Rc::new(directory),
        parent,
    }
}

impl Place {
    fn log(&self, bytes_max: u64, when_full: WhenFull) -> Log {
        let rule = LogRule {
            bytes_max,
            when_full,
        };
        Log::new(&self.directory, "1-stdout.log".to_owned(), rule)
    }

    fn has_file(&self) -> bool {
        self.parent.path().join("execs/1-stdout.log").exists()
    }
}

/// Appends up to an offset in pieces of odd sizes.
fn fill(log: &mut Log, until: u64) {
    let mut size = 1;
    while log.end < until {
        let next = (log.end + size).min(until);
        log.append(&bytes(log.end, next));
        assert_eq!(log.end, next);
        size = size * 3 % 50_021 + 1;
    }
}

/// Everything that the log says it has must be what was written there.
fn assert_true(log: &mut Log) {
    let LogExtent { start, end } = log.extent();
    let mut offset = start;
    let mut piece = vec![0; 33_333];
    while offset < end {
        let count = log.read(offset, &mut piece);
        assert!(count > 0, "nothing at {offset} of {start}..{end}");
        let until = offset + count as u64;
        assert!(piece[..count] == bytes(offset, until), "at {offset}");
        offset = until;
    }
}

fn extent(log: &Log) -> (u64, u64) {
    (log.start, log.end)
}

#[test]
fn short_log_touches_no_disk_and_a_longer_one_leaves_no_file_behind() {
    let place = place(None);
    let mut log = place.log(MIB, WhenFull::DropOldest);
    fill(&mut log, EXEC_LOG_MEMORY_BYTES as u64);
    assert_true(&mut log);
    assert!(!place.has_file());
    assert_eq!(log.disk_bytes(), 0);
    fill(&mut log, EXEC_LOG_MEMORY_BYTES as u64 + 1);
    assert!(place.has_file());
    assert_true(&mut log);
    assert_eq!(log.disk_bytes(), log.end);
    drop(log);
    assert!(!place.has_file());
}

#[test]
fn full_log_drops_exactly_its_oldest_bytes() {
    let place = place(None);
    for bytes_max in [EXEC_LOG_BYTES_MIN, 100_003] {
        let mut log = place.log(bytes_max, WhenFull::DropOldest);
        for end in [bytes_max, bytes_max + 1, 2 * bytes_max + 77, 5 * bytes_max] {
            fill(&mut log, end);
            assert_eq!(extent(&log), (end - bytes_max, end));
            assert_eq!(log.disk_bytes(), bytes_max);
            assert_true(&mut log);
        }
        // More than a whole ring at once.
        let end = log.end + 3 * bytes_max + 5;
        log.append(&bytes(log.end, end));
        assert_eq!(extent(&log), (end - bytes_max, end));
        assert_true(&mut log);
    }
}

#[test]
fn first_piece_may_be_larger_than_the_whole_log() {
    let place = place(None);
    let mut log = place.log(EXEC_LOG_BYTES_MIN, WhenFull::DropOldest);
    log.append(&bytes(0, 300_000));
    assert_eq!(extent(&log), (300_000 - EXEC_LOG_BYTES_MIN, 300_000));
    assert_true(&mut log);
}

#[test]
fn size_is_kept_within_limits() {
    let place = place(None);
    let mut log = place.log(1, WhenFull::DropOldest);
    fill(&mut log, 3 * EXEC_LOG_BYTES_MIN);
    assert_eq!(log.end - log.start, EXEC_LOG_BYTES_MIN);
}

#[test]
fn full_disk_makes_the_log_as_large_as_what_fits() {
    let disk = 300_000;
    let place = place(Some(disk));
    let mut log = place.log(MIB, WhenFull::DropOldest);
    for end in [disk - 5, disk + 1, disk + 100_000, 4 * disk] {
        fill(&mut log, end);
        assert_eq!(extent(&log), (end.saturating_sub(disk), end));
        assert_true(&mut log);
    }
}

#[test]
fn disk_without_any_space_leaves_a_ring_in_memory() {
    for disk in [0, 5000, 30_000, EXEC_LOG_BYTES_MIN - 1] {
        for when_full in [WhenFull::DropOldest, WhenFull::Block] {
            let place = place(Some(disk));
            let mut log = place.log(MIB, when_full);
            fill(&mut log, 20_000);
            assert_true(&mut log);
            fill(&mut log, 500_000);
            let kept = log.end - log.start;
            assert_eq!(kept, EXEC_LOG_BYTES_MIN, "of a disk of {disk}");
            assert_eq!(log.disk_bytes(), 0);
            assert_true(&mut log);
        }
    }
}

/// Takes in what there is room for, as an output does. Gives how much that was.
fn take_in(log: &mut Log, most: u64) -> u64 {
    let before = log.end;
    loop {
        let room = log.room().min(most - (log.end - before));
        if room == 0 {
            return log.end - before;
        }
        log.append(&bytes(log.end, log.end + room.min(10_000)));
    }
}

#[test]
fn blocking_log_takes_no_more_than_it_can_keep_and_drops_nothing() {
    for (bytes_max, ahead) in [
        (EXEC_LOG_BYTES_MIN, EXEC_LOG_BYTES_MIN),
        (MIB, MIB / 2),
        (16 * MIB, 12 * MIB),
    ] {
        let place = place(None);
        let mut log = place.log(bytes_max, WhenFull::Block);
        assert_eq!(take_in(&mut log, u64::MAX / 2), ahead);
        assert_eq!(log.room(), 0);
        assert_true(&mut log);
        for step in [1, 1000, 70_000, ahead] {
            let delivered = (log.delivered + step).min(log.end);
            log.note_delivered(delivered);
            let step = log.delivered - (log.end - ahead);
            assert_eq!(take_in(&mut log, u64::MAX / 2), step);
            assert!(log.start <= log.delivered, "a byte was dropped");
            // And some that were taken stay, for who was cut off.
            let behind = log.delivered - log.start;
            assert!(behind >= (bytes_max - ahead).min(log.delivered));
        }
        assert_true(&mut log);
    }
}

#[test]
fn blocking_log_on_a_full_disk_drops_nothing() {
    for disk in [0, 20_000, 100_000, 300_000, 3 * MIB] {
        let place = place(Some(disk));
        let mut log = place.log(64 * MIB, WhenFull::Block);
        let mut total = 0;
        while total < 4 * MIB {
            let taken = take_in(&mut log, 2 * MIB);
            assert!(taken > 0, "stuck at {total} on a disk of {disk}");
            assert!(log.start <= log.delivered, "a byte was dropped");
            assert_true(&mut log);
            total += taken;
            log.note_delivered(log.end);
        }
    }
}

#[test]
fn unreadable_bytes_become_a_gap() {
    let place = place(None);
    let mut log = place.log(MIB, WhenFull::DropOldest);
    fill(&mut log, 200_000);
    let path = place.parent.path().join("execs/1-stdout.log");
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_len(100_000).unwrap();
    let mut piece = vec![0; 50_000];
    assert_eq!(log.read(90_000, &mut piece), 0);
    assert_eq!(extent(&log), (140_000, 200_000));
    assert_eq!(log.read(140_000, &mut piece), 0);
    assert_eq!(extent(&log), (190_000, 200_000));
}

#[test]
fn cleared_log_keeps_counting() {
    let place = place(None);
    let mut log = place.log(MIB, WhenFull::DropOldest);
    fill(&mut log, 100_000);
    log.clear();
    assert_eq!(extent(&log), (100_000, 100_000));
    assert!(!place.has_file());
    fill(&mut log, 100_010);
    assert_eq!(extent(&log), (100_000, 100_010));
    assert_true(&mut log);
}
