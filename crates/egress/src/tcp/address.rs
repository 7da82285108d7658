//! Connections of which only the address counts.

use std::sync::Arc;

use dayfly_types::egress::{DenyReason, EgressRecordKind};

use super::relay;
use crate::connection::{Session, Socket, dial_address};

/// Serves a connection of which `opening` was read before it was clear that no name would come.
/// `otherwise` is why it is denied when no rule speaks of the address: a name might have been
/// allowed.
pub(super) async fn serve(
    session: Arc<Session>,
    guest: Arc<Socket>,
    opening: Vec<u8>,
    otherwise: DenyReason,
) {
    let facts = session.facts(EgressRecordKind::Tcp, None);
    let target = session.target(EgressRecordKind::Tcp, None);
    let passage = match session.outlet().admit(target, facts.clone(), session.cut()) {
        Ok(passage) => passage,
        Err(reason) => {
            let reason = if reason == DenyReason::NoName {
                otherwise
            } else {
                reason
            };
            session.deny(&facts, reason);
            return session.reset();
        }
    };
    match dial_address(&session, passage).await {
        Ok(dialed) => relay::run(&session, &guest, &dialed, opening).await,
        Err(_) => session.reset(),
    }
}
