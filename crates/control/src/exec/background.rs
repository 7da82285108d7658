//! How a command ended that was left in the background, for the audit record.

use std::sync::Arc;

use dayfly_node_api::{AttachExec, NodeError};
use dayfly_types::exec::ExecEvent;
use dayfly_types::{ExecId, SandboxId};
use futures::StreamExt;

use crate::control::Control;
use crate::exec::audit::Observer;
use crate::http::auth::Caller;

/// Waits for the end of a command, and writes a second entry about it: how it ended, and sizes and
/// digests of what it printed and the guest still has. There is none when the end was not seen: the
/// sandbox slept or went first, this server did, or there are too many to wait for.
pub(crate) fn record_its_end(
    control: &Arc<Control>,
    caller: &Caller,
    sandbox: SandboxId,
    exec: ExecId,
) {
    let Ok(place) = control.limits.ending(&caller.project) else {
        return;
    };
    let (control, caller) = (Arc::clone(control), caller.clone());
    // Not among the tasks that a stop waits for: a command may run for days.
    tokio::spawn(async move {
        let _place = place;
        if let Err(error) = record(&control, &caller, &sandbox, &exec).await {
            tracing::debug!(sandbox_id = %sandbox, exec_id = %exec, error = %error,
                "the end of a command in the background was not seen");
        }
    });
}

async fn record(
    control: &Control,
    caller: &Caller,
    sandbox: &SandboxId,
    exec: &ExecId,
) -> Result<(), NodeError> {
    // Without its streams: a command may wait for somebody to read what it prints, and that must not
    // be the record.
    let wait = AttachExec {
        exec: exec.clone(),
        stdout_offset: None,
        stderr_offset: None,
    };
    let (_, mut events) = control.node.attach_exec(sandbox, wait).await?;
    while let Some(event) = events.next().await {
        if let ExecEvent::Exited(_) = event? {
            return read(control, caller, sandbox, exec).await;
        }
    }
    Ok(())
}

/// Reads what it printed, now that nobody can be held up by that.
async fn read(
    control: &Control,
    caller: &Caller,
    sandbox: &SandboxId,
    exec: &ExecId,
) -> Result<(), NodeError> {
    let from_the_start = AttachExec {
        exec: exec.clone(),
        stdout_offset: Some(0),
        stderr_offset: Some(0),
    };
    let (_, events) = control.node.attach_exec(sandbox, from_the_start).await?;
    let mut events = Observer::of_ending(caller, exec).watch(events);
    while let Some(event) = events.next().await {
        event?;
    }
    Ok(())
}
