//! The names that requests may use, as the document has them, and what is said of others.
//!
//! A field or parameter that is not understood may have been meant to narrow: a misspelt `network`
//! must not become a sandbox that reaches everything.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use dayfly_api::Hint;
use http::Method;
use serde::de::DeserializeOwned;
use serde_json::{Deserializer, Value};

use super::document::openapi;
use super::error::ApiError;

/// What is repeated of a name that nobody knows.
const TOLD_CHARACTERS_MAX: usize = 64;
/// A name is near another when at most about every third character differs.
const CHARACTERS_PER_MISTAKE: usize = 3;
/// What is asked for at another place than where people look for it: schemas, field, what to do.
const ELSEWHERE: [(&[&str], &str, Hint); 1] = [(
    &["CreateContext", "RunCode", "RunRequest"],
    "env",
    Hint::EnvironmentOfSandbox,
)];
/// What a read refuses too where it is not known: who sent it would take what is its own project's
/// for another's.
const NEVER_IGNORED: [&str; 2] = ["project", "all_projects"];
const UNKNOWN_FIELD: &str = "unknown field `";
/// How the parser calls the whole of a body, and what it has no name for.
const WHOLE: &str = ".";
const UNKNOWN_PLACE: &str = "?";

#[derive(Debug, Default)]
struct Known {
    /// Fields of each schema.
    fields: HashMap<String, Vec<String>>,
    /// Query parameters of each method and path.
    queries: HashMap<(String, String), Vec<String>>,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let document = serde_json::to_value(openapi()).unwrap_or_default();
    let schemas = &document["components"]["schemas"];
    let mut known = Known::default();
    for (name, schema) in schemas.as_object().into_iter().flatten() {
        known.fields.insert(name.clone(), fields(schemas, schema));
    }
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            let place = (method.to_uppercase(), path.clone());
            known.queries.insert(place, query_names(operation));
        }
    }
    known
});

fn fields(schemas: &Value, schema: &Value) -> Vec<String> {
    let own = schema["properties"].as_object().into_iter().flatten();
    let mut names: Vec<String> = own.map(|(name, _)| name.clone()).collect();
    for part in schema["allOf"].as_array().into_iter().flatten() {
        let reference = part["$ref"]
            .as_str()
            .and_then(|text| text.rsplit('/').next());
        let part = reference.map_or(part, |name| &schemas[name]);
        names.extend(fields(schemas, part));
    }
    names
}

fn query_names(operation: &Value) -> Vec<String> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let queries = parameters.filter(|parameter| parameter["in"] == "query");
    let names = queries.filter_map(|parameter| parameter["name"].as_str());
    names.map(str::to_owned).collect()
}

/// Middleware behind the routing: refuses a change whose query has a name that the document does
/// not, and a read that names projects where it cannot.
pub(crate) async fn refuse_unknown_query(request: Request, next: Next) -> Response {
    match unknown_query(&request) {
        Some(error) => error.into_response(),
        None => next.run(request).await,
    }
}

fn unknown_query(request: &Request) -> Option<ApiError> {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let method = if reads {
        &Method::GET
    } else {
        request.method()
    };
    let query = request.uri().query().filter(|query| !query.is_empty())?;
    let path = request.extensions().get::<MatchedPath>()?.as_str();
    let place = (method.as_str().to_owned(), path.to_owned());
    let known = KNOWN.queries.get(&place)?;
    let names = query
        .split('&')
        .map(|pair| pair.split('=').next().unwrap_or(pair));
    let unknown = names
        .filter(|name| !name.is_empty() && (!reads || NEVER_IGNORED.contains(name)))
        .find(|name| !known.iter().any(|known| known == name))?;
    Some(refusal("parameter", "query", unknown, known))
}

/// Reads a body, or says which part of it is wrong. `schema` names it in the document.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8], schema: Option<&str>) -> Result<T, ApiError> {
    let mut document = Deserializer::from_slice(body);
    let read = serde_path_to_error::deserialize(&mut document).map_err(|error| {
        let place = error.path().to_string();
        unfit(&place, &error.into_inner().to_string(), schema)
    })?;
    let end = document.end();
    end.map_err(|error| unfit(WHOLE, &error.to_string(), schema))?;
    Ok(read)
}

/// What is wrong at a place of a body, in the words of the parser.
fn unfit(place: &str, text: &str, schema: Option<&str>) -> ApiError {
    let Some((name, rest)) = text
        .strip_prefix(UNKNOWN_FIELD)
        .and_then(|rest| rest.split_once('`'))
    else {
        let place: String = place.chars().take(TOLD_CHARACTERS_MAX).collect();
        return ApiError::invalid(match place.as_str() {
            WHOLE | UNKNOWN_PLACE => format!("the body does not fit: {text}"),
            place => format!("`{place}` in the body does not fit: {text}"),
        });
    };
    // The parser quotes what it would have known, except where parts were put together.
    let quoted = rest.split('`').skip(1).step_by(2).map(str::to_owned);
    let mut known: Vec<String> = quoted.collect();
    if known.is_empty() {
        let documented = schema.and_then(|schema| KNOWN.fields.get(schema));
        known = documented.cloned().unwrap_or_default();
    }
    let error = refusal("field", "body", name, &known);
    match elsewhere(schema, name) {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn elsewhere(schema: Option<&str>, name: &str) -> Option<Hint> {
    let schema = schema?;
    let mut places = ELSEWHERE.iter();
    let place = places.find(|(schemas, field, _)| schemas.contains(&schema) && *field == name);
    place.map(|(_, _, hint)| hint.clone())
}

fn refusal(kind: &str, place: &str, name: &str, known: &[String]) -> ApiError {
    let told: String = name.chars().take(TOLD_CHARACTERS_MAX).collect();
    let mut text = format!("unknown {kind} `{told}` in the {place}");
    if let Some(near) = nearest(&told, known) {
        text.push_str(&format!("; did you mean `{near}`?"));
    }
    let error = ApiError::invalid(text);
    if known.is_empty() {
        let kind = kind.to_owned();
        return error.hint(Hint::NoNames { kind });
    }
    let names = known.join(", ");
    error.hint(Hint::KnownNames { names })
}

/// The known name that looks most like this one, if any looks like it.
fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    let distances = known.iter().map(|known| (distance(name, known), known));
    let (mistakes, near) = distances.min_by_key(|(mistakes, _)| *mistakes)?;
    let most = (near.len() + 1).max(CHARACTERS_PER_MISTAKE) / CHARACTERS_PER_MISTAKE;
    (mistakes <= most).then_some(near)
}

/// How many characters must be added, removed or replaced to make one text of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (row, character) in one.chars().enumerate() {
        let mut diagonal = above[0];
        above[0] = row + 1;
        for (column, its) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(character != *its);
            diagonal = above[column + 1];
            above[column + 1] = replaced.min(diagonal + 1).min(above[column] + 1);
        }
    }
    above[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_told_and_no_far_one() {
        let known = ["network", "template", "egress_allowlist"].map(str::to_owned);
        for (name, near) in [
            ("newtork", Some("network")),
            ("egress_allow_list", Some("egress_allowlist")),
            ("Template", Some("template")),
            ("frobnicate", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, &known), near, "{name}");
        }
        assert_eq!((distance("", "abc"), distance("abc", "abc")), (3, 0));
    }

    #[test]
    fn the_words_of_the_parser_become_a_question() {
        let parsed = unfit(
            "a",
            "unknown field `a`, expected `b` or `c` at line 1 column 4",
            None,
        );
        assert_eq!(parsed.hint.unwrap().text(), "known here: b, c");
        let put_together = unfit(
            "cuont",
            "unknown field `cuont` at line 1 column 9",
            Some("ForkTree"),
        );
        assert!(put_together.message.contains("did you mean `count`?"));
        let other = unfit(WHOLE, "missing field `cmd`", None);
        assert!(other.message.contains("missing field `cmd`"));
    }
}
