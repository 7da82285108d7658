//! `dayfly pause`, `resume`, `hibernate`, `wake` and `rollback`.

use dayfly_api::{RollbackSandbox, WakeSandbox};

use crate::dispatch::Session;
use crate::exit_status;
use crate::failure::{CommandError, Subject};
use crate::pairs;
use crate::sandbox::args::{RollbackArgs, SandboxArgs, WakeArgs};
use crate::sandbox::prefixes;

/// A state to go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    Pause,
    Resume,
    Hibernate,
}

impl Change {
    fn word(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Hibernate => "hibernate",
        }
    }
}

/// Prints the id, or the sandbox as JSON.
pub(crate) async fn change(
    session: &Session<'_>,
    args: &SandboxArgs,
    change: Change,
) -> Result<u8, CommandError> {
    let client = &session.client;
    let id = prefixes::resolve(client, &args.id).await?;
    let changed = match change {
        Change::Pause => client.pause_sandbox(&id).await,
        Change::Resume => client.resume_sandbox(&id).await,
        Change::Hibernate => client.hibernate_sandbox(&id).await,
    };
    changed.map_err(|source| {
        CommandError::call(format!("cannot {} sandbox {id}", change.word()), source)
    })?;
    tell(session, &id).await
}

/// As [`change`], with other environment variables when they are given.
pub(crate) async fn wake(session: &Session<'_>, args: &WakeArgs) -> Result<u8, CommandError> {
    let id = prefixes::resolve(&session.client, &args.sandbox.id).await?;
    let request = WakeSandbox {
        env: pairs::given(&args.env),
    };
    let woken = session.client.wake_sandbox_with(&id, &request).await;
    woken.map_err(|source| CommandError::call(format!("cannot wake sandbox {id}"), source))?;
    tell(session, &id).await
}

async fn tell(session: &Session<'_>, id: &str) -> Result<u8, CommandError> {
    if !session.printer.is_json() {
        session.printer.line(id)?;
        return Ok(exit_status::OK);
    }
    let sandbox = session
        .client
        .get_sandbox(id)
        .await
        .map_err(|source| CommandError::call(format!("cannot read sandbox {id}"), source))?;
    session.printer.json(&sandbox)?;
    Ok(exit_status::OK)
}

pub(crate) async fn rollback(
    session: &Session<'_>,
    args: &RollbackArgs,
) -> Result<u8, CommandError> {
    let id = prefixes::resolve(&session.client, &args.id).await?;
    let snapshot = prefixes::resolve_snapshot(&session.client, &args.snapshot).await?;
    let request = RollbackSandbox {
        snapshot_id: snapshot.clone(),
        env: pairs::given(&args.env),
    };
    let sandbox = session
        .client
        .rollback_sandbox_with(&id, &request)
        .await
        .map_err(|source| {
            CommandError::call(
                format!("cannot take sandbox {id} back to {snapshot}"),
                source,
            )
            .about(Subject::Snapshot)
        })?;
    if session.printer.is_json() {
        session.printer.json(&sandbox)?;
    } else {
        session.printer.line(&id)?;
    }
    Ok(exit_status::OK)
}
