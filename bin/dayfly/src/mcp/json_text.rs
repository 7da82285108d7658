//! Putting one member into a JSON text without touching the rest of it: order, spaces and numbers
//! stay as their owner wrote them.

use std::ops::Range;

use serde_json::Value;

/// Why a text was left alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JsonTextError {
    #[error("it is not JSON (line {line}, column {column})")]
    NotJson { line: usize, column: usize },
    #[error("it is not a JSON object")]
    NotAnObject,
    #[error("{name:?} in it is not an object")]
    MemberNotAnObject { name: String },
    #[error("it cannot be changed safely")]
    Unsure,
}

/// The text with `text[outer][inner]` set to `value`.
pub(crate) fn with_member(
    text: &str,
    outer: &str,
    inner: &str,
    value: &Value,
) -> Result<String, JsonTextError> {
    let before: Value = serde_json::from_str(text).map_err(|error| JsonTextError::NotJson {
        line: error.line(),
        column: error.column(),
    })?;
    let mut wanted = before;
    let root = wanted.as_object_mut().ok_or(JsonTextError::NotAnObject)?;
    let servers = root
        .entry(outer)
        .or_insert_with(|| Value::Object(serde_json::Map::new()));
    let name = outer.to_owned();
    let servers = servers
        .as_object_mut()
        .ok_or(JsonTextError::MemberNotAnObject { name })?;
    servers.insert(inner.to_owned(), value.clone());
    let changed = change(text, outer, inner, value).ok_or(JsonTextError::Unsure)?;
    // Whatever was overlooked, nothing else may have changed.
    match serde_json::from_str::<Value>(&changed) {
        Ok(read) if read == wanted => Ok(changed),
        Ok(_) | Err(_) => Err(JsonTextError::Unsure),
    }
}

fn change(text: &str, outer: &str, inner: &str, value: &Value) -> Option<String> {
    let root = text.find('{')?;
    let pretty = serde_json::to_string_pretty(value).ok()?;
    let Some(servers) = member(text, root, outer) else {
        let pretty = indented(&pretty, 4);
        let added = format!("\n  \"{outer}\": {{\n    \"{inner}\": {pretty}\n  }}");
        return Some(inserted(text, root, &added, 0));
    };
    let pretty = indented(&pretty, 4);
    if let Some(old) = member(text, servers.start, inner) {
        let mut changed = text.to_owned();
        changed.replace_range(old, &pretty);
        return Some(changed);
    }
    let added = format!("\n    \"{inner}\": {pretty}");
    Some(inserted(text, servers.start, &added, 2))
}

/// Puts a member at the beginning of the object that opens at `open`.
fn inserted(text: &str, open: usize, added: &str, indent: usize) -> String {
    let rest = &text[open + 1..];
    let is_empty = rest.trim_start().starts_with('}');
    let end = if is_empty {
        format!("\n{}", " ".repeat(indent))
    } else {
        ",".to_owned()
    };
    let rest = if is_empty { rest.trim_start() } else { rest };
    format!("{}{added}{end}{rest}", &text[..=open])
}

fn indented(text: &str, columns: usize) -> String {
    text.replace('\n', &format!("\n{}", " ".repeat(columns)))
}

/// Where the value of a member of the object is that opens at `open`. The last of that name counts,
/// as it does for those who read it. The text is known to be JSON.
fn member(text: &str, open: usize, name: &str) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = skip_space(bytes, open + 1);
    let mut found = None;
    while bytes.get(at) == Some(&b'"') {
        let key = at..end_of_value(bytes, at)?;
        at = skip_space(bytes, key.end);
        if bytes.get(at) != Some(&b':') {
            return None;
        }
        let start = skip_space(bytes, at + 1);
        let end = end_of_value(bytes, start)?;
        if serde_json::from_str::<String>(&text[key]).ok()? == name {
            found = Some(start..end);
        }
        at = skip_space(bytes, end);
        if bytes.get(at) == Some(&b',') {
            at = skip_space(bytes, at + 1);
        }
    }
    found
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// Where the value ends that begins at `start`.
fn end_of_value(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut depth, mut at, mut is_in_text) = (0_usize, start, false);
    loop {
        let byte = *bytes.get(at)?;
        at += 1;
        match byte {
            b'\\' if is_in_text => at += 1,
            b'"' => {
                is_in_text = !is_in_text;
                if !is_in_text && depth == 0 {
                    return Some(at);
                }
            }
            _ if is_in_text => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ if depth == 0 => {
                // A number or a word: it ends before what ends a value.
                let next = bytes.get(at)?;
                if next.is_ascii_whitespace() || b",}]".contains(next) {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn put(text: &str) -> Result<String, JsonTextError> {
        with_member(text, "mcpServers", "dayfly", &json!({"command": "d"}))
    }

    #[test]
    fn the_rest_of_a_text_stays_as_it_was() {
        for text in [
            "{}",
            "{ }\n",
            "{\"z\": 1.10, \"a\": [1, {\"mcpServers\": 3}]}",
            "{\"mcpServers\": {}}",
            "{\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}\n  },\n  \"b\": null\n}\n",
            "{\"a\": \"}{\\\"\", \"mcpServers\": {\"dayfly\": {\"command\": \"old\"}}, \"n\": 1e5}",
        ] {
            let changed = put(text).unwrap();
            let value: Value = serde_json::from_str(&changed).unwrap();
            assert_eq!(value["mcpServers"]["dayfly"]["command"], "d", "{changed}");
            let again = put(&changed).unwrap();
            assert_eq!(again, changed, "a second time changes nothing");
        }
        let changed = put("{\"z\": 1.10, \"a\": 2}").unwrap();
        assert!(changed.ends_with(",\"z\": 1.10, \"a\": 2}"), "{changed}");
    }

    #[test]
    fn what_cannot_be_read_is_left_alone() {
        let comment = put("{\n  // mine\n  \"mcpServers\": {}\n}");
        assert!(matches!(
            comment,
            Err(JsonTextError::NotJson { line: 2, .. })
        ));
        assert_eq!(put("[]"), Err(JsonTextError::NotAnObject));
        let list = put("{\"mcpServers\": []}");
        assert!(matches!(list, Err(JsonTextError::MemberNotAnObject { .. })));
        assert!(put("").is_err());
    }

    #[test]
    fn a_name_that_is_there_twice_is_not_guessed_at() {
        let twice = put("{\"mcpServers\": {\"a\": 1}, \"mcpServers\": {\"b\": 2}}");
        let value: Value = serde_json::from_str(&twice.unwrap()).unwrap();
        assert_eq!(value["mcpServers"]["b"], 2);
    }
}
