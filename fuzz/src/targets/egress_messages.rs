//! What the egress process and the node say to each other.
//!
//! What is promised for any packet: no panic; a policy that is accepted is one that the checks of a
//! policy accept; and what was read, written again, is read as the same.

use std::fmt::Debug;

use dayfly_egress::protocol::{EgressCall, EgressMessage};
use dayfly_types::egress::EgressPolicy;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Inputs, texts};

pub(super) fn check(input: &[u8]) {
    survives::<EgressCall>(input);
    survives::<EgressMessage>(input);
    survives::<EgressPolicy>(input);
}

fn survives<T>(input: &[u8])
where
    T: DeserializeOwned + Serialize + PartialEq + Debug,
{
    let Ok(value) = serde_json::from_slice::<T>(input) else {
        return;
    };
    let text = serde_json::to_vec(&value).unwrap_or_default();
    let again = serde_json::from_slice::<T>(&text);
    assert!(
        matches!(&again, Ok(again) if *again == value),
        "written again it is {again:?} and not {value:?}"
    );
}

pub(super) fn seeds() -> Inputs {
    texts(&[
        r#"{"id":1,"request":{"type":"hello","protocol":1}}"#,
        r#"{"id":2,"request":{"type":"open","lifecycle":{"sandbox":"sb-local-1","slot":1,"start":2},"epoch":3,"policy":{"mode":"allowlist","rules":[{"id":"r1","host":"*.allowed.test","ports":[443]},{"id":"r2","cidr":"93.184.216.0/24","ports":[80]}]}}}"#,
        r#"{"id":3,"request":{"type":"close","lifecycle":{"sandbox":"sb-local-1","slot":1,"start":2}}}"#,
        r#"{"answer":{"id":1,"answer":{"type":"hello","protocol":1,"open":[[{"sandbox":"sb-local-1","slot":1,"start":2},3]]}}}"#,
        r#"{"answer":{"id":1,"answer":{"type":"refused","why":"no"}}}"#,
        r#"{"records":[]}"#,
        r#"{"lost":{"lifecycle":{"sandbox":"sb-local-1","slot":1,"start":2},"count":7}}"#,
        r#"{"mode":"deny"}"#,
        r#"{"mode":"public","rules":[]}"#,
    ])
}
