//! Where volumes go in a new sandbox.

use dayfly_api::VolumeMount as WireMount;
use dayfly_types::volume::MountedVolume;
use dayfly_types::{VolumeName, limits};

use crate::files::path::PATH_CHARACTERS_MAX;
use crate::input::Invalid;
use crate::input::invalid::without_nul;

/// Checks the volumes of a new sandbox, and gives each its path.
///
/// # Errors
/// [`Invalid`] when there are too many, or one cannot be mounted beside the others.
pub(crate) fn parse(mounts: Vec<WireMount>) -> Result<Vec<MountedVolume>, Invalid> {
    if mounts.len() > limits::SANDBOX_VOLUMES_MAX {
        let rule = format!("must be at most {}", limits::SANDBOX_VOLUMES_MAX);
        return Err(Invalid::field("volumes", rule));
    }
    let mut parsed: Vec<MountedVolume> = Vec::new();
    for mount in mounts {
        let mount = parse_one(mount)?;
        if parsed.iter().any(|other| other.name == mount.name) {
            let rule = format!("must not name {} twice", mount.name);
            return Err(Invalid::field("volumes", rule));
        }
        // One would hide the other, or be mounted into it, as the order happens to be.
        if parsed.iter().any(|other| overlap(&other.path, &mount.path)) {
            let rule = format!("must not lie within each other, as at {}", mount.path);
            return Err(Invalid::field("volumes", rule));
        }
        parsed.push(mount);
    }
    Ok(parsed)
}

fn parse_one(mount: WireMount) -> Result<MountedVolume, Invalid> {
    let name = VolumeName::parse(&mount.name)
        .map_err(|error| Invalid::field("volumes", format!("have a bad name: {error}")))?;
    let path = match mount.path {
        None => format!("{}{name}", limits::VOLUME_MOUNT_PREFIX),
        Some(path) => {
            check_path(&path)?;
            path
        }
    };
    Ok(MountedVolume {
        name,
        path,
        read_only: mount.read_only.unwrap_or(false),
    })
}

/// Absolute, not the root, and the shortest text for what it names: the guest mounts there as
/// root, so nothing is left to resolve.
fn check_path(path: &str) -> Result<(), Invalid> {
    without_nul("volumes", path)?;
    let is_name = |part: &str| !matches!(part, "" | "." | "..");
    let is_clean = path
        .strip_prefix('/')
        .is_some_and(|rest| rest.split('/').all(is_name));
    if is_clean && path.chars().count() <= PATH_CHARACTERS_MAX {
        return Ok(());
    }
    Err(Invalid::field(
        "volumes",
        "need an absolute path each, not `/`, without `.`, `..` and a slash at the end",
    ))
}

fn overlap(one: &str, other: &str) -> bool {
    let holds = |outer: &str, inner: &str| {
        inner
            .strip_prefix(outer)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    holds(one, other) || holds(other, one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts(json: &str) -> Result<Vec<MountedVolume>, Invalid> {
        parse(serde_json::from_str(json).unwrap())
    }

    #[test]
    fn a_volume_has_a_place_of_its_own() {
        let parsed = mounts(
            r#"[{"name":"a"},{"name":"b","path":"/data","read_only":true},
                {"name":"c","path":"/database"}]"#,
        );
        let parsed = parsed.unwrap();
        assert_eq!(
            (parsed[0].path.as_str(), parsed[0].read_only),
            ("/volumes/a", false)
        );
        assert_eq!(
            (parsed[1].path.as_str(), parsed[1].read_only),
            ("/data", true)
        );
        assert_eq!(parsed.len(), 3);
    }

    #[test]
    fn what_cannot_be_mounted_is_refused() {
        for json in [
            r#"[{"name":"A"}]"#,
            r#"[{"name":"a"},{"name":"a","path":"/b"}]"#,
            r#"[{"name":"a","path":"/b"},{"name":"c","path":"/b/c"}]"#,
            r#"[{"name":"a","path":"/b/c"},{"name":"c","path":"/b"}]"#,
            r#"[{"name":"a","path":"/b"},{"name":"c","path":"/b"}]"#,
            r#"[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"}]"#,
        ] {
            assert!(mounts(json).is_err(), "{json}");
        }
        for path in ["", "/", "a", "/a/", "/a//b", "/a/../b", "/./a", "/a\\u0000"] {
            let json = format!(r#"[{{"name":"a","path":"{path}"}}]"#);
            assert!(mounts(&json).is_err(), "{path}");
        }
    }
}
