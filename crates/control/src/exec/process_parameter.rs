//! Parameters of requests about execs, and the part of a stream that one asks for.

use bytes::Bytes;
use dayfly_node_api::{ExecEvents, NodeError};
use dayfly_types::exec::ExecEvent;
use dayfly_types::{ErrorCode, ExecId, SandboxId};
use futures::StreamExt;
use futures::stream::BoxStream;

use crate::admission::limit::Permit;
use crate::http::parameter::{Flag, Number, OutputName, WAIT_SECONDS_MAX, parameters};

/// What one read of output gives when it does not say.
pub(crate) const OUTPUT_BYTES_DEFAULT: u64 = 1 << 20;
/// What one question may ask for.
const OUTPUT_BYTES_MAX: u64 = 1 << 30;

parameters! {
    /// An exec in the path.
    Path ProcessParameter {
        /// The sandbox.
        id: SandboxId,
        /// The exec.
        exec_id: ExecId,
    }

    Query WaitParameter {
        /// Wait this long for the end of the exec.
        wait_seconds: Option<Number<0, WAIT_SECONDS_MAX>>,
    }

    Query AttachParameter {
        /// Where to begin. Default 0.
        stdout_offset: Option<Number<0, { u64::MAX }>>,
        /// Where to begin. Default 0.
        stderr_offset: Option<Number<0, { u64::MAX }>>,
    }

    Query OutputParameter {
        /// Default stdout.
        stream: OutputName,
        /// Default 0.
        offset: Option<Number<0, { u64::MAX }>>,
        /// At most this many bytes. Default 1 MiB.
        limit: Option<Number<1, OUTPUT_BYTES_MAX>>,
    }

    Query StdinParameter {
        /// Where the first byte of the body is in the input as a whole. Default: behind all that the
        /// guest has taken.
        offset: Option<Number<0, { u64::MAX }>>,
        /// Closes the input behind the body.
        close: Flag,
    }
}

impl AttachParameter {
    /// Of stdout and stderr.
    pub(crate) fn offsets(&self) -> (u64, u64) {
        let [stdout, stderr] = [self.stdout_offset, self.stderr_offset];
        (stdout.unwrap_or(0), stderr.unwrap_or(0))
    }
}

/// The first `bytes` bytes of a stream. An error when the guest drops some of them meanwhile: their
/// place in the answer is already announced.
pub(crate) fn part_of(
    events: ExecEvents,
    bytes: u64,
    place: Permit,
) -> BoxStream<'static, Result<Bytes, NodeError>> {
    futures::stream::unfold(Some((events, bytes, place)), async |state| {
        let (mut events, left, place) = state?;
        if left == 0 {
            return None;
        }
        match events.next().await {
            Some(Ok(ExecEvent::Stdout(mut bytes) | ExecEvent::Stderr(mut bytes))) => {
                bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
                let left = left - bytes.len() as u64;
                Some((Ok(bytes), Some((events, left, place))))
            }
            Some(Err(error)) => Some((Err(error), None)),
            Some(Ok(ExecEvent::Gap(_) | ExecEvent::Exited(_))) | None => {
                let text = "the guest dropped this part of the output meanwhile";
                let error = NodeError::new(ErrorCode::GuestUnavailable, text);
                Some((Err(error), None))
            }
        }
    })
    .boxed()
}
