use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use dayfly_types::egress::{Decision, EgressRecord, EgressRecordKind, NameSource};
use dayfly_types::limits::{EGRESS_SPOOL_FILE_BYTES_MAX, EGRESS_SPOOL_FILES_MAX};
use dayfly_types::{ProjectId, SandboxId};

use super::*;

/// A decision that can be told from others by its time.
fn decision(at_ms: u64) -> EgressDecision {
    EgressDecision {
        number: 0,
        project: ProjectId::default_project(),
        sandbox: SandboxId::parse("sbx-spool").unwrap(),
        record: EgressRecord {
            sequence: at_ms,
            at_ms,
            kind: EgressRecordKind::Dns,
            decision: Decision::Denied,
            name: None,
            name_source: NameSource::None,
            destination: None,
            dialed: None,
            answers: Vec::new(),
            rule: None,
            internal_network: None,
            reason: None,
            would_deny: false,
            bytes_up: 0,
            bytes_down: 0,
            duration_ms: 0,
            suppressed: 0,
        },
    }
}

fn spool(directory: &Path) -> Arc<EgressSpool> {
    Arc::new(EgressSpool::new(directory.join("decisions")))
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("decisions")).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Numbers and times of everything behind a number, in pages of `max`.
async fn everything(spool: &Arc<EgressSpool>, max: usize) -> (Vec<(u64, u64)>, u64) {
    let (mut seen, mut after) = (Vec::new(), 0);
    loop {
        let page = spool.follow(after, max, Duration::ZERO).await.unwrap();
        assert!(page.decisions.len() <= max);
        let of_page = page.decisions.iter();
        seen.extend(of_page.map(|one| (one.number, one.record.at_ms)));
        if page.through == after {
            return (seen, after);
        }
        after = page.through;
    }
}

#[tokio::test]
async fn numbers_go_on_over_restarts_and_pages_have_them_all() {
    let directory = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    let mut series = None;
    for start in 0..5 {
        let spool = spool(directory.path());
        let page = spool.follow(0, 1, Duration::ZERO).await.unwrap();
        assert_eq!(*series.get_or_insert(page.series.clone()), page.series);
        for turn in 0..4 {
            let at = start * 10 + turn * 2 + 1;
            spool.append(vec![decision(at), decision(at + 1)]).unwrap();
            let last = expected.len() as u64;
            expected.extend([(last + 1, at), (last + 2, at + 1)]);
        }
        for max in [1, 3, 100] {
            let (seen, through) = everything(&spool, max).await;
            assert_eq!((&seen, through), (&expected, expected.len() as u64));
        }
    }
}

#[tokio::test]
async fn an_end_anywhere_loses_what_was_not_whole_and_uses_no_number_twice() {
    let directory = tempfile::tempdir().unwrap();
    let first = spool(directory.path());
    first.append((1..=3).map(decision).collect()).unwrap();
    first.count_lost(4).unwrap();
    drop(first);
    let [file] = files(directory.path()).try_into().unwrap();
    let text = fs::read(&file).unwrap();
    // What each whole line makes the last number.
    let lasts = [0, 1, 2, 3, 7];
    let is_at_an_end =
        |length: usize| text[..length].ends_with(b"\n") || text[length..].starts_with(b"\n");
    // Each costs some syncs: at both sides of each newline, and here and there within the lines.
    let lengths = (0..=text.len()).filter(|length| length % 25 == 0 || is_at_an_end(*length));
    for length in lengths {
        fs::write(&file, &text[..length]).unwrap();
        let lines = text[..length].iter().filter(|byte| **byte == b'\n').count();
        let last = lasts[lines];
        let again = spool(directory.path());
        let (seen, through) = everything(&again, 100).await;
        assert_eq!(seen.len(), lines.min(3), "cut at {length}");
        assert_eq!(through, last, "cut at {length}");
        again.append(vec![decision(9)]).unwrap();
        let (seen, _) = everything(&again, 100).await;
        assert_eq!(seen.last(), Some(&(last + 1, 9)), "cut at {length}");
    }
}

#[tokio::test]
async fn the_oldest_make_room_and_what_is_gone_shows_in_the_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let first = spool(directory.path());
    let mut long = decision(1);
    long.record.rule = Some("x".repeat(usize::try_from(EGRESS_SPOOL_FILE_BYTES_MAX / 2).unwrap()));
    let total = 2 * EGRESS_SPOOL_FILES_MAX as u64 + 10;
    for _ in 0..total {
        first.append(vec![long.clone()]).unwrap();
    }
    assert_eq!(files(directory.path()).len(), EGRESS_SPOOL_FILES_MAX);
    let page = first.follow(0, 1, Duration::ZERO).await.unwrap();
    let oldest = page.decisions[0].number;
    assert_eq!(oldest, total + 1 - EGRESS_SPOOL_FILES_MAX as u64);
    assert_eq!(page.through, oldest);
    // The files alone say the same.
    let again = spool(directory.path());
    assert_eq!(again.follow(0, 1, Duration::ZERO).await.unwrap(), page);
    again.append(vec![decision(5)]).unwrap();
    let last = again.follow(total, 9, Duration::ZERO).await.unwrap();
    assert_eq!(last.decisions[0].number, total + 1);
}

#[tokio::test]
async fn what_cannot_be_written_is_counted_and_told_afterwards() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("decisions");
    fs::write(&place, "in the way").unwrap();
    let spool = spool(directory.path());
    assert!(spool.append(vec![decision(1), decision(2)]).is_err());
    assert!(spool.count_lost(5).is_err());
    assert!(spool.follow(0, 1, Duration::ZERO).await.is_err());
    fs::remove_file(&place).unwrap();
    spool.append(vec![decision(3)]).unwrap();
    assert_eq!(everything(&spool, 9).await, (vec![(8, 3)], 8));
    // Also with nothing behind it, and over a restart.
    spool.count_lost(2).unwrap();
    drop(spool);
    let again = self::spool(directory.path());
    assert_eq!(everything(&again, 9).await, (vec![(8, 3)], 10));
}

#[tokio::test]
async fn a_count_beyond_belief_does_not_use_up_the_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let spool = spool(directory.path());
    spool.count_lost(u64::MAX).unwrap();
    spool.count_lost(u64::MAX).unwrap();
    spool.append(vec![decision(1)]).unwrap();
    let number = 2 * u64::from(u32::MAX) + 1;
    assert_eq!(everything(&spool, 9).await, (vec![(number, 1)], number));
}

#[tokio::test]
async fn files_that_are_lost_or_damaged_begin_another_series() {
    let directory = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    let text = |number: u64| format!("{{\"lost\":{{\"number\":{number},\"count\":1}}}}\n");
    let damages: [&dyn Fn(&Path); 4] = [
        &|file| fs::remove_file(file).unwrap(),
        &|file| fs::write(file, "{}\n").unwrap(),
        &|file| fs::write(file, text(2)).unwrap(),
        &|file| {
            let other = file.with_file_name(format!("other.{:020}", 2));
            fs::write(other, text(2)).unwrap();
        },
    ];
    for damage in damages {
        let spool = spool(directory.path());
        spool.append(vec![decision(1)]).unwrap();
        seen.push(spool.follow(0, 1, Duration::ZERO).await.unwrap().series);
        let [file] = files(directory.path()).try_into().unwrap();
        drop(spool);
        damage(&file);
    }
    let last = spool(directory.path());
    let page = last.follow(7, 1, Duration::from_secs(60)).await.unwrap();
    // The caller hears of it at once.
    assert_eq!((page.decisions.len(), page.through), (0, 0));
    seen.push(page.series);
    let mut different = seen.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), seen.len());
}

#[tokio::test]
async fn a_part_of_a_line_that_a_full_disk_left_is_cut() {
    let directory = tempfile::tempdir().unwrap();
    let mut files_of = SpoolFiles::open(directory.path()).unwrap();
    files_of.append(0, vec![decision(1)]).unwrap();
    let path = fs::read_dir(directory.path()).unwrap().next();
    let path = path.unwrap().unwrap().path();
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    std::io::Write::write_all(&mut file, b"{\"decis").unwrap();
    files_of.tear();
    files_of.append(3, vec![decision(2)]).unwrap();
    let page = files_of.view().read(0, 9).unwrap();
    let numbers: Vec<u64> = page.decisions.iter().map(|one| one.number).collect();
    assert_eq!(numbers, [1, 5]);
}

#[tokio::test]
async fn a_reader_waits_for_the_next_decision() {
    let directory = tempfile::tempdir().unwrap();
    let spool = spool(directory.path());
    let waiting = {
        let spool = Arc::clone(&spool);
        tokio::spawn(async move { spool.follow(0, 9, Duration::from_secs(20)).await })
    };
    tokio::task::yield_now().await;
    spool.append(vec![decision(7)]).unwrap();
    let page = waiting.await.unwrap().unwrap();
    assert_eq!(page.decisions[0].record.at_ms, 7);
}
