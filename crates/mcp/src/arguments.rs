//! Arguments of a call against the schema of its tool. Only the words of JSON Schema that the files
//! of tools use are known; a test keeps it so.

use rmcp::model::JsonObject;
use serde_json::Value;

/// Why arguments do not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ArgumentError {
    #[error("the argument `{field}` is missing")]
    Missing { field: String },
    #[error("there is no argument `{field}`; known are: {known}")]
    Unknown { field: String, known: String },
    #[error("the argument `{field}` {rule}")]
    Unfit { field: String, rule: String },
}

/// The words of a schema that are understood.
#[cfg(test)]
const KNOWN_WORDS: [&str; 11] = [
    "type",
    "description",
    "default",
    "enum",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
];

/// Checks arguments and fills in what is absent and has a default.
pub(crate) fn fit(schema: &JsonObject, given: JsonObject) -> Result<JsonObject, ArgumentError> {
    let empty = JsonObject::new();
    let properties = schema
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let mut fitting = JsonObject::new();
    for (field, value) in given {
        let Some(property) = properties.get(&field) else {
            let known: Vec<&str> = properties.keys().map(String::as_str).collect();
            let known = known.join(", ");
            return Err(ArgumentError::Unknown { field, known });
        };
        // Some clients send null for what is not given.
        if value.is_null() {
            continue;
        }
        let value = check(property, value).map_err(|rule| ArgumentError::Unfit {
            field: field.clone(),
            rule,
        })?;
        fitting.insert(field, value);
    }
    for (field, property) in properties {
        if let Some(default) = property.get("default")
            && !fitting.contains_key(field)
        {
            fitting.insert(field.clone(), default.clone());
        }
    }
    let required = schema.get("required").and_then(Value::as_array);
    for field in required.into_iter().flatten().filter_map(Value::as_str) {
        if !fitting.contains_key(field) {
            let field = field.to_owned();
            return Err(ArgumentError::Missing { field });
        }
    }
    Ok(fitting)
}

/// Checks one value; the error is the rule that it breaks.
fn check(schema: &Value, value: Value) -> Result<Value, String> {
    let value = match schema["type"].as_str() {
        Some("string") => check_text(schema, value)?,
        Some("integer") => check_integer(schema, &value)?,
        Some("number") => check_number(schema, value)?,
        Some("boolean") if value.is_boolean() => value,
        Some("boolean") => return Err("must be true or false".to_owned()),
        Some("array") => check_list(schema, value)?,
        _ => return Err("has a type that this program does not know".to_owned()),
    };
    match schema["enum"].as_array() {
        Some(values) if !values.contains(&value) => {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            Err(format!("must be one of {}", values.join(", ")))
        }
        Some(_) | None => Ok(value),
    }
}

fn check_text(schema: &Value, value: Value) -> Result<Value, String> {
    let Some(text) = value.as_str() else {
        return Err("must be a text".to_owned());
    };
    if text.contains('\0') {
        return Err("must not hold a NUL".to_owned());
    }
    let count = text.chars().count() as u64;
    check_count(schema, count, "minLength", "maxLength", "characters")?;
    Ok(value)
}

fn check_list(schema: &Value, value: Value) -> Result<Value, String> {
    let Value::Array(items) = value else {
        return Err("must be a list".to_owned());
    };
    let count = items.len() as u64;
    check_count(schema, count, "minItems", "maxItems", "entries")?;
    let items = items.into_iter().enumerate().map(|(index, item)| {
        check(&schema["items"], item).map_err(|rule| format!("has at {index} what {rule}"))
    });
    Ok(Value::Array(items.collect::<Result<_, _>>()?))
}

fn check_count(
    schema: &Value,
    count: u64,
    least: &str,
    most: &str,
    what: &str,
) -> Result<(), String> {
    match (schema[least].as_u64(), schema[most].as_u64()) {
        (Some(least), _) if count < least => Err(format!("must have at least {least} {what}")),
        (_, Some(most)) if count > most => Err(format!("must have at most {most} {what}")),
        _ => Ok(()),
    }
}

fn check_integer(schema: &Value, value: &Value) -> Result<Value, String> {
    // A whole number may come as 3.0.
    let whole = value.as_i64().or_else(|| whole_of(value.as_f64()?));
    let Some(whole) = whole else {
        return Err("must be a whole number".to_owned());
    };
    check_number(schema, whole.into())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a number beyond these bounds is refused before"
)]
fn whole_of(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (number.fract() == 0.0 && number.abs() < EXACT).then_some(number as i64)
}

fn check_number(schema: &Value, value: Value) -> Result<Value, String> {
    let Some(number) = value.as_f64() else {
        return Err("must be a number".to_owned());
    };
    if let Some(least) = schema["minimum"].as_f64().filter(|least| number < *least) {
        return Err(format!("must be at least {least}"));
    }
    if let Some(most) = schema["maximum"].as_f64().filter(|most| number > *most) {
        return Err(format!("must be at most {most}"));
    }
    let above = schema["exclusiveMinimum"].as_f64();
    if let Some(above) = above.filter(|above| number <= *above) {
        return Err(format!("must be more than {above}"));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::definition::{OmittedSandbox, definitions, find};

    fn fitted(tool: &str, given: &Value) -> Result<Value, String> {
        let schema = find(tool).unwrap().input_for(OmittedSandbox::Own);
        let given = given.as_object().unwrap().clone();
        fit(&schema, given)
            .map(Value::Object)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn defaults_are_filled_in_and_null_is_nothing() {
        let given = json!({"path": "a", "first_line": null, "max_lines": 2.0});
        let expected = json!({"path": "a", "first_line": 1, "max_lines": 2});
        assert_eq!(fitted("read_file", &given), Ok(expected));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (tool, given, text) in [
            ("run_shell", json!({}), "the argument `command` is missing"),
            (
                "run_shell",
                json!({"command": 3}),
                "`command` must be a text",
            ),
            ("run_shell", json!({"cmd": "ls"}), "no argument `cmd`"),
            (
                "run_code",
                json!({"code": "1", "language": "cobol"}),
                "must be one of",
            ),
            (
                "run_code",
                json!({"code": "1", "timeout_seconds": 0}),
                "more than 0",
            ),
            (
                "read_file",
                json!({"path": "a", "first_line": 1.5}),
                "whole number",
            ),
            ("read_file", json!({"path": "a\0"}), "NUL"),
            ("fork", json!({"commands": []}), "at least 1 entries"),
            ("fork", json!({"commands": ["a", 1]}), "must be a text"),
            (
                "edit_file",
                json!({"path": "a", "old_text": "", "new_text": ""}),
                "at least 1",
            ),
            ("expose_port", json!({"port": 70000}), "at most 65535"),
        ] {
            let error = fitted(tool, &given).unwrap_err();
            assert!(error.contains(text), "{tool} {given}: {error}");
        }
    }

    #[test]
    fn no_schema_has_words_that_are_not_checked() {
        for tool in definitions() {
            for (name, property) in tool.input["properties"].as_object().unwrap() {
                for word in property.as_object().unwrap().keys() {
                    // The server checks names.
                    let is_known = matches!(word.as_str(), "items" | "pattern")
                        || KNOWN_WORDS.contains(&word.as_str());
                    assert!(is_known, "{} {name} {word}", tool.name);
                }
            }
        }
    }
}
