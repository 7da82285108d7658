//! Calls that connect a channel with something inside the guest.

use dayfly_guest_proto::{ChannelId, GuestError, Response};

use crate::agent::Agent;
use crate::poller::Poller;
use crate::refusal::wrong_state;
use crate::{ports, socket};

impl Agent {
    pub(crate) fn connect_socket(
        &mut self,
        channel: ChannelId,
        path: &str,
    ) -> Result<Response, GuestError> {
        if !self.life.is_running() {
            return Err(wrong_state("user code may not run yet"));
        }
        self.check_channel(channel)?;
        let open = |poller: &Poller| socket::open(path, poller);
        self.sockets.connect(channel, open, &self.poller)?;
        Ok(Response::Done)
    }

    pub(crate) fn connect_port(
        &mut self,
        channel: ChannelId,
        port: u16,
    ) -> Result<Response, GuestError> {
        if !self.life.is_running() {
            return Err(wrong_state("user code may not run yet"));
        }
        self.check_channel(channel)?;
        let open = |poller: &Poller| ports::open(port, poller);
        self.sockets.connect(channel, open, &self.poller)?;
        Ok(Response::Done)
    }
}
