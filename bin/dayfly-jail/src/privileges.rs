//! Giving up everything, in an order in which each step still has the right to be done.

use dayfly_host::jail::{JailSpec, JailStep, NULL_DEVICE};
use dayfly_host::privileges::drop_to;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::{Resource, Rlimit, chdir, setrlimit, setsid, umask};

use crate::failure::{Failure, Step};

pub(crate) fn prepare_process(spec: &JailSpec) -> Result<(), Failure> {
    let step = JailStep::SetLimits;
    setsid().step(step, "session")?;
    // What the engine makes, its sockets above all, is for itself and for root.
    umask(Mode::RWXG | Mode::RWXO);
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let null = openat(CWD, NULL_DEVICE, flags, Mode::empty()).step(step, NULL_DEVICE)?;
    rustix::stdio::dup2_stdin(&null).step(step, NULL_DEVICE)?;
    chdir(&spec.working_directory).step(step, spec.working_directory.display())?;
    let limits = [
        (Resource::Core, Some(0)),
        (Resource::Nofile, Some(spec.limits.open_files)),
        (Resource::Memlock, Some(spec.limits.locked_memory_bytes)),
        (Resource::Fsize, spec.limits.file_size_bytes),
    ];
    for (resource, limit) in limits {
        let limit = Rlimit {
            current: limit,
            maximum: limit,
        };
        setrlimit(resource, limit).step(step, format!("{resource:?}"))?;
    }
    Ok(())
}

pub(crate) fn drop_all(spec: &JailSpec) -> Result<(), Failure> {
    drop_to(spec.uid, spec.gid)
        .map_err(|error| error.source)
        .step(JailStep::DropPrivileges, "root")
}
