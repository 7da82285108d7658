//! `sudo dayfly login --local`: the first saved server of the user who called sudo.
//!
//! Root reads the administrator's key, and a program that runs as the user stores it. So the file has
//! the right owner, and nothing that the user has put into the way is followed by root.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::args::GlobalArgs;
use crate::env_vars::{Environment, SudoUser};
use crate::exit_status;
use crate::failure::CommandError;
use crate::printer::Printer;
use crate::tenancy::args::LoginArgs;
use crate::tenancy::local_daemon::{self, LocalDaemon};
use crate::tenancy::login;

/// Where users of this host and their home directories are.
const USERS: &str = "/etc/passwd";

pub(crate) async fn login(
    args: &LoginArgs,
    global: &GlobalArgs,
    environment: &Environment,
    printer: &Printer,
) -> Result<u8, CommandError> {
    let daemon = local_daemon::find(args, environment)?;
    let key = daemon.read_key()?;
    let is_root = rustix::process::geteuid().is_root();
    match environment
        .sudo
        .as_ref()
        .filter(|user| is_root && user.uid != 0)
    {
        Some(user) => store_as(user, args, global, &daemon, &key),
        None => login::store(&daemon.url, key, &args.name, global, environment, printer).await,
    }
}

/// Runs `dayfly login` as the user, with the key as its input.
fn store_as(
    user: &SudoUser,
    args: &LoginArgs,
    global: &GlobalArgs,
    daemon: &LocalDaemon,
    key: &str,
) -> Result<u8, CommandError> {
    let failed =
        |source| CommandError::local("cannot store the key as the user who called sudo", source);
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command
        .args(["login", &daemon.url, "--name", &args.name])
        .args(global.json.then_some("--json"))
        .args(global.quiet.then_some("--quiet"))
        .args(global.verbose.then_some("--verbose"))
        .env_clear()
        .env("HOME", home_of(user)?)
        .current_dir("/")
        .uid(user.uid)
        .gid(user.gid)
        .stdin(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        // One that ends before it has read says why.
        let _ = input.write_all(key.as_bytes());
    }
    let ended = child.wait().map_err(failed)?;
    let status = ended.code().and_then(|code| u8::try_from(code).ok());
    Ok(status.unwrap_or(exit_status::FAILED))
}

fn home_of(user: &SudoUser) -> Result<PathBuf, CommandError> {
    let users = std::fs::read_to_string(USERS).unwrap_or_default();
    let home = user.home.clone().or_else(|| home_in(&users, user.uid));
    home.ok_or_else(|| CommandError::Refused {
        what: format!("user {} has no home directory in {USERS}", user.uid),
        hint: "as that user: sudo cat DIR/admin.key | dayfly login http://127.0.0.1:7070",
    })
}

/// `name:password:uid:gid:text:home:shell`.
fn home_in(users: &str, uid: u32) -> Option<PathBuf> {
    let mut lines = users
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>());
    let uid = uid.to_string();
    let fields = lines.find(|fields| fields.get(2).is_some_and(|field| **field == *uid))?;
    let home = fields.get(5).filter(|home| home.starts_with('/'))?;
    Some(PathBuf::from(home))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_known_by_number() {
        let users =
            "root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000:,,,:/home/ann:/bin/sh\nodd:x:7\n";
        assert_eq!(home_in(users, 1000), Some(PathBuf::from("/home/ann")));
        assert_eq!(home_in(users, 7), None);
        assert_eq!(home_in(users, 100), None);
    }
}
