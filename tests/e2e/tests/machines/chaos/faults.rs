//! What is done to the daemon while others use it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use dayfly_e2e::{Daemon, engine, patient, processes, until};
use rustix::process::{Pid, Signal, kill_process};

use crate::chaos::generator::Generator;
use crate::chaos::ledger::Ledger;

/// From one fault to the next: less than what a restart takes, and more.
const BETWEEN: std::ops::Range<Duration> = Duration::from_millis(800)..Duration::from_secs(7);
const STOPPED_FOR: std::ops::Range<Duration> = Duration::from_millis(300)..Duration::from_secs(3);
const GONE_WITHIN: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Node,
    Control,
    Both,
    Egress,
    Supervisor,
    Everything,
    Engine,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Kill(Victim),
    Stop(Victim),
}

/// Each as often as it stands here.
const FAULTS: [Fault; 16] = [
    Fault::Kill(Victim::Node),
    Fault::Kill(Victim::Node),
    Fault::Kill(Victim::Node),
    Fault::Kill(Victim::Control),
    Fault::Kill(Victim::Control),
    Fault::Kill(Victim::Both),
    Fault::Kill(Victim::Egress),
    Fault::Kill(Victim::Egress),
    Fault::Kill(Victim::Supervisor),
    Fault::Kill(Victim::Everything),
    Fault::Kill(Victim::Engine),
    Fault::Kill(Victim::Engine),
    Fault::Stop(Victim::Node),
    Fault::Stop(Victim::Control),
    Fault::Stop(Victim::Egress),
    Fault::Stop(Victim::Engine),
];

impl Fault {
    const fn name(self) -> &'static str {
        match self {
            Self::Kill(Victim::Node) => "kill node",
            Self::Kill(Victim::Control) => "kill control",
            Self::Kill(Victim::Both) => "kill node and control",
            Self::Kill(Victim::Egress) => "kill egress",
            Self::Kill(Victim::Supervisor) => "kill supervisor",
            Self::Kill(Victim::Everything) => "kill everything but engines",
            Self::Kill(Victim::Engine) => "kill an engine",
            Self::Stop(Victim::Node) => "stop node",
            Self::Stop(Victim::Control) => "stop control",
            Self::Stop(Victim::Egress) => "stop egress",
            Self::Stop(Victim::Engine) => "stop an engine",
            Self::Stop(Victim::Both | Victim::Supervisor | Victim::Everything) => "stop",
        }
    }
}

/// Does one thing after the other until the time is over. The daemon is up at the end.
pub(crate) async fn run(
    daemon: &mut Daemon,
    ledger: &Ledger,
    mut generator: Generator,
    end: Instant,
) -> Result<()> {
    loop {
        // Not a wait for a condition: the moment of the fault is what is varied.
        tokio::time::sleep(generator.time(BETWEEN)).await;
        if Instant::now() > end || !ledger.book().broken.is_empty() {
            return Ok(());
        }
        let fault = *generator.pick(&FAULTS).context("no faults")?;
        match inject(daemon, ledger, &mut generator, fault).await {
            Ok(true) => ledger.fault(fault.name()),
            // Whom it was for is not there at the moment: still starting after the last one.
            Ok(false) => ledger.fault("nobody there"),
            Err(error) => return Err(error.context(fault.name())),
        }
    }
}

async fn inject(
    daemon: &mut Daemon,
    ledger: &Ledger,
    generator: &mut Generator,
    fault: Fault,
) -> Result<bool> {
    let (signal, victim) = match fault {
        Fault::Kill(victim) => (Signal::KILL, victim),
        Fault::Stop(victim) => (Signal::STOP, victim),
    };
    let Some(pids) = pids(daemon, ledger, generator, victim) else {
        return Ok(false);
    };
    for pid in &pids {
        send(*pid, signal);
    }
    if signal == Signal::STOP {
        tokio::time::sleep(generator.time(STOPPED_FOR)).await;
        for pid in &pids {
            send(*pid, Signal::CONT);
        }
    }
    if matches!(victim, Victim::Supervisor | Victim::Everything) {
        start_again(daemon, &pids).await?;
    }
    Ok(true)
}

/// It may have ended meanwhile, which is as good.
fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// The processes to send a signal to. None when somebody is missing.
fn pids(
    daemon: &Daemon,
    ledger: &Ledger,
    generator: &mut Generator,
    victim: Victim,
) -> Option<Vec<i32>> {
    let role = |name: &str| daemon.role_pid(name).ok();
    Some(match victim {
        Victim::Node => vec![role("node")?],
        Victim::Control => vec![role("control")?],
        Victim::Both => vec![role("node")?, role("control")?],
        Victim::Supervisor => vec![daemon.pid().ok()?],
        Victim::Everything => vec![daemon.pid().ok()?, role("node")?, role("control")?],
        Victim::Egress => vec![*members(daemon, "dayfly-egress")?.first()?],
        Victim::Engine => {
            let engines = members(daemon, "qemu")?;
            let pid = *generator.pick(&engines)?;
            ledger.hurt(owner(daemon, pid));
            vec![pid]
        }
    })
}

/// The processes of this daemon's control groups with such a name: also those that a node before
/// this one has started.
fn members(daemon: &Daemon, name: &str) -> Option<Vec<i32>> {
    let text = std::fs::read(daemon.path().join("instance.json")).ok()?;
    let instance: serde_json::Value = serde_json::from_slice(&text).ok()?;
    let instance = format!("dayfly-{}", instance["instance"].as_str()?);
    let mut pids = dayfly_host::process::all_pids().ok()?;
    let read = |pid: i32, file: &str| {
        std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
    };
    pids.retain(|pid| {
        read(*pid, "comm").starts_with(name) && read(*pid, "cgroup").contains(&instance)
    });
    // Equal seeds choose alike.
    pids.sort_unstable();
    Some(pids)
}

/// Whose engine it is, by the records of the node.
fn owner(daemon: &Daemon, pid: i32) -> Option<String> {
    let records = std::fs::read_dir(daemon.path().join("node/sandboxes")).ok()?;
    let mut names = records.flatten().map(|entry| entry.file_name());
    names.find_map(|name| {
        let id = name.into_string().ok()?;
        (engine::engine_pid(daemon, &id).ok()? == pid).then_some(id)
    })
}

/// Its two processes end with it, and only then can another daemon have the directory.
async fn start_again(daemon: &mut Daemon, killed: &[i32]) -> Result<()> {
    let path = daemon.path().display().to_string();
    until("the daemon is gone", GONE_WITHIN, || async {
        let mut pids = dayfly_host::process::all_pids().ok()?.into_iter();
        let is_there = pids.any(|pid| {
            let line = processes::command_line(pid);
            let is_role = line.contains("--role ") && line.contains(&path);
            killed.contains(&pid) && !engine::is_zombie(pid) || is_role
        });
        (!is_there).then_some(())
    })
    .await?;
    let start = Instant::now();
    daemon.start_again().await?;
    let took = start.elapsed();
    anyhow::ensure!(took < patient(GONE_WITHIN * 3), "up only after {took:?}");
    Ok(())
}
