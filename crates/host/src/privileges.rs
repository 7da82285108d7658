//! Giving up root for good, in an order in which each step still has the right to be done.
//!
//! For a process with one thread: what these calls change for a thread they then change for all.

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, Gid, Uid, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

/// A set has 64 bits; the kernel says where its capabilities end.
const CAPABILITIES_MAX: u32 = 64;

/// Which right could not be given up. Some may be gone already: the process must end.
#[derive(Debug, thiserror::Error)]
#[error("cannot give up {what}")]
pub struct DropError {
    pub what: &'static str,
    #[source]
    pub source: Errno,
}

fn give_up(what: &'static str) -> impl FnOnce(Errno) -> DropError {
    move |source| DropError { what, source }
}

/// Whether this process may change the owners of files.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Becomes `uid` and `gid`, with no other group and no capability in any of the five sets, and
/// unable to gain one by running a program.
///
/// # Errors
/// [`DropError`] with what could not be given up.
pub fn drop_to(uid: u32, gid: u32) -> Result<(), DropError> {
    empty_bounding_set()?;
    set_thread_groups(&[]).map_err(give_up("groups"))?;
    let group = Gid::from_raw(gid);
    set_thread_res_gid(group, group, group).map_err(give_up("the group"))?;
    let user = Uid::from_raw(uid);
    set_thread_res_uid(user, user, user).map_err(give_up("the user"))?;
    clear_ambient_capability_set().map_err(give_up("ambient capabilities"))?;
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).map_err(give_up("capabilities"))?;
    set_no_new_privs(true).map_err(give_up("new privileges"))
}

/// Sees to it that memory of this process, and of all that it starts, is never written to a file.
/// The limit alone would not do: where a program takes core files, the kernel hands them over
/// whatever the limit says.
///
/// # Errors
/// [`DropError`] with what could not be given up.
pub fn forbid_core_files() -> Result<(), DropError> {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, none).map_err(give_up("core files"))?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(give_up("core files"))
}

fn empty_bounding_set() -> Result<(), DropError> {
    for number in 0..CAPABILITIES_MAX {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            // Past the last capability that this kernel has.
            Err(Errno::INVAL) => break,
            Err(source) => return Err(give_up("the bounding set")(source)),
        }
    }
    Ok(())
}
