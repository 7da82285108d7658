//! TLS connections: the name is read, and the bytes pass through as they are.

use std::sync::Arc;

use dayfly_types::egress::{DenyReason, EgressRecordKind, HostName};

use super::hello::Hello;
use super::refuse::refuse_tls;
use super::relay;
use crate::connection::{NotDialed, Session, Socket, dial_address, dial_name};

const KIND: EgressRecordKind = EgressRecordKind::Tls;

pub(super) async fn serve(session: Arc<Session>, guest: Arc<Socket>, hello: Hello) {
    let name = match hello.name.as_deref().map(HostName::parse).transpose() {
        Ok(name) => name,
        Err(_) => return refuse_broken(&session, &guest, DenyReason::BadName).await,
    };
    let passage = match session.admit(KIND, name.clone()) {
        Ok(passage) => passage,
        Err(reason) => return refuse_tls(&guest, reason).await,
    };
    let dialed = match &name {
        Some(name) => dial_name(&session, passage, name).await,
        None => dial_address(&session, passage).await,
    };
    match dialed {
        Ok(dialed) => relay::run(&session, &guest, &dialed, hello.bytes).await,
        Err(NotDialed::Denied(reason)) => refuse_tls(&guest, reason).await,
        // As if the host itself had refused.
        Err(NotDialed::Failed(_)) => session.reset(),
    }
}

/// For what began as TLS and from which no name can be read.
pub(super) async fn refuse_broken(session: &Session, guest: &Socket, reason: DenyReason) {
    session.deny(&session.facts(KIND, None), reason);
    refuse_tls(guest, reason).await;
}
