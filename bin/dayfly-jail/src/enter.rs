//! Entering the slot: control groups, network, namespaces, root, name.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use dayfly_host::jail::{JailSpec, JailStep};
use dayfly_host::netns;
use dayfly_host::sys::{Namespace, join_new_session_keyring, unshare};
use rustix::fs::Mode;
use rustix::process::umask;
use rustix::system::{setdomainname, sethostname};

use crate::failure::{Failure, Step};
use crate::root;

pub(crate) fn enter_slot(spec: &JailSpec) -> Result<(), Failure> {
    // Modes of what is made below are meant as they are written.
    umask(Mode::empty());
    for path in &spec.cgroup_procs {
        join_cgroup(path)?;
    }
    let adjustment = spec.out_of_memory_adjustment;
    fs::write("/proc/self/oom_score_adj", adjustment.to_string()).step(
        JailStep::Prepare,
        format!("out-of-memory adjustment {adjustment}"),
    )?;
    let namespace =
        netns::open_namespace(&spec.netns).step(JailStep::EnterNetwork, spec.netns.display())?;
    netns::enter(&namespace).step(JailStep::EnterNetwork, spec.netns.display())?;
    join_new_session_keyring().step(JailStep::Unshare, "session keyring")?;
    // The cgroup namespace is rooted where the process stands now, so it comes after joining.
    let namespaces = [
        Namespace::Mount,
        Namespace::Ipc,
        Namespace::Uts,
        Namespace::Pid,
        Namespace::Cgroup,
    ];
    unshare(&namespaces).step(JailStep::Unshare, "mount, ipc, uts, pid, cgroup")?;
    root::build_and_enter(spec)?;
    sethostname(spec.hostname.as_bytes()).step(JailStep::SetHostname, &spec.hostname)?;
    setdomainname(b"").step(JailStep::SetHostname, "domain name")
}

fn join_cgroup(procs: &Path) -> Result<(), Failure> {
    OpenOptions::new()
        .write(true)
        .open(procs)
        // Zero means the writing process.
        .and_then(|mut file| file.write_all(b"0"))
        .step(JailStep::JoinCgroup, procs.display())
}
