//! A guest whose agent was replaced by something that means harm: it closes its own channel, and
//! harms nothing else.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use dayfly_api::ExecRequest;
use dayfly_e2e::{Daemon, DaemonOptions, create, exec, figure, processes, setting_or_skip, shell};

const GROWTH_MAX_KIB: u64 = 16 << 10;

/// Takes the ports away from the agent by binding their driver anew, opens them itself, and sends
/// frames that are oversized, cut, reordered, repeated and forged, after answering the opening of
/// each conversation as the agent would.
const ATTACK: &str = r#"
import glob, os, random, re, struct, sys, threading, time, zlib
random.seed(int(sys.argv[1]))
driver = '/sys/bus/virtio/drivers/virtio_console'
devices = [os.path.basename(p) for p in glob.glob(driver + '/virtio*')]
for device in devices:
    open(driver + '/unbind', 'w').write(device)
for device in devices:
    open(driver + '/bind', 'w').write(device)
def ports():
    found = {}
    for path in glob.glob('/sys/class/virtio-ports/*'):
        try: name = open(path + '/name').read().strip()
        except OSError: continue
        if name: found[name] = '/dev/' + os.path.basename(path)
    return found
end = time.monotonic() + 20
while len([n for n in ports() if n.startswith('dayfly')]) < 2 and time.monotonic() < end:
    time.sleep(0.05)
files = {}
for name, path in ports().items():
    if name.startswith('dayfly'):
        files[name] = os.open(path, os.O_RDWR | os.O_NONBLOCK)
def frame(tag, kind, flags, channel, stream, offset, payload, length=None, lie=False):
    head = struct.pack('<HBBIBxxxIIQI', 0xDF1A, kind, flags, channel, stream,
        len(payload) if length is None else length, tag, offset,
        0 if lie else zlib.crc32(payload))
    return head + struct.pack('<I', zlib.crc32(head)) + payload
def any_frame(tag):
    payload = os.urandom(random.choice([0, 1, 100, 65536, 70000]))
    pick = random.randrange(8)
    if pick == 0: return os.urandom(random.randrange(1, 5000))
    if pick == 1: return frame(tag, 1, 1, 0, 0, 0, b'{"answer":{"call":%d,"result":{"ok":{"kind":"done"}}}}' % random.randrange(1 << 40))
    if pick == 2: return frame(tag, 2, 0, random.randrange(9), random.randrange(6), random.randrange(1 << 63), payload)
    if pick == 3: return frame(tag, 2, 0, 1, 2, 0, payload, length=random.randrange(1 << 32))
    if pick == 4: return frame(tag, 3, 0, random.randrange(9), 2, 0, struct.pack('<I', random.randrange(1 << 32)))
    if pick == 5: return frame(tag, 1, 0, 0, 0, 0, b'[' * 60000)
    if pick == 6: return frame(tag, 2, 0, 1, 2, 0, payload, lie=True)
    whole = frame(tag, 2, 0, 1, 2, 0, payload)
    return whole[:random.randrange(1, len(whole))]
def write(fd, data):
    while data:
        try: data = data[os.write(fd, data):]
        except BlockingIOError: time.sleep(0.01); return
        except OSError: time.sleep(0.05); return
heard = b''
while True:
    for name, fd in files.items():
        try: heard = (heard + os.read(fd, 65536))[-262144:]
        except (BlockingIOError, OSError): pass
        for _ in range(20):
            write(fd, any_frame(random.randrange(1 << 32)))
        # What was heard goes back as it came: openings, tags and all.
        if heard and random.random() < 0.5:
            write(fd, heard[-random.randrange(1, len(heard) + 1):])
"#;

#[tokio::test]
async fn a_guest_that_took_over_the_channel_harms_only_itself() -> Result<()> {
    channel_under_attack(1..=1, Duration::from_secs(5)).await
}

#[tokio::test]
#[ignore = "soak: eight seeds"]
async fn guests_that_took_over_the_channel_harm_only_themselves() -> Result<()> {
    channel_under_attack(1..=8, Duration::from_secs(10)).await
}

async fn channel_under_attack(seeds: RangeInclusive<u32>, how_long: Duration) -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let neighbour = create(&client, "base").await?.id;
    let memory = |daemon: &Daemon| -> Result<u64> {
        let pids = [daemon.role_pid("node")?, daemon.role_pid("control")?];
        pids.iter().map(|pid| processes::anonymous_kib(*pid)).sum()
    };
    let first = create(&client, "base").await?.id;
    exec(&client, &first, "seq 100000").await?;
    client.delete_sandbox(&first).await?;
    let before = memory(&daemon)?;
    let node = daemon.role_pid("node")?;
    for seed in seeds {
        let hostile = create(&client, "base").await?.id;
        let attack = ExecRequest {
            user: Some("root".to_owned()),
            background: Some(true),
            ..shell(&format!("python3 - {seed} <<'EOF'\n{ATTACK}\nEOF"))
        };
        client.start_process(&hostile, &attack).await?;
        let lost = exec(&client, &hostile, "sleep 30; echo still").await;
        ensure!(lost.is_err(), "the channel was not taken over: {lost:?}");
        // While it goes on: the neighbour answers, the daemon neither grows nor dies.
        let end = Instant::now() + how_long;
        let mut slowest = Duration::ZERO;
        while Instant::now() < end {
            let start = Instant::now();
            let answer = exec(&client, &neighbour, "echo alive").await?;
            ensure!(answer.stdout == "alive\n", "{answer:?}");
            slowest = slowest.max(start.elapsed());
        }
        let grown = memory(&daemon)?.saturating_sub(before);
        ensure!(daemon.role_pid("node")? == node, "the node process died");
        let refused = exec(&client, &hostile, "true").await;
        ensure!(refused.is_err(), "a liar was believed: {refused:?}");
        let start = Instant::now();
        client.delete_sandbox(&hostile).await?;
        figure!(
            "channel under attack: neighbour {slowest:?} at most, daemon grew {grown} KiB, \
             delete {:?}",
            start.elapsed()
        );
        ensure!(grown <= GROWTH_MAX_KIB, "the daemon grew by {grown} KiB");
    }
    client.delete_sandbox(&neighbour).await?;
    daemon.finish().await
}
