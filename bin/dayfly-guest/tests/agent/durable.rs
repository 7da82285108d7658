//! Output outlives whoever reads it.

use crate::support::{
    DEADLINE, Gate, Guest, argv, collect, from, pattern, printed, run, shell, until, within,
};
use dayfly_guest_client::{AttachSpec, ExecSession};
use dayfly_types::exec::{ExecEnd, ExecEvent, ExecSpec, OutputStream};
use dayfly_types::exec::{LogRule, WhenFull};
use dayfly_types::limits::{EXEC_LOG_BYTES_MIN, STREAM_CREDIT_BYTES};

const MIB: usize = 1 << 20;

fn kept(mut spec: ExecSpec, bytes_max: u64, when_full: WhenFull) -> ExecSpec {
    spec.log = LogRule {
        bytes_max,
        when_full,
    };
    spec
}

/// What one stream said, with where the bytes were and how many are missing.
#[derive(Debug, Default)]
struct Heard {
    pieces: Vec<(u64, Vec<u8>)>,
    offset: u64,
    missing: u64,
}

impl Heard {
    fn bytes(&mut self, bytes: &[u8]) {
        self.pieces.push((self.offset, bytes.to_vec()));
        self.offset += bytes.len() as u64;
    }

    fn gap(&mut self, bytes: u64) {
        self.offset += bytes;
        self.missing += bytes;
    }

    fn received(&self) -> u64 {
        self.pieces
            .iter()
            .map(|(_, bytes)| bytes.len() as u64)
            .sum()
    }

    fn assert_is_part_of(&self, whole: &[u8]) {
        for (offset, bytes) in &self.pieces {
            let offset = usize::try_from(*offset).unwrap();
            assert!(whole[offset..offset + bytes.len()] == **bytes, "{offset}");
        }
    }
}

/// Reads stdout to its end, gaps included.
async fn hear(session: &mut ExecSession, from: u64) -> (Heard, i32) {
    let mut heard = Heard {
        offset: from,
        ..Heard::default()
    };
    loop {
        match within(session.next()).await.unwrap().unwrap() {
            ExecEvent::Stdout(bytes) => heard.bytes(&bytes),
            ExecEvent::Gap(gap) if gap.stream == OutputStream::Stdout => heard.gap(gap.bytes),
            ExecEvent::Exited(ExecEnd { exit, .. }) => return (heard, exit.code),
            other @ (ExecEvent::Stderr(_) | ExecEvent::Gap(_)) => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn output_is_the_same_from_any_offset_while_it_runs_and_after() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let (bytes, gate) = (pattern(MIB), Gate::new());
    let file = printed(&bytes);
    let line = format!("cat {0}; cat {0} >&2; {1}; exit 9", file.path, gate.wait());
    let spec = shell(&line);
    let id = spec.exec_id.clone();
    drop(client.exec(spec).await.unwrap());
    until(&client, &id, |info| info.stderr.end == MIB as u64).await;
    let offsets = [0, 1, 4095, 16_384, 16_385, 65_536, 777_777, MIB - 1, MIB];
    let mut early = Vec::new();
    for offset in offsets {
        let attached = client.attach_exec(&id, from(offset as u64)).await;
        early.push((offset, attached.unwrap().1));
    }
    gate.open();
    for (offset, session) in early {
        let output = collect(session).await;
        assert!(output.stdout == bytes[offset..], "from {offset}");
        assert!(output.stderr == bytes, "from {offset}");
        assert_eq!(output.exit.code, 9);
    }
    for offset in offsets {
        let spec = AttachSpec {
            stdout: None,
            stderr: Some(offset as u64),
            stdin: false,
        };
        let (info, session) = client.attach_exec(&id, spec).await.unwrap();
        assert_eq!(info.exit.unwrap().code, 9);
        let output = collect(session).await;
        assert!(output.stderr == bytes[offset..], "from {offset}");
        assert!(output.stdout.is_empty());
    }
}

#[tokio::test]
async fn twenty_lost_conversations_lose_no_byte() {
    let guest = Guest::start();
    let bytes = pattern(24 * MIB);
    let file = printed(&bytes);
    let spec = shell(&format!("cat {}; exit 4", file.path));
    let id = spec.exec_id.clone();
    let client = guest.connect().await;
    let mut session = client.exec(spec).await.unwrap();
    drop(client);
    let mut seen = Vec::new();
    for round in 1..=20 {
        while seen.len() < round * MIB {
            let Some(ExecEvent::Stdout(more)) = within(session.next()).await.unwrap() else {
                panic!("no output");
            };
            seen.extend_from_slice(&more);
        }
        drop(session);
        let client = guest.connect().await;
        let attached = client.attach_exec(&id, from(seen.len() as u64)).await;
        session = attached.unwrap().1;
    }
    let rest = collect(session).await;
    seen.extend_from_slice(&rest.stdout);
    assert!(seen == bytes, "bytes differ");
    assert_eq!(rest.exit.code, 4);
}

#[tokio::test]
#[ignore = "soak: 200 MiB, twice; shows the rate with --nocapture"]
async fn two_hundred_mebibytes_are_exact() {
    let guest = Guest::start();
    let client = guest.connect().await;
    // Of a length that no buffer divides, so that a lost or moved one shows.
    let bytes = pattern(3 * MIB + 1).repeat(70)[..200 * MIB].to_vec();
    let file = printed(&bytes);
    let spec = kept(argv(&["cat", &file.path]), 256 << 20, WhenFull::DropOldest);
    let id = spec.exec_id.clone();
    let start = std::time::Instant::now();
    let output = tokio::time::timeout(2 * DEADLINE, run(&client, spec));
    assert!(output.await.unwrap().stdout == bytes, "bytes differ");
    let rate = 200.0 / start.elapsed().as_secs_f64();
    println!("live: {rate:.0} MiB/s");
    let start = std::time::Instant::now();
    let (_, session) = client.attach_exec(&id, from(0)).await.unwrap();
    let again = tokio::time::timeout(2 * DEADLINE, collect(session));
    assert!(again.await.unwrap().stdout == bytes, "bytes differ");
    let rate = 200.0 / start.elapsed().as_secs_f64();
    println!("from the log: {rate:.0} MiB/s");
}

#[tokio::test]
async fn dropped_output_is_counted_to_the_byte() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let bytes = pattern(3 * MIB + 12_345);
    let (file, gate) = (printed(&bytes), Gate::new());
    let line = format!("cat {}; {}; cat {0}", file.path, gate.wait());
    let spec = kept(shell(&line), EXEC_LOG_BYTES_MIN, WhenFull::DropOldest);
    let id = spec.exec_id.clone();
    // Does not read: its window fills, and then the log goes on without it.
    let mut stalled = client.exec(spec).await.unwrap();
    let total = bytes.len() as u64;
    let info = until(&client, &id, |info| info.stdout.end == total).await;
    assert_eq!(info.stdout.start, total - EXEC_LOG_BYTES_MIN);
    let (_, mut late) = client.attach_exec(&id, from(5)).await.unwrap();
    gate.open();
    let whole = [&bytes[..], &bytes[..]].concat();
    for (session, from) in [(&mut stalled, 0), (&mut late, 5)] {
        let (heard, code) = hear(session, from).await;
        assert_eq!(heard.received() + heard.missing + from, 2 * total);
        assert_eq!(heard.offset, 2 * total);
        assert!(heard.missing > 0 && heard.received() >= EXEC_LOG_BYTES_MIN);
        heard.assert_is_part_of(&whole);
        assert_eq!(code, 0);
    }
    // One that comes after everything gets exactly what is kept.
    let (_, mut last) = client.attach_exec(&id, from(0)).await.unwrap();
    let (heard, _) = hear(&mut last, 0).await;
    assert_eq!(heard.missing, 2 * total - EXEC_LOG_BYTES_MIN);
    heard.assert_is_part_of(&whole);
}

#[tokio::test]
async fn blocking_log_stops_its_process_and_then_delivers_everything() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let bytes = pattern(5 * MIB);
    for bytes_max in [EXEC_LOG_BYTES_MIN, MIB as u64] {
        let (file, done) = (printed(&bytes), Gate::new());
        let line = format!("cat {}; {}", file.path, done.touch());
        let spec = kept(shell(&line), bytes_max, WhenFull::Block);
        let id = spec.exec_id.clone();
        let session = client.exec(spec).await.unwrap();
        let full = bytes_max
            .min(u64::from(STREAM_CREDIT_BYTES))
            .max(bytes_max / 2);
        until(&client, &id, |info| info.stdout.end == full).await;
        run(&client, shell("sleep 0.2")).await;
        let info = client.describe_exec(&id).await.unwrap();
        assert_eq!((info.stdout.start, info.stdout.end), (0, full));
        assert!(!done.is_open() && info.exit.is_none());
        drop(session);
        // Nobody has taken a byte, so whoever comes next still gets all of them.
        let (_, session) = client.attach_exec(&id, from(0)).await.unwrap();
        let output = collect(session).await;
        assert!(output.stdout == bytes, "bytes differ with {bytes_max}");
        assert!(done.is_open());
    }
}

#[tokio::test]
async fn reader_that_was_cut_off_finds_what_it_lost_in_a_blocking_log() {
    let guest = Guest::start();
    let bytes = pattern(20 * MIB);
    let file = printed(&bytes);
    let spec = kept(argv(&["cat", &file.path]), 2 << 20, WhenFull::Block);
    let id = spec.exec_id.clone();
    let client = guest.connect().await;
    let mut session = client.exec(spec).await.unwrap();
    drop(client);
    let mut seen: Vec<u8> = Vec::new();
    for round in 1..=10 {
        while seen.len() < round * 2 * MIB - 300_000 {
            let Some(ExecEvent::Stdout(more)) = within(session.next()).await.unwrap() else {
                panic!("no output");
            };
            seen.extend_from_slice(&more);
        }
        drop(session);
        // The last of it never got further than this client.
        seen.truncate(seen.len() - 500_000);
        let client = guest.connect().await;
        let attached = client.attach_exec(&id, from(seen.len() as u64)).await;
        session = attached.unwrap().1;
    }
    seen.extend_from_slice(&collect(session).await.stdout);
    assert!(seen == bytes, "bytes differ");
}

#[tokio::test]
async fn late_output_of_a_background_child_is_in_the_log() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let gate = Gate::new();
    let spec = shell(&format!("({}; echo late) & echo early", gate.wait()));
    let id = spec.exec_id.clone();
    let output = run(&client, spec).await;
    assert_eq!(output.stdout_text(), "early\n");
    assert_eq!(client.activity().await.unwrap().execs, 0);
    let (_, session) = client.attach_exec(&id, from(0)).await.unwrap();
    assert_eq!(collect(session).await.stdout_text(), "early\n");
    gate.open();
    let info = until(&client, &id, |info| info.stdout.end == 11).await;
    assert_eq!(info.exit.unwrap().code, 0);
    let (_, session) = client.attach_exec(&id, from(2)).await.unwrap();
    assert_eq!(collect(session).await.stdout_text(), "rly\nlate\n");
}

#[tokio::test]
async fn stalled_reader_costs_little_memory_and_no_pace() {
    let guest = Guest::start();
    let client = guest.connect().await;
    let mut stalled = Vec::new();
    for _ in 0..4 {
        let spec = kept(shell("yes"), 1 << 20, WhenFull::DropOldest);
        let mut session = client.exec(spec).await.unwrap();
        within(session.next()).await.unwrap().unwrap();
        stalled.push(session);
    }
    let before = guest.resident_bytes();
    let output = run(&client, shell("head -c 30000000 /dev/zero; echo done >&2")).await;
    assert_eq!(output.stdout.len(), 30_000_000);
    assert_eq!(output.stderr_text(), "done\n");
    let grown = guest.resident_bytes().saturating_sub(before);
    assert!(grown < 8 << 20, "the agent grew by {grown} bytes");
}
