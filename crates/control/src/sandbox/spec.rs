//! A wished-for sandbox, checked.

use std::collections::BTreeMap;

use dayfly_api::{CreateSandbox, EnsureImage};
use dayfly_types::egress::{EgressPolicy, InternalNetwork};
use dayfly_types::volume::MountedVolume;
use dayfly_types::{
    CpuMillis, DiskMib, LifetimeRules, MemoryMib, SandboxClass, SnapshotId, TemplateName,
};
use serde::Serialize;

use crate::input::{Invalid, quantity};
use crate::network::spec;
use crate::sandbox::class;
use crate::sandbox::environment::Environment;
use crate::sandbox::lifetime::LifecycleWish;
use crate::sandbox::metadata;
use crate::sandbox::name::SandboxName;
use crate::template::images::ImageWish;
use crate::template::reference::VersionReference;
use crate::volume::mounts;

const TEMPLATE_DEFAULT: &str = "base";
/// What a published client asks for when its user names no template.
const OTHER_DEFAULT: &str = "ubuntu-24.04";

/// What a caller wants. Every value is within its limits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewSandbox {
    pub source: SandboxSource,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<SandboxName>,
    pub metadata: BTreeMap<String, String>,
    /// Left out when there are none, as `network` is.
    #[serde(skip_serializing_if = "Environment::is_empty")]
    pub environment: Environment,
    pub lifecycle: LifetimeRules,
    pub cpu: Option<CpuMillis>,
    /// Left out when it is not given, as `network` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryMib>,
    pub disk: Option<DiskMib>,
    pub volumes: Vec<MountedVolume>,
    /// `None`: what the host's settings say. Left out then, as `network` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<SandboxClass>,
    /// `None`: what the project's default says. Left out then, so that a request of an older
    /// version is the same as before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<EgressPolicy>,
}

/// What a sandbox is made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxSource {
    Template(TemplateName),
    /// A version of a template of the project's own.
    Version(VersionReference),
    /// The image of a container.
    Image(ImageWish),
    Snapshot(SnapshotId),
    /// The disk of a snapshot, without its memory.
    DiskOf(SnapshotId),
}

impl NewSandbox {
    /// What a create asks for, in a project to which the operator has opened `internal`.
    ///
    /// # Errors
    /// [`Invalid`].
    pub(crate) fn parse(
        body: CreateSandbox,
        internal: &[InternalNetwork],
    ) -> Result<Self, Invalid> {
        let wish = LifecycleWish {
            ttl_seconds: body.ttl_seconds,
            persistent: body.persistent,
            idle_seconds: body.idle_seconds,
            on_timeout: body.on_timeout,
        };
        let source = source(&body)?;
        let metadata = body.metadata.unwrap_or_default();
        metadata::check(&metadata)?;
        let name = body.name.as_deref().map(SandboxName::parse).transpose();
        Ok(Self {
            source,
            name: name.map_err(|rule| Invalid::field("name", rule.to_string()))?,
            metadata,
            environment: Environment::parse(body.env.unwrap_or_default())?,
            lifecycle: wish.check()?,
            cpu: body.cpu.map(quantity::cpu_limit).transpose()?,
            memory: body.memory_mb.map(quantity::memory_mb).transpose()?,
            disk: body.disk_gb.map(quantity::disk_gb).transpose()?,
            volumes: mounts::parse(body.volumes.unwrap_or_default())?,
            class: body.class.map(class::of_wire),
            network: spec::of_request(body.network, body.egress_allowlist, internal)?,
        })
    }
}

/// As many processors as are needed for a limit.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of floats saturates, and what is too many is refused"
)]
fn whole_processors(limit: f64) -> u64 {
    limit.ceil() as u64
}

/// A snapshot wins: the published clients send a template with every create.
fn source(body: &CreateSandbox) -> Result<SandboxSource, Invalid> {
    let is_disk_only = body.disk_only.unwrap_or(false);
    if let Some(text) = body.from_snapshot.as_deref() {
        let made = if is_disk_only {
            SandboxSource::DiskOf
        } else {
            SandboxSource::Snapshot
        };
        return SnapshotId::parse(text)
            .map(made)
            .map_err(|error| Invalid::field("from_snapshot", format!("is not an id: {error}")));
    }
    if is_disk_only {
        let rule = "needs from_snapshot, the snapshot whose disk the sandbox boots on";
        return Err(Invalid::field("disk_only", rule));
    }
    if let Some(image) = &body.image {
        if body.template.is_some() {
            let rule = "and template exclude each other: a sandbox is made from one of them";
            return Err(Invalid::field("image", rule));
        }
        let wish = EnsureImage {
            image: image.clone(),
            memory_mb: body.memory_mb,
            cpu: body.cpu.map(whole_processors),
            disk_gb: body.disk_gb,
        };
        return ImageWish::parse(wish).map(SandboxSource::Image);
    }
    if let Some(reference) = VersionReference::parse(body.template.as_deref().unwrap_or_default())?
    {
        return Ok(SandboxSource::Version(reference));
    }
    let template = match body.template.as_deref().unwrap_or(TEMPLATE_DEFAULT) {
        OTHER_DEFAULT => TEMPLATE_DEFAULT,
        name => name,
    };
    TemplateName::parse(template)
        .map(SandboxSource::Template)
        .map_err(|error| Invalid::field("template", format!("is not a name: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{RequestHash, RequestKey};
    use dayfly_types::limits;

    fn parse(json: &str) -> Result<NewSandbox, Invalid> {
        NewSandbox::parse(serde_json::from_str(json).unwrap(), &[])
    }

    fn hash_of(new: &NewSandbox) -> RequestHash {
        RequestKey::of([7; 32]).hash_of(new)
    }

    #[test]
    fn null_is_absent() {
        let nulls = r#"{"template":null,"ttl_seconds":null,"persistent":null,"metadata":null,
            "from_snapshot":null,"volumes":null,"cpu":null,"disk_gb":null,"idle_seconds":null,
            "on_timeout":null,"env":null,"memory_mb":null}"#;
        assert_eq!(parse(nulls), parse("{}"));
        assert_eq!(
            parse("{}").unwrap().lifecycle.ttl_seconds,
            Some(limits::TTL_SECONDS_DEFAULT)
        );
    }

    #[test]
    fn a_persistent_sandbox_has_a_deadline_only_when_it_is_given() {
        assert_eq!(
            parse(r#"{"persistent":true}"#)
                .unwrap()
                .lifecycle
                .ttl_seconds,
            None
        );
        let given = parse(r#"{"persistent":true,"ttl_seconds":9}"#).unwrap();
        assert_eq!(given.lifecycle.ttl_seconds, Some(9));
        assert_eq!(
            parse(r#"{"ttl_seconds":9.0}"#)
                .unwrap()
                .lifecycle
                .ttl_seconds,
            Some(9)
        );
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for json in [
            r#"{"ttl_seconds":0}"#,
            r#"{"ttl_seconds":31536001}"#,
            r#"{"template":"A"}"#,
            r#"{"from_snapshot":"A"}"#,
            r#"{"volumes":[{"name":"A"}]}"#,
            r#"{"cpu":0}"#,
            r#"{"disk_gb":0}"#,
            r#"{"memory_mb":127}"#,
            r#"{"memory_mb":65537}"#,
            r#"{"idle_seconds":1}"#,
            r#"{"env":{"A=B":"c"}}"#,
        ] {
            assert!(matches!(parse(json), Err(Invalid::Field { .. })), "{json}");
        }
    }

    #[test]
    fn a_snapshot_wins_over_a_template() {
        let both = parse(r#"{"from_snapshot":"snap-1","template":"ubuntu-24.04"}"#).unwrap();
        let snapshot = SnapshotId::parse("snap-1").unwrap();
        assert_eq!(both.source, SandboxSource::Snapshot(snapshot));
        assert_eq!(both, parse(r#"{"from_snapshot":"snap-1"}"#).unwrap());
    }

    #[test]
    fn a_disk_is_that_of_a_snapshot() {
        let snapshot = SnapshotId::parse("snap-1").unwrap();
        let disk = parse(r#"{"from_snapshot":"snap-1","disk_only":true}"#).unwrap();
        assert_eq!(disk.source, SandboxSource::DiskOf(snapshot.clone()));
        let whole = parse(r#"{"from_snapshot":"snap-1","disk_only":false}"#).unwrap();
        assert_eq!(whole.source, SandboxSource::Snapshot(snapshot));
        assert_ne!(hash_of(&disk), hash_of(&whole));
        assert_eq!(whole, parse(r#"{"from_snapshot":"snap-1"}"#).unwrap());
        for json in [
            r#"{"disk_only":true}"#,
            r#"{"disk_only":true,"template":"base","from_snapshot":null}"#,
        ] {
            let error = parse(json).unwrap_err().to_string();
            assert!(error.contains("disk_only") && error.contains("from_snapshot"));
        }
        assert_eq!(parse(r#"{"disk_only":false}"#), parse("{}"));
        assert_eq!(parse(r#"{"disk_only":null}"#), parse("{}"));
    }

    #[test]
    fn equal_wishes_have_equal_hashes() {
        let one = parse(r#"{"metadata":{"a":"1","b":"2"}}"#).unwrap();
        let two = parse(r#"{"metadata":{"b":"2","a":"1"},"template":"base"}"#).unwrap();
        assert_eq!(hash_of(&one), hash_of(&two));
        assert_ne!(hash_of(&one), hash_of(&parse("{}").unwrap()));
    }
}
