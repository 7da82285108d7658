//! The answer to one question.

use std::sync::Arc;

use dayfly_core::egress::decide_question;
use dayfly_types::egress::{
    Decision, DenyReason, EgressPolicy, EgressRecordKind, HostName, NameSource,
};
use hickory_proto::rr::RecordType;

use super::question::{Question, Reply};
use crate::outlet::{Allowed, Facts, NoAddress, Outlet};
use crate::resolve::ResolveError;

/// What can be said without asking anybody.
pub(super) enum Local {
    Reply(Option<Vec<u8>>),
    /// The name is allowed and its addresses are asked for.
    Ask(HostName, Allowed),
}

fn facts(name: Option<&HostName>) -> Facts {
    Facts {
        kind: EgressRecordKind::Dns,
        name: name.cloned(),
        source: if name.is_some() {
            NameSource::Dns
        } else {
            NameSource::None
        },
        destination: None,
    }
}

/// Answers what needs no upstream: names that are not allowed, and types that are not answered.
pub(super) fn answer_here(outlet: &Outlet, question: &Question) -> Local {
    let deny = |name, reason| {
        outlet.record(facts(name).record(Decision::Denied, Some(reason)));
    };
    let Some(name) = &question.name else {
        deny(None, DenyReason::BadName);
        return Local::Reply(question.reply(Reply::Absent));
    };
    let allowed = match decide(&outlet.policy(), name) {
        Ok(allowed) => allowed,
        Err(reason) => {
            deny(Some(name), reason);
            return Local::Reply(question.reply(Reply::Absent));
        }
    };
    let kind = question.kind();
    if kind == RecordType::A {
        return Local::Ask(name.clone(), allowed);
    }
    // Every client asks for these beside the address; a record of each says nothing.
    if !matches!(kind, RecordType::AAAA | RecordType::HTTPS) {
        deny(Some(name), DenyReason::QuestionType);
    }
    Local::Reply(question.reply(Reply::Empty))
}

fn decide(policy: &EgressPolicy, name: &HostName) -> Result<Allowed, DenyReason> {
    decide_question(policy, name).map(Allowed::from)
}

/// Asks upstream and answers with what may be reached.
pub(super) async fn answer_from_upstream(
    outlet: &Arc<Outlet>,
    question: &Question,
    name: &HostName,
    allowed: &Allowed,
) -> Option<Vec<u8>> {
    let facts = facts(Some(name));
    match outlet.resolve(name, None, allowed.rule.as_deref()).await {
        Ok(resolved) => {
            let mut found = resolved.addresses.iter();
            let internal = found.find_map(|one| outlet.internal_network(Some(name), None, *one));
            outlet.record(facts.answered(allowed, &resolved.addresses, internal));
            question.reply(Reply::Addresses {
                addresses: &resolved.addresses,
                ttl: resolved.ttl,
            })
        }
        Err(NoAddress::Denied(reason)) => {
            let mut record = facts.allowed(allowed, Decision::Denied);
            record.reason = Some(reason);
            outlet.record(record);
            let reply = if reason == DenyReason::Limit {
                Reply::Refused
            } else {
                Reply::Empty
            };
            question.reply(reply)
        }
        Err(NoAddress::Failed(error)) => {
            let mut record = facts.allowed(allowed, Decision::Failed);
            record.reason = Some(error.reason());
            outlet.record(record);
            question.reply(match error {
                ResolveError::Absent => Reply::Absent,
                ResolveError::Empty => Reply::Empty,
                ResolveError::Unavailable | ResolveError::NoResolver => Reply::Failed,
            })
        }
    }
}

/// Records that a question was not even read.
pub(super) fn record_limit(outlet: &Outlet) {
    outlet.record(facts(None).record(Decision::Denied, Some(DenyReason::Limit)));
}
