//! What unpacking does not do: owners other than root, and modes beyond permissions.
//!
//! Both need `chown` and `chmod` in the image, and only where there is something to do.

use std::collections::BTreeMap;

use crate::builder::Builder;
use crate::error::BuildError;
use crate::passage::Passed;
use crate::place::{Place, upwards};

/// Paths that one command is given at most, and their bytes.
const PATHS_AT_ONCE: usize = 500;
const BYTES_AT_ONCE: usize = 64 << 10;
/// What unpacking takes over of a mode.
const PERMISSIONS: u32 = 0o777;
/// What directories have in any case then.
const OF_DIRECTORIES: u32 = 0o700;

/// Whom files belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    Root,
    /// Whoever has them where they come from.
    Kept,
    /// As `--chown` or USER says it.
    Said(String),
}

impl Owner {
    pub(crate) fn said(owner: Option<&str>, otherwise: Self) -> Self {
        owner.map_or(otherwise, |owner| Self::Said(owner.to_owned()))
    }

    fn of(&self, passed: &Passed) -> Option<String> {
        match self {
            Self::Root => None,
            Self::Kept if (passed.uid, passed.gid) == (0, 0) => None,
            Self::Kept => Some(format!("{}:{}", passed.uid, passed.gid)),
            Self::Said(said) => for_chown(said),
        }
    }
}

/// What `chown` takes for an owner; nothing for root. Without a group a name means that of its user,
/// and a number the group with the same one, as in other builds.
fn for_chown(said: &str) -> Option<String> {
    let is_number = !said.is_empty() && said.bytes().all(|byte| byte.is_ascii_digit());
    match said {
        "0" | "root" | "0:0" | "root:root" | "root:0" | "0:root" => None,
        _ if said.contains(':') => Some(said.to_owned()),
        _ if is_number => Some(format!("{said}:{said}")),
        _ => Some(format!("{said}:")),
    }
}

/// A command, without the paths that it is for.
#[derive(Debug)]
struct Correction {
    words: Vec<String>,
    paths: Vec<String>,
}

/// Commands that give members what they do not have yet, in their order: a change of the owner takes
/// special bits away.
fn commands(
    line: usize,
    directory: &str,
    passed: &[Passed],
    made: &[String],
    owner: &Owner,
) -> Result<Vec<Correction>, BuildError> {
    let (mut owners, mut modes) = (BTreeMap::new(), BTreeMap::new());
    let above = directory.trim_end_matches('/');
    for one in passed {
        let path = || match std::str::from_utf8(&one.path) {
            Ok(path) => Ok(format!("{above}/{}", path.trim_end_matches('/'))),
            Err(_) => {
                let what = "a file whose name is not UTF-8 has an owner or bits that cannot be \
                            given to it; rename it before"
                    .to_owned();
                Err(BuildError::Unsupported { line, what })
            }
        };
        if let Some(owner) = owner.of(one) {
            owners.entry(owner).or_insert_with(Vec::new).push(path()?);
        }
        let taken = match one.is_directory {
            true => one.mode & PERMISSIONS | OF_DIRECTORIES,
            false => one.mode & PERMISSIONS,
        };
        if !one.is_link && taken != one.mode {
            modes.entry(one.mode).or_insert_with(Vec::new).push(path()?);
        }
    }
    if let Owner::Said(said) = owner
        && let Some(owner) = for_chown(said)
    {
        let paths: &mut Vec<String> = owners.entry(owner).or_default();
        paths.extend(made.iter().cloned());
    }
    let correction = |words: &[&str], paths| Correction {
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        paths,
    };
    let chown = owners.into_iter().filter(|(_, paths)| !paths.is_empty());
    let chown = chown.map(|(owner, paths)| correction(&["chown", "-h", &owner, "--"], paths));
    let chmod = modes.into_iter();
    let chmod =
        chmod.map(|(mode, paths)| correction(&["chmod", &format!("{mode:o}"), "--"], paths));
    Ok(chown.chain(chmod).collect())
}

/// Gives what was unpacked below a directory its owner and its bits. `made` are directories that the
/// step made besides.
pub(crate) async fn correct(
    builder: &Builder<'_>,
    line: usize,
    directory: &str,
    passed: &[Passed],
    made: &[String],
    owner: &Owner,
) -> Result<(), BuildError> {
    for correction in commands(line, directory, passed, made, owner)? {
        for some in pieces(&correction.paths) {
            let mut words: Vec<&str> = correction.words.iter().map(String::as_str).collect();
            words.extend(some.iter().map(String::as_str));
            builder.must(line, &words).await?;
        }
    }
    Ok(())
}

/// As many paths as one command takes.
fn pieces(paths: &[String]) -> Vec<&[String]> {
    let mut pieces = Vec::new();
    let mut left = paths;
    while !left.is_empty() {
        let mut bytes = 0;
        let fits = left.iter().take(PATHS_AT_ONCE).take_while(|path| {
            bytes += path.len();
            bytes <= BYTES_AT_ONCE
        });
        let (now, later) = left.split_at(fits.count().max(1));
        pieces.push(now);
        left = later;
    }
    pieces
}

/// Directories on the way to a path that are not there yet.
pub(crate) async fn missing(builder: &Builder<'_>, path: &str) -> Result<Vec<String>, BuildError> {
    let mut missing = Vec::new();
    for directory in upwards(path) {
        if builder.place(directory).await? != Place::Nothing {
            break;
        }
        missing.push(directory.to_owned());
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(path: &str, mode: u32, owner: u64) -> Passed {
        Passed {
            path: path.as_bytes().to_vec(),
            mode,
            uid: owner,
            gid: owner,
            is_directory: path.ends_with('/'),
            is_link: path.ends_with("link"),
        }
    }

    fn said(passed: &[Passed], owner: &Owner) -> Vec<String> {
        let made = ["/srv".to_owned()];
        let commands = commands(1, "/srv/", passed, &made, owner).unwrap();
        let text = |one: Correction| [one.words, one.paths].concat().join(" ");
        commands.into_iter().map(text).collect()
    }

    #[test]
    fn what_is_roots_and_plain_needs_no_command() {
        let plain = [passed("a", 0o755, 0), passed("d/", 0o755, 0)];
        assert!(said(&plain, &Owner::Kept).is_empty());
        assert!(said(&plain, &Owner::Root).is_empty());
        assert!(said(&plain, &Owner::Said("root".to_owned())).is_empty());
    }

    #[test]
    fn owners_and_bits_of_another_stage_are_kept_owners_first() {
        let all = [
            passed("su", 0o4755, 7),
            passed("closed/", 0o500, 0),
            passed("a-link", 0o777, 7),
        ];
        let expected = [
            "chown -h 7:7 -- /srv/su /srv/a-link",
            "chmod 500 -- /srv/closed",
            "chmod 4755 -- /srv/su",
        ];
        assert_eq!(said(&all, &Owner::Kept), expected);
    }

    #[test]
    fn an_owner_is_given_to_members_and_to_what_was_made_and_to_nothing_else() {
        let all = [passed("a", 0o644, 7)];
        for (owner, expected) in [
            ("app", "app:"),
            ("1000", "1000:1000"),
            ("app:web", "app:web"),
        ] {
            let expected = format!("chown -h {expected} -- /srv/a /srv");
            assert_eq!(said(&all, &Owner::Said(owner.to_owned())), [expected]);
        }
    }

    #[test]
    fn a_command_has_as_many_paths_as_it_takes() {
        let paths = vec!["p".repeat(40 << 10); 3];
        assert_eq!(pieces(&paths).len(), 3);
        let paths = vec!["p".to_owned(); 1001];
        let counts: Vec<usize> = pieces(&paths).iter().map(|some| some.len()).collect();
        assert_eq!(counts, [500, 500, 1]);
    }
}
