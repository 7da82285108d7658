//! `dayflyd backup`: everything that cannot be made again, as it was at about one moment.
//!
//! What is sealed (captures, baked templates, engine roots) is held by second names in a directory
//! of its own, in a moment, so that nothing of it can go while it is copied at leisure. The order
//! makes the rest fit: which database the node works for, then records and captures, then volumes,
//! and the database last, so that it knows of everything that was taken before. What it has beyond
//! that was made meanwhile, and a row without a sandbox is given up after a restore, as after any
//! loss. `docs/adr/0028-backup.md`.

mod captures;
pub(crate) mod check;
mod collect;
pub(crate) mod contents;
mod output;
pub(crate) mod progress;
mod records;
mod stage;
mod volumes;

use std::fs;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};
use dayfly_backup::{BackupDestination, BackupManifest, BackupWriter};
use dayfly_control::store::copy_database;
use dayfly_installation::output::print;
use dayfly_installation::{DataDirectory, runtime};
use serde::Serialize;
use tokio::runtime::Handle;

use self::collect::Collected;
use self::contents::Contents;
use self::output::Output;
use self::progress::Progress;
use self::stage::Stage;
use crate::args::MakeBackupArguments;

/// The place of the standard output or input on the command line.
pub(crate) const STREAM: &str = "-";

/// A backup that was made, or was looked at.
#[derive(Debug, Serialize)]
pub(crate) struct Described {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<PathBuf>,
    pub(crate) created_at: String,
    pub(crate) program: String,
    pub(crate) files: usize,
    pub(crate) bytes: u64,
    #[serde(flatten)]
    pub(crate) contents: Contents,
}

impl Described {
    pub(crate) fn of(manifest: &BackupManifest, path: &Path) -> Result<Self> {
        let contents = serde_json::from_value(manifest.contents.clone());
        let created_at = serde_json::to_value(manifest)?["created_at"].clone();
        Ok(Self {
            path: (path != Path::new(STREAM)).then(|| path.to_owned()),
            created_at: created_at.as_str().unwrap_or_default().to_owned(),
            program: manifest.program.clone(),
            files: manifest.files(),
            bytes: manifest.bytes(),
            contents: contents.context("the list of the backup does not say what is in it")?,
        })
    }
}

/// Makes a backup and says what is in it.
pub(crate) async fn run(arguments: &MakeBackupArguments) -> Result<ExitCode> {
    let directory = DataDirectory::open(&arguments.data_dir)?;
    let to = arguments.to.clone().context("say where the backup goes")?;
    let is_stream = to == Path::new(STREAM);
    let is_terminal = is_stream && std::io::stdout().is_terminal();
    ensure!(
        !is_terminal,
        "an archive is no text for a terminal; send it somewhere"
    );
    let progress = Progress::new("backed up", runtime::stop_on_signal()?);
    let (runtime, place) = (Handle::current(), to.clone());
    let work = move || make(&directory, &place, progress, &runtime);
    let manifest = tokio::task::spawn_blocking(work).await??;
    let made = Described::of(&manifest, &to)?;
    if is_stream {
        // The standard output is the backup.
        let text = if arguments.json {
            serde_json::to_string_pretty(&made)?
        } else {
            render(&made)
        };
        writeln!(std::io::stderr(), "{text}")?;
    } else {
        print(arguments.json, &made, render)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn make(
    directory: &DataDirectory,
    to: &Path,
    mut progress: Progress,
    runtime: &Handle,
) -> Result<BackupManifest> {
    let instance = directory
        .instance()?
        .context("no daemon has used this directory yet")?;
    let stage = Stage::begin(directory)?;
    let begun = BackupWriter::begin(destination(to, &stage)?);
    let mut output = Output::new(begun?, &mut progress);
    let created_at = SystemTime::now();
    let node = directory.node();
    // Before the database: the node must not know a later one than is in the backup.
    let identity = fs::read(node.join("identity.json"));
    let identity = identity.context("cannot read which database the node works for")?;
    let mut collected = Collected::now(directory, &stage)?;
    output.directory("node", &node)?;
    output.bytes("node/identity.json", 0o600, &identity)?;
    let volumes = volumes::copy_all(directory, &mut output, &mut collected.records, runtime)?;
    let database = stage.path("dayfly.db");
    let copied = runtime.block_on(copy_database(&directory.database(), &database));
    copied.context("cannot copy the database")?;
    output.directory("control", &directory.control())?;
    output.sealed("control/dayfly.db", &database, Some(0o600))?;
    add_top(directory, &mut output)?;
    collected.add_to(&mut output, &stage)?;
    let contents = Contents {
        instance: instance.instance,
        snapshots: collected.captures.snapshots(),
        sleepers: collected
            .records
            .asleep
            .keys()
            .map(ToString::to_string)
            .collect(),
        unreadable: collected
            .records
            .unreadable
            .iter()
            .map(ToString::to_string)
            .collect(),
        volumes,
        left_out: collected.records.left_out(),
    };
    let program = env!("CARGO_PKG_VERSION");
    let contents = serde_json::to_value(contents)?;
    Ok(output.into_writer().finish(created_at, program, contents)?)
}

fn destination(to: &Path, stage: &Stage) -> Result<BackupDestination> {
    if to != Path::new(STREAM) {
        return Ok(BackupDestination::Directory(to.to_owned()));
    }
    let stdout = std::io::stdout().as_fd().try_clone_to_owned();
    let stdout = fs::File::from(stdout.context("cannot use the standard output")?);
    Ok(BackupDestination::Stream {
        stream: Box::new(std::io::BufWriter::with_capacity(1 << 20, stdout)),
        scratch: stage.make("scratch")?,
    })
}

/// What lies at the top of a data directory, and is small.
fn add_top(directory: &DataDirectory, output: &mut Output<'_>) -> Result<()> {
    let root = directory.root();
    output.changing("admin.key", &directory.admin_key())?;
    output.changing("instance.json", &root.join("instance.json"))?;
    let accelerator = crate::engine::probe_file(directory);
    if accelerator.exists() {
        output.changing("node/accelerator.json", &accelerator)?;
    }
    output.changing_tree("recipes", &directory.recipes())
}

/// For a person.
pub(crate) fn render(made: &Described) -> String {
    let Contents {
        snapshots,
        sleepers,
        volumes,
        ..
    } = &made.contents;
    let mut text = format!(
        "{} snapshots, {} sleeping sandboxes, {} volumes; {} files, {} MiB, of {}\n",
        snapshots,
        sleepers.len(),
        volumes.len(),
        made.files,
        made.bytes >> 20,
        made.created_at
    );
    text.push_str(&made.contents.remarks());
    text.push_str("not in it: the settings file, and templates that nothing needs");
    text
}
