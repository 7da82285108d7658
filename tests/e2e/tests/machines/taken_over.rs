//! A17: somebody has taken over an engine. What it can reach, write and use is tried from inside a
//! jail that is made like the one of a real engine, beside it in its slot, and compared with the
//! table in `docs/security/engine-takeover.md`. `DAYFLY_BLESS=1` rewrites the table.

use std::io::Read as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use dayfly_attacker::engine::{self as attacker, Attempt, Came};
use dayfly_e2e::jailed::{self, Engine, TUN};
use dayfly_e2e::{Daemon, DaemonOptions, create, output, setting_or_skip};
use dayfly_host::engine_root::{EngineRootSpec, RootFile, ensure_engine_root};
use dayfly_host::jail::{JailCalls, JailSpec, launch};
use dayfly_host::process::{Exit, Pidfd, set_child_subreaper};
use dayfly_types::limits;

const LIMIT: Duration = Duration::from_secs(60);
const ABSENT: Came = Came::Refused(libc_errno::NO_SUCH_FILE);
const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/security/engine-takeover.md"
);
const BEGIN: &str = "<!-- measured: begin -->\n";
const END: &str = "<!-- measured: end -->\n";

/// The numbers of errors that attempts end with.
mod libc_errno {
    pub(crate) const NO_SUCH_FILE: i32 = 2;
    pub(crate) const TOO_LARGE: i32 = 27;
}

/// The signal of a call that is on no list.
const BAD_CALL: i32 = 31;

struct Rig {
    daemon: Daemon,
    engine: Engine,
    spec: JailSpec,
    log: PathBuf,
}

impl Rig {
    /// A jail in the slot of a sandbox, with another program in the engine's place.
    fn new(daemon: Daemon, id: &str) -> Result<Self> {
        set_child_subreaper()?;
        let engine = jailed::engine(&daemon, id)?;
        let mut spec = jailed::spec(&daemon, &engine)?;
        let roots = daemon.path().join("taken-over");
        std::fs::create_dir(&roots)?;
        spec.root = root_like(&spec.root, &roots)?;
        spec.cgroup_procs = jailed::control_group(&daemon, &engine)?.procs_paths();
        spec.program = PathBuf::from(attacker::PROGRAM);
        let log = daemon.path().join("taken-over.log");
        Ok(Self {
            daemon,
            engine,
            spec,
            log,
        })
    }

    async fn run(&self, calls: JailCalls, attempts: &[Attempt]) -> Result<(Exit, Vec<Came>)> {
        let spec = JailSpec {
            calls,
            arguments: attacker::arguments(attempts),
            ..self.spec.clone()
        };
        let log = std::fs::File::create(&self.log)?;
        let jail = self.daemon.programs().join("dayfly-jail");
        let identity = launch(&jail, &spec, log.into(), LIMIT).await?;
        let exit = tokio::time::timeout(LIMIT, Pidfd::open(identity)?.wait()).await??;
        let came = attacker::outcomes(&std::fs::read_to_string(&self.log)?);
        Ok((exit, came))
    }

    /// What comes of attempts that do not end it.
    async fn tried(&self, attempts: &[Attempt]) -> Result<Vec<Came>> {
        let (exit, came) = self.run(JailCalls::EmulatedEngine, attempts).await?;
        let said = std::fs::read_to_string(&self.log)?;
        ensure!(exit == Exit::Status(0), "{exit:?}: {said}");
        ensure!(came.len() == attempts.len(), "{said}");
        Ok(came)
    }

    /// Whether each of these ends it, under both lists.
    async fn all_end_it(&self, attempts: &[Attempt]) -> Result<bool> {
        for calls in [JailCalls::EmulatedEngine, JailCalls::KvmEngine] {
            for attempt in attempts {
                let attempts = [Attempt::call(GETPID, &[]), attempt.clone()];
                let found = self.run(calls, &attempts).await?;
                if found != (Exit::Signal(BAD_CALL), vec![Came::Done]) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Reading, and opening to change, each of these: how many of each were possible.
    async fn open_each(&self, paths: &[PathBuf]) -> Result<String> {
        ensure!(!paths.is_empty(), "nothing to open");
        let read: Vec<Attempt> = paths.iter().cloned().map(Attempt::Read).collect();
        let write: Vec<Attempt> = paths.iter().cloned().map(Attempt::Write).collect();
        let read = share(&self.tried(&read).await?);
        let write = share(&self.tried(&write).await?);
        Ok(format!("read {read}, change {write}"))
    }
}

const GETPID: i64 = 39;

fn share(came: &[Came]) -> &'static str {
    match came.iter().filter(|&&it| it == Came::Done).count() {
        0 => "none",
        done if done == came.len() => "all",
        _ => "some",
    }
}

fn yes(it: bool) -> &'static str {
    if it { "yes" } else { "no" }
}

/// Everything of the engine's own root, and the attacker.
fn root_like(root: &Path, store: &Path) -> Result<PathBuf> {
    let files = files_below(root)?.into_iter().map(|source| {
        let target = Path::new("/").join(source.strip_prefix(root)?);
        Ok(RootFile { source, target })
    });
    let spec = EngineRootSpec {
        label: "the attacker".to_owned(),
        program: PathBuf::from(attacker::PROGRAM),
        files: files.collect::<Result<_>>()?,
        mount_directories: ["/run", "/template"].map(PathBuf::from).into(),
        mount_files: Vec::new(),
    };
    Ok(ensure_engine_root(&spec, store)?.path)
}

fn files_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut waiting) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            match entry.file_type()? {
                kind if kind.is_dir() => waiting.push(entry.path()),
                kind if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The regular files of a directory under the name that it has inside.
fn inside(directory: &Path, target: &str) -> Result<Vec<PathBuf>> {
    files_below(directory)?
        .iter()
        .map(|path| Ok(Path::new(target).join(path.strip_prefix(directory)?)))
        .collect()
}

type Rows = Vec<(String, String)>;

async fn files(rig: &Rig, other: &Path) -> Result<Rows> {
    let root = inside(&rig.spec.root, "/")?;
    let program = Path::new(attacker::PROGRAM);
    let root: Vec<_> = root.into_iter().filter(|path| path != program).collect();
    let run = &rig.spec.mounts[0].source;
    let (sealed, own): (Vec<_>, Vec<_>) = inside(run, "/run")?
        .into_iter()
        .partition(|path| is_sealed(path));
    let data = rig.daemon.path();
    let foreign: Vec<PathBuf> = [
        data.join("admin.key"),
        data.join("control/dayfly.db"),
        data.join("node/accelerator.json"),
        other.join("disk.img"),
        "/etc/passwd".into(),
        "/etc/shadow".into(),
        "/proc/self/status".into(),
        "/proc/1/environ".into(),
        "/sys/kernel/notes".into(),
        "/sys/fs/cgroup/cgroup.procs".into(),
    ]
    .into();
    for path in foreign.iter().filter(|path| !path.starts_with("/sys")) {
        ensure!(path.exists(), "{} is not even outside", path.display());
    }
    let absent = rig
        .tried(
            &foreign
                .iter()
                .cloned()
                .map(Attempt::Read)
                .collect::<Vec<_>>(),
        )
        .await?;
    let all_absent = absent.iter().all(|&came| came == ABSENT);
    let adding = ["/added", "/usr/added", "/template/added", "/dev/added"];
    let adding = adding.map(|path| Attempt::Create(path.into()));
    Ok(vec![
        row(
            "its root: engine, libraries, firmware",
            rig.open_each(&root).await?,
        ),
        row(
            "the template",
            rig.open_each(&inside(&rig.engine.template, "/template")?)
                .await?,
        ),
        row(
            "its run directory: disk, spare disks, console, own sockets",
            rig.open_each(&own).await?,
        ),
        row(
            "layers of captures, linked into its run directory",
            rig.open_each(&sealed).await?,
        ),
        row(
            "new files outside its run directory",
            share(&rig.tried(&adding).await?),
        ),
        row(
            "the operator's key, the database, the node's records, another sandbox's disk, /etc, /proc, /sys",
            if all_absent { "not there" } else { "there" },
        ),
    ])
}

/// What the node links there stays root's.
fn is_sealed(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("sealed-") || name.ends_with(".layer") || name == "restored.state"
}

fn row(what: &str, found: impl Into<String>) -> (String, String) {
    (what.to_owned(), found.into())
}

async fn amounts(rig: &Rig) -> Result<Rows> {
    let largest = limits::ENGINE_FILE_BYTES_MAX;
    let attempts = [
        Attempt::Create("/run/own".into()),
        Attempt::Place("/run/console.log".into(), largest),
    ];
    let came = rig.tried(&attempts).await?;
    let is_limited = came[1] == Came::Refused(libc_errno::TOO_LARGE);
    let limited = format!("{} GiB", largest >> 30);
    let group = jailed::control_group(&rig.daemon, &rig.engine)?.limits()?;
    Ok(vec![
        row(
            "the largest file in its run directory",
            if is_limited {
                limited.as_str()
            } else {
                "not as said"
            },
        ),
        row(
            "a new file in its run directory",
            yes(came[0] == Came::Done),
        ),
        row(
            "memory, CPU time, processes and threads",
            format!(
                "its guest's {} MiB and {} MiB, {} %, {}",
                (group.memory_bytes >> 20) - limits::ENGINE_OVERHEAD_MIB,
                limits::ENGINE_OVERHEAD_MIB,
                group.cpu_quota_percent,
                group.pids_max
            ),
        ),
    ])
}

async fn devices_and_sockets(rig: &Rig) -> Result<Rows> {
    const SOCKET: i64 = 41;
    const CONNECT: i64 = 42;
    let write = |path: &str| Attempt::Write(path.into());
    let there = [write("/dev/null"), write(TUN)];
    let absent = [
        "/dev/kvm",
        "/dev/mem",
        "/dev/vda",
        "/dev/fuse",
        "/dev/vhost-net",
    ]
    .map(write);
    let absent = rig.tried(&absent).await?.iter().all(|&came| came == ABSENT);
    let families = [2, 10, 16, 17, 38, 40].map(|family| Attempt::call(SOCKET, &[family, 1, 0]));
    let local = rig.tried(&[Attempt::call(SOCKET, &[1, 1, 0])]).await?;
    let sink = TcpListener::bind("127.0.0.1:0")?;
    sink.set_nonblocking(true)?;
    let reach = Attempt::Reach(sink.local_addr()?.port(), "reached".to_owned());
    let jailed_ends = rig.all_end_it(std::slice::from_ref(&reach)).await?;
    let jailed = received(&sink)?;
    let free = std::process::Command::new(attacker::PROGRAM)
        .args(attacker::arguments(&[reach]))
        .output()?;
    ensure!(free.status.success());
    Ok(vec![
        row(
            "/dev/null, /dev/net/tun",
            format!("open {}", share(&rig.tried(&there).await?)),
        ),
        row(
            "/dev/kvm without KVM, memory, disks, others",
            if absent { "not there" } else { "there" },
        ),
        row("a local socket of its own", yes(local == [Came::Done])),
        row(
            "a connection to a local socket",
            ended(
                rig.all_end_it(&[Attempt::call(CONNECT, &[0, 0, 0])])
                    .await?,
            ),
        ),
        row(
            "sockets of IPv4, IPv6, netlink, packets, the kernel's ciphers, vsock",
            ended(rig.all_end_it(&families).await?),
        ),
        row(
            "bytes at a sink on the host's loopback (the same program without a jail)",
            format!("{jailed}, {} ({})", ended(jailed_ends), received(&sink)?),
        ),
    ])
}

fn ended(it: bool) -> &'static str {
    if it { "ends it" } else { "does not end it" }
}

/// How many bytes came over all connections until now.
fn received(sink: &TcpListener) -> Result<usize> {
    let mut bytes = Vec::new();
    while let Ok((mut stream, _)) = sink.accept() {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.read_to_end(&mut bytes)?;
    }
    Ok(bytes.len())
}

async fn processes(rig: &Rig) -> Result<Rows> {
    const FORK: i64 = 57;
    const VFORK: i64 = 58;
    const KILL: i64 = 62;
    const TGKILL: i64 = 234;
    const EXECVE: i64 = 59;
    let processes = [Attempt::call(FORK, &[]), Attempt::call(VFORK, &[])];
    let signals = [
        Attempt::call(KILL, &[-1, 9]),
        Attempt::call(TGKILL, &[2, 2, 9]),
    ];
    // What it executes last is itself, without anything to try.
    let again = Attempt::Call(
        EXECVE,
        vec![attacker::PROGRAM.into(), "0".into(), "0".into()],
    );
    let foreign = Attempt::Call(EXECVE, vec!["/bin/sh".into(), "0".into(), "0".into()]);
    let foreign = rig.tried(&[foreign]).await?;
    let (exit, came) = rig.run(JailCalls::EmulatedEngine, &[again]).await?;
    let is_executed = came.is_empty() && matches!(exit, Exit::Status(_));
    Ok(vec![
        row("a new process", ended(rig.all_end_it(&processes).await?)),
        row(
            "a signal to another process",
            ended(rig.all_end_it(&signals).await?),
        ),
        row(
            "a program of its root, in its own place, until the engine's own filter is on",
            yes(is_executed),
        ),
        row(
            "a program of the host",
            if foreign == [ABSENT] {
                "not there"
            } else {
                "there"
            },
        ),
    ])
}

async fn calls(rig: &Rig) -> Result<Rows> {
    const MMAP: i64 = 9;
    let code = Attempt::call(MMAP, &[0, 4096, 7, 0x22, -1, 0]);
    // As the row names them.
    let other = [101, 165, 175, 272, 298, 310, 321, 323].map(|n| Attempt::call(n, &[0; 6]));
    let mut rows = Vec::new();
    for (calls, name) in [
        (JailCalls::EmulatedEngine, "emulated"),
        (JailCalls::KvmEngine, "KVM"),
    ] {
        let (exit, _) = rig.run(calls, std::slice::from_ref(&code)).await?;
        let found = if exit == Exit::Status(0) {
            "yes"
        } else {
            "ends it"
        };
        rows.push(row(&format!("code of its own, {name}"), found));
        let list = calls.list();
        let narrowed = list
            .allowed
            .iter()
            .filter(|it| !it.forms.is_empty())
            .count();
        rows.push(row(
            &format!("system calls, {name}"),
            format!(
                "{} allowed, {narrowed} of them in given forms; {} absent; any other ends it",
                list.allowed.len(),
                list.absent.len()
            ),
        ));
    }
    rows.push(row(
        "tracing, mounting, modules, namespaces, performance events, memory of others, BPF, page faults",
        ended(rig.all_end_it(&other).await?),
    ));
    Ok(rows)
}

/// The table in the page is what was found just now.
fn compare_with_page(rows: &Rows) -> Result<()> {
    let mut table =
        "| what somebody tries who has taken over an engine | what comes of it |\n| --- | --- |\n"
            .to_owned();
    for (what, found) in rows {
        table.push_str(&format!("| {what} | {found} |\n"));
    }
    let page = std::fs::read_to_string(PAGE)?;
    let (before, rest) = page.split_once(BEGIN).context("the page has no table")?;
    let (written, after) = rest.split_once(END).context("the table has no end")?;
    if std::env::var_os("DAYFLY_BLESS").is_some() {
        std::fs::write(PAGE, format!("{before}{BEGIN}{table}{END}{after}"))?;
        return Ok(());
    }
    ensure!(
        written == table,
        "the page says\n{written}\nand found was\n{table}"
    );
    Ok(())
}

#[tokio::test]
async fn a17_an_engine_that_was_taken_over_reaches_what_the_page_says() -> Result<()> {
    let setting = setting_or_skip!();
    let (daemon, client) = Daemon::ready(&setting, DaemonOptions::default()).await?;
    if client.node().await?.isolation != "emulated" {
        dayfly_e2e::figure!("skipped: the page's table is of a host without KVM");
        return daemon.finish().await;
    }
    let id = create(&client, "base").await?.id;
    output(&client, &id, "echo mine >/workspace/f; sync").await?;
    // What was asleep has layers of a capture in its run directory.
    client.hibernate_sandbox(&id).await?;
    client.wake_sandbox(&id).await?;
    let neighbour = create(&client, "base").await?.id;
    let other = dayfly_e2e::engine::run_directory(&daemon, &neighbour)?;
    let rig = Rig::new(daemon, &id)?;
    let mut rows = files(&rig, &other).await?;
    rows.extend(amounts(&rig).await?);
    rows.extend(devices_and_sockets(&rig).await?);
    rows.extend(processes(&rig).await?);
    rows.extend(calls(&rig).await?);
    for sandbox in [&id, &neighbour] {
        output(&client, sandbox, "echo alive").await?;
    }
    compare_with_page(&rows)?;
    rig.daemon.finish().await
}
