//! What a sandbox wrote is nowhere once it is deleted: not in the next one, not in the data
//! directory.

use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use dayfly_api::CreateSnapshot;
use dayfly_client::Client;
use dayfly_e2e::{Daemon, DaemonOptions, create, engine, figure, output, setting_or_skip, until};

const PIECE: usize = 1 << 20;

/// Random words of its own for each run, in lines, so that they can be searched for as text.
fn canary() -> Result<String> {
    let mut random = [0; 32];
    let file = std::fs::File::open("/dev/urandom")?;
    file.read_exact_at(&mut random, 0)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Fills memory of a process that stays, and a file, with the canary.
async fn write_everywhere(client: &Client, id: &str, canary: &str, mib: usize) -> Result<()> {
    // The text reaches the guest by standard input, so that no command line has it.
    let program = format!(
        "import sys, time\n\
         line = (sys.stdin.readline().strip() + '\\n').encode()\n\
         block = line * ((1 << 20) // len(line))\n\
         held = [bytes(bytearray(block)) for _ in range({mib})]\n\
         with open('/workspace/full', 'wb') as out:\n\
         \x20   for _ in range({mib}): out.write(block)\n\
         open('/workspace/ready', 'w').close()\n\
         time.sleep(3600)\n"
    );
    let body = dayfly_client::FileBody::from_bytes(program);
    client.write_file(id, "/workspace/fill.py", body).await?;
    let body = dayfly_client::FileBody::from_bytes(format!("{canary}\n"));
    client.write_file(id, "/workspace/canary", body).await?;
    let start =
        "setsid nohup python3 -I -S /workspace/fill.py < /workspace/canary >/dev/null 2>&1 &";
    output(client, id, start).await?;
    until("it has written", Duration::from_secs(60), || async {
        output(client, id, "test -e /workspace/ready && sync")
            .await
            .ok()
    })
    .await?;
    Ok(())
}

/// How many lines of an engine's memory have the canary.
fn lines_in_memory(pid: i32, canary: &str) -> Result<u64> {
    let memory = std::fs::File::open(format!("/proc/{pid}/mem"))?;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let mut search = Command::new("grep")
        .args(["--text", "--fixed-strings", "--count", canary])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut pipe = search.stdin.take().context("no pipe")?;
    let mut piece = vec![0; PIECE];
    for line in maps.lines().filter(|line| line.contains(" rw-p ")) {
        let range = line.split_whitespace().next().context("no range")?;
        let (from, to) = range.split_once('-').context("no range")?;
        let (mut from, to) = (u64::from_str_radix(from, 16)?, u64::from_str_radix(to, 16)?);
        while from < to {
            let length = usize::try_from(to - from)?.min(PIECE);
            // A part of a mapping that has nothing behind it cannot be read, and hides nothing.
            if memory.read_exact_at(&mut piece[..length], from).is_ok() {
                pipe.write_all(&piece[..length])?;
            }
            from += length as u64;
        }
    }
    drop(pipe);
    let output = search.wait_with_output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// The files under a directory that have the canary.
fn files_with(directory: &Path, canary: &str) -> Result<Vec<String>> {
    let output = Command::new("grep")
        .args([
            "--recursive",
            "--files-with-matches",
            "--text",
            "--fixed-strings",
        ])
        .args(["--devices=skip", "--no-messages", canary])
        .arg(directory)
        .output()?;
    if output.status.code().is_none_or(|code| code > 2) {
        bail!("grep: {output:?}");
    }
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().map(str::to_owned).collect())
}

async fn leaves_no_trace(mib: usize) -> Result<()> {
    let setting = setting_or_skip!();
    // Nothing waits for a create, so the next sandbox gets the slot that has just become free.
    let options = DaemonOptions {
        arguments: ["--parked-engines", "0", "--parked-slots", "0"]
            .map(str::to_owned)
            .to_vec(),
        ..DaemonOptions::default()
    };
    let (daemon, client) = Daemon::ready(&setting, options).await?;
    let canary = canary()?;
    let first = create(&client, "base").await?.id;
    write_everywhere(&client, &first, &canary, mib).await?;

    // The positive control: memory, disk and a capture all have it.
    let lines = lines_in_memory(engine::engine_pid(&daemon, &first)?, &canary)?;
    let lines_wanted = u64::try_from((mib << 20) / (canary.len() + 1))?;
    figure!("before the delete: {lines} lines in memory, {lines_wanted} were held");
    ensure!(lines >= lines_wanted, "memory is not full of it");
    let files = files_with(&engine::run_directory(&daemon, &first)?, &canary)?;
    ensure!(files.len() == 1, "not on its disk alone: {files:?}");
    let snapshot = client
        .create_snapshot(&first, &CreateSnapshot::default())
        .await?;
    let files = files_with(&daemon.path().join("node/captures"), &canary)?;
    for name in ["memory.layer", "disk.layer"] {
        let is_in = files.iter().any(|file| file.ends_with(name));
        ensure!(is_in, "not in {name}: {files:?}");
    }
    let slot = engine::slot(&daemon, &first)?;

    client.delete_sandbox(&first).await?;
    client.delete_snapshot(&snapshot.id).await?;
    until("it is in no file", Duration::from_secs(60), || async {
        let files = files_with(&daemon.path().join("node/captures"), &canary);
        files.ok()?.is_empty().then_some(())
    })
    .await?;
    let second = create(&client, "base").await?.id;
    ensure!(engine::slot(&daemon, &second)? == slot, "another slot");
    // It uses as much as the first did, so that whatever it was given is looked at.
    let text = format!("head -c {mib}M /dev/zero > /workspace/full && sync");
    output(&client, &second, &text).await?;
    let lines = lines_in_memory(engine::engine_pid(&daemon, &second)?, &canary)?;
    ensure!(lines == 0, "the next sandbox has {lines} lines of it");
    let files = files_with(daemon.path(), &canary)?;
    ensure!(files.is_empty(), "{files:?}");
    daemon.finish().await
}

#[tokio::test]
async fn a_deleted_sandbox_leaves_no_trace_of_what_it_wrote() -> Result<()> {
    leaves_no_trace(16).await
}

#[tokio::test]
#[ignore = "soak: a hundred MiB of memory and of disk"]
async fn a_deleted_sandbox_leaves_no_trace_of_much_that_it_wrote() -> Result<()> {
    leaves_no_trace(100).await
}
