//! Where spans are sent, by OpenTelemetry's own environment variables.

use std::collections::BTreeMap;
use std::time::Duration;

use dayfly_types::limits::{
    TRACE_EXPORT_DEADLINE, TRACE_EXPORT_DEADLINE_MAX, TRACE_VARIABLE_BYTES_MAX,
};
use dayfly_types::percent_decode;
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;

use crate::sampler::Sampler;

const SERVICE_NAME: &str = "service.name";
const DEFAULT_SERVICE: &str = "dayfly";
const SIGNAL_PATH: &str = "v1/traces";

/// Gives the value of an environment variable.
type Read<'a> = &'a dyn Fn(&'static str) -> Option<String>;

/// Where spans go and which. Its headers are secret and not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportSettings {
    pub endpoint: Url,
    pub headers: HeaderMap,
    /// How long one message may take.
    pub deadline: Duration,
    pub sampler: Sampler,
    /// What is said of this process with every span, `service.name` included.
    pub resource: BTreeMap<String, String>,
}

/// A variable that cannot be gone by.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {name}: {reason}")]
pub struct InvalidVariable {
    pub name: &'static str,
    /// Without its value, which may be secret.
    pub reason: &'static str,
}

impl ExportSettings {
    /// By the variables that `read` gives; `None` when they name no receiver.
    ///
    /// # Errors
    /// [`InvalidVariable`] for a value that is not understood: spans that go nowhere would be
    /// missed much later.
    pub fn from_variables(
        read: impl Fn(&'static str) -> Option<String>,
    ) -> Result<Option<Self>, InvalidVariable> {
        // An empty one is as if it were not there.
        let read = |name| read(name).filter(|value: &String| !value.trim().is_empty());
        let read: Read<'_> = &read;
        if is_off(read)? {
            return Ok(None);
        }
        let Some(endpoint) = endpoint(read)? else {
            return Ok(None);
        };
        check_protocol(read)?;
        check_unsupported(read)?;
        Ok(Some(Self {
            endpoint,
            headers: headers(read)?,
            deadline: deadline(read)?,
            sampler: sampler(read)?,
            resource: resource(read)?,
        }))
    }
}

fn is_off(read: Read<'_>) -> Result<bool, InvalidVariable> {
    let disabled = read("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true"));
    let name = "OTEL_TRACES_EXPORTER";
    match read(name).as_deref() {
        None | Some("otlp") => Ok(disabled),
        Some("none") => Ok(true),
        Some(_) => Err(InvalidVariable {
            name,
            reason: "it is `otlp` or `none`",
        }),
    }
}

fn endpoint(read: Read<'_>) -> Result<Option<Url>, InvalidVariable> {
    let name = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
    if let Some(text) = read(name) {
        return address(name, &text).map(Some);
    }
    let name = "OTEL_EXPORTER_OTLP_ENDPOINT";
    let Some(text) = read(name) else {
        return Ok(None);
    };
    let mut base = address(name, &text)?;
    let path = format!("{}/{SIGNAL_PATH}", base.path().trim_end_matches('/'));
    base.set_path(&path);
    Ok(Some(base))
}

fn address(name: &'static str, text: &str) -> Result<Url, InvalidVariable> {
    let wrong = |reason| InvalidVariable { name, reason };
    let url = Url::parse(text.trim()).map_err(|_| wrong("it is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it begins with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("credentials belong into OTEL_EXPORTER_OTLP_HEADERS"));
    }
    Ok(url)
}

/// A receiver of gRPC understands nothing of what is sent.
fn check_protocol(read: Read<'_>) -> Result<(), InvalidVariable> {
    let names = [
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
        "OTEL_EXPORTER_OTLP_PROTOCOL",
    ];
    let found = names
        .into_iter()
        .find_map(|name| read(name).map(|value| (name, value)));
    match found {
        Some((name, value)) if value != "http/protobuf" => Err(InvalidVariable {
            name,
            reason: "only `http/protobuf` is spoken",
        }),
        _ => Ok(()),
    }
}

/// What would be missed where it was meant: a receiver with an authority of its own, or one that
/// takes nothing else.
fn check_unsupported(read: Read<'_>) -> Result<(), InvalidVariable> {
    let compression = [
        "OTEL_EXPORTER_OTLP_COMPRESSION",
        "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION",
    ];
    let is_compressed =
        |name: &&'static str| read(name).is_some_and(|value| value.trim() != "none");
    let wrong = |reason| move |name: &'static str| Err(InvalidVariable { name, reason });
    if let Some(name) = compression.into_iter().find(is_compressed) {
        return wrong("nothing is compressed; `none` or no such variable")(name);
    }
    let certificates = [
        "OTEL_EXPORTER_OTLP_CERTIFICATE",
        "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
        "OTEL_EXPORTER_OTLP_CLIENT_KEY",
        "OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY",
        "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE",
        "OTEL_EXPORTER_OTLP_TRACES_CLIENT_CERTIFICATE",
    ];
    let is_set = |name: &&'static str| read(name).is_some();
    match certificates.into_iter().find(is_set) {
        Some(name) => wrong(
            "it is not read; the authorities of the host are believed, or SSL_CERT_FILE",
        )(name),
        None => Ok(()),
    }
}

fn headers(read: Read<'_>) -> Result<HeaderMap, InvalidVariable> {
    let names = [
        "OTEL_EXPORTER_OTLP_HEADERS",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    ];
    let mut headers = HeaderMap::new();
    // What is said of traces holds before what is said of everything.
    for name in names {
        for (key, value) in pairs(name, read(name))? {
            let wrong = || InvalidVariable {
                name,
                reason: "a name or a value fits into no header",
            };
            let key = HeaderName::try_from(key).map_err(|_| wrong())?;
            let mut value = HeaderValue::try_from(value).map_err(|_| wrong())?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
    }
    Ok(headers)
}

fn deadline(read: Read<'_>) -> Result<Duration, InvalidVariable> {
    let names = [
        "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
        "OTEL_EXPORTER_OTLP_TIMEOUT",
    ];
    for name in names {
        if let Some(text) = read(name) {
            let wrong = InvalidVariable {
                name,
                reason: "it is a number of milliseconds, and not 0",
            };
            let milliseconds: u64 = text.trim().parse().map_err(|_| wrong.clone())?;
            if milliseconds == 0 {
                return Err(wrong);
            }
            return Ok(Duration::from_millis(milliseconds).min(TRACE_EXPORT_DEADLINE_MAX));
        }
    }
    Ok(TRACE_EXPORT_DEADLINE)
}

fn sampler(read: Read<'_>) -> Result<Sampler, InvalidVariable> {
    let name = "OTEL_TRACES_SAMPLER";
    let Some(text) = read(name) else {
        return Ok(Sampler::default());
    };
    let argument = read("OTEL_TRACES_SAMPLER_ARG");
    let found = Sampler::named(text.trim(), argument.as_deref().map(str::trim));
    found.ok_or(InvalidVariable {
        name,
        reason: "there is no such sampler, or its argument is no share between 0 and 1",
    })
}

fn resource(read: Read<'_>) -> Result<BTreeMap<String, String>, InvalidVariable> {
    let name = "OTEL_RESOURCE_ATTRIBUTES";
    let mut resource: BTreeMap<String, String> = pairs(name, read(name))?.into_iter().collect();
    let service = read("OTEL_SERVICE_NAME").or_else(|| resource.remove(SERVICE_NAME));
    let service = service.unwrap_or_else(|| DEFAULT_SERVICE.to_owned());
    resource.insert(SERVICE_NAME.to_owned(), service);
    Ok(resource)
}

/// A list of `key=value`, with commas between, whose values are percent-encoded.
fn pairs(
    name: &'static str,
    text: Option<String>,
) -> Result<Vec<(String, String)>, InvalidVariable> {
    let wrong = |reason| InvalidVariable { name, reason };
    let text = text.unwrap_or_default();
    if text.len() > TRACE_VARIABLE_BYTES_MAX {
        return Err(wrong("it is too long"));
    }
    let parts = text.split(',').map(str::trim);
    let parts = parts.filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (key, value) = part.split_once('=')?;
        let key = key.trim();
        let value = percent_decode(value.trim())?;
        (!key.is_empty()).then(|| (key.to_owned(), value))
    };
    let pairs: Option<Vec<_>> = parts.map(pair).collect();
    pairs.ok_or_else(|| wrong("it is a list of key=value with commas between"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Option<ExportSettings>, InvalidVariable> {
        ExportSettings::from_variables(|name| {
            let found = variables.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");

    #[test]
    fn without_a_receiver_nothing_is_set_up() {
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&[("OTEL_SERVICE_NAME", "a")]), Ok(None));
        assert_eq!(of(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), Ok(None));
        assert_eq!(of(&[ENDPOINT, ("OTEL_SDK_DISABLED", "true")]), Ok(None));
        assert_eq!(of(&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")]), Ok(None));
    }

    #[test]
    fn the_usual_variables_mean_what_they_usually_do() {
        let usual = of(&[ENDPOINT]).unwrap().unwrap();
        assert_eq!(usual.endpoint.as_str(), "http://127.0.0.1:4318/v1/traces");
        assert_eq!(usual.resource["service.name"], "dayfly");
        let found = of(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://a.example/otlp/"),
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                "Authorization=Bearer%20x, a=1",
            ),
            ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a=2"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "2500"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=b,zone=c%2Cd"),
            ("OTEL_SERVICE_NAME", "sandboxes"),
            ("OTEL_TRACES_SAMPLER", "always_off"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ]);
        let found = found.unwrap().unwrap();
        assert_eq!(found.endpoint.as_str(), "https://a.example/otlp/v1/traces");
        assert_eq!(found.headers["authorization"], "Bearer x");
        assert_eq!(found.headers["a"], "2");
        assert_eq!(found.deadline, Duration::from_millis(2500));
        assert_eq!(found.resource["service.name"], "sandboxes");
        assert_eq!(found.resource["zone"], "c,d");
        assert_eq!(Some(found.sampler), Sampler::named("always_off", None));
        assert!(!format!("{found:?}").contains("Bearer"), "{found:?}");
        let exact = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://b.example/x");
        let exact = of(&[ENDPOINT, exact]).unwrap().unwrap();
        assert_eq!(exact.endpoint.as_str(), "http://b.example/x");
    }

    #[test]
    fn what_cannot_be_gone_by_is_refused_without_its_value() {
        for wrong in [
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "127.0.0.1:secret"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "ftp://secret/"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://me:secret@a/"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "secret"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=secret%0a"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a b=secret"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "secret"),
            ("OTEL_RESOURCE_ATTRIBUTES", "=secret"),
            ("OTEL_TRACES_SAMPLER", "secret"),
            ("OTEL_TRACES_EXPORTER", "zipkin"),
        ] {
            let error = of(&[ENDPOINT, wrong]).unwrap_err();
            assert_eq!(error.name, wrong.0);
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}
