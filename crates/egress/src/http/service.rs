//! One request after the other, each decided by itself.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use dayfly_types::egress::{DenyReason, EgressRecordKind, HostName};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::copy_bidirectional;
use tokio::sync::Mutex as AsyncMutex;

use super::authority::{self, Authority, BadAuthority};
use super::denial::Denial;
use super::forward;
use super::gate::{Mark, Marks};
use super::headers;
use super::upstream::Upstream;
use crate::connection::{NotDialed, Session, dial_address, dial_name};

const KIND: EgressRecordKind = EgressRecordKind::Http;

/// What a guest gets back.
pub(super) type Answer = Response<Either<Incoming, Full<Bytes>>>;

/// Everything that is known about one guest connection between its requests.
#[derive(Debug)]
pub(super) struct Conversation {
    session: Arc<Session>,
    marks: Marks,
    /// Requests come one after the other, so nobody ever waits for this.
    upstream: AsyncMutex<Option<Upstream>>,
    tunnel: Mutex<Option<Tunnel>>,
}

/// Two connections that have changed to another protocol.
#[derive(Debug)]
struct Tunnel {
    guest: OnUpgrade,
    outside: OnUpgrade,
    /// On the list for as long as the tunnel is open.
    _upstream: Upstream,
}

/// Why a request was not answered by the host that it is for.
#[derive(Debug)]
enum NotForwarded {
    Denied(DenyReason),
    Failed(Option<DenyReason>),
}

impl From<NotDialed> for NotForwarded {
    fn from(error: NotDialed) -> Self {
        match error {
            NotDialed::Denied(reason) => Self::Denied(reason),
            NotDialed::Failed(reason) => Self::Failed(reason),
        }
    }
}

impl Conversation {
    pub(super) fn new(session: Arc<Session>, marks: Marks) -> Self {
        Self {
            session,
            marks,
            upstream: AsyncMutex::default(),
            tunnel: Mutex::default(),
        }
    }

    pub(super) async fn answer(&self, request: Request<Incoming>) -> Answer {
        let is_last = match self.marks.next() {
            Mark::Passed => false,
            Mark::PassedAsLast => true,
            Mark::Refused(reason) => return self.refuse(None, reason),
        };
        let (head, body) = request.into_parts();
        let read = authority::read(&head, self.session.destination());
        if head.method == Method::CONNECT {
            let name = read.ok().and_then(|authority| authority.name().cloned());
            return self.refuse(name, DenyReason::Protocol);
        }
        let authority = match read {
            Ok(authority) => authority,
            Err(BadAuthority::Name) => return self.refuse(None, DenyReason::BadName),
            Err(BadAuthority::Mismatch) => return self.refuse(None, DenyReason::Protocol),
        };
        let request = Request::from_parts(head, body);
        match self.forward(request, &authority, is_last).await {
            Ok(answer) => answer,
            Err(NotForwarded::Denied(reason)) => self.tell(authority.name(), Some(reason), false),
            Err(NotForwarded::Failed(reason)) => self.tell(authority.name(), reason, true),
        }
    }

    /// Denies what is not even a question for the rules.
    fn refuse(&self, name: Option<HostName>, reason: DenyReason) -> Answer {
        let facts = self.session.facts(KIND, name.clone());
        self.session.deny(&facts, reason);
        self.tell(name.as_ref(), Some(reason), false)
    }

    fn tell(&self, name: Option<&HostName>, reason: Option<DenyReason>, failed: bool) -> Answer {
        let destination = self.session.destination();
        let address = destination.ip().to_string();
        let denial = Denial {
            lifecycle: self.session.outlet().lifecycle(),
            host: Some(name.map_or(address.as_str(), HostName::as_str)),
            port: destination.port(),
            reason,
            is_failure: failed,
        };
        denial.answer()
    }

    async fn forward(
        &self,
        mut request: Request<Incoming>,
        authority: &Authority,
        is_last: bool,
    ) -> Result<Answer, NotForwarded> {
        let is_websocket = headers::is_websocket(request.headers());
        let guest = is_websocket.then(|| hyper::upgrade::on(&mut request));
        let mut slot = self.upstream.lock().await;
        let mut upstream = self.reach(slot.take(), authority).await?;
        let request = forward::outgoing(request, authority, &self.session)
            .ok_or(NotForwarded::Failed(None))?;
        let mut response = match upstream.sender.try_send_request(request).await {
            Ok(response) => response,
            Err(mut error) => {
                // The connection ended between two requests and nothing of this one was sent.
                let Some(request) = error.take_message() else {
                    return Err(NotForwarded::Failed(None));
                };
                drop(upstream);
                upstream = self.reach(None, authority).await?;
                let sent = upstream.sender.send_request(request).await;
                sent.map_err(|_| NotForwarded::Failed(None))?
            }
        };
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            let answer = forward::incoming(response, is_last);
            *slot = Some(upstream);
            return Ok(answer);
        }
        let guest = guest.ok_or(NotForwarded::Failed(None))?;
        let outside = hyper::upgrade::on(&mut response);
        let mut answer = forward::incoming(response, false);
        headers::ask_for_websocket(answer.headers_mut());
        *self.tunnel.lock().unwrap_or_else(PoisonError::into_inner) = Some(Tunnel {
            guest,
            outside,
            _upstream: upstream,
        });
        Ok(answer)
    }

    /// Decides about a request, and finds or makes the connection that it goes over.
    async fn reach(
        &self,
        kept: Option<Upstream>,
        authority: &Authority,
    ) -> Result<Upstream, NotForwarded> {
        let name = authority.name();
        let kept = kept.filter(|upstream| upstream.is_for(authority));
        if let Some(mut upstream) = kept {
            let target = self.session.target(KIND, name.cloned());
            let allowed = self.session.outlet().check(&target).map_err(|reason| {
                let facts = self.session.facts(KIND, name.cloned());
                self.session.deny(&facts, reason);
                NotForwarded::Denied(reason)
            })?;
            if upstream.sender.ready().await.is_ok() {
                upstream.record_again(&allowed);
                return Ok(upstream);
            }
        }
        let passage = self
            .session
            .admit(KIND, name.cloned())
            .map_err(NotForwarded::Denied)?;
        let dialed = match name {
            Some(name) => dial_name(&self.session, passage, name).await?,
            None => dial_address(&self.session, passage).await?,
        };
        Upstream::start(&self.session, dialed, authority.clone())
            .await
            .map_err(|_| NotForwarded::Failed(None))
    }

    /// After the last request: carries bytes when the connection has changed to another protocol.
    pub(super) async fn run_tunnel(&self) {
        let tunnel = self
            .tunnel
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(mut tunnel) = tunnel else {
            return;
        };
        let both = tokio::try_join!(&mut tunnel.guest, &mut tunnel.outside);
        let Ok((guest, outside)) = both else {
            return;
        };
        let (mut guest, mut outside) = (TokioIo::new(guest), TokioIo::new(outside));
        if copy_bidirectional(&mut guest, &mut outside).await.is_err() {
            self.session.reset();
        }
    }
}
