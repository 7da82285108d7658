//! Volumes: disks that outlive sandboxes.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::number::whole_number;

/// A volume in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VolumeMount {
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    pub name: String,
    /// Where it is in the guest: absolute, without `.` and `..`. Default `/volumes/NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^(/[^/\\u0000]+)+$", max_length = 4096)]
    pub path: Option<String>,
    /// Many sandboxes can read a volume that nobody writes; one can write. Default false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}

/// Mounts as a request names them. Unlike in an answer, which may come of a newer server, an unknown
/// field is refused.
pub(crate) fn asked_mounts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<VolumeMount>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Asked {
        name: String,
        path: Option<String>,
        read_only: Option<bool>,
    }
    let asked = Option::<Vec<Asked>>::deserialize(deserializer)?;
    Ok(asked.map(|mounts| {
        let mount = |asked: Asked| VolumeMount {
            name: asked.name,
            path: asked.path,
            read_only: asked.read_only,
        };
        mounts.into_iter().map(mount).collect()
    }))
}

/// Body of `POST /v1/volumes`. One of the two sizes must be given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateVolume {
    #[schema(pattern = "^[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?$")]
    pub name: String,
    /// MiB.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 16, maximum = 1_048_576)]
    pub size_mb: Option<u64>,
    /// GiB; may be a fraction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.015_625, maximum = 1024)]
    pub size_gb: Option<f64>,
}

/// Body of `PATCH /v1/volumes/{name}`. One of the two sizes must be given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GrowVolume {
    /// MiB.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "whole_number"
    )]
    #[schema(minimum = 16, maximum = 1_048_576)]
    pub size_mb: Option<u64>,
    /// GiB; may be a fraction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0.015_625, maximum = 1024)]
    pub size_gb: Option<f64>,
}

/// One volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Volume {
    pub name: String,
    pub size_mb: u64,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// Bytes on the host's disk.
    pub used_bytes: u64,
    /// The sandbox that may write, when there is one.
    pub writer: Option<String>,
    /// The sandboxes that read.
    pub readers: Vec<String>,
}

/// Response of `GET /v1/volumes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VolumeList {
    pub items: Vec<Volume>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CreateSandbox;

    #[test]
    fn a_request_names_only_what_is_known_and_an_answer_may_name_more() {
        let answer = r#"{"name":"a","read_only":true,"of_tomorrow":1}"#;
        assert!(serde_json::from_str::<VolumeMount>(answer).is_ok());
        let request = |mount: &str| {
            let body = format!(r#"{{"volumes":[{mount}]}}"#);
            serde_json::from_str::<CreateSandbox>(&body)
        };
        let known = request(r#"{"name":"a","read_only":true,"path":null}"#).unwrap();
        assert_eq!(known.volumes.unwrap()[0].read_only, Some(true));
        let refused = request(r#"{"name":"a","readonly":true}"#).unwrap_err();
        assert!(refused.to_string().contains("`readonly`"), "{refused}");
    }
}
