//! A context bridge that follows a script: it answers by what it is asked, and knows of contexts
//! what the real one knows: which there are, and what has run in them.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

use super::fake_node::FakeNode;

/// Code that ends its interpreter.
pub(crate) const DIE: &str = "die";

#[derive(Debug, Default)]
pub(super) struct FakeContexts {
    made: BTreeMap<String, FakeContext>,
    calls: Vec<Value>,
}

#[derive(Debug)]
struct FakeContext {
    language: Value,
    is_dead: bool,
    runs: u64,
}

impl FakeNode {
    /// What the bridge was asked since somebody looked.
    pub(crate) fn take_bridge_calls(&self) -> Vec<Value> {
        self.with(|inner| std::mem::take(&mut inner.contexts.calls))
    }
}

impl FakeContexts {
    pub(super) fn answer(&mut self, request: &[u8]) -> Vec<Bytes> {
        let request: Value = serde_json::from_slice(request).unwrap();
        self.calls.push(request.clone());
        let context = request["context"].as_str().unwrap_or_default();
        let lines = match request["op"].as_str().unwrap() {
            "create" if request["language"] == "cobol" => {
                vec![
                    json!({"type": "refused", "code": "unsupported", "message": "no such language"}),
                ]
            }
            "create" => {
                self.make(context, &request["language"]);
                vec![json!({"type": "created", "context": context,
                    "language": request["language"]})]
            }
            "list" => vec![json!({"type": "contexts", "contexts": self.list()})],
            "run" if context == "gone" => {
                vec![json!({"type": "refused", "code": "not_found", "message": "no such context"})]
            }
            "run" => {
                let code = request["code"].as_str().unwrap_or_default();
                if let Some(made) = self.made.get_mut(context) {
                    made.runs += 1;
                    made.is_dead = code == DIE;
                }
                run(code)
            }
            "restart" => {
                if let Some(made) = self.made.get_mut(context) {
                    (made.runs, made.is_dead) = (0, false);
                }
                vec![json!({"type": "done"})]
            }
            _ => vec![json!({"type": "done"})],
        };
        lines.iter().map(|line| line.to_string().into()).collect()
    }

    fn make(&mut self, context: &str, language: &Value) {
        let new = FakeContext {
            language: language.clone(),
            is_dead: false,
            runs: 0,
        };
        self.made.entry(context.to_owned()).or_insert(new);
    }

    fn list(&self) -> Vec<Value> {
        let one = |name: &str, language: &Value, state: &str, runs: u64| {
            json!({"context": name, "language": language, "state": state,
                "execution_count": runs, "created_unix_ms": 1_700_000_000_000_i64})
        };
        let mut list = vec![one("a", &json!("python"), "idle", 3)];
        for (name, made) in &self.made {
            let state = if made.is_dead { "dead" } else { "idle" };
            list.push(one(name, &made.language, state, made.runs));
        }
        list
    }
}

fn run(code: &str) -> Vec<Value> {
    let end = |status: &str| {
        json!({"seq": 9, "type": "end", "status": status, "execution_count": 4,
            "duration_ms": 12})
    };
    match code {
        "raise" => vec![
            json!({"seq": 1, "type": "stderr", "text": "warned\n"}),
            json!({"seq": 2, "type": "error", "name": "ValueError", "value": "no",
                "traceback": ["Traceback", "ValueError: no"]}),
            end("error"),
        ],
        "silent" => vec![end("ok")],
        DIE => vec![end("died")],
        "slow" => vec![end("timed_out")],
        "late" => vec![
            json!({"seq": 1, "type": "error", "name": "ContextBusy", "value": "b", "traceback": []}),
            end("timed_out"),
        ],
        "anew" => vec![
            json!({"seq": 1, "type": "restarted", "reason": "it was ended by SIGKILL"}),
            end("ok"),
        ],
        "broken" => vec![json!({"seq": 1, "type": "stdout", "text": "half"})],
        "nonsense" => vec![json!("nonsense")],
        _ => vec![
            json!({"seq": 1, "type": "stdout", "text": "printed\n"}),
            json!({"seq": 2, "type": "result", "is_main": true,
                "data": {"text/plain": "{'a': 1}", "application/json": "{\"a\": 1}"}}),
            json!({"seq": 3, "type": "result", "is_main": false,
                "data": {"image/png": "iVBORw0KGgo="}}),
            end("ok"),
        ],
    }
}
