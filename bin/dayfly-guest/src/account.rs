//! Users and groups, read from the guest's own files on every use, because user code may add some.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

use dayfly_guest_proto::{GuestError, GuestErrorCode};
use dayfly_types::GuestDefaults;
use rustix::fs::{Gid, OFlags, Uid};

/// Whose name an exec runs under when the caller gives none.
const DEFAULT_USER: &str = "agent";
/// Where an exec starts when neither the caller nor the image says so. Where it is not there, it is
/// the user's home.
const DEFAULT_DIRECTORY: &str = "/workspace";
/// Account files beyond this are not read: user code may have made them.
const ACCOUNT_FILE_BYTES_MAX: u64 = 1 << 20;

/// Who a process or a file operation acts as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) uid: Uid,
    pub(crate) gid: Gid,
    pub(crate) groups: Vec<Gid>,
    pub(crate) home: String,
    pub(crate) shell: String,
    /// Where its processes start; if they cannot, then at home.
    pub(crate) directory: String,
}

impl Account {
    /// Finds the account of this name or number, perhaps with a group; without one, that of the image,
    /// the default user, or root.
    pub(crate) fn find(user: Option<&str>, defaults: &GuestDefaults) -> Result<Self, GuestError> {
        let users = read_small_file("/etc/passwd").unwrap_or_default();
        let groups = read_small_file("/etc/group").unwrap_or_default();
        let unknown = |name: &str| {
            let text = format!("no user {name:?} in this guest");
            GuestError::new(GuestErrorCode::Invalid, text)
        };
        let mut account = match user.or(defaults.user.as_deref()) {
            Some(name) => image_account(&users, &groups, name).ok_or_else(|| unknown(name))?,
            None => parse_account(&users, &groups, DEFAULT_USER).unwrap_or_else(Self::root),
        };
        if let Some(directory) = &defaults.directory {
            account.directory.clone_from(directory);
        }
        Ok(account)
    }

    /// The account that every machine has, whatever its files say.
    pub(crate) fn root() -> Self {
        Self {
            name: "root".to_owned(),
            uid: Uid::ROOT,
            gid: Gid::ROOT,
            groups: Vec::new(),
            home: "/root".to_owned(),
            shell: "/bin/sh".to_owned(),
            directory: DEFAULT_DIRECTORY.to_owned(),
        }
    }

    /// Makes this process act as the account, for good. Only a forked child may call it.
    pub(crate) fn assume(&self) -> io::Result<()> {
        if !rustix::process::geteuid().is_root() {
            // An agent without root acts as itself; so it is in tests only.
            return Ok(());
        }
        rustix::thread::set_thread_groups(&self.groups)?;
        rustix::thread::set_thread_gid(self.gid)?;
        rustix::thread::set_thread_uid(self.uid)?;
        Ok(())
    }
}

/// Reads the beginning of a small file that user code or an image may have made.
pub(crate) fn read_small_file(path: &str) -> io::Result<String> {
    // Non-blocking, because there may be a pipe in the place of the file.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let mut bytes = Vec::new();
    file.take(ACCOUNT_FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn parse_account(users: &str, groups: &str, wanted: &str) -> Option<Account> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let uid = fields.nth(1)?;
        if name.is_empty() || (name != wanted && uid != wanted) {
            return None;
        }
        let gid = Gid::from_raw(fields.next()?.parse().ok()?);
        let home = fields.nth(1).filter(|home| !home.is_empty()).unwrap_or("/");
        let shell = fields
            .next()
            .filter(|shell| !shell.is_empty())
            .unwrap_or("/bin/sh");
        Some(Account {
            name: name.to_owned(),
            uid: Uid::from_raw(uid.parse().ok()?),
            gid,
            groups: parse_groups(groups, name, gid),
            home: home.to_owned(),
            shell: shell.to_owned(),
            directory: DEFAULT_DIRECTORY.to_owned(),
        })
    })
}

/// A user as images and those who use them write it: a name or a number, which need not be in the
/// files of the guest, and behind a colon the same for the group. Root is always there, because an
/// image with one program has no such files.
fn image_account(users: &str, groups: &str, wanted: &str) -> Option<Account> {
    let (user, group) = match wanted.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (wanted, None),
    };
    let known = parse_account(users, groups, user);
    let mut account = match (known, user.parse()) {
        (Some(account), _) => account,
        (None, Ok(0)) => Account::root(),
        (None, Err(_)) if user == "root" => Account::root(),
        (None, Ok(number)) => Account {
            name: user.to_owned(),
            uid: Uid::from_raw(number),
            home: "/".to_owned(),
            ..Account::root()
        },
        (None, Err(_)) => return None,
    };
    if let Some(group) = group {
        account.gid = group_id(groups, group)?;
        account.groups = vec![account.gid];
    }
    Some(account)
}

fn group_id(groups: &str, wanted: &str) -> Option<Gid> {
    let named = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let is_wanted = fields.next() == Some(wanted);
        let number = fields.nth(1).filter(|_| is_wanted)?;
        number.parse().ok()
    });
    named.or_else(|| wanted.parse().ok()).map(Gid::from_raw)
}

fn parse_groups(groups: &str, user: &str, primary: Gid) -> Vec<Gid> {
    let member_of = groups.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let gid = fields.nth(2)?.parse().ok()?;
        fields
            .next()?
            .split(',')
            .any(|member| member == user)
            .then(|| Gid::from_raw(gid))
    });
    let mut all = vec![primary];
    all.extend(member_of.filter(|gid| *gid != primary).take(64));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str =
        "root:x:0:0:root:/root:/bin/bash\nbroken\nagent:x:1000:1001::/home/agent:\n";
    const GROUPS: &str = "root:x:0:\nsudo:x:27:other,agent\nagent:x:1001:agent\n";

    #[test]
    fn account_is_found_by_name_and_by_number() {
        let by_name = parse_account(USERS, GROUPS, "agent").unwrap();
        assert_eq!(by_name.groups, vec![Gid::from_raw(1001), Gid::from_raw(27)]);
        assert_eq!(by_name.home, "/home/agent");
        assert_eq!(by_name.shell, "/bin/sh");
        assert_eq!(parse_account(USERS, GROUPS, "1000"), Some(by_name));
    }

    #[test]
    fn users_of_images_need_not_be_in_their_files() {
        let find = |wanted: &str| {
            let account = image_account(USERS, GROUPS, wanted)?;
            Some((account.uid.as_raw(), account.gid.as_raw(), account.home))
        };
        let at = |uid, gid, home: &str| Some((uid, gid, home.to_owned()));
        assert_eq!(find("agent"), at(1000, 1001, "/home/agent"));
        assert_eq!(find("agent:sudo"), at(1000, 27, "/home/agent"));
        assert_eq!(find("1000:5"), at(1000, 5, "/home/agent"));
        assert_eq!(find("70000"), at(70000, 0, "/"));
        assert_eq!(find("70000:sudo"), at(70000, 27, "/"));
        for unknown in ["nobody", "", ":", "agent:none", "-1", "4294967296"] {
            assert_eq!(find(unknown), None, "{unknown:?}");
        }
    }

    #[test]
    fn root_is_there_without_any_file() {
        for wanted in ["0", "root"] {
            assert_eq!(image_account("", "", wanted), Some(Account::root()));
        }
        let in_group = image_account("", "", "0:7").unwrap();
        assert_eq!((in_group.uid, in_group.gid), (Uid::ROOT, Gid::from_raw(7)));
        assert_eq!(image_account("", "", "agent"), None);
    }

    #[test]
    fn unknown_and_empty_names_have_no_account() {
        assert_eq!(parse_account(USERS, GROUPS, "nobody"), None);
        assert_eq!(parse_account(USERS, GROUPS, ""), None);
    }
}
