//! A program in the guest that keeps things in memory, in an open file and on a port.
//!
//! It counts without end and writes every count with the host name of the moment through one open
//! descriptor, so its log tells which machine it was on at each count. It answers lines on a port
//! of the guest's own loopback.

use anyhow::{Context, Result, bail, ensure};
use dayfly_client::{Client, FileBody};

use crate::guest::output;

// Only modules that are part of the interpreter: others take seconds to load under emulation.
const PROGRAM: &str = r#"
import _md5, _socket, _thread, os, sys, time
base = os.urandom(1 << 20)
objects = [b"%016d" % n + base[n % 65536:][:65520] for n in range(int(sys.argv[1]) * 16)]
values = {}
count = 0
going = _thread.allocate_lock()
def run():
    global count
    log = os.open("/workspace/counts", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    while True:
        with going:
            os.write(log, b"%d %s\n" % (count + 1, os.uname().nodename.encode()))
            count += 1
        time.sleep(0.05)
def answer(words):
    if words[0] == "hash":
        digest = _md5.md5()
        for piece in objects:
            digest.update(piece)
        for name in sorted(values):
            digest.update((name + "=" + values[name]).encode())
        return digest.hexdigest()
    if words[0] == "count":
        return str(count)
    if words[0] == "change":
        for _ in range(int(words[1])):
            objects[int.from_bytes(os.getrandom(4), "big") % len(objects)] = os.urandom(1 << 16)
        return "changed"
    if words[0] == "rest":
        going.acquire()
        return "resting"
    if words[0] == "go":
        if going.locked():
            going.release()
        return "going"
    if words[0] == "set":
        values[words[1]] = words[2]
        return "set"
    if words[0] == "get":
        return values.get(words[1], "nothing")
    if words[0] == "values":
        return " ".join(name + "=" + values[name] for name in sorted(values)) or "none"
    return "what?"
server = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
server.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
server.bind(("127.0.0.1", 4000))
server.listen(16)
_thread.start_new_thread(run, ())
with open("/tmp/keeper", "w") as ready:
    ready.write("ready\n")
while True:
    peer, _ = server._accept()
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(peer, 4096)
        if not piece:
            break
        line += piece
    if line.strip():
        os.write(peer, (answer(line.decode().split()) + "\n").encode())
    os.close(peer)
"#;

/// Starts the keeper with so many MiB of objects, and waits until it answers.
///
/// # Errors
/// When it does not come up in time.
pub async fn start(client: &Client, id: &str, mib: u32) -> Result<()> {
    let body = FileBody::from_bytes(PROGRAM);
    client.write_file(id, "/workspace/keeper.py", body).await?;
    // The wait is the guest's own: asking again and again would take the processor from it.
    let text = format!(
        "mkfifo /tmp/keeper; setsid nohup python3 -I -S /workspace/keeper.py {mib} \
         >/workspace/keeper.out 2>&1 </dev/null & timeout 50 head -n 1 /tmp/keeper"
    );
    let told = output(client, id, &text).await?;
    ensure!(told == "ready", "the keeper did not come up: {told:?}");
    Ok(())
}

/// Says one line to the keeper over its port and gives its answer.
///
/// # Errors
/// When it does not answer.
pub async fn ask(client: &Client, id: &str, line: &str) -> Result<String> {
    let text = format!(
        "bash -c 'exec 3<>/dev/tcp/127.0.0.1/4000 && echo \"{line}\" >&3 && read -r a <&3 && echo $a'"
    );
    let answer = output(client, id, &text).await?;
    ensure!(!answer.is_empty(), "the keeper said nothing to {line:?}");
    Ok(answer)
}

/// One line of the keeper's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    pub number: u64,
    /// The host name of the machine that it was on.
    pub host: String,
}

/// The keeper's log, which must have no gap and nothing twice: that is checked here.
///
/// # Errors
/// When a count is missing or doubled, or a line is broken.
pub async fn counts(client: &Client, id: &str) -> Result<Vec<Count>> {
    // Only whole lines: one may be on its way.
    let text = output(client, id, "grep -a . /workspace/counts").await?;
    let mut counts = Vec::new();
    for line in text.lines() {
        let (number, host) = line.split_once(' ').context("a broken line")?;
        let number: u64 = number.parse().with_context(|| format!("{line:?}"))?;
        let wanted = u64::try_from(counts.len())? + 1;
        if number != wanted {
            bail!("{id}: count {number} stands where {wanted} belongs");
        }
        let host = host.to_owned();
        counts.push(Count { number, host });
    }
    Ok(counts)
}
