//! Writes the archive format that the kernel unpacks at boot (`newc`).
//!
//! Everything belongs to root, inode numbers count up and times are zero, so equal content gives
//! equal bytes.

use std::io::{self, Write};

const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const CHARACTER_DEVICE: u32 = 0o020_000;
const TRAILER: &str = "TRAILER!!!";

/// An archive that is being written.
#[derive(Debug)]
pub(crate) struct CpioWriter<W> {
    out: W,
    inode: u32,
}

/// What a header says beside the name.
#[derive(Default)]
struct Entry {
    mode: u32,
    links: u32,
    bytes: u32,
    device_major: u32,
    device_minor: u32,
}

impl<W: Write> CpioWriter<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, inode: 0 }
    }

    /// `name` has no leading slash; its parent must have been added before.
    pub(crate) fn directory(&mut self, name: &str, permissions: u32) -> io::Result<()> {
        self.header(
            name,
            &Entry {
                mode: DIRECTORY | permissions,
                links: 2,
                ..Entry::default()
            },
        )
    }

    pub(crate) fn file(&mut self, name: &str, permissions: u32, content: &[u8]) -> io::Result<()> {
        let bytes = u32::try_from(content.len())
            .map_err(|_| io::Error::new(io::ErrorKind::FileTooLarge, "over 4 GiB"))?;
        let mode = REGULAR | permissions;
        self.header(
            name,
            &Entry {
                mode,
                links: 1,
                bytes,
                ..Entry::default()
            },
        )?;
        self.out.write_all(content)?;
        self.pad(content.len())
    }

    pub(crate) fn character_device(
        &mut self,
        name: &str,
        permissions: u32,
        device_major: u32,
        device_minor: u32,
    ) -> io::Result<()> {
        let mode = CHARACTER_DEVICE | permissions;
        self.header(
            name,
            &Entry {
                mode,
                links: 1,
                bytes: 0,
                device_major,
                device_minor,
            },
        )
    }

    /// Ends the archive and gives the writer back.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.header(
            TRAILER,
            &Entry {
                links: 1,
                ..Entry::default()
            },
        )?;
        Ok(self.out)
    }

    fn header(&mut self, name: &str, entry: &Entry) -> io::Result<()> {
        self.inode += 1;
        let name_bytes = u32::try_from(name.len() + 1)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidFilename, "name too long"))?;
        let fields = [
            self.inode,
            entry.mode,
            0, // user
            0, // group
            entry.links,
            0, // modification time
            entry.bytes,
            0, // device of the file itself
            0,
            entry.device_major,
            entry.device_minor,
            name_bytes,
            0, // checksum, unused in this format
        ];
        let mut header = String::from("070701");
        for field in fields {
            header.push_str(&format!("{field:08x}"));
        }
        self.out.write_all(header.as_bytes())?;
        self.out.write_all(name.as_bytes())?;
        self.out.write_all(&[0])?;
        self.pad(header.len() + name.len() + 1)
    }

    fn pad(&mut self, written: usize) -> io::Result<()> {
        let missing = written.next_multiple_of(4) - written;
        self.out.write_all(&[0; 3][..missing])
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn example() -> Vec<u8> {
        let mut writer = CpioWriter::new(Vec::new());
        writer.directory("dev", 0o755).unwrap();
        writer.character_device("dev/console", 0o600, 5, 1).unwrap();
        writer.file("init", 0o755, b"#!/bin/sh\n").unwrap();
        writer.file("empty", 0o644, b"").unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn archive_is_readable_by_cpio() {
        let mut child = Command::new("cpio")
            .args(["--list", "--verbose", "--numeric-uid-gid", "--quiet"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the cpio program is installed");
        child.stdin.take().unwrap().write_all(&example()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(
            lines[0].starts_with("drwxr-xr-x") && lines[0].ends_with(" dev"),
            "{text}"
        );
        assert!(
            lines[1].starts_with("crw-------") && lines[1].contains("5,   1"),
            "{text}"
        );
        assert!(
            lines[2].starts_with("-rwxr-xr-x") && lines[2].ends_with(" init"),
            "{text}"
        );
        assert!(
            lines[3].starts_with("-rw-r--r--") && lines[3].ends_with(" empty"),
            "{text}"
        );
    }

    #[test]
    fn equal_content_gives_equal_bytes() {
        assert_eq!(example(), example());
        assert_eq!(example().len() % 4, 0);
    }
}
