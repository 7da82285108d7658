//! What the two ends say to each other is frozen in `schema/node-1.json`.
//!
//! A difference is either a mistake or an addition. Set `DAYFLY_BLESS=1` to write the file anew,
//! and read its difference: nothing that was there may change or go.

use std::path::Path;

use dayfly_node_api::NodeCall;
use serde_json::{Value, json};

use crate::{sample_calls, samples};

fn surface() -> Value {
    let calls: Vec<_> = sample_calls::calls()
        .into_iter()
        .map(|(call, reply)| json!({"call": call, "reply": reply}))
        .collect();
    json!({
        "calls": calls,
        "streams": samples::streams(),
        "transfers": samples::transfers(),
        "refusal": samples::full(),
        "report": samples::report(),
        "exec_end": samples::end(),
        "file_change": samples::change(1),
    })
}

#[test]
fn live_surface_equals_the_frozen_schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schema/node-1.json");
    let live = serde_json::to_string_pretty(&surface()).unwrap() + "\n";
    if std::env::var_os("DAYFLY_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &live).unwrap();
    }
    let frozen = std::fs::read_to_string(&path).unwrap();
    assert!(
        live == frozen,
        "the contract changed; live surface:\n{live}"
    );
}

#[test]
fn samples_cover_every_call() {
    let mut seen: Vec<_> = sample_calls::calls()
        .iter()
        .map(|(call, _)| call.name())
        .collect();
    seen.sort_unstable();
    let mut all = NodeCall::NAMES.to_vec();
    all.sort_unstable();
    assert_eq!(seen, all);
}

#[test]
fn a_call_with_a_field_that_nobody_knows_is_refused() {
    for text in [
        r#"{"sandbox":{"id":"sb-local-x","more":1}}"#,
        r#"{"no_such_call":{}}"#,
    ] {
        assert!(serde_json::from_str::<NodeCall>(text).is_err(), "{text}");
    }
}
