//! What calls about execs do.

use dayfly_guest_proto::{ChannelId, GuestError, GuestErrorCode, Request, Response, StartExec};

use super::reader::Attachment;
use crate::agent::Agent;
use crate::refusal::{unsupported, wrong_state};

impl Agent {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the caller has sorted out everything else"
    )]
    pub(crate) fn exec_call(&mut self, request: Request) -> Result<Response, GuestError> {
        match request {
            Request::StartExec(start) => self.start_exec(&start),
            Request::AttachExec {
                channel,
                exec_id,
                stdout_offset,
                stderr_offset,
                stdin,
            } => {
                self.check_channel(channel)?;
                let exec = self.execs.find(&exec_id)?;
                exec.attach(Attachment {
                    channel,
                    stdout: stdout_offset,
                    stderr: stderr_offset,
                    stdin,
                })?;
                Ok(Response::Exec(exec.info()))
            }
            Request::DescribeExec { exec_id } => {
                Ok(Response::Exec(self.execs.find(&exec_id)?.info()))
            }
            Request::ListExecs { after, limit } => {
                Ok(Response::Execs(self.execs.page(after, limit)))
            }
            Request::SignalExec { channel, signal } => {
                self.execs.find_by_channel(channel)?.signal(signal)?;
                Ok(Response::Done)
            }
            Request::SignalProcess { exec_id, signal } => {
                self.execs.find(&exec_id)?.signal(signal)?;
                Ok(Response::Done)
            }
            Request::ResizeTerminal { exec_id, size } => {
                self.execs.find(&exec_id)?.resize(size)?;
                Ok(Response::Done)
            }
            Request::CloseStdin { channel } => {
                self.execs.find_by_channel(channel)?.close_input(channel);
                Ok(Response::Done)
            }
            Request::ForgetExec { exec_id } => {
                self.execs.forget(&exec_id);
                Ok(Response::Done)
            }
            _ => Err(unsupported()),
        }
    }

    fn start_exec(&mut self, start: &StartExec) -> Result<Response, GuestError> {
        if !self.life.is_running() {
            return Err(wrong_state("user code may not run yet"));
        }
        self.check_channel(start.channel)?;
        let pid = self.execs.start(start, &self.machine, &self.poller)?;
        Ok(Response::ExecStarted { pid })
    }

    /// Refuses a channel that something else uses.
    pub(crate) fn check_channel(&self, channel: ChannelId) -> Result<(), GuestError> {
        if self.is_open(channel) {
            let text = "the channel is in use";
            return Err(GuestError::new(GuestErrorCode::Exists, text));
        }
        Ok(())
    }
}
