//! An archive on its way into a builder: members get another name or mode, and what the other end
//! does not take over is noted.
//!
//! Archives are of our own packers: of the build context, or of the agent of a sandbox. That one is
//! hostile, but only the builder, which is as hostile, unpacks what comes out.

use std::io;

use tar::{EntryType, Header};

const BLOCK: usize = 512;
/// A name that is longer is none.
const NAME_BYTES_MAX: u64 = 64 << 10;
/// Of a mode; the kind of a file stands elsewhere.
const MODE_BITS: u32 = 0o7777;
const LONG_NAME: &str = "././@LongLink";

/// A member that went through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Passed {
    /// Below the directory that the archive is unpacked in.
    pub(crate) path: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) uid: u64,
    pub(crate) gid: u64,
    pub(crate) is_directory: bool,
    pub(crate) is_link: bool,
}

/// What an archive goes through.
#[derive(Debug, Default)]
pub(crate) struct Passage {
    /// Of the first member, which is the only one then.
    name: Option<String>,
    /// Of all that are not links.
    mode: Option<u32>,
    /// Of a block, as far as it has come.
    open: Vec<u8>,
    /// Blocks of the content under way.
    blocks_left: u64,
    /// The name or link that comes before its member, as it came and as text.
    held: Vec<u8>,
    is_naming: bool,
    long: Option<Vec<u8>>,
    long_left: usize,
    pub(crate) passed: Vec<Passed>,
}

impl Passage {
    pub(crate) fn new(name: Option<String>, mode: Option<u32>) -> Self {
        Self {
            name,
            mode,
            ..Self::default()
        }
    }

    /// Takes the next bytes of an archive, and gives those that go on.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::with_capacity(bytes.len() + BLOCK);
        while !bytes.is_empty() {
            let missing = BLOCK - self.open.len();
            let (now, later) = bytes.split_at(missing.min(bytes.len()));
            self.open.extend_from_slice(now);
            bytes = later;
            if self.open.len() == BLOCK {
                let block = std::mem::take(&mut self.open);
                self.block(&block, &mut out)?;
            }
        }
        Ok(out)
    }

    /// At the end of the archive: whether it ended with a block.
    pub(crate) fn is_whole(&self) -> bool {
        self.open.is_empty() && self.blocks_left == 0
    }

    fn block(&mut self, block: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        if self.blocks_left == 0 {
            return self.header(block, out);
        }
        self.blocks_left -= 1;
        if self.held.is_empty() {
            out.extend_from_slice(block);
            return Ok(());
        }
        self.held.extend_from_slice(block);
        if self.is_naming {
            let part = self.long_left.min(BLOCK);
            self.long_left -= part;
            self.long
                .get_or_insert_default()
                .extend(block.iter().take(part).filter(|byte| **byte != 0));
        }
        Ok(())
    }

    fn header(&mut self, block: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        if block.iter().all(|byte| *byte == 0) {
            out.extend_from_slice(block);
            return Ok(());
        }
        let mut header = Header::new_old();
        header.as_mut_bytes().copy_from_slice(block);
        let kind = header.entry_type();
        let size = header.entry_size()?;
        self.blocks_left = size.div_ceil(BLOCK as u64);
        if kind.is_gnu_longname() || kind.is_gnu_longlink() {
            if size > NAME_BYTES_MAX {
                return Err(io::Error::other("a name that is too long"));
            }
            self.is_naming = kind.is_gnu_longname();
            self.long_left = usize::try_from(size).unwrap_or(0);
            self.held.extend_from_slice(block);
            return Ok(());
        }
        self.member(header, out)
    }

    fn member(&mut self, mut header: Header, out: &mut Vec<u8>) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        let long = self.long.take();
        let path = match self.name.take() {
            Some(name) => {
                rename(&mut header, &name, out);
                name.into_bytes()
            }
            None => {
                out.extend_from_slice(&held);
                long.unwrap_or_else(|| header.path_bytes().into_owned())
            }
        };
        let kind = header.entry_type();
        let is_link = kind.is_symlink();
        if let Some(mode) = self.mode.filter(|_| !is_link) {
            header.set_mode(mode);
        }
        header.set_cksum();
        self.passed.push(Passed {
            path,
            mode: header.mode()? & MODE_BITS,
            uid: header.uid()?,
            gid: header.gid()?,
            is_directory: kind.is_dir(),
            is_link,
        });
        out.extend_from_slice(header.as_bytes());
        Ok(())
    }
}

/// Gives a member another name, which stands before it if it is long.
fn rename(header: &mut Header, name: &str, out: &mut Vec<u8>) {
    let field = &mut header.as_old_mut().name;
    field.fill(0);
    let fits = name.len().min(field.len());
    field[..fits].copy_from_slice(&name.as_bytes()[..fits]);
    // Of the form that has a second field for names.
    if let Some(ustar) = header.as_ustar_mut() {
        ustar.prefix.fill(0);
    }
    if fits == name.len() {
        return;
    }
    let mut long = Header::new_gnu();
    let field = &mut long.as_old_mut().name;
    field[..LONG_NAME.len()].copy_from_slice(LONG_NAME.as_bytes());
    long.set_entry_type(EntryType::GNULongName);
    long.set_mode(0o644);
    long.set_size(name.len() as u64 + 1);
    long.set_cksum();
    out.extend_from_slice(long.as_bytes());
    out.extend_from_slice(name.as_bytes());
    let padded = (name.len() + 1).next_multiple_of(BLOCK) - name.len();
    out.extend(std::iter::repeat_n(0, padded));
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    struct Made(&'static str, u32, u64, &'static str);

    fn archive(members: &[Made]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for Made(name, mode, owner, content) in members {
            let mut header = Header::new_gnu();
            header.set_mode(*mode);
            header.set_uid(*owner);
            header.set_gid(*owner);
            header.set_size(content.len() as u64);
            let added = archive.append_data(&mut header, name, content.as_bytes());
            added.unwrap();
        }
        archive.into_inner().unwrap()
    }

    /// In pieces of several sizes, which must not matter.
    fn through(archive: &[u8], name: Option<&str>, mode: Option<u32>) -> (Vec<u8>, Vec<Passed>) {
        let mut outcomes = [1, 7, 512, 100_000].map(|size| {
            let mut passage = Passage::new(name.map(str::to_owned), mode);
            let mut out = Vec::new();
            for piece in archive.chunks(size) {
                out.extend(passage.push(piece).unwrap());
            }
            assert!(passage.is_whole());
            (out, passage.passed)
        });
        assert_eq!(outcomes[0], outcomes[1]);
        assert_eq!(outcomes[0], outcomes[2]);
        assert_eq!(outcomes[0], outcomes[3]);
        std::mem::take(&mut outcomes[0])
    }

    fn unpacked(archive: &[u8]) -> Vec<(String, u32, String)> {
        let mut archive = tar::Archive::new(archive);
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().to_string_lossy().into_owned();
            let mode = entry.header().mode().unwrap();
            let mut content = String::new();
            entry.read_to_string(&mut content).unwrap();
            (name, mode, content)
        });
        entries.collect()
    }

    #[test]
    fn a_file_gets_another_name_and_nothing_beside_it_has_that_of_before() {
        let long = "n".repeat(200);
        for (old, new) in [
            ("passwd", "passwd.orig"),
            ("passwd", &long),
            (long.as_str(), "short"),
        ] {
            let old: &'static str = Box::leak(old.to_owned().into_boxed_str());
            let (out, passed) = through(&archive(&[Made(old, 0o644, 0, "root")]), Some(new), None);
            let expected = vec![(new.to_owned(), 0o644, "root".to_owned())];
            assert_eq!(unpacked(&out), expected);
            assert_eq!(passed.len(), 1);
            assert_eq!(passed[0].path, new.as_bytes());
        }
    }

    #[test]
    fn without_a_wish_the_bytes_stay() {
        let long: &'static str = Box::leak("d/".repeat(80).into_boxed_str());
        let name: &'static str = Box::leak(format!("{long}name").into_boxed_str());
        let made = archive(&[Made("a", 0o755, 7, "one"), Made(name, 0o600, 0, "")]);
        let (out, passed) = through(&made, None, None);
        assert_eq!(out, made);
        assert_eq!(passed[1].path, name.as_bytes());
    }

    #[test]
    fn owners_and_bits_are_noted_and_a_mode_is_set() {
        let made = archive(&[Made("su", 0o4755, 0, "x"), Made("own", 0o644, 1000, "y")]);
        let (_, passed) = through(&made, None, None);
        assert_eq!(passed[0].mode, 0o4755);
        assert_eq!((passed[1].uid, passed[1].gid), (1000, 1000));
        let (out, passed) = through(&made, None, Some(0o700));
        assert!(unpacked(&out).iter().all(|(_, mode, _)| *mode == 0o700));
        assert!(passed.iter().all(|one| one.mode == 0o700));
    }

    #[test]
    fn what_is_no_archive_is_refused() {
        let mut passage = Passage::new(None, None);
        assert!(passage.push(&[b'x'; 512]).is_err());
        let mut cut = Passage::new(None, None);
        let made = archive(&[Made("a", 0o644, 0, "content")]);
        cut.push(&made[..600]).unwrap();
        assert!(!cut.is_whole());
    }
}
