//! Which builds of the engine a node has, who needs each, and what an operator gives up with one.

use std::collections::HashSet;
use std::fmt::Write as _;

use anyhow::{Context, Result, bail, ensure};
use dayfly_host::files::write_atomic;
use dayfly_installation::DataDirectory;
use dayfly_node::engine_users::{
    EngineUse, EngineUser, captured_users, running_users, template_users,
};
use dayfly_node::journal::Journal;
use dayfly_snapshots::TemplateStore;
use dayfly_snapshots::capture::survey;
use dayfly_types::SandboxId;
use serde::Serialize;
use time::OffsetDateTime;

use crate::args::{InstallationArguments, RetireArguments};
use crate::engine_builds::{Build, EngineBuilds, users_of};

/// How many letters of a build's name are shown, and are enough to name it.
const SHORT: usize = 12;

/// All builds of a node.
#[derive(Debug, Serialize)]
pub(crate) struct EngineList {
    pub(crate) engines: Vec<EngineReport>,
    /// Why some needs may be missing. Nothing is removed or retired meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) incomplete: Option<String>,
}

/// One build.
#[derive(Debug, Serialize)]
pub(crate) struct EngineReport {
    pub(crate) build: String,
    pub(crate) label: String,
    pub(crate) version: String,
    pub(crate) state: EngineState,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) since: OffsetDateTime,
    pub(crate) needed_by: Vec<Need>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EngineState {
    /// New sandboxes run in it.
    Installed,
    /// Something was saved by it.
    Kept,
    /// Nothing needs it; the node removes it when it starts or has baked next.
    Unneeded,
    /// Nothing is started in it any more.
    Retired,
    /// Its files are not what they were; nothing is started in it.
    Damaged,
    /// Who needs it cannot be told.
    Unknown,
}

/// Somebody who needs a build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Need {
    pub(crate) kind: &'static str,
    pub(crate) id: String,
    /// Another build that can restore it. None: without this one its memory is lost.
    pub(crate) otherwise: Option<String>,
}

/// What became of a build.
#[derive(Debug, Serialize)]
pub(crate) struct Retired {
    pub(crate) build: String,
    /// Who is restored by another build of the same version from now on.
    pub(crate) moved: Vec<Need>,
    /// Who cannot be restored any more, for as long as no build of that version is installed.
    pub(crate) lost: Vec<Need>,
}

pub(crate) fn list(arguments: &InstallationArguments) -> Result<EngineList> {
    let directory = DataDirectory::open(&arguments.data_dir)?;
    let all = EngineBuilds::of(&directory).all()?;
    let (users, incomplete) = match users(&directory) {
        Ok(users) => (users, None),
        Err(error) => (Vec::new(), Some(format!("{error:#}"))),
    };
    let mut engines: Vec<EngineReport> = all
        .iter()
        .map(|build| report(build, &all, &users))
        .collect();
    if incomplete.is_some() {
        let unneeded = engines.iter_mut();
        unneeded
            .filter(|engine| engine.state == EngineState::Unneeded)
            .for_each(|engine| engine.state = EngineState::Unknown);
    }
    Ok(EngineList {
        engines,
        incomplete,
    })
}

/// Has nothing started in a build any more. The running node goes by it at once.
pub(crate) fn retire(arguments: &RetireArguments) -> Result<Retired> {
    let directory = DataDirectory::open(&arguments.installation.data_dir)?;
    let builds = EngineBuilds::of(&directory);
    let all = builds.all()?;
    let build = one_of(&all, &arguments.build)?;
    ensure!(
        !build.is_installed,
        "build {} is the installed one; install another and start the daemon first",
        build.root.id
    );
    let users = users(&directory).context("it cannot be told who needs it")?;
    let needs = report(build, &all, &users).needed_by;
    let (moved, lost): (Vec<Need>, Vec<Need>) =
        needs.into_iter().partition(|need| need.otherwise.is_some());
    if !lost.is_empty() && !arguments.accept_loss {
        let what: Vec<String> = lost.iter().map(describe).collect();
        bail!(
            "build {} is needed, and no other of version {} is here that can be used: {} could not \
             be restored any more. Copy out what matters and delete them first, or say --accept-loss",
            build.root.id,
            build.version,
            what.join(", ")
        );
    }
    write_atomic(&builds.retired_mark(&build.root.id), b"", 0o644)
        .context("cannot mark it as retired")?;
    Ok(Retired {
        build: build.root.id.clone(),
        moved,
        lost,
    })
}

fn one_of<'a>(all: &'a [Build], name: &str) -> Result<&'a Build> {
    let mut matching = all.iter().filter(|build| build.root.id.starts_with(name));
    let found = matching.next();
    let Some(found) = found.filter(|_| !name.is_empty()) else {
        bail!("there is no build {name:?}; dayflyd engines ls shows them");
    };
    ensure!(
        matching.next().is_none(),
        "{name:?} is the beginning of several builds; give more of it"
    );
    Ok(found)
}

/// Everybody who needs an engine, from the disk alone.
fn users(directory: &DataDirectory) -> Result<Vec<EngineUser>> {
    let node = directory.node();
    let journal = Journal::open(&node.join("sandboxes")).context("cannot open the journal")?;
    let entries = journal.entries().context("cannot read the journal")?;
    let (captures, damaged) = survey(&node.join("captures")).context("cannot list captures")?;
    ensure!(
        damaged.is_empty(),
        "the capture {} cannot be read, and may need any build",
        damaged[0]
    );
    let templates = TemplateStore::new(node.join("templates"));
    let baked = template_users(&templates).context("cannot list templates")?;
    let mut users = running_users(&entries)?;
    let running: HashSet<SandboxId> = users.iter().filter_map(running_sandbox).collect();
    // What a sandbox slept in stays while it runs on top of it.
    let is_told = |user: &EngineUser| match &user.what {
        EngineUse::Asleep(id) => !running.contains(id),
        EngineUse::Deleted(_) => false,
        EngineUse::Template { .. } | EngineUse::Running(_) | EngineUse::Snapshot(_) => true,
    };
    let captured = captured_users(&captures).into_iter();
    users.extend(captured.chain(baked).filter(is_told));
    Ok(users)
}

fn running_sandbox(user: &EngineUser) -> Option<SandboxId> {
    match &user.what {
        EngineUse::Running(id) => Some(id.clone()),
        EngineUse::Template { .. }
        | EngineUse::Asleep(_)
        | EngineUse::Snapshot(_)
        | EngineUse::Deleted(_) => None,
    }
}

fn report(build: &Build, all: &[Build], users: &[EngineUser]) -> EngineReport {
    let needs = users_of(build, all, users);
    let state = match build {
        Build {
            is_installed: true, ..
        } => EngineState::Installed,
        Build {
            is_retired: true, ..
        } => EngineState::Retired,
        Build {
            is_whole: false, ..
        } => EngineState::Damaged,
        _ if needs.is_empty() => EngineState::Unneeded,
        _ => EngineState::Kept,
    };
    EngineReport {
        build: build.root.id.clone(),
        label: build.root.label.clone(),
        version: build.version.to_string(),
        state,
        since: OffsetDateTime::from(build.root.made_at),
        needed_by: needs
            .into_iter()
            .map(|user| need(user, build, all))
            .collect(),
    }
}

fn need(user: &EngineUser, of: &Build, all: &[Build]) -> Need {
    let (kind, id) = match &user.what {
        EngineUse::Template { name, version } => ("template", format!("{name} {version}")),
        EngineUse::Running(id) => ("running sandbox", id.to_string()),
        EngineUse::Asleep(id) => ("sleeping sandbox", id.to_string()),
        EngineUse::Snapshot(id) => ("snapshot", id.to_string()),
        EngineUse::Deleted(id) => ("deleted snapshot", id.to_string()),
    };
    let mut others = all.iter().filter(|other| other.root.id != of.root.id);
    let otherwise = others.find(|other| other.can_stand_in_for(user));
    Need {
        kind,
        id,
        otherwise: otherwise.map(|other| other.root.id.clone()),
    }
}

fn describe(need: &Need) -> String {
    format!("{} {}", need.kind, need.id)
}

/// For a person.
pub(crate) fn render(list: &EngineList) -> String {
    let mut text = String::new();
    for engine in &list.engines {
        let state = match engine.state {
            EngineState::Installed => "installed",
            EngineState::Kept => "kept",
            EngineState::Unneeded => "unneeded",
            EngineState::Retired => "retired",
            EngineState::Damaged => "damaged",
            EngineState::Unknown => "unknown",
        };
        let short = engine.build.get(..SHORT).unwrap_or(&engine.build);
        let _ = writeln!(text, "{short}  {state:<9}  {}", engine.label);
        for need in &engine.needed_by {
            let _ = writeln!(text, "    needed by {}", describe(need));
        }
    }
    if let Some(why) = &list.incomplete {
        let _ = writeln!(text, "who needs which cannot be told: {why}");
    }
    text.trim_end().to_owned()
}

/// For a person.
pub(crate) fn render_retired(retired: &Retired) -> String {
    let mut text = format!("retired: {}", retired.build);
    for need in &retired.moved {
        let by = need.otherwise.as_deref().unwrap_or_default();
        let _ = write!(text, "\n    {} is restored by {by} now", describe(need));
    }
    for need in &retired.lost {
        let _ = write!(text, "\n    {} cannot be restored any more", describe(need));
    }
    text
}
