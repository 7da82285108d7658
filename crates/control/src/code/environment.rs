//! Gives an interpreter the environment variables of its sandbox.
//!
//! The bridge of a guest starts interpreters with an environment of its own, and a bridge is baked
//! into each template and captured with each snapshot. So the variables are set by code, in an
//! interpreter in which none has run: this works with every bridge that there is.

use std::collections::BTreeMap;
use std::time::Duration;

use dayfly_node_api::{ContextLines, NodeApi, NodeError};
use dayfly_types::ids::ID_RANDOM_BYTES;
use dayfly_types::limits::{CONTEXT_ENVIRONMENT_DEADLINE, CONTEXT_ENVIRONMENT_MAX};
use dayfly_types::{ErrorCode, ExecId, SandboxId};
use futures::StreamExt;

use crate::code::context::{
    BridgeCall, BridgeContext, BridgeLine, RunStatus, accept, ask, ask_once, broken, within,
};
use crate::http::sse::ascii_json;
use crate::sandbox::environment::Environment;

const IDLE: &str = "idle";
const DEAD: &str = "dead";
/// What a caller hears who has waited for nothing.
const NEVER_SET: &str = "the context did not take the environment variables of its sandbox: its \
    guest did not say that they are set";

/// What a context runs code in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interpreter {
    AsItWas,
    /// It had ended, and this is another one.
    StartedAnew,
}

/// Sets the variables in a context in which no code has run since its interpreter started. One whose
/// interpreter has ended is started anew for that: the bridge would do it with the next run, whose
/// code would not have them.
pub(crate) async fn equip(
    node: &dyn NodeApi,
    sandbox: &SandboxId,
    context: &ExecId,
    environment: &Environment,
) -> Result<Interpreter, NodeError> {
    if environment.is_empty() {
        return Ok(Interpreter::AsItWas);
    }
    // A run in a context that is not there is refused with the right words.
    let Some(found) = find(node, sandbox, context).await? else {
        return Ok(Interpreter::AsItWas);
    };
    match found.state.as_str() {
        DEAD => {
            let restart = BridgeCall::Restart { context };
            let BridgeLine::Done = ask_once(node, sandbox, &restart).await? else {
                return Err(broken());
            };
            set(node, sandbox, context, &found.language, environment).await?;
            Ok(Interpreter::StartedAnew)
        }
        IDLE if found.execution_count == 0 => {
            set(node, sandbox, context, &found.language, environment).await?;
            Ok(Interpreter::AsItWas)
        }
        // Whoever keeps it busy has come by here.
        _ => Ok(Interpreter::AsItWas),
    }
}

async fn find(
    node: &dyn NodeApi,
    sandbox: &SandboxId,
    context: &ExecId,
) -> Result<Option<BridgeContext>, NodeError> {
    let BridgeLine::Contexts { contexts } = ask_once(node, sandbox, &BridgeCall::List).await?
    else {
        return Err(broken());
    };
    let mut contexts = contexts.into_iter();
    Ok(contexts.find(|found| found.context == context.as_str()))
}

async fn set(
    node: &dyn NodeApi,
    sandbox: &SandboxId,
    context: &ExecId,
    language: &str,
    environment: &Environment,
) -> Result<(), NodeError> {
    let code = code(language, environment.variables()).ok_or_else(not_set)?;
    let mut random = [0; ID_RANDOM_BYTES];
    let drawn = getrandom::fill(&mut random);
    drawn.map_err(|_| NodeError::internal("the system has no randomness"))?;
    let call = BridgeCall::Run {
        context,
        run: &ExecId::from_random(random),
        code: &code,
        timeout_ms: u64::try_from(CONTEXT_ENVIRONMENT_MAX.as_millis()).ok(),
        after: 0,
    };
    let lines = ask(node, sandbox, &call);
    until_set(lines, CONTEXT_ENVIRONMENT_DEADLINE).await
}

/// The bridge ends the code at its own limit, but a bridge is a guest's and need not.
async fn until_set(
    lines: impl Future<Output = Result<ContextLines, NodeError>>,
    limit: Duration,
) -> Result<(), NodeError> {
    let set = async {
        let mut lines = lines.await?;
        // What it prints may have the values, and is nobody's.
        while let Some(line) = lines.next().await {
            if let BridgeLine::End { status, .. } = accept(&line?)? {
                let is_set = status == RunStatus::Ok;
                return is_set.then_some(()).ok_or_else(not_set);
            }
        }
        Err(broken())
    };
    within(limit, NEVER_SET, set).await
}

fn not_set() -> NodeError {
    NodeError::new(
        ErrorCode::GuestUnavailable,
        "the context did not take the environment variables of its sandbox",
    )
}

/// Code that sets the variables; `None` in a language that the bridge should not have.
fn code(language: &str, variables: &BTreeMap<String, String>) -> Option<String> {
    match language {
        "python" => Some(format!(
            "__import__('os').environ.update(__import__('json').loads({}))",
            quoted_json(variables)
        )),
        "javascript" => Some(format!(
            "void Object.assign(process.env, JSON.parse({}))",
            quoted_json(variables)
        )),
        "bash" => Some(exports(variables)),
        _ => None,
    }
}

/// JSON as a text of both languages: what is quoted twice, and has ASCII alone, has nothing left that
/// either would read in another way. IPython takes more characters than one for the end of a line.
fn quoted_json(variables: &BTreeMap<String, String>) -> String {
    ascii_json(&ascii_json(variables))
}

/// Each by itself: some names belong to the shell, which refuses to change them. A name that no
/// variable of a shell can have is left out, as a shell does with what it inherits.
fn exports(variables: &BTreeMap<String, String>) -> String {
    let mut lines = String::new();
    for (name, value) in variables.iter().filter(|(name, _)| is_of_a_shell(name)) {
        let value = value.replace('\'', r"'\''");
        lines.push_str(&format!("builtin export {name}='{value}'\n"));
    }
    lines + "true\n"
}

fn is_of_a_shell(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins_well = name
        .bytes()
        .next()
        .is_some_and(|byte| !byte.is_ascii_digit());
    begins_well && name.bytes().all(is_inner)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// What would end a text, begin a command, or be read as something else.
    fn hostile() -> BTreeMap<String, String> {
        let values = [
            "plain",
            "",
            "a'b\"c`d",
            "$(exit 7) ${HOME} %d !x",
            "line\nline\r\ttab",
            r"\n \u0041 \\ \' \",
            "\u{2028}\u{1f600}\u{7f}é",
            "'''\"\"\"#",
        ];
        let named = values.iter().enumerate();
        named
            .map(|(number, value)| (format!("V{number}"), (*value).to_owned()))
            .collect()
    }

    /// Runs code in a program of this host, and gives what it prints.
    fn printed(program: &str, words: &[&str], code: &str) -> Vec<u8> {
        let done = Command::new(program)
            .args(words)
            .arg(code)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        done.stdout
    }

    fn expected() -> Vec<u8> {
        let values: Vec<String> = hostile().into_values().collect();
        values.join("\0").into_bytes()
    }

    /// Prints for ever, as a hostile bridge may.
    async fn endless() -> Result<ContextLines, NodeError> {
        let lines = futures::stream::unfold((), |()| async {
            tokio::task::yield_now().await;
            let line = r#"{"type":"stdout","text":"x"}"#;
            Some((Ok(line.into()), ()))
        });
        Ok(lines.boxed())
    }

    async fn silent() -> Result<ContextLines, NodeError> {
        Ok(futures::stream::pending().boxed())
    }

    async fn ended(status: &str) -> Result<ContextLines, NodeError> {
        let line = format!(r#"{{"type":"end","status":"{status}"}}"#);
        Ok(futures::stream::iter([Ok(line.into())]).boxed())
    }

    #[tokio::test]
    async fn a_guest_that_never_says_that_they_are_set_is_not_waited_for() {
        let limit = Duration::from_millis(20);
        let waits = [
            until_set(silent(), limit).await,
            until_set(endless(), limit).await,
            until_set(std::future::pending(), limit).await,
        ];
        for outcome in waits {
            let error = outcome.unwrap_err();
            assert_eq!(error.code, ErrorCode::GuestUnavailable);
            assert!(error.message.contains("environment variables"), "{error}");
            assert!(error.message.ends_with("within 0 seconds"), "{error}");
        }
        until_set(ended("ok"), limit).await.unwrap();
        let refused = until_set(ended("timed_out"), limit).await;
        assert_eq!(refused.unwrap_err().message, not_set().message);
    }

    #[test]
    fn python_has_every_value_as_it_was() {
        let set = code("python", &hostile()).unwrap();
        let names: Vec<String> = hostile().into_keys().collect();
        let print = format!(
            "import sys, os\nsys.stdout.buffer.write(b'\\0'.join(os.environb[n.encode()] for n in {names:?}))"
        );
        let printed = printed("python3", &["-I", "-c"], &format!("{set}\n{print}"));
        assert_eq!(printed, expected());
    }

    #[test]
    fn bash_has_every_value_as_it_was_and_no_name_that_it_cannot_have() {
        let mut variables = hostile();
        for name in ["A-B", "1A", "A;exit 7", "A$(exit 7)", "é"] {
            variables.insert(name.to_owned(), "x".to_owned());
        }
        // The shell's own, which it refuses to change.
        variables.insert("UID".to_owned(), "4711".to_owned());
        let set = code("bash", &variables).unwrap();
        let print = r#"printf '%s\0' "$V0" "$V1" "$V2" "$V3" "$V4" "$V5" "$V6"; printf %s "$V7""#;
        let printed = printed("bash", &["-c"], &format!("{set}{print}"));
        assert_eq!(printed, expected());
    }

    #[test]
    fn javascript_gets_the_text_that_python_gets() {
        let set = code("javascript", &hostile()).unwrap();
        let text = set
            .strip_prefix("void Object.assign(process.env, JSON.parse(")
            .and_then(|rest| rest.strip_suffix("))"))
            .unwrap();
        let json: String = serde_json::from_str(text).unwrap();
        let variables: BTreeMap<String, String> = serde_json::from_str(&json).unwrap();
        assert_eq!(variables, hostile());
        assert!(set.is_ascii() && !set.contains('\n'));
        assert_eq!(code("cobol", &hostile()), None);
    }
}
