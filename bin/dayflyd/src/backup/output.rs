//! Putting files and trees of a data directory into a backup.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use dayfly_backup::{BackupPath, BackupWriter};
use dayfly_host::files::copy_sparse;

use super::progress::Progress;

const MODE_BITS: u32 = 0o777;

/// The backup that is being written, and how far it is.
#[derive(Debug)]
pub(super) struct Output<'a> {
    writer: BackupWriter,
    progress: &'a mut Progress,
}

impl<'a> Output<'a> {
    pub(super) fn new(writer: BackupWriter, progress: &'a mut Progress) -> Self {
        Self { writer, progress }
    }

    pub(super) fn into_writer(self) -> BackupWriter {
        self.writer
    }

    /// Adds a directory without what is in it.
    pub(super) fn directory(&mut self, path: &str, source: &Path) -> Result<()> {
        self.directory_of_mode(path, mode_of(source)?)
    }

    /// The same for one that may be going just now.
    pub(super) fn directory_of_mode(&mut self, path: &str, mode: u32) -> Result<()> {
        Ok(self.writer.directory(BackupPath::parse(path)?, mode)?)
    }

    pub(super) fn bytes(&mut self, path: &str, mode: u32, bytes: &[u8]) -> Result<()> {
        Ok(self.writer.bytes(BackupPath::parse(path)?, mode, bytes)?)
    }

    /// Adds a file that does not change any more.
    pub(super) fn sealed(&mut self, path: &str, source: &Path, mode: Option<u32>) -> Result<()> {
        let file = open(source)?;
        let mode = mode.map_or_else(|| mode_of(source), Ok)?;
        let progress = &mut *self.progress;
        let path = BackupPath::parse(path)?;
        Ok(self
            .writer
            .file(path, mode, &file, &mut |bytes| progress.saw(bytes))?)
    }

    /// Adds a file that somebody may be writing to.
    pub(super) fn changing(&mut self, path: &str, source: &Path) -> Result<()> {
        let file = open(source)?;
        let fill = &mut |to: &File| copy_sparse(&file, to).map(drop);
        self.filled(path, mode_of(source)?, fill)
    }

    pub(super) fn filled(
        &mut self,
        path: &str,
        mode: u32,
        fill: &mut dyn FnMut(&File) -> std::io::Result<()>,
    ) -> Result<()> {
        let progress = &mut *self.progress;
        let path = BackupPath::parse(path)?;
        Ok(self
            .writer
            .filled(path, mode, fill, &mut |bytes| progress.saw(bytes))?)
    }

    /// Adds a directory with what is in it, all of which was sealed.
    pub(super) fn sealed_tree(&mut self, path: &str, source: &Path) -> Result<()> {
        self.tree(path, source, &mut |output, path, source| {
            output.sealed(path, source, None)
        })
    }

    /// Adds a directory with what is in it, which somebody may be changing.
    pub(super) fn changing_tree(&mut self, path: &str, source: &Path) -> Result<()> {
        self.tree(path, source, &mut Self::changing)
    }

    fn tree(
        &mut self,
        path: &str,
        source: &Path,
        add: &mut dyn FnMut(&mut Self, &str, &Path) -> Result<()>,
    ) -> Result<()> {
        self.directory(path, source)?;
        let failed = || format!("cannot list {}", source.display());
        for item in fs::read_dir(source).with_context(failed)? {
            let item = item.with_context(failed)?;
            let name = item.file_name();
            let name = name
                .to_str()
                .with_context(|| format!("{name:?} is no text"))?;
            let (inner, from) = (format!("{path}/{name}"), item.path());
            let kind = item.file_type().with_context(failed)?;
            if kind.is_dir() {
                self.tree(&inner, &from, add)?;
            } else if kind.is_symlink() {
                self.link(&inner, &from)?;
            } else if kind.is_file() {
                add(self, &inner, &from)?;
            } else {
                bail!("{} is no file; move it away", from.display());
            }
        }
        Ok(())
    }

    fn link(&mut self, path: &str, source: &Path) -> Result<()> {
        let target = fs::read_link(source)?;
        let target = BackupPath::parse(&target.to_string_lossy());
        let target = target.with_context(|| {
            let source = source.display();
            format!("{source} is a link that leads away, which no backup takes; move it away")
        })?;
        Ok(self.writer.link(BackupPath::parse(path)?, target)?)
    }
}

fn mode_of(path: &Path) -> Result<u32> {
    let found = fs::metadata(path).with_context(|| format!("cannot look at {}", path.display()))?;
    Ok(found.permissions().mode() & MODE_BITS)
}

fn open(path: &Path) -> Result<File> {
    File::open(path).with_context(|| format!("cannot open {}", path.display()))
}
