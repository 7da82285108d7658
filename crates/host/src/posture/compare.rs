//! Facts beside expectation.

use std::collections::BTreeSet;

use super::expected::CONFINING_OPTIONS;
use super::{CapabilitySets, Descriptor, Expected, Posture, ThreadPosture};
use crate::mounts::MountEntry;

const SECCOMP_FILTER: u32 = 2;

/// Everything in which a process is not as expected, as text for a person. Empty when it is.
#[must_use]
pub fn differences(posture: &Posture, expected: &Expected) -> Vec<String> {
    let mut found = Vec::new();
    if posture.executable != expected.executable.to_string_lossy() {
        found.push(format!(
            "executable is {}, not {}",
            posture.executable,
            expected.executable.display()
        ));
    }
    if posture.threads.is_empty() {
        found.push("no thread was seen".to_owned());
    }
    for thread in &posture.threads {
        compare_thread(thread, expected, &mut found);
        compare_namespaces(thread, expected, &mut found);
    }
    compare_mounts(&posture.mounts, expected, &mut found);
    compare_descriptors(&posture.descriptors, expected, &mut found);
    compare_cgroups(posture, expected, &mut found);
    compare_limits(posture, expected, &mut found);
    if posture.is_dumpable != expected.is_dumpable {
        found.push(format!("dumpable is {}", posture.is_dumpable));
    }
    let (actual, wanted) = (
        posture.out_of_memory_adjustment,
        expected.out_of_memory_adjustment,
    );
    if actual != wanted {
        found.push(format!(
            "out-of-memory adjustment is {actual}, not {wanted}"
        ));
    }
    found
}

fn compare_thread(thread: &ThreadPosture, expected: &Expected, found: &mut Vec<String>) {
    let name = thread.thread;
    let (uid, gid) = (expected.uid, expected.gid);
    if !thread.user_ids.are_all(uid) {
        found.push(format!(
            "thread {name}: users are {:?}, not {uid}",
            thread.user_ids
        ));
    }
    if !thread.group_ids.are_all(gid) {
        found.push(format!(
            "thread {name}: groups are {:?}, not {gid}",
            thread.group_ids
        ));
    }
    if !thread.groups.is_empty() {
        found.push(format!(
            "thread {name}: is also in groups {:?}",
            thread.groups
        ));
    }
    if thread.capabilities != CapabilitySets::default() {
        found.push(format!(
            "thread {name}: has capabilities {:x?}",
            thread.capabilities
        ));
    }
    if !thread.no_new_privileges {
        found.push(format!("thread {name}: can gain privileges"));
    }
    if thread.seccomp_mode != SECCOMP_FILTER {
        found.push(format!(
            "thread {name}: seccomp mode is {}",
            thread.seccomp_mode
        ));
    }
    if thread.seccomp_filters != expected.filters {
        found.push(format!(
            "thread {name}: {} filters of system calls, not {}",
            thread.seccomp_filters, expected.filters
        ));
    }
}

fn compare_namespaces(thread: &ThreadPosture, expected: &Expected, found: &mut Vec<String>) {
    let name = thread.thread;
    for (kind, host) in &expected.host_namespaces {
        let own = thread.namespaces.get(kind);
        let is_shared = own == Some(host);
        let should_own = expected.own_namespaces.contains(kind);
        if own.is_none() {
            found.push(format!("thread {name}: namespace {kind} is unknown"));
        } else if is_shared && should_own {
            found.push(format!(
                "thread {name}: shares namespace {kind} with the host"
            ));
        } else if !is_shared && !should_own {
            found.push(format!("thread {name}: has a namespace {kind} of its own"));
        }
    }
    if thread.namespaces.get("net") != Some(&expected.network_namespace) {
        found.push(format!("thread {name}: is not in its network namespace"));
    }
}

fn compare_mounts(mounts: &[MountEntry], expected: &Expected, found: &mut Vec<String>) {
    let mut missing: Vec<_> = expected.mounts.iter().collect();
    for mount in mounts {
        let options: BTreeSet<_> = mount
            .options
            .iter()
            .filter(|option| CONFINING_OPTIONS.contains(&option.as_str()))
            .cloned()
            .collect();
        let place = missing.iter().position(|wanted| {
            wanted.mount_point == mount.mount_point
                && wanted.root == mount.root
                && wanted.options == options
        });
        match place {
            Some(index) => drop(missing.remove(index)),
            None => found.push(format!(
                "mount {} of {} with {} is not expected",
                mount.mount_point.display(),
                mount.root.display(),
                options.into_iter().collect::<Vec<_>>().join(","),
            )),
        }
    }
    for wanted in missing {
        found.push(format!(
            "mount {} of {} with {} is missing",
            wanted.mount_point.display(),
            wanted.root.display(),
            wanted.options.iter().cloned().collect::<Vec<_>>().join(","),
        ));
    }
}

fn compare_descriptors(descriptors: &[Descriptor], expected: &Expected, found: &mut Vec<String>) {
    let mut counts = vec![0; expected.descriptors.len()];
    for descriptor in descriptors {
        let Descriptor {
            number,
            class,
            name,
            is_writable,
        } = descriptor;
        let rule = expected.descriptors.iter().position(|rule| {
            rule.class == *class && rule.name.as_ref().is_none_or(|wanted| wanted == name)
        });
        let Some(index) = rule else {
            found.push(format!(
                "descriptor {number} ({class:?} {name}) is not expected"
            ));
            continue;
        };
        counts[index] += 1;
        if *is_writable && !expected.descriptors[index].may_write {
            found.push(format!(
                "descriptor {number} ({class:?} {name}) is writable"
            ));
        }
    }
    for (rule, count) in expected.descriptors.iter().zip(counts) {
        if count < rule.count_min || count > rule.count_max {
            found.push(format!(
                "{count} descriptors {:?} {} instead of {} to {}",
                rule.class,
                rule.name.as_deref().unwrap_or_default(),
                rule.count_min,
                rule.count_max,
            ));
        }
    }
}

fn compare_cgroups(posture: &Posture, expected: &Expected, found: &mut Vec<String>) {
    for (controller, wanted) in &expected.cgroups {
        let actual = posture
            .cgroups
            .get(controller)
            .map_or("nowhere", String::as_str);
        if actual != wanted {
            found.push(format!(
                "control group of {controller:?} is {actual}, not {wanted}"
            ));
        }
    }
}

fn compare_limits(posture: &Posture, expected: &Expected, found: &mut Vec<String>) {
    for (name, wanted) in &expected.limits {
        match posture.limits.get(name) {
            Some(pair) if pair.soft == *wanted && pair.hard == *wanted => {}
            Some(pair) => found.push(format!("{name} is {pair:?}, not {wanted:?}")),
            None => found.push(format!("{name} is unknown")),
        }
    }
}
