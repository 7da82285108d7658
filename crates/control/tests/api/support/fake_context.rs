//! A context bridge that follows a script: it answers by what it is asked.

use bytes::Bytes;
use serde_json::{Value, json};

pub(crate) fn answer(request: &[u8]) -> Vec<Bytes> {
    let request: Value = serde_json::from_slice(request).unwrap();
    let context = request["context"].as_str().unwrap_or_default();
    let lines = match request["op"].as_str().unwrap() {
        "create" if request["language"] == "cobol" => {
            vec![json!({"type": "refused", "code": "unsupported", "message": "no such language"})]
        }
        "create" => vec![json!({"type": "created", "context": context,
            "language": request["language"]})],
        "list" => vec![json!({"type": "contexts", "contexts": [{"context": "a",
            "language": "python", "state": "idle", "execution_count": 3,
            "created_unix_ms": 1_700_000_000_000_i64}]})],
        "run" if context == "gone" => {
            vec![json!({"type": "refused", "code": "not_found", "message": "no such context"})]
        }
        "run" => run(request["code"].as_str().unwrap_or_default()),
        _ => vec![json!({"type": "done"})],
    };
    lines.iter().map(|line| line.to_string().into()).collect()
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
                "data": {"image/png": "aGk="}}),
            end("ok"),
        ],
    }
}
