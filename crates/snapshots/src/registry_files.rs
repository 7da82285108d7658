//! Files of the operator's that belong to a registry: a password, and certificates.
//!
//! They are read when an image is fetched, so that a password can be renewed without a restart, and
//! what is in them goes into the job of that one image.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt as _};
use std::path::{Path, PathBuf};

use dayfly_types::container_image::RegistryLogin;
use dayfly_types::limits::{REGISTRY_AUTHORITY_BYTES_MAX, REGISTRY_PASSWORD_BYTES_MAX};
use dayfly_types::{ProjectId, RegistryHost};
use rustix::fs::OFlags;

use crate::registries::{Registries, RegistrySettings};

/// Read, write and execute of everybody.
const EVERYBODY: u32 = 0o007;
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// Why a file cannot be used for a registry. Nothing of what is in it is ever said.
#[derive(Debug, thiserror::Error)]
pub enum RegistryFileError {
    #[error("cannot read {path}, which the settings name for a registry")]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{path} is not a regular file")]
    NotAFile { path: PathBuf },
    #[error("every user of this host may use {path}, which has a password in it; chmod it to 0600")]
    Open { path: PathBuf },
    #[error("{path} has more than {most} bytes")]
    TooLong { path: PathBuf, most: usize },
    #[error("the first line of {path} is not a password: it is empty, or is not plain text")]
    NoPassword { path: PathBuf },
    #[error("{path} has no certificate in PEM form")]
    NoCertificate { path: PathBuf },
}

/// What a registry is asked with.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RegistryFiles {
    pub(crate) login: Option<RegistryLogin>,
    /// As PEM.
    pub(crate) authority: Option<String>,
}

impl RegistryFiles {
    /// What the files say now. Nothing for a registry that is not in the settings, or not for
    /// images that this project names.
    pub(crate) fn read(
        registries: &Registries,
        registry: &RegistryHost,
        project: Option<&ProjectId>,
    ) -> Result<Self, RegistryFileError> {
        match registries.of(registry).filter(|one| one.is_for(project)) {
            Some(settings) => Self::of(settings),
            None => Ok(Self::default()),
        }
    }

    fn of(settings: &RegistrySettings) -> Result<Self, RegistryFileError> {
        let authority = settings.authority.as_deref().map(authority).transpose()?;
        let login = match (&settings.user, &settings.password_file) {
            (Some(user), Some(file)) => Some(RegistryLogin {
                user: user.clone(),
                password: password(file)?,
            }),
            (None, _) | (_, None) => None,
        };
        Ok(Self { login, authority })
    }
}

impl Registries {
    /// Whether all files can be used as they are now.
    ///
    /// # Errors
    /// [`RegistryFileError`]
    pub fn check_files(&self) -> Result<(), RegistryFileError> {
        self.iter()
            .try_for_each(|settings| RegistryFiles::of(settings).map(drop))
    }
}

fn password(path: &Path) -> Result<String, RegistryFileError> {
    let (bytes, mode) = read(path, REGISTRY_PASSWORD_BYTES_MAX)?;
    let path = || path.to_owned();
    if mode & EVERYBODY != 0 {
        return Err(RegistryFileError::Open { path: path() });
    }
    let text = String::from_utf8(bytes).unwrap_or_default();
    let line = text.split('\n').next().unwrap_or_default();
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_empty() || line.contains(char::is_control) {
        return Err(RegistryFileError::NoPassword { path: path() });
    }
    Ok(line.to_owned())
}

fn authority(path: &Path) -> Result<String, RegistryFileError> {
    let (bytes, _) = read(path, REGISTRY_AUTHORITY_BYTES_MAX)?;
    let text = String::from_utf8(bytes).unwrap_or_default();
    match text.contains(CERTIFICATE) {
        true => Ok(text),
        false => Err(RegistryFileError::NoCertificate {
            path: path.to_owned(),
        }),
    }
}

/// The whole of a file, and its permissions. Links are followed: the operator named it, and secrets
/// are often behind one.
fn read(path: &Path, most: usize) -> Result<(Vec<u8>, u32), RegistryFileError> {
    let wrap = |source| RegistryFileError::Read {
        path: path.to_owned(),
        source,
    };
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(|_| wrap(invalid()))?;
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(flags).open(path);
    let file = file.map_err(wrap)?;
    let about = file.metadata().map_err(wrap)?;
    if !about.is_file() {
        return Err(RegistryFileError::NotAFile {
            path: path.to_owned(),
        });
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes).map_err(wrap)?;
    if bytes.len() > most {
        return Err(RegistryFileError::TooLong {
            path: path.to_owned(),
            most,
        });
    }
    Ok((bytes, about.permissions().mode()))
}

fn invalid() -> io::Error {
    io::ErrorKind::InvalidInput.into()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn write(&self, name: &str, text: impl AsRef<[u8]>, mode: u32) -> PathBuf {
            let path = self.0.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        }

        fn registries(&self) -> Registries {
            let at = |name: &str| self.0.path().join(name);
            let text = serde_json::json!([{
                "host": "registry.example:5000", "user": "puller",
                "password_file": at("password"), "authority": at("authority"),
            }]);
            serde_json::from_value(text).unwrap()
        }
    }

    fn of(registries: &Registries, host: &str) -> Result<RegistryFiles, RegistryFileError> {
        RegistryFiles::read(registries, &RegistryHost::parse(host).unwrap(), None)
    }

    #[test]
    fn files_are_read_each_time_and_for_their_registry_alone() {
        let place = Place::new();
        place.write("authority", CERTIFICATE, 0o644);
        let registries = place.registries();
        for (written, wanted) in [
            ("first\n", "first"),
            ("second", "second"),
            ("thi rd \r\nmore\n", "thi rd "),
        ] {
            place.write("password", written, 0o600);
            let found = of(&registries, "registry.example:5000").unwrap();
            let login = found.login.clone().unwrap();
            assert_eq!(
                (login.user.as_str(), login.password.as_str()),
                ("puller", wanted)
            );
            assert_eq!(found.authority.as_deref(), Some(CERTIFICATE));
            let shown = format!("{found:?} {registries:?}");
            assert!(!shown.contains(wanted), "{shown}");
        }
        let other = of(&registries, "registry.example").unwrap();
        assert_eq!(other, RegistryFiles::default());
        registries.check_files().unwrap();
        place.write("elsewhere", "linked\n", 0o640);
        fs::remove_file(place.0.path().join("password")).unwrap();
        std::os::unix::fs::symlink("elsewhere", place.0.path().join("password")).unwrap();
        let found = of(&registries, "registry.example:5000").unwrap();
        assert_eq!(found.login.unwrap().password, "linked");
    }

    #[test]
    fn a_password_is_for_the_recipes_and_for_the_projects_that_the_settings_name() {
        let place = Place::new();
        place.write("authority", CERTIFICATE, 0o644);
        place.write("password", "secret", 0o600);
        let of = |projects: serde_json::Value, project: Option<&str>| {
            let mut settings = serde_json::to_value(place.registries().iter().collect::<Vec<_>>());
            if let Ok(settings) = &mut settings
                && !projects.is_null()
            {
                settings[0]["projects"] = projects;
            }
            let registries: Registries = serde_json::from_value(settings.unwrap()).unwrap();
            let host = RegistryHost::parse("registry.example:5000").unwrap();
            let project = project.map(|project| ProjectId::parse(project).unwrap());
            let found = RegistryFiles::read(&registries, &host, project.as_ref()).unwrap();
            let has_login = found.login.is_some();
            assert_eq!(has_login, found.authority.is_some());
            has_login
        };
        let (absent, named) = (serde_json::Value::Null, serde_json::json!(["team", "web"]));
        for (projects, project, wanted) in [
            (&absent, None, true),
            (&absent, Some("team"), false),
            (&named, None, true),
            (&named, Some("team"), true),
            (&named, Some("other"), false),
            (&serde_json::json!(["*"]), Some("other"), true),
        ] {
            let found = of(projects.clone(), project);
            assert_eq!(found, wanted, "{projects} {project:?}");
        }
    }

    #[test]
    fn a_password_that_is_open_or_strange_is_refused_and_not_shown() {
        let place = Place::new();
        place.write("authority", CERTIFICATE, 0o644);
        let registries = place.registries();
        let long = "secret".repeat(REGISTRY_PASSWORD_BYTES_MAX);
        for (text, mode, why) in [
            ("secret\n", 0o644, "every user"),
            ("secret\n", 0o602, "every user"),
            ("secret\n", 0o601, "every user"),
            ("", 0o600, "first line"),
            ("\nsecret\n", 0o600, "first line"),
            ("sec\tret\n", 0o600, "first line"),
            (&long, 0o600, "more than"),
        ] {
            place.write("password", text, mode);
            let error = registries.check_files().unwrap_err().to_string();
            assert!(
                error.contains(why) && error.contains("/password"),
                "{error}"
            );
            assert!(!error.contains("secret"), "{error}");
        }
        place.write("password", b"\xff\xfe", 0o600);
        assert!(registries.check_files().is_err());
        fs::remove_file(place.0.path().join("password")).unwrap();
        let error = registries.check_files().unwrap_err();
        assert!(matches!(error, RegistryFileError::Read { .. }), "{error:?}");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            place.0.path().join("password"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let error = registries.check_files().unwrap_err();
        assert!(
            matches!(error, RegistryFileError::NotAFile { .. }),
            "{error:?}"
        );
    }

    #[test]
    fn an_authority_has_certificates() {
        let place = Place::new();
        place.write("password", "secret", 0o600);
        let registries = place.registries();
        for text in [
            "no certificate",
            &" ".repeat(REGISTRY_AUTHORITY_BYTES_MAX + 1),
        ] {
            place.write("authority", text, 0o644);
            let error = registries.check_files().unwrap_err();
            assert!(error.to_string().contains("/authority"), "{error}");
        }
    }
}
