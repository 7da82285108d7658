//! What an image says about how its programs are started.

use std::collections::BTreeMap;
use std::time::Duration;

use dayfly_types::limits::{IMAGE_CONFIG_ENTRIES_MAX, IMAGE_DOCUMENT_BYTES_MAX, IMAGE_LAYERS_MAX};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::digest::Digest;
use crate::document::InvalidDocument;

/// How the programs of an image are started. What nobody here uses is left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageConfig {
    /// Names and values, in their order.
    pub environment: Vec<(String, String)>,
    /// A name or a number, perhaps with a group: as the image says it.
    pub user: Option<String>,
    pub working_directory: Option<String>,
    pub entrypoint: Vec<String>,
    pub command: Vec<String>,
    /// What commands that are one text are given to.
    pub shell: Vec<String>,
    /// Instructions for whoever builds on the image.
    pub on_build: Vec<String>,
    pub health_check: Option<HealthCheck>,
    pub exposed_ports: Vec<ExposedPort>,
}

/// How an image wants to be asked whether it is well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    pub test: HealthTest,
    /// None where the image leaves it to whoever runs it.
    pub interval: Option<Duration>,
    pub timeout: Option<Duration>,
    pub start_period: Option<Duration>,
    pub retries: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HealthTest {
    /// A test of an image below is turned off.
    Off,
    Command(Vec<String>),
    Shell(String),
}

/// A port that the programs of an image listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExposedPort {
    pub port: u16,
    pub protocol: ExposedProtocol,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExposedProtocol {
    Tcp,
    Udp,
    Sctp,
}

#[derive(Deserialize)]
struct RawConfig {
    architecture: String,
    os: String,
    rootfs: RawRoot,
    config: Option<RawStart>,
}

#[derive(Deserialize)]
struct RawRoot {
    #[serde(rename = "type")]
    kind: String,
    diff_ids: Option<Vec<Digest>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawStart {
    env: Option<Vec<String>>,
    user: Option<String>,
    working_dir: Option<String>,
    entrypoint: Option<Vec<String>>,
    cmd: Option<Vec<String>>,
    shell: Option<Vec<String>>,
    on_build: Option<Vec<String>>,
    healthcheck: Option<RawHealth>,
    exposed_ports: Option<BTreeMap<String, IgnoredAny>>,
}

/// Times are in nanoseconds.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct RawHealth {
    test: Option<Vec<String>>,
    interval: Option<u64>,
    timeout: Option<u64>,
    start_period: Option<u64>,
    retries: Option<u32>,
}

/// The config, and the digests of what the layers become.
pub(crate) fn read(document: &[u8]) -> Result<(ImageConfig, Vec<Digest>), InvalidDocument> {
    if document.len() as u64 > IMAGE_DOCUMENT_BYTES_MAX {
        return Err(InvalidDocument::TooLong);
    }
    let unreadable = |source| InvalidDocument::Unreadable {
        what: "config",
        source,
    };
    let raw: RawConfig = serde_json::from_slice(document).map_err(unreadable)?;
    if (raw.os.as_str(), raw.architecture.as_str()) != ("linux", "amd64") {
        let there = crate::document::list([format!("{}/{}", raw.os, raw.architecture)].into_iter());
        return Err(InvalidDocument::NoPlatform { there });
    }
    if raw.rootfs.kind != "layers" {
        return Err(unusable("rootfs.type", &raw.rootfs.kind));
    }
    let diff_ids = raw.rootfs.diff_ids.unwrap_or_default();
    if diff_ids.len() > IMAGE_LAYERS_MAX {
        let found = diff_ids.len();
        return Err(InvalidDocument::TooManyLayers { found });
    }
    Ok((start(raw.config.unwrap_or_default())?, diff_ids))
}

fn start(raw: RawStart) -> Result<ImageConfig, InvalidDocument> {
    let environment = checked("Env", raw.env)?;
    let ports = raw.exposed_ports.unwrap_or_default();
    let ports = checked("ExposedPorts", Some(ports.into_keys().collect()))?;
    Ok(ImageConfig {
        environment: environment
            .iter()
            .map(|one| variable(one))
            .collect::<Result<_, _>>()?,
        user: text("User", raw.user)?,
        working_directory: text("WorkingDir", raw.working_dir)?,
        entrypoint: checked("Entrypoint", raw.entrypoint)?,
        command: checked("Cmd", raw.cmd)?,
        shell: checked("Shell", raw.shell)?,
        on_build: checked("OnBuild", raw.on_build)?,
        health_check: raw.healthcheck.map(health_check).transpose()?.flatten(),
        exposed_ports: ports
            .iter()
            .map(|one| port(one))
            .collect::<Result<_, _>>()?,
    })
}

fn unusable(field: &'static str, value: &str) -> InvalidDocument {
    let value = value.chars().take(100).collect();
    InvalidDocument::ConfigValue { field, value }
}

/// No text of a config can hold the byte that ends a text of the kernel.
fn checked(field: &'static str, list: Option<Vec<String>>) -> Result<Vec<String>, InvalidDocument> {
    let list = list.unwrap_or_default();
    if list.len() > IMAGE_CONFIG_ENTRIES_MAX {
        return Err(InvalidDocument::TooManyConfigEntries { field });
    }
    match list.iter().find(|one| one.contains('\0')) {
        Some(one) => Err(unusable(field, one)),
        None => Ok(list),
    }
}

/// An empty one means that nothing is said.
fn text(field: &'static str, value: Option<String>) -> Result<Option<String>, InvalidDocument> {
    let list = checked(field, value.map(|value| vec![value]))?;
    Ok(list.into_iter().find(|value| !value.is_empty()))
}

fn variable(text: &str) -> Result<(String, String), InvalidDocument> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = parts.ok_or_else(|| unusable("Env", text))?;
    Ok((name.to_owned(), value.to_owned()))
}

fn port(text: &str) -> Result<ExposedPort, InvalidDocument> {
    let (number, protocol) = text.split_once('/').unwrap_or((text, "tcp"));
    let protocol = match protocol {
        "tcp" => ExposedProtocol::Tcp,
        "udp" => ExposedProtocol::Udp,
        "sctp" => ExposedProtocol::Sctp,
        _ => return Err(unusable("ExposedPorts", text)),
    };
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    let port = number.parse().ok().filter(|port| is_number && *port > 0);
    let port = port.ok_or_else(|| unusable("ExposedPorts", text))?;
    Ok(ExposedPort { port, protocol })
}

/// None where the image says nothing of how to test.
fn health_check(raw: RawHealth) -> Result<Option<HealthCheck>, InvalidDocument> {
    let test = checked("Healthcheck", raw.test)?;
    let test = match test.split_first() {
        None => return Ok(None),
        Some((kind, [])) if kind == "NONE" => HealthTest::Off,
        Some((kind, arguments @ [_, ..])) if kind == "CMD" => {
            HealthTest::Command(arguments.to_vec())
        }
        Some((kind, [command])) if kind == "CMD-SHELL" => HealthTest::Shell(command.clone()),
        Some((kind, _)) => return Err(unusable("Healthcheck", kind)),
    };
    let duration = |nanoseconds: Option<u64>| {
        let said = nanoseconds.filter(|number| *number > 0);
        said.map(Duration::from_nanos)
    };
    Ok(Some(HealthCheck {
        test,
        interval: duration(raw.interval),
        timeout: duration(raw.timeout),
        start_period: duration(raw.start_period),
        retries: raw.retries.filter(|number| *number > 0),
    }))
}
