//! The daemon of this host: where it is, and its administrator's key.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::env_vars::Environment;
use crate::failure::CommandError;
use crate::settings::SettingsError;
use crate::tenancy::args::LoginArgs;
use crate::tenancy::context_file::{self, ContextFileError};

const DATA_DIR_DEFAULT: &str = "/var/lib/dayfly";
const LISTEN_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7070);
const KEY_FILE: &str = "admin.key";

/// What is needed to use it.
#[derive(Debug)]
pub(crate) struct LocalDaemon {
    pub(crate) url: String,
    pub(crate) key_file: PathBuf,
}

/// What its settings say about that. The rest is for the daemon.
#[derive(Debug, Default, Deserialize)]
struct DaemonSettings {
    data_dir: Option<PathBuf>,
    listen: Option<SocketAddr>,
}

/// Finds the daemon by its settings, unless the arguments say where it is.
pub(crate) fn find(
    args: &LoginArgs,
    environment: &Environment,
) -> Result<LocalDaemon, CommandError> {
    let settings = match &environment.daemon_settings {
        Some(path) => read_settings(path)?,
        None => DaemonSettings::default(),
    };
    let data_dir = args.data_dir.clone().or(settings.data_dir);
    let listen = settings.listen.unwrap_or(LISTEN_DEFAULT);
    let url = args.server.clone();
    Ok(LocalDaemon {
        url: url.unwrap_or_else(|| format!("http://{}", reachable(listen))),
        key_file: data_dir
            .unwrap_or_else(|| PathBuf::from(DATA_DIR_DEFAULT))
            .join(KEY_FILE),
    })
}

fn read_settings(path: &Path) -> Result<DaemonSettings, CommandError> {
    let what = || format!("cannot read {}", path.display());
    match std::fs::read_to_string(path) {
        Ok(text) => toml::from_str(&text).map_err(|error| {
            CommandError::local(what(), io::Error::other(error.message().to_owned()))
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(DaemonSettings::default()),
        Err(source) => Err(CommandError::local(what(), source)),
    }
}

/// One that listens everywhere is here too.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let mut reachable = listen;
    if listen.ip().is_unspecified() {
        reachable.set_ip(match listen {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    reachable
}

impl LocalDaemon {
    /// Reads the key, which belongs to root.
    pub(crate) fn read_key(&self) -> Result<String, CommandError> {
        let is_for_root = |error: &ContextFileError| {
            matches!(error, ContextFileError::Read { source, .. }
                if source.kind() == io::ErrorKind::PermissionDenied)
        };
        match context_file::read_key_text(&self.key_file) {
            Ok(key) => Ok(key),
            Err(error) if is_for_root(&error) => Err(CommandError::Refused {
                what: format!("{} is for root", self.key_file.display()),
                hint: "sudo dayfly login --local",
            }),
            Err(error) => Err(SettingsError::from(error).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(settings: &str) -> (String, String) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("dayflyd.toml");
        std::fs::write(&path, settings).unwrap();
        let environment = Environment {
            daemon_settings: Some(path),
            ..Environment::default()
        };
        let args = LoginArgs {
            server: None,
            name: "default".to_owned(),
            local: true,
            data_dir: None,
            sso: false,
            id_token_file: None,
            project: None,
        };
        let daemon = find(&args, &environment).unwrap();
        (daemon.url, daemon.key_file.display().to_string())
    }

    #[test]
    fn the_settings_of_the_daemon_say_where_it_is() {
        let text = |url: &str, key: &str| (url.to_owned(), key.to_owned());
        assert_eq!(
            found("local_group = \"dayfly\""),
            text("http://127.0.0.1:7070", "/var/lib/dayfly/admin.key")
        );
        assert_eq!(
            found("listen = \"0.0.0.0:81\"\ndata_dir = \"/srv/d\""),
            text("http://127.0.0.1:81", "/srv/d/admin.key")
        );
        assert_eq!(found("listen = \"[::]:81\"").0, "http://[::1]:81");
    }
}
