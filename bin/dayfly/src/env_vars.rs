//! Every environment variable that is read by name, and the only place that reads them.

use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) const API_URL: &str = "DAYFLY_API_URL";
pub(crate) const API_KEY: &str = "DAYFLY_API_KEY";
pub(crate) const CONFIG: &str = "DAYFLY_CONFIG";
const XDG_CONFIG_HOME: &str = "XDG_CONFIG_HOME";
const HOME: &str = "HOME";
/// Where a daemon of this host writes how its group reaches it.
const LOCAL_ACCESS: &str = "/run/dayfly/local.json";
/// The settings of a daemon of this host.
const DAEMON_SETTINGS: &str = "/etc/dayfly/dayflyd.toml";
const SUDO_UID: &str = "SUDO_UID";
const SUDO_GID: &str = "SUDO_GID";
/// Only newer versions of sudo set it.
const SUDO_HOME: &str = "SUDO_HOME";
const NO_COLOR: &str = "NO_COLOR";
const CLICOLOR_FORCE: &str = "CLICOLOR_FORCE";
const TERM: &str = "TERM";

/// The same for people, at the end of `dayfly help`.
pub(crate) const HELP: &str = "\
Environment:
  DAYFLY_API_URL  address of the server (default http://127.0.0.1:7070)
  DAYFLY_API_KEY  key for the server
  DAYFLY_CONFIG   context file (default ~/.config/dayfly/config.toml), which holds
                  current = \"NAME\" and tables [contexts.NAME] with url, and key or key_file
  NO_COLOR        no colours, as --color never
  CLICOLOR_FORCE  colours also without a terminal, as --color always";

/// What the environment says. An empty variable is one that is not set.
#[derive(Debug, Default, Clone)]
pub(crate) struct Environment {
    pub(crate) api_url: Option<String>,
    pub(crate) api_key: Option<String>,
    pub(crate) config: Option<PathBuf>,
    pub(crate) xdg_config_home: Option<PathBuf>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) refuses_colour: bool,
    pub(crate) forces_colour: bool,
    /// No variable names it.
    pub(crate) local_access: Option<PathBuf>,
    /// Nor this.
    pub(crate) daemon_settings: Option<PathBuf>,
    pub(crate) sudo: Option<SudoUser>,
}

/// Who called `sudo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SudoUser {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) home: Option<PathBuf>,
}

impl Environment {
    pub(crate) fn read() -> Self {
        let is_dumb = variable(TERM).is_some_and(|term| term == "dumb");
        Self {
            api_url: text(API_URL),
            api_key: text(API_KEY),
            config: variable(CONFIG).map(PathBuf::from),
            xdg_config_home: variable(XDG_CONFIG_HOME).map(PathBuf::from),
            home: variable(HOME).map(PathBuf::from),
            refuses_colour: variable(NO_COLOR).is_some() || is_dumb,
            forces_colour: variable(CLICOLOR_FORCE).is_some_and(|value| value != "0"),
            local_access: Some(PathBuf::from(LOCAL_ACCESS)),
            daemon_settings: Some(PathBuf::from(DAEMON_SETTINGS)),
            sudo: sudo_user(),
        }
    }
}

fn sudo_user() -> Option<SudoUser> {
    let number = |name| text(name)?.parse().ok();
    Some(SudoUser {
        uid: number(SUDO_UID)?,
        gid: number(SUDO_GID)?,
        home: variable(SUDO_HOME).map(PathBuf::from),
    })
}

fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Why a variable that was named on the command line has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoValue {
    #[error("{name} is not set here; give {name}=VALUE")]
    NotSet { name: String },
    #[error("the value of {name} is not UTF-8")]
    NotText { name: String },
}

/// The value of a variable that the user named, which may be empty.
pub(crate) fn value_of(name: &str) -> Result<String, NoValue> {
    let owned = || name.to_owned();
    // A name that no variable can have is not set either.
    let value = std::env::var_os(name).ok_or_else(|| NoValue::NotSet { name: owned() })?;
    let text = value.into_string();
    text.map_err(|_| NoValue::NotText { name: owned() })
}

/// Bytes that are not text become replacement characters, which the later checks refuse.
fn text(name: &str) -> Option<String> {
    variable(name).map(|value| value.to_string_lossy().into_owned())
}
