//! What the kernel says of itself in files below a root, which is `/` but in tests.
//!
//! What cannot be read is absent: a kernel without a feature has no file for it.

use std::fs;
use std::path::Path;

/// Mitigations that one processor may have a file for.
const FAULTS_MAX: usize = 256;

/// Whether equal pages of different processes are merged. A 2 stands for: no more, and taken apart.
pub(crate) fn same_page_merging(root: &Path) -> Option<bool> {
    Some(number(&root.join("sys/kernel/mm/ksm/run"))? == 1)
}

/// Whether two threads share a core.
pub(crate) fn hyperthreading(root: &Path) -> Option<bool> {
    Some(number(&root.join("sys/devices/system/cpu/smt/active"))? != 0)
}

/// Where memory is written to when there is not enough of it. What is compressed in memory itself
/// does not count.
pub(crate) fn swap_devices(root: &Path) -> Option<Vec<String>> {
    let table = fs::read_to_string(root.join("proc/swaps")).ok()?;
    let devices = table.lines().skip(1);
    let devices = devices.filter_map(|line| line.split_whitespace().next());
    let devices = devices.filter(|device| !device.starts_with("/dev/zram"));
    Some(devices.map(str::to_owned).collect())
}

/// Faults of the processor that nothing is done about, by the kernel's name for each.
pub(crate) fn unmitigated_faults(root: &Path) -> Vec<String> {
    let directory = root.join("sys/devices/system/cpu/vulnerabilities");
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let faults = entries.take(FAULTS_MAX).filter_map(|entry| {
        let text = fs::read_to_string(entry.path()).ok()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        text.starts_with("Vulnerable").then_some(name)
    });
    let mut faults: Vec<String> = faults.collect();
    faults.sort();
    faults
}

fn number(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn a_kernel_without_a_feature_says_nothing_of_it() {
        let empty = root(&[]);
        assert_eq!(same_page_merging(empty.path()), None);
        assert_eq!(hyperthreading(empty.path()), None);
        assert_eq!(swap_devices(empty.path()), None);
        assert!(unmitigated_faults(empty.path()).is_empty());
    }

    #[test]
    fn pages_are_merged_only_while_the_kernel_is_told_to() {
        for (text, merges) in [("0\n", false), ("1\n", true), ("2\n", false)] {
            let root = root(&[("sys/kernel/mm/ksm/run", text)]);
            assert_eq!(same_page_merging(root.path()), Some(merges), "{text}");
        }
    }

    #[test]
    fn threads_share_a_core_or_not() {
        for (text, shares) in [("0\n", false), ("1\n", true)] {
            let root = root(&[("sys/devices/system/cpu/smt/active", text)]);
            assert_eq!(hyperthreading(root.path()), Some(shares), "{text}");
        }
    }

    #[test]
    fn swap_in_memory_is_no_swap() {
        let head = "Filename\tType\tSize\tUsed\tPriority\n";
        let none = root(&[("proc/swaps", head)]);
        assert_eq!(swap_devices(none.path()), Some(Vec::new()));
        let both = format!("{head}/dev/zram0 partition 1 0 5\n/swap.img file 1 0 -2\n");
        let both = root(&[("proc/swaps", &both)]);
        assert_eq!(
            swap_devices(both.path()),
            Some(vec!["/swap.img".to_owned()])
        );
    }

    #[test]
    fn only_faults_that_nothing_is_done_about_are_named() {
        let place = "sys/devices/system/cpu/vulnerabilities";
        let root = root(&[
            (&format!("{place}/mds"), "Not affected\n"),
            (&format!("{place}/l1tf"), "Mitigation: PTE Inversion\n"),
            (&format!("{place}/retbleed"), "Vulnerable: no microcode\n"),
            (&format!("{place}/gds"), "Vulnerable\n"),
        ]);
        assert_eq!(unmitigated_faults(root.path()), ["gds", "retbleed"]);
    }
}
