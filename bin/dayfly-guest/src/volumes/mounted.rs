//! What is mounted, in the words of the kernel.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// One line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// `major:minor` of the device.
    pub(super) number: String,
    pub(super) path: PathBuf,
}

/// Everything that is mounted, in the order in which it came.
pub(super) fn read() -> io::Result<Vec<Mount>> {
    let text = fs::read("/proc/self/mountinfo")?;
    Ok(text
        .split(|byte| *byte == b'\n')
        .filter_map(parse)
        .collect())
}

/// Where a device is mounted.
pub(super) fn mounted_paths(number: &str) -> io::Result<Vec<PathBuf>> {
    let mounts = read()?.into_iter();
    let mounts = mounts.filter(|mount| mount.number == number);
    Ok(mounts.map(|mount| mount.path).collect())
}

/// `36 35 98:0 /root /path rw,noatime master:1 - ext4 /dev/vda rw`
fn parse(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let number = String::from_utf8(fields.nth(2)?.to_vec()).ok()?;
    let path = OsString::from_vec(unescape(fields.nth(1)?));
    Some(Mount {
        number,
        path: PathBuf::from(path),
    })
}

/// The kernel writes what would break a line as a backslash and three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read() {
        let line = br"36 35 98:0 /mnt1 /a\040b\134c rw,noatime master:1 - ext4 /dev/root rw";
        let mount = parse(line).unwrap();
        assert_eq!(mount.number, "98:0");
        assert_eq!(mount.path, PathBuf::from(r"/a b\c"));
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"36 35 98:0"), None);
        assert_eq!(unescape(br"x\9"), br"x\9");
    }

    #[test]
    fn table_of_this_machine_has_a_root() {
        let mounts = read().unwrap();
        assert!(mounts.iter().any(|mount| mount.path.as_os_str() == "/"));
    }
}
