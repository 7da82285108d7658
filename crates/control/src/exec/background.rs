//! How a command ended that was left in the background, for the audit record.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dayfly_node_api::{AttachExec, NodeError};
use dayfly_types::exec::ExecEvent;
use dayfly_types::limits::BACKGROUND_FOLLOWED_MAX;
use dayfly_types::{ExecId, SandboxId, SandboxState};
use futures::StreamExt;

use crate::control::Control;
use crate::exec::audit::Observer;
use crate::http::auth::Caller;
use crate::metrics::ExecOutcome;

/// Commands whose end is waited for. Each once, however often it is asked for: a follower is a
/// reader of the guest's, and there are only so many.
#[derive(Debug, Default)]
pub(crate) struct Followed(Mutex<HashSet<(SandboxId, ExecId)>>);

/// Why a command got no place.
enum NoPlace {
    /// It has one.
    Followed,
    TooMany,
}

/// A command whose end somebody waits for, until this is dropped.
struct Place {
    of: Arc<Followed>,
    command: (SandboxId, ExecId),
}

impl Followed {
    fn commands(&self) -> MutexGuard<'_, HashSet<(SandboxId, ExecId)>> {
        // Every change leaves the set whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a command, unless it has one or its sandbox has too many.
    fn enter(self: &Arc<Self>, command: (SandboxId, ExecId)) -> Result<Place, NoPlace> {
        let mut commands = self.commands();
        if commands.contains(&command) {
            return Err(NoPlace::Followed);
        }
        let of_sandbox = commands.iter().filter(|(sandbox, _)| *sandbox == command.0);
        if of_sandbox.count() >= BACKGROUND_FOLLOWED_MAX {
            return Err(NoPlace::TooMany);
        }
        commands.insert(command.clone());
        drop(commands);
        Ok(Place {
            of: Arc::clone(self),
            command,
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.commands().remove(&self.command);
    }
}

/// Waits for the end of a command, and writes a second entry about it: how it ended, and sizes and
/// digests of what it printed and the guest still has; or that its end was not seen.
pub(crate) fn record_its_end(
    control: &Arc<Control>,
    caller: &Caller,
    sandbox: SandboxId,
    exec: ExecId,
) {
    let unseen = || control.metrics.execs().count(ExecOutcome::Unseen);
    let place = match control.followed.enter((sandbox.clone(), exec.clone())) {
        Ok(place) => place,
        Err(NoPlace::Followed) => return,
        Err(NoPlace::TooMany) => return unseen(),
    };
    let Ok(permit) = control.limits.ending(&caller.project) else {
        return unseen();
    };
    let control = Arc::clone(control);
    // Written when it is dropped, whatever was seen until then.
    let mut observer = Observer::of_ending(&control, caller, &exec);
    // Not among the tasks that a stop waits for: a command may run for days.
    tokio::spawn(async move {
        let _places = (permit, place);
        if let Err(error) = follow(&control, &sandbox, &exec, &mut observer).await {
            observer.refused(&error);
        }
    });
}

async fn follow(
    control: &Control,
    sandbox: &SandboxId,
    exec: &ExecId,
    observer: &mut Observer,
) -> Result<(), NodeError> {
    if !is_awake(control, sandbox) {
        return Ok(());
    }
    // Without its streams: a command may wait for somebody to read what it prints, and that must not
    // be the record.
    let wait = AttachExec {
        exec: exec.clone(),
        stdout_offset: None,
        stderr_offset: None,
    };
    let (_, mut events) = control.node.attach_exec(sandbox, wait).await?;
    while let Some(event) = events.next().await {
        let event = event?;
        if matches!(event, ExecEvent::Exited(_)) {
            observer.see(&Ok(event));
            // How it ended is known, whatever becomes of what it printed.
            let _ = read(control, sandbox, exec, observer).await;
            break;
        }
    }
    Ok(())
}

/// Reads what it printed, now that nobody can be held up by that.
async fn read(
    control: &Control,
    sandbox: &SandboxId,
    exec: &ExecId,
    observer: &mut Observer,
) -> Result<(), NodeError> {
    if !is_awake(control, sandbox) {
        return Ok(());
    }
    let from_the_start = AttachExec {
        exec: exec.clone(),
        stdout_offset: Some(0),
        stderr_offset: Some(0),
    };
    let (_, mut events) = control.node.attach_exec(sandbox, from_the_start).await?;
    while let Some(event) = events.next().await {
        observer.see(&Ok(event?));
    }
    Ok(())
}

/// Whether it runs, as far as is known: who asks a sleeping one wakes it, which the record must not.
fn is_awake(control: &Control, sandbox: &SandboxId) -> bool {
    let live = control.view.get(sandbox);
    live.is_none_or(|live| live.report.state == SandboxState::Running)
}
