//! Where the server is and which key it gets.
//!
//! The first that says something wins: flags, then a context chosen with `--context`, then the
//! environment, then the current context of the context file, then what a daemon on this host has
//! written for its group, then the default. A context's key goes to that context's address and to no
//! other.

use std::path::{Path, PathBuf};

use dayfly_client::{ApiKey, InvalidConfig};

use crate::args::GlobalArgs;
use crate::env_vars::{self, Environment};
use crate::tenancy::context_file::{self, Context, ContextFile, ContextFileError};
use crate::tenancy::local_access::{self, LocalAccess, LocalAccessError};

/// Where a fresh `dayflyd` listens.
const URL_DEFAULT: &str = "http://127.0.0.1:7070";

/// What the command line needs to know about the server.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) url: String,
    pub(crate) key: Option<ApiKey>,
}

/// Why the settings make no sense.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsError {
    #[error("no API key for {url}")]
    NoKey { url: String },
    #[error("{} is not a usable key", env_vars::API_KEY)]
    EnvironmentKey {
        #[source]
        source: InvalidConfig,
    },
    #[error("{} names {}, which does not exist", env_vars::CONFIG, path.display())]
    NoFile { path: PathBuf },
    #[error("no context {name:?} in {}", path.display())]
    NoContext { name: String, path: PathBuf },
    #[error(transparent)]
    File(#[from] ContextFileError),
    #[error("cannot tell where the context file is: HOME is not set")]
    NoHome,
    #[error(transparent)]
    LocalAccess(#[from] LocalAccessError),
}

impl SettingsError {
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::NoKey { .. } => Some(
                "`dayfly login URL`; on the server's host: `sudo dayfly login --local`, or become a member of its local_group (sudo usermod -aG dayfly \
                 $USER, and log in again), or export DAYFLY_API_KEY=$(sudo cat DIR/admin.key), \
                 where DIR is the data directory of dayflyd; or see --key-file"
                    .to_owned(),
            ),
            Self::File(ContextFileError::Exposed { path, .. }) => {
                Some(format!("chmod 600 {}", path.display()))
            }
            Self::NoContext { .. } => Some(
                "a context is a table [contexts.NAME] with url, and key or key_file".to_owned(),
            ),
            Self::EnvironmentKey { .. }
            | Self::NoFile { .. }
            | Self::File(_)
            | Self::NoHome
            | Self::LocalAccess(_) => None,
        }
    }
}

/// A context with what is needed to follow it.
struct Chosen {
    context: Context,
    path: PathBuf,
    is_by_flag: bool,
}

impl From<LocalAccess> for Chosen {
    fn from(found: LocalAccess) -> Self {
        Self {
            context: found.context,
            path: found.path,
            is_by_flag: false,
        }
    }
}

impl Settings {
    pub(crate) fn load(
        global: &GlobalArgs,
        environment: &Environment,
    ) -> Result<Self, SettingsError> {
        let has_key = global.key_file.is_some() || environment.api_key.is_some();
        let chosen = match choose_context(global, environment)? {
            None if !has_key => local_access::read(environment)?.map(Chosen::from),
            chosen => chosen,
        };
        let url = pick_url(global, environment, chosen.as_ref());
        let key = pick_key(global, environment, chosen.as_ref(), &url)?;
        Ok(Self { url, key })
    }

    /// Fails when there is no key, before the server does so with fewer words.
    pub(crate) fn require_key(&self) -> Result<(), SettingsError> {
        match self.key {
            Some(_) => Ok(()),
            None => Err(SettingsError::NoKey {
                url: self.url.clone(),
            }),
        }
    }
}

fn pick_url(global: &GlobalArgs, environment: &Environment, chosen: Option<&Chosen>) -> String {
    let by_flag = chosen.filter(|chosen| chosen.is_by_flag);
    global
        .url
        .as_ref()
        .or(by_flag.map(|chosen| &chosen.context.url))
        .or(environment.api_url.as_ref())
        .or(chosen.map(|chosen| &chosen.context.url))
        .map_or_else(
            || URL_DEFAULT.to_owned(),
            |url| url.trim_end_matches('/').to_owned(),
        )
}

fn pick_key(
    global: &GlobalArgs,
    environment: &Environment,
    chosen: Option<&Chosen>,
    url: &str,
) -> Result<Option<ApiKey>, SettingsError> {
    if let Some(path) = &global.key_file {
        return Ok(Some(context_file::read_key(path)?));
    }
    // A key must not travel to an address that it was not given for.
    let chosen = chosen.filter(|chosen| chosen.context.url.trim_end_matches('/') == url);
    if let Some(by_flag) = chosen.filter(|chosen| chosen.is_by_flag) {
        return context_key(by_flag, environment);
    }
    if let Some(text) = &environment.api_key {
        let key = ApiKey::parse(text).map_err(|source| SettingsError::EnvironmentKey { source })?;
        return Ok(Some(key));
    }
    chosen.map_or(Ok(None), |chosen| context_key(chosen, environment))
}

fn context_key(
    chosen: &Chosen,
    environment: &Environment,
) -> Result<Option<ApiKey>, SettingsError> {
    if let Some(text) = &chosen.context.key {
        let key = ApiKey::parse(text).map_err(|source| ContextFileError::Key {
            path: chosen.path.clone(),
            source,
        })?;
        return Ok(Some(key));
    }
    let Some(key_file) = &chosen.context.key_file else {
        return Ok(None);
    };
    let path = match (key_file.strip_prefix("~"), &environment.home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => chosen.path.parent().unwrap_or(Path::new("")).join(key_file),
    };
    Ok(Some(context_file::read_key(&path)?))
}

fn choose_context(
    global: &GlobalArgs,
    environment: &Environment,
) -> Result<Option<Chosen>, SettingsError> {
    let Some(path) = context_path(environment) else {
        return if global.context.is_some() {
            Err(SettingsError::NoHome)
        } else {
            Ok(None)
        };
    };
    let file = match context_file::read(&path)? {
        Some(file) => file,
        None if environment.config.is_some() => return Err(SettingsError::NoFile { path }),
        None => ContextFile::default(),
    };
    let ContextFile {
        current,
        mut contexts,
    } = file;
    let Some(name) = global.context.clone().or(current) else {
        return Ok(None);
    };
    match contexts.remove(&name) {
        Some(context) => Ok(Some(Chosen {
            context,
            path,
            is_by_flag: global.context.is_some(),
        })),
        None => Err(SettingsError::NoContext { name, path }),
    }
}

/// Where the context file is, or should be.
pub(crate) fn required_context_path(environment: &Environment) -> Result<PathBuf, SettingsError> {
    context_path(environment).ok_or(SettingsError::NoHome)
}

fn context_path(environment: &Environment) -> Option<PathBuf> {
    if let Some(path) = &environment.config {
        return Some(path.clone());
    }
    let directory = match (&environment.xdg_config_home, &environment.home) {
        (Some(directory), _) => directory.clone(),
        (None, Some(home)) => home.join(".config"),
        (None, None) => return None,
    };
    Some(directory.join("dayfly/config.toml"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const FILE: &str = r#"
        current = "lab"
        [contexts.lab]
        url = "http://lab:1/"
        key = "lab-key"
        [contexts.home]
        url = "http://home:2"
        key_file = "home.key"
    "#;

    struct World {
        directory: tempfile::TempDir,
        environment: Environment,
    }

    fn write_file(path: &Path, text: &str, mode: u32) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn world() -> World {
        let directory = tempfile::tempdir().unwrap();
        write_file(&directory.path().join("config.toml"), FILE, 0o600);
        write_file(&directory.path().join("home.key"), "home-key\n", 0o600);
        let config = Some(directory.path().join("config.toml"));
        World {
            directory,
            environment: Environment {
                config,
                ..Environment::default()
            },
        }
    }

    fn key(text: &str) -> Option<ApiKey> {
        Some(ApiKey::parse(text).unwrap())
    }

    #[test]
    fn without_anything_there_is_a_default_address_and_no_key() {
        let settings = Settings::load(&GlobalArgs::default(), &Environment::default()).unwrap();
        assert_eq!(settings.url, URL_DEFAULT);
        assert!(matches!(
            settings.require_key(),
            Err(SettingsError::NoKey { .. })
        ));
    }

    #[test]
    fn flags_beat_environment_beats_file() {
        let mut world = world();
        let mut global = GlobalArgs::default();
        let settings = Settings::load(&global, &world.environment).unwrap();
        assert_eq!(
            (settings.url.as_str(), settings.key),
            ("http://lab:1", key("lab-key"))
        );

        world.environment.api_url = Some("http://env:3".to_owned());
        world.environment.api_key = Some("env-key".to_owned());
        let settings = Settings::load(&global, &world.environment).unwrap();
        assert_eq!(
            (settings.url.as_str(), settings.key),
            ("http://env:3", key("env-key"))
        );

        global.context = Some("home".to_owned());
        let settings = Settings::load(&global, &world.environment).unwrap();
        assert_eq!(
            (settings.url.as_str(), settings.key),
            ("http://home:2", key("home-key"))
        );

        global.url = Some("http://flag:4".to_owned());
        global.key_file = Some(world.directory.path().join("home.key"));
        let settings = Settings::load(&global, &world.environment).unwrap();
        assert_eq!(
            (settings.url.as_str(), settings.key),
            ("http://flag:4", key("home-key"))
        );
    }

    #[test]
    fn a_daemon_on_this_host_is_the_last_that_is_asked() {
        let mut world = world();
        let path = world.directory.path().join("local.json");
        let text = r#"{"url": "http://127.0.0.1:9", "key": "local-key", "instance": "x"}"#;
        write_file(&path, text, 0o640);
        let global = GlobalArgs::default();
        world.environment.local_access = Some(path.clone());
        let settings = Settings::load(&global, &world.environment).unwrap();
        assert_eq!(settings.url, "http://lab:1", "a context comes first");

        let mut environment = Environment {
            local_access: Some(path.clone()),
            ..Environment::default()
        };
        let settings = Settings::load(&global, &environment).unwrap();
        let found = (settings.url.as_str(), settings.key);
        assert_eq!(found, ("http://127.0.0.1:9", key("local-key")));
        environment.api_url = Some("http://elsewhere".to_owned());
        let settings = Settings::load(&global, &environment).unwrap();
        assert_eq!(settings.key, None, "its key is for its own address");
        environment.api_url = None;
        environment.api_key = Some("env-key".to_owned());
        let settings = Settings::load(&global, &environment).unwrap();
        let found = (settings.url.as_str(), settings.key);
        assert_eq!(found, (URL_DEFAULT, key("env-key")));
        environment.api_key = None;
        write_file(&path, "nonsense", 0o640);
        assert!(Settings::load(&global, &environment).is_err());
        fs::remove_file(&path).unwrap();
        assert!(Settings::load(&global, &environment).unwrap().key.is_none());
    }

    #[test]
    fn a_contexts_key_goes_to_its_own_address_only() {
        let world = world();
        let global = GlobalArgs {
            url: Some("http://elsewhere".to_owned()),
            ..GlobalArgs::default()
        };
        let settings = Settings::load(&global, &world.environment).unwrap();
        assert_eq!(settings.key, None);
    }

    #[test]
    fn files_with_keys_that_others_can_read_are_refused() {
        let world = world();
        let path = world.directory.path().join("config.toml");
        write_file(&path, FILE, 0o640);
        let error = Settings::load(&GlobalArgs::default(), &world.environment).unwrap_err();
        assert!(error.to_string().contains("mode 0640"), "{error}");
        assert_eq!(
            error.hint().unwrap(),
            format!("chmod 600 {}", path.display())
        );

        write_file(
            &path,
            "[contexts.a]\nurl = \"http://a\"\nkey_file = \"k\"",
            0o644,
        );
        assert!(Settings::load(&GlobalArgs::default(), &world.environment).is_ok());
    }

    #[test]
    fn a_broken_file_is_reported_without_its_secrets() {
        let world = world();
        let path = world.directory.path().join("config.toml");
        write_file(
            &path,
            "[contexts.a]\nurl = \"u\"\nkey = \"secret\" oops",
            0o600,
        );
        let error = Settings::load(&GlobalArgs::default(), &world.environment).unwrap_err();
        assert!(
            !format!("{error} {error:?}").contains("secret"),
            "{error:?}"
        );
    }

    #[test]
    fn a_context_that_is_not_there_is_an_error() {
        let world = world();
        let global = GlobalArgs {
            context: Some("typo".to_owned()),
            ..GlobalArgs::default()
        };
        let error = Settings::load(&global, &world.environment).unwrap_err();
        assert!(matches!(error, SettingsError::NoContext { .. }));
    }
}
