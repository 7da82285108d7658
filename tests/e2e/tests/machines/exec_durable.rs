//! Output that survives everything between a guest and its reader: lost connections, a killed
//! node, a hibernation. Not a byte is missing, doubled or moved.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use dayfly_api::{ExecExitEvent, ExecRequest, SocketEvent, TerminalSize};
use dayfly_client::{Client, ExecSocket, SocketItem};
use dayfly_e2e::pattern::{Dice, Pattern};
use dayfly_e2e::{
    Daemon, DaemonOptions, create, exec, figure, patient, processes, setting_or_skip, shell, until,
};

const MIB: u64 = 1 << 20;
const CUTS: u64 = 20;
const EXEC: &str = "pattern";
/// What the command ends with, so that a made-up success shows.
const EXIT_CODE: i32 = 7;
const STALL: Duration = Duration::from_secs(5);

struct Reader {
    client: Client,
    sandbox: String,
    pattern: Pattern,
    offset: u64,
    reattached: u32,
}

enum Reading {
    Cut,
    Exited(ExecExitEvent),
}

impl Reader {
    async fn attach(&mut self) -> Result<ExecSocket> {
        let end = Instant::now() + Duration::from_secs(90);
        loop {
            let attached = self
                .client
                .attach_socket(&self.sandbox, EXEC, self.offset, 0)
                .await;
            match attached {
                Ok(socket) => {
                    self.reattached += 1;
                    return Ok(socket);
                }
                Err(error) if Instant::now() > end => return Err(error.into()),
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// Reads until so many bytes more have come, the connection is lost, or the end.
    async fn read(&mut self, socket: &mut ExecSocket, bytes: u64) -> Result<Reading> {
        let until = self.offset.saturating_add(bytes);
        while self.offset < until {
            match socket.reader.next().await {
                Ok(SocketItem::Stdout { offset, bytes }) => {
                    ensure!(offset == self.offset, "{offset} after {}", self.offset);
                    let checked = self.pattern.check(&bytes);
                    ensure!(checked.is_ok(), "wrong bytes at {offset}: {checked:?}");
                    self.offset += bytes.len() as u64;
                }
                Ok(SocketItem::Event(SocketEvent::Exit(exit))) => return Ok(Reading::Exited(exit)),
                Ok(SocketItem::Event(SocketEvent::Error { .. })) | Err(_) => {
                    return Ok(Reading::Cut);
                }
                Ok(other @ (SocketItem::Stderr { .. } | SocketItem::Event(_))) => {
                    bail!("{other:?}")
                }
            }
        }
        Ok(Reading::Cut)
    }
}

/// One command, cut off twenty times, with a killed node and a hibernation in between.
async fn read_through_everything(bytes: u64, is_terminal: bool) -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let sandbox = create(&client, "base").await?.id;
    let last = Pattern::last_for(bytes, if is_terminal { 2 } else { 1 });
    let request = ExecRequest {
        exec_id: Some(EXEC.to_owned()),
        log_max_bytes: Some(bytes + 16 * MIB),
        timeout_seconds: Some(1200.0),
        terminal: is_terminal.then_some(TerminalSize {
            columns: 80,
            rows: 24,
        }),
        ..shell(&format!("seq 1 {last}; exit {EXIT_CODE}"))
    };
    let start = Instant::now();
    let socket = client.exec_socket(&sandbox, &request).await?;
    let pattern = if is_terminal {
        Pattern::in_a_terminal(last)
    } else {
        Pattern::plain(last)
    };
    let mut reader = Reader {
        client: client.clone(),
        sandbox: sandbox.clone(),
        pattern,
        offset: 0,
        reattached: 0,
    };
    let mut socket = cut_off_and_go_on(&daemon, &mut reader, socket, bytes).await?;
    let exit = loop {
        match reader.read(&mut socket, u64::MAX).await? {
            Reading::Exited(exit) => break exit,
            Reading::Cut => socket = reader.attach().await?,
        }
    };
    ensure!(
        reader.pattern.is_over(),
        "ended after {} bytes",
        reader.offset
    );
    ensure!(exit.exit_code == EXIT_CODE, "{exit:?}");
    let process = client.get_process(&sandbox, EXEC).await?;
    ensure!(process.exit_code == Some(EXIT_CODE), "{process:?}");
    ensure!(process.stdout.end == reader.offset, "{process:?}");
    figure!(
        "{} bytes in {:?}, {} attaches",
        reader.offset,
        start.elapsed(),
        reader.reattached
    );
    client.delete_sandbox(&sandbox).await?;
    daemon.finish().await
}

/// Twenty cuts at random places; one is a killed node, one a hibernation.
async fn cut_off_and_go_on(
    daemon: &Daemon,
    reader: &mut Reader,
    mut socket: ExecSocket,
    bytes: u64,
) -> Result<ExecSocket> {
    let mut dice = Dice::new(bytes);
    for cut in 0..CUTS {
        let piece = dice.below(bytes / (CUTS + 2)).max(1);
        if let Reading::Exited(exit) = reader.read(&mut socket, piece).await? {
            bail!(
                "ended after {} bytes and {cut} cuts: {exit:?}",
                reader.offset
            );
        }
        match cut {
            // With the reader still attached: control must go on by itself.
            6 => Daemon::kill(daemon.role_pid("node")?)?,
            12 => {
                drop(socket);
                reader.client.hibernate_sandbox(&reader.sandbox).await?;
                socket = reader.attach().await?;
            }
            _ => {
                drop(socket);
                socket = reader.attach().await?;
            }
        }
    }
    Ok(socket)
}

#[tokio::test]
async fn twenty_cuts_a_kill_and_a_sleep_lose_no_byte() -> Result<()> {
    read_through_everything(12 * MIB, false).await
}

#[tokio::test]
#[ignore = "soak: two hundred MiB"]
async fn two_hundred_mib_lose_no_byte() -> Result<()> {
    read_through_everything(200 * MIB, false).await
}

#[tokio::test]
async fn a_terminal_loses_no_byte() -> Result<()> {
    read_through_everything(2 * MIB, true).await
}

#[tokio::test]
#[ignore = "soak: twenty MiB of a terminal"]
async fn twenty_mib_of_a_terminal_lose_no_byte() -> Result<()> {
    read_through_everything(20 * MIB, true).await
}

fn daemon_memory(daemon: &Daemon) -> Result<u64> {
    let pids = [daemon.role_pid("node")?, daemon.role_pid("control")?];
    pids.iter().map(|pid| processes::anonymous_kib(*pid)).sum()
}

/// How long `true` takes beside whatever else goes on.
async fn pace(client: &Client, sandbox: &str) -> Result<Duration> {
    let mut slowest = Duration::ZERO;
    for _ in 0..5 {
        let start = Instant::now();
        let result = exec(client, sandbox, "true").await?;
        ensure!(result.exit_code == 0, "{result:?}");
        slowest = slowest.max(start.elapsed());
    }
    Ok(slowest)
}

#[tokio::test]
async fn a_reader_that_stops_stalls_only_itself() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let sandbox = create(&client, "base").await?.id;
    exec(&client, &sandbox, "seq 100000").await?;
    let alone = pace(&client, &sandbox).await?;
    let before = daemon_memory(&daemon)?;
    // Far more than the log keeps: what is not read is dropped, and said so.
    let last = Pattern::last_for(24 * MIB, 1);
    let request = ExecRequest {
        exec_id: Some(EXEC.to_owned()),
        log_max_bytes: Some(4 * MIB),
        ..shell(&format!("seq 1 {last}"))
    };
    let mut socket = client.exec_socket(&sandbox, &request).await?;
    let beside = pace(&client, &sandbox).await?;
    // The process ends although nobody reads.
    until("the process ends", Duration::from_secs(120), async || {
        let process = client.get_process(&sandbox, EXEC).await.ok()?;
        (process.state == "exited").then_some(())
    })
    .await?;
    let grown = daemon_memory(&daemon)?.saturating_sub(before);
    figure!("reader stopped: daemon grew {grown} KiB; true took {alone:?}, beside it {beside:?}");
    ensure!(grown <= 16 << 10, "the daemon grew by {grown} KiB");
    ensure!(
        beside < alone * 10 + patient(STALL),
        "{alone:?} became {beside:?}"
    );
    // Every byte is either read or told as dropped.
    let whole: String = (1..=last).map(|number| format!("{number}\n")).collect();
    let (mut offset, mut dropped) = (0, 0);
    loop {
        match socket.reader.next().await? {
            SocketItem::Stdout { offset: at, bytes } => {
                ensure!(at == offset, "{at} after {offset}");
                let from = usize::try_from(at)?;
                let right = &whole.as_bytes()[from..from + bytes.len()];
                ensure!(right == &bytes[..], "wrong bytes at {at}");
                offset += bytes.len() as u64;
            }
            SocketItem::Event(SocketEvent::Gap {
                offset: at, bytes, ..
            }) => {
                ensure!(at == offset, "{at} after {offset}");
                offset += bytes;
                dropped += bytes;
            }
            SocketItem::Event(SocketEvent::Exit(exit)) => {
                ensure!(exit.exit_code == 0, "{exit:?}");
                break;
            }
            other @ (SocketItem::Stderr { .. } | SocketItem::Event(_)) => bail!("{other:?}"),
        }
    }
    ensure!(offset == whole.len() as u64, "{offset} of {}", whole.len());
    ensure!(dropped > 0, "nothing was dropped of six times the log");
    client.delete_sandbox(&sandbox).await?;
    daemon.finish().await
}

#[tokio::test]
async fn a_log_that_blocks_loses_nothing_and_the_129th_exec_is_refused() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    let sandbox = create(&client, "base").await?.id;
    let last = Pattern::last_for(6 * MIB, 1);
    let request = ExecRequest {
        exec_id: Some(EXEC.to_owned()),
        log_max_bytes: Some(MIB),
        log_when_full: Some("block".to_owned()),
        background: Some(true),
        ..shell(&format!("seq 1 {last}"))
    };
    client.start_process(&sandbox, &request).await?;
    let blocked = until("the log is full", Duration::from_secs(60), async || {
        let process = client.get_process(&sandbox, EXEC).await.ok()?;
        (process.stdout.end > MIB / 3).then_some(process)
    })
    .await?;
    ensure!(blocked.state == "running", "{blocked:?}");
    let mut socket = client.attach_socket(&sandbox, EXEC, 0, 0).await?;
    let mut reader = Reader {
        client: client.clone(),
        sandbox: sandbox.clone(),
        pattern: Pattern::plain(last),
        offset: 0,
        reattached: 0,
    };
    let Reading::Exited(_) = reader.read(&mut socket, u64::MAX).await? else {
        bail!("cut off at {}", reader.offset);
    };
    ensure!(
        reader.pattern.is_over(),
        "ended after {} bytes",
        reader.offset
    );

    for number in 0..128 {
        let request = ExecRequest {
            exec_id: Some(format!("sleeper-{number}")),
            background: Some(true),
            timeout_seconds: Some(600.0),
            ..shell("sleep 600")
        };
        let started = client.start_process(&sandbox, &request).await;
        started.with_context(|| format!("exec {number}"))?;
    }
    let refused = client.exec(&sandbox, &shell("true")).await;
    let refused = dayfly_e2e::refusal(refused, "too_many")?;
    ensure!(refused.status == 429, "{refused:?}");
    client.delete_process(&sandbox, "sleeper-5").await?;
    // Its place is free once its processes are gone.
    let again = until("there is room again", Duration::from_secs(20), async || {
        exec(&client, &sandbox, "echo fine").await.ok()
    })
    .await?;
    ensure!(again.stdout == "fine\n", "{again:?}");
    client.delete_sandbox(&sandbox).await?;
    daemon.finish().await
}
