//! The namespace that traffic leaves the host from.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::{NetworkError, within};
use super::nat::{self, NatLink};
use super::{EgressExceptions, egress_rules, nft, sysctl};
use crate::netns;

/// How the egress namespace is connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uplink {
    /// Not at all.
    None,
    /// By a link to the host, which forwards and hides it behind its own address.
    Nat,
    /// It is a namespace that somebody else made, connected and will remove.
    Namespace(PathBuf),
}

/// An egress namespace that stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressNamespace {
    /// Where it is kept: the path that was asked for, or what the one of [`Uplink::Namespace`]
    /// leads to.
    pub path: PathBuf,
    /// For [`Uplink::Nat`].
    pub nat: Option<NatLink>,
}

/// Makes the egress namespace, or finds it, and loads its rules: only TCP to public addresses of
/// IPv4 and what `exceptions` names leave it. May be repeated, also with another uplink or other
/// exceptions; connections through it go on unless the uplink changed or their exception is gone.
///
/// With [`Uplink::None`] and [`Uplink::Nat`] the namespace is kept at `path`.
///
/// # Errors
/// [`NetworkError`]. Repeat, or call [`remove_egress_namespace`]; both work from any state.
pub fn ensure_egress_namespace(
    path: &Path,
    instance: &str,
    uplink: &Uplink,
    exceptions: &EgressExceptions,
) -> Result<EgressNamespace, NetworkError> {
    let exceptions = egress_rules::check(exceptions)?;
    let rules = egress_rules::write(&exceptions);
    let path = match uplink {
        Uplink::None | Uplink::Nat => {
            ensure_kept(path)?;
            path.to_owned()
        }
        Uplink::Namespace(theirs) => find_theirs(theirs)?,
    };
    // Before there is a way out.
    within(&path, move || nft::load(&rules))?;
    let nat = match uplink {
        Uplink::Nat => Some(nat::ensure(&path, instance, &exceptions)?),
        Uplink::None | Uplink::Namespace(_) => {
            nat::remove_if_there(instance)?;
            None
        }
    };
    Ok(EgressNamespace { path, nat })
}

/// Removes what [`ensure_egress_namespace`] made with the same arguments, and nothing that it
/// found. What is absent is no error. A namespace ends when the last process in it has.
///
/// # Errors
/// [`NetworkError`]; may be repeated.
pub fn remove_egress_namespace(
    path: &Path,
    instance: &str,
    uplink: &Uplink,
) -> Result<(), NetworkError> {
    match uplink {
        Uplink::None => nat::remove_if_there(instance)?,
        Uplink::Nat => nat::remove(instance)?,
        Uplink::Namespace(theirs) if theirs.exists() => {
            let theirs = find_theirs(theirs)?;
            return within(&theirs, || nft::remove_table(egress_rules::TABLE));
        }
        Uplink::Namespace(_) => return Ok(()),
    }
    netns::remove(path).map_err(|source| NetworkError::Namespace { source })
}

fn ensure_kept(path: &Path) -> Result<(), NetworkError> {
    let kept = |result: Result<(), netns::NetnsError>| {
        result.map_err(|source| NetworkError::Namespace { source })
    };
    let looked = netns::in_namespace(path, || ());
    match looked.map_err(|error| (error.raw_os_error(), error)) {
        Ok(()) => {}
        // Not there, or the plain file that a crash left between its making and the mount on it.
        Err((Some(libc::ENOENT | libc::EINVAL), _)) => {
            kept(netns::remove(path))?;
            kept(netns::create(path))?;
        }
        // Perhaps there, and in use.
        Err((_, source)) => {
            let path = path.to_owned();
            return Err(NetworkError::Enter { path, source });
        }
    }
    within(path, || sysctl::apply(&sysctl::CLOSED))
}

/// What an operator names may be a link, as `/var/run` often is. The host's own namespace is
/// refused: the rules would cut it off.
fn find_theirs(path: &Path) -> Result<PathBuf, NetworkError> {
    let find = || {
        let number = |path: &Path| fs::metadata(path).map(|metadata| metadata.ino());
        if number(path)? == number(Path::new("/proc/thread-self/ns/net"))? {
            let why = "it is the host's own";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        path.canonicalize()
    };
    find().map_err(|source| NetworkError::Enter {
        path: path.to_owned(),
        source,
    })
}
