//! Where the groups of an instance belong.
//!
//! systemd owns the root of the unified hierarchy: what others write there it may undo. The package
//! has a unit to which it leaves a part. A daemon that was started by hand before has its sandboxes
//! outside, and finds them there until the last of them is gone.

use super::CgroupError;
use super::files::subdirectories;
use super::hierarchy::Hierarchy;

/// Everywhere that an instance may have groups.
pub(super) fn places(whole: Hierarchy) -> Vec<Hierarchy> {
    let part = whole.delegated();
    [Some(whole), part].into_iter().flatten().collect()
}

/// In what was delegated, unless the instance has groups outside already.
///
/// # Errors
/// When the groups outside cannot be listed.
pub(super) fn of_instance(whole: Hierarchy, group: &str) -> Result<Hierarchy, CgroupError> {
    let Some(part) = whole.delegated() else {
        return Ok(whole);
    };
    for directory in whole.directories(group) {
        if !subdirectories(&directory)?.is_empty() {
            return Ok(whole);
        }
    }
    Ok(part)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::super::hierarchy::from_mounts;
    use super::*;
    use crate::mounts::MountEntry;

    const UNIT: &str = "system.slice/dayfly-sandboxes.service";

    fn whole(mount_point: &Path) -> Hierarchy {
        let mount = MountEntry {
            mount_point: mount_point.to_owned(),
            root: PathBuf::from("/"),
            file_system: "cgroup2".to_owned(),
            source: "none".to_owned(),
            options: BTreeSet::new(),
            super_options: BTreeSet::new(),
        };
        from_mounts(&[mount], |_| "cpu memory pids".to_owned()).unwrap()
    }

    fn home(mount_point: &Path) -> Vec<PathBuf> {
        let found = of_instance(whole(mount_point), "dayfly-a").unwrap();
        found.directories("dayfly-a")
    }

    #[test]
    fn groups_belong_in_the_delegated_part_unless_there_are_some_outside() {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path();
        let (outside, inside) = (top.join("dayfly-a"), top.join(UNIT).join("dayfly-a"));
        assert_eq!(home(top), std::slice::from_ref(&outside));
        assert_eq!(places(whole(top)).len(), 1);
        fs::create_dir_all(top.join(UNIT)).unwrap();
        assert_eq!(home(top), std::slice::from_ref(&inside));
        // One that is empty holds nobody there.
        fs::create_dir(&outside).unwrap();
        assert_eq!(home(top), std::slice::from_ref(&inside));
        fs::create_dir(outside.join("0")).unwrap();
        assert_eq!(home(top), [outside]);
        assert_eq!(places(whole(top)).len(), 2);
    }

    #[test]
    fn only_the_delegated_part_is_written_to() {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path();
        fs::create_dir_all(top.join(UNIT)).unwrap();
        let found = of_instance(whole(top), "dayfly-a").unwrap();
        found.prepare("dayfly-a").unwrap();
        assert!(!top.join("cgroup.subtree_control").exists());
        let written = fs::read_to_string(top.join(UNIT).join("cgroup.subtree_control")).unwrap();
        assert_eq!(written, "+cpu +memory +pids");
        let named = format!("/{UNIT}/dayfly-a/0");
        assert_eq!(found.membership("dayfly-a/0")[""], named);
    }

    #[test]
    fn a_unit_that_was_stopped_is_named() {
        let scratch = tempfile::tempdir().unwrap();
        let top = scratch.path();
        fs::create_dir_all(top.join(UNIT)).unwrap();
        let found = of_instance(whole(top), "dayfly-a").unwrap();
        fs::remove_dir(top.join(UNIT)).unwrap();
        let error = found.prepare("dayfly-a").unwrap_err();
        assert!(matches!(error, CgroupError::Undelegated { path } if path.ends_with(UNIT)));
    }
}
