//! Hints of the server, which speak of HTTP, in the words of the command line.
//!
//! What is in neither table is shown as it came.

/// Requests that a hint names, and the command that does the same. `{}` is one part of a path; what
/// stood there goes into the command.
const REQUESTS: &[(&str, &str, &str)] = &[
    ("GET", "/v1/me", "dayfly whoami"),
    ("GET", "/v1/usage", "dayfly project usage"),
    ("GET", "/health", "dayfly version"),
    ("GET", "/v1/node", "dayfly node"),
    ("GET", "/v1/templates", "dayfly template ls"),
    ("GET", "/v1/templates/{}", "dayfly template info {}"),
    ("POST", "/v1/templates/{}/bake", "dayfly template bake {}"),
    ("GET", "/v1/volumes", "dayfly volume ls"),
    ("PATCH", "/v1/volumes/{}", "dayfly volume grow {} SIZE"),
    ("GET", "/v1/snapshots", "dayfly snapshot ls"),
    ("GET", "/v1/sandboxes", "dayfly ls"),
    ("GET", "/v1/sandboxes/{}", "dayfly info {}"),
    ("DELETE", "/v1/sandboxes/{}", "dayfly rm {}"),
    ("GET", ".../network", "dayfly net show ID"),
    ("GET", ".../ports", "dayfly port ls ID"),
    ("GET", "processes/{}/output", "dayfly logs ID {}"),
];

/// Other words of HTTP.
const PHRASES: &[(&str, &str)] = &[
    (
        "send the header `Authorization: Bearer <key>`",
        "give a key with DAYFLY_API_KEY, --key-file or `dayfly login`",
    ),
    (
        "use a new Idempotency-Key for a new request",
        "run the command again",
    ),
    (
        r#"such as metadata={"task":"7"}, percent-encoded"#,
        "such as --metadata task=7",
    ),
    (
        "leave network and egress_allowlist out",
        "leave --network and --allow out",
    ),
    (
        "leave tree_id out, or send the child's own fork_tree_id",
        "leave --tree out, or give the child's own tree",
    ),
    ("; ask again later", "; run the command again later"),
    (
        "ask again; if it stays so,",
        "run the command again; if it stays so,",
    ),
];

/// Says a hint of the server for somebody who types commands.
pub(crate) fn for_command_line(hint: &str) -> String {
    let mut text = hint.to_owned();
    for (theirs, ours) in PHRASES {
        text = text.replace(theirs, ours);
    }
    let mut said: Vec<String> = Vec::new();
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        let command = words.peek().and_then(|path| command_for(word, path));
        match command {
            Some(command) => {
                words.next();
                said.push(command);
            }
            None => said.push(word.to_owned()),
        }
    }
    said.join(" ")
}

/// The command for a method and the word behind it, with the punctuation that followed.
fn command_for(method: &str, path: &str) -> Option<String> {
    let method = method.trim_start_matches('`');
    let end = path.trim_end_matches(['`', ',', ';', '.', ':', ')']).len();
    let (path, rest) = path.split_at(end);
    let rest = rest.trim_start_matches('`');
    REQUESTS
        .iter()
        .filter(|(known, _, _)| *known == method)
        .find_map(|(_, pattern, command)| Some((command, part_of(pattern, path)?)))
        .map(|(command, part)| format!("`{}`{rest}", command.replace("{}", &part)))
}

/// What stands in a path where the pattern has `{}`; nothing when the path is another one.
fn part_of(pattern: &str, path: &str) -> Option<String> {
    let Some((before, after)) = pattern.split_once("{}") else {
        return (pattern == path).then(String::new);
    };
    let part = path.strip_prefix(before)?.strip_suffix(after)?;
    if part.is_empty() || part.contains('/') {
        return None;
    }
    // `{name}` is the document's own gap.
    let gap = part
        .strip_prefix('{')
        .and_then(|part| part.strip_suffix('}'));
    Some(gap.map_or_else(|| part.to_owned(), str::to_ascii_uppercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the server words them today.
    #[test]
    fn a_hint_names_commands_and_no_requests() {
        for (theirs, ours) in [
            (
                "GET /v1/me says which scopes this key has",
                "`dayfly whoami` says which scopes this key has",
            ),
            (
                "delete what is not needed, or ask the operator for more; GET /v1/usage shows it",
                "delete what is not needed, or ask the operator for more; `dayfly project usage` shows it",
            ),
            (
                "PATCH /v1/volumes/{name} makes it larger",
                "`dayfly volume grow NAME SIZE` makes it larger",
            ),
            (
                "GET /v1/templates/tools says why",
                "`dayfly template info tools` says why",
            ),
            (
                "look at GET .../network, and send the change again if it is still wanted",
                "look at `dayfly net show ID`, and send the change again if it is still wanted",
            ),
            (
                "its output is kept: `GET processes/ex-1/output`",
                "its output is kept: `dayfly logs ID ex-1`",
            ),
            (
                "ask again; if it stays so, GET /health says what the operator can do",
                "run the command again; if it stays so, `dayfly version` says what the operator can do",
            ),
            (
                "send the header `Authorization: Bearer <key>`",
                "give a key with DAYFLY_API_KEY, --key-file or `dayfly login`",
            ),
        ] {
            assert_eq!(for_command_line(theirs), ours);
        }
    }

    #[test]
    fn other_hints_stay_as_they_are() {
        for hint in ["", "wait", "GET up", "GET /v1/unheard/of", "a  b "] {
            assert_eq!(for_command_line(hint), hint);
        }
    }
}
