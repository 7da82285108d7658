//! Registries that the operator's settings know: who signs in there, and whose certificates are
//! believed.

use std::path::{Path, PathBuf};

use dayfly_types::limits::{REGISTRIES_MAX, REGISTRY_PROJECTS_MAX};
use dayfly_types::{ProjectId, RegistryHost};
use serde::{Deserialize, Serialize};

const ALL_PROJECTS: &str = "*";

/// Why registries cannot be set like this. What was written is not shown but for hosts: a password
/// may stand where the path of its file belongs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRegistries {
    #[error("there are more than {REGISTRIES_MAX}")]
    TooMany,
    #[error(
        "the host of number {number} is not one as it stands in the name of an image, such as \
         registry.example or registry.example:5000"
    )]
    Host { number: usize },
    #[error("{host} is there twice")]
    Twice { host: String },
    #[error("{host}: user and password_file stand together or not at all")]
    Half { host: String },
    #[error("{host}: the user is empty, or has a colon or a control character in it")]
    User { host: String },
    #[error(
        "{host}: projects are 1 to {REGISTRY_PROJECTS_MAX} ids, or [\"*\"] for all; leave it out if \
         recipes of the operator alone use the registry"
    )]
    Projects { host: String },
    #[error("{host}: {key} is the absolute path of a file")]
    Path { host: String, key: &'static str },
}

/// One registry, as the operator wrote it. The password itself is only ever in its file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistrySettings {
    pub(crate) host: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) password_file: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) authority: Option<PathBuf>,
    /// Whose images are fetched with it too. Without it those of the operator's recipes alone are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) projects: Option<Vec<String>>,
}

impl RegistrySettings {
    fn check(&self) -> Result<(), InvalidRegistries> {
        let host = || self.host.clone();
        if self.user.is_some() != self.password_file.is_some() {
            return Err(InvalidRegistries::Half { host: host() });
        }
        let is_bad = |letter: char| letter == ':' || letter.is_control();
        let is_wrong = |user: &String| user.is_empty() || user.contains(is_bad);
        if self.user.as_ref().is_some_and(is_wrong) {
            return Err(InvalidRegistries::User { host: host() });
        }
        let is_wrong = |projects: &Vec<String>| {
            let is_one = |one: &String| ProjectId::parse(one).is_ok();
            let are_some = (1..=REGISTRY_PROJECTS_MAX).contains(&projects.len());
            !(are_all(projects) || are_some && projects.iter().all(is_one))
        };
        if self.projects.as_ref().is_some_and(is_wrong) {
            return Err(InvalidRegistries::Projects { host: host() });
        }
        let paths = [
            ("password_file", &self.password_file),
            ("authority", &self.authority),
        ];
        for (key, path) in paths {
            if path.as_deref().is_some_and(|path| !is_usable(path)) {
                let host = host();
                return Err(InvalidRegistries::Path { host, key });
            }
        }
        Ok(())
    }

    /// Whether images that this project names are fetched with it; those of the operator's recipes,
    /// which are nobody's, always are.
    pub(crate) fn is_for(&self, project: Option<&ProjectId>) -> bool {
        let (Some(project), Some(projects)) = (project, &self.projects) else {
            return project.is_none();
        };
        are_all(projects) || projects.iter().any(|one| one == project.as_str())
    }
}

fn are_all(projects: &[String]) -> bool {
    matches!(projects, [only] if only == ALL_PROJECTS)
}

fn is_usable(path: &Path) -> bool {
    path.is_absolute() && !path.as_os_str().as_encoded_bytes().contains(&0)
}

/// All of them, each host once.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<RegistrySettings>")]
pub struct Registries(Vec<RegistrySettings>);

impl Registries {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &RegistrySettings> {
        self.0.iter()
    }

    /// What is set for the registry of an image.
    pub(crate) fn of(&self, registry: &RegistryHost) -> Option<&RegistrySettings> {
        let is_it =
            |one: &&RegistrySettings| RegistryHost::parse(&one.host).as_ref() == Ok(registry);
        self.0.iter().find(is_it)
    }
}

impl TryFrom<Vec<RegistrySettings>> for Registries {
    type Error = InvalidRegistries;

    fn try_from(given: Vec<RegistrySettings>) -> Result<Self, InvalidRegistries> {
        if given.len() > REGISTRIES_MAX {
            return Err(InvalidRegistries::TooMany);
        }
        let mut hosts = Vec::new();
        for (index, one) in given.iter().enumerate() {
            let number = index + 1;
            let host = RegistryHost::parse(&one.host);
            let host = host.map_err(|_| InvalidRegistries::Host { number })?;
            if hosts.contains(&host) {
                let host = one.host.clone();
                return Err(InvalidRegistries::Twice { host });
            }
            hosts.push(host);
            one.check()?;
        }
        Ok(Self(given))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Registries, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_registry_is_found_by_the_host_of_an_image() {
        let registries = read(
            r#"[{"host": "registry.example:5000", "user": "puller", "password_file": "/a"},
                {"host": "docker.io", "authority": "/b"}]"#,
        )
        .unwrap();
        let find = |image: &str| {
            let host = RegistryHost::of_image(image).unwrap();
            registries.of(&host).map(|found| found.host.clone())
        };
        let own = Some("registry.example:5000".to_owned());
        assert_eq!(find("registry.example:5000/a:1"), own);
        assert_eq!(find("Registry.example:5000/a:1"), own);
        let hub = Some("docker.io".to_owned());
        assert_eq!(find("docker.io/library/debian:12"), hub);
        assert_eq!(find("registry-1.docker.io/library/debian:12"), hub);
        // Nobody else gets a password, however alike the name is.
        for other in [
            "registry.example/a:1",
            "registry.example:5001/a:1",
            "registry.example.org:5000/a:1",
            "a.registry.example:5000/a:1",
            "auth.docker.io/a:1",
        ] {
            assert_eq!(find(other), None, "{other}");
        }
        let text = serde_json::to_string(&registries).unwrap();
        assert_eq!(read(&text).unwrap(), registries);
    }

    #[test]
    fn what_is_wrong_is_refused_and_no_secret_is_shown() {
        let many: Vec<String> = (0..=REGISTRIES_MAX)
            .map(|number| format!(r#"{{"host": "r{number}.example"}}"#))
            .collect();
        let many = format!("[{}]", many.join(","));
        for (text, why) in [
            (r#"[{"host": "secret"}]"#, "number 1"),
            (r#"[{"user": "a"}]"#, "host"),
            (
                r#"[{"host": "a.example", "password": "secret"}]"#,
                "password",
            ),
            (
                r#"[{"host": "a.example"}, {"host": "A.example:443"}]"#,
                "twice",
            ),
            (r#"[{"host": "a.example", "user": "a"}]"#, "together"),
            (
                r#"[{"host": "a.example", "password_file": "/a"}]"#,
                "together",
            ),
            (
                r#"[{"host": "a.example", "user": "a:b", "password_file": "/a"}]"#,
                "colon",
            ),
            (
                r#"[{"host": "a.example", "user": "", "password_file": "/a"}]"#,
                "empty",
            ),
            (
                r#"[{"host": "a.example", "user": "a", "password_file": "secret"}]"#,
                "password_file",
            ),
            (
                r#"[{"host": "a.example", "authority": "a.pem"}]"#,
                "authority",
            ),
            (r#"[{"host": "a.example", "projects": []}]"#, "projects"),
            (
                r#"[{"host": "a.example", "projects": ["*", "team"]}]"#,
                "projects",
            ),
            (
                r#"[{"host": "a.example", "projects": ["secret of"]}]"#,
                "projects",
            ),
            (&many, "more than"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
