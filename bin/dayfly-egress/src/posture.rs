//! What the process must not have, and gives up.

use anyhow::{Context as _, Result, ensure};
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getegid, geteuid, getgid, getrlimit, getuid,
    set_dumpable_behavior, setrlimit,
};
use rustix::thread::{CapabilitySet, capabilities, set_no_new_privs};

/// Whoever starts it with a privilege has made a mistake that must not go unnoticed.
pub(crate) fn refuse_privilege() -> Result<()> {
    let is_root = getuid().is_root() || geteuid().is_root();
    let is_of_root = getgid().is_root() || getegid().is_root();
    ensure!(!is_root && !is_of_root, "this program does not run as root");
    let sets = capabilities(None).context("cannot read the capabilities")?;
    let all = sets.effective | sets.permitted | sets.inheritable;
    ensure!(
        all == CapabilitySet::empty(),
        "this program does not run with capabilities, and has {all:?}"
    );
    Ok(())
}

pub(crate) fn give_up_the_rest() -> Result<()> {
    set_no_new_privs(true).context("cannot give up new privileges")?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).context("cannot become undumpable")?;
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    setrlimit(Resource::Core, none).context("cannot switch core files off")?;
    // Each connection is two descriptors, and more while much goes over it.
    let most = getrlimit(Resource::Nofile).maximum;
    let wanted = Rlimit {
        current: most,
        maximum: most,
    };
    setrlimit(Resource::Nofile, wanted).context("cannot raise the number of descriptors")
}
