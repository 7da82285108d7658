//! Environment variables in requests.

use std::collections::BTreeMap;

use dayfly_types::limits;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};

/// Reads names with their values. An error repeats no value, as the parser's own would: values are
/// often secrets, and errors are logged.
pub(crate) fn variables<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    let given = Value::deserialize(deserializer)?;
    if given.is_null() {
        return Ok(None);
    }
    let Value::Object(given) = given else {
        let rule = "env must be an object of names with their values";
        return Err(Error::custom(rule));
    };
    let mut variables = BTreeMap::new();
    for (name, value) in given {
        let Value::String(value) = value else {
            let rule = "each value of env must be a string";
            return Err(Error::custom(rule));
        };
        variables.insert(name, value);
    }
    Ok(Some(variables))
}

/// Of one command.
pub(crate) fn command_schema() -> Schema {
    described("Environment variables of the command, over those of its sandbox.").into()
}

/// Of a sandbox that is made.
pub(crate) fn created_schema() -> Schema {
    of_sandbox("Environment variables of every command and every context of the sandbox.")
}

/// Of a sandbox that goes on from what another one, or it itself, was.
pub(crate) fn replaced_schema() -> Schema {
    of_sandbox("Environment variables in place of those that it would have; `{}` leaves none.")
}

fn of_sandbox(what: &str) -> Schema {
    let limit = limits::ENVIRONMENT_BYTES_MAX >> 10;
    let text = format!(
        "{what} What runs already keeps its own. {limit} KiB together at most. No response has the \
         values."
    );
    let example = serde_json::json!({"STAGE": "test", "API_TOKEN": "..."});
    described(&text).examples([example]).into()
}

fn described(what: &str) -> ObjectBuilder {
    let text = format!("{what} Names hold no `=`; neither names nor values hold a NUL.");
    schema().description(Some(text))
}

fn schema() -> ObjectBuilder {
    let text = |pattern: &str| {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(pattern))
    };
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Object, Type::Null]))
        .property_names(Some(text("^[^=\\u0000]+$")))
        .additional_properties(Some(text("^[^\\u0000]*$")))
}

#[cfg(test)]
mod tests {
    use crate::{CreateSandbox, ForkSandbox};

    #[test]
    fn an_error_repeats_no_value() {
        for env in [r#"{"A":4711}"#, r#"{"A":["4711"]}"#, r#""A=4711""#, "4711"] {
            let body = format!(r#"{{"env":{env}}}"#);
            let create = serde_json::from_str::<CreateSandbox>(&body).unwrap_err();
            let fork = serde_json::from_str::<ForkSandbox>(&body).unwrap_err();
            for error in [create, fork] {
                let text = error.to_string();
                assert!(text.contains("env") && !text.contains("4711"), "{text}");
            }
        }
        let fits = serde_json::from_str::<CreateSandbox>(r#"{"env":{"A":"4711"}}"#).unwrap();
        assert_eq!(fits.env.unwrap()["A"], "4711");
        let null = serde_json::from_str::<CreateSandbox>(r#"{"env":null}"#).unwrap();
        assert_eq!(null, CreateSandbox::default());
    }
}
