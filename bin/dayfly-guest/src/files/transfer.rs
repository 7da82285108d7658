//! File contents: streamed out as they are, taken in through a temporary file or in place.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use dayfly_guest_proto::{ChannelId, GuestError, Response};
use dayfly_types::file::{FileMode, OpenedFile};
use dayfly_types::limits::FILE_BYTES_MAX;
use rustix::fs::OFlags;

use super::line::Line;
use super::operate::check_regular;
use super::stream::{fail, written};
use super::{
    CHUNK_BYTES, PACKET_BYTES_MAX, TAG_COMMIT, TAG_DATA, TAG_END, guest_error, invalid, names,
};

/// How a file is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteOptions {
    pub(crate) mode: Option<u32>,
    pub(crate) make_parents: bool,
    pub(crate) place: WritePlace,
}

/// Where in a file the bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WritePlace {
    /// They are all of the file: it replaces the old one at the end, or not at all.
    Whole,
    /// In place, behind what is there.
    End,
    /// In place, from this offset on.
    At(u64),
}

/// Streams a regular file to the agent.
pub(super) fn read(
    line: &Line<'_>,
    channel: ChannelId,
    path: &Path,
    offset: u64,
    limit: Option<u64>,
) -> io::Result<()> {
    let (file, response) = match open_read(path, offset) {
        Ok(opened) => opened,
        Err(error) => return line.answer(Err(error)),
    };
    line.answer(Ok(response))?;
    let mut file = file.take(limit.unwrap_or(u64::MAX));
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk) {
            Ok(0) => return line.send(TAG_END, &[]),
            Ok(count) => line.send(TAG_DATA, &chunk[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return fail(line, channel, guest_error("cannot read", &error)),
        }
    }
}

fn open_read(path: &Path, offset: u64) -> Result<(File, Response), GuestError> {
    let failed = |error: io::Error| guest_error(&names::path_text(path), &error);
    let mut file = File::options()
        .read(true)
        .custom_flags(open_flags())
        .open(path)
        .map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    check_regular(path, &metadata)?;
    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    let opened = OpenedFile {
        size: metadata.len(),
        mode: FileMode::of(metadata.mode()),
        mtime: metadata.mtime(),
    };
    Ok((file, Response::FileOpened(opened)))
}

/// Takes a file from the agent and puts it in its place when told to, or leaves no trace.
pub(super) fn write(
    line: &Line<'_>,
    channel: ChannelId,
    path: &Path,
    options: WriteOptions,
) -> io::Result<()> {
    let mut target = match Target::open(path, options) {
        Ok(target) => target,
        Err(error) => return line.answer(Err(error)),
    };
    let result = line
        .answer(Ok(Response::Done))
        .and_then(|()| receive(line, &mut target));
    let verdict = match result {
        Ok(Received::Committed(bytes)) => match target.commit() {
            Ok(()) => Ok(bytes),
            Err(error) => Err(guest_error("cannot finish the file", &error)),
        },
        Ok(Received::Failed(error)) => Err(error),
        // The agent went away: the write is discarded without a word.
        Ok(Received::Dropped) | Err(_) => {
            target.discard();
            return Ok(());
        }
    };
    match verdict {
        Ok(bytes) => written(line, channel, bytes),
        Err(error) => {
            target.discard();
            fail(line, channel, error)
        }
    }
}

enum Received {
    Committed(u64),
    Dropped,
    Failed(GuestError),
}

fn receive(line: &Line<'_>, target: &mut Target) -> io::Result<Received> {
    let mut packet = vec![0; PACKET_BYTES_MAX];
    let mut total = 0_u64;
    loop {
        let count = line.receive(&mut packet)?;
        match packet[..count].split_first() {
            Some((&TAG_DATA, bytes)) => {
                total += bytes.len() as u64;
                if total > target.room {
                    let error = invalid("the file is over the size limit");
                    return Ok(Received::Failed(error));
                }
                if let Err(error) = target.file.write_all(bytes) {
                    return Ok(Received::Failed(guest_error("cannot write", &error)));
                }
            }
            Some((&TAG_COMMIT, _)) => return Ok(Received::Committed(total)),
            _ => return Ok(Received::Dropped),
        }
    }
}

/// Where the bytes go until the file is whole.
struct Target {
    file: File,
    path: PathBuf,
    /// `None` when the bytes go into the file in place.
    temporary: Option<PathBuf>,
    /// What the file is given at the end; it keeps its own when absent.
    mode: Option<u32>,
    /// How many bytes it may take.
    room: u64,
}

impl Target {
    fn open(path: &Path, options: WriteOptions) -> Result<Self, GuestError> {
        let failed = |error: io::Error| guest_error(&names::path_text(path), &error);
        if options.make_parents
            && let Some(parent) = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty())
        {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        // Through a link to the file itself: replacing the link would surprise its owner.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let existing = match fs::metadata(&path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        if let Some(metadata) = &existing {
            check_regular(&path, metadata)?;
            rustix::fs::access(&path, rustix::fs::Access::WRITE_OK)
                .map_err(|error| failed(error.into()))?;
        }
        if options.place != WritePlace::Whole {
            return Self::open_in_place(path, options, existing.is_some());
        }
        let kept = existing.map(|metadata| metadata.mode());
        let mode = options.mode.or(kept).unwrap_or(0o644) & 0o7777;
        let temporary = temporary_path(&path)?;
        let open = File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary);
        Ok(Self {
            file: open.map_err(failed)?,
            path,
            temporary: Some(temporary),
            mode: Some(mode),
            room: FILE_BYTES_MAX,
        })
    }

    fn open_in_place(
        path: PathBuf,
        options: WriteOptions,
        is_there: bool,
    ) -> Result<Self, GuestError> {
        let failed = |error: io::Error| guest_error(&names::path_text(&path), &error);
        let is_append = options.place == WritePlace::End;
        let mut file = File::options()
            .write(!is_append)
            .append(is_append)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(open_flags())
            .open(&path)
            .map_err(failed)?;
        // Once more, of what was opened: something else may have come into its place.
        check_regular(&path, &file.metadata().map_err(failed)?)?;
        let offset = match options.place {
            WritePlace::At(offset) => offset,
            WritePlace::End | WritePlace::Whole => 0,
        };
        let room = FILE_BYTES_MAX
            .checked_sub(offset)
            .ok_or_else(|| invalid("the offset is over the size limit"))?;
        if !is_append {
            file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        }
        let mode = options.mode.or((!is_there).then_some(0o644));
        Ok(Self {
            file,
            path,
            temporary: None,
            mode: mode.map(|mode| mode & 0o7777),
            room,
        })
    }

    /// Makes the new content durable, then visible.
    fn commit(&self) -> io::Result<()> {
        if let Some(mode) = self.mode {
            self.file.set_permissions(Permissions::from_mode(mode))?;
        }
        self.file.sync_all()?;
        let Some(temporary) = &self.temporary else {
            return Ok(());
        };
        fs::rename(temporary, &self.path)?;
        let parent = self.path.parent();
        let parent = parent.filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
    }

    fn discard(&self) {
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
        }
    }
}

fn temporary_path(path: &Path) -> Result<PathBuf, GuestError> {
    let Some(name) = path.file_name() else {
        return Err(invalid("the path names no file"));
    };
    // Cut, so that a name of full length still leaves room; the number keeps two writes apart.
    let name: String = name.to_string_lossy().chars().take(50).collect();
    Ok(path.with_file_name(format!(".{name}.dayfly-{}", std::process::id())))
}

/// Never wait for a peer of a pipe, never adopt a terminal.
pub(super) fn open_flags() -> i32 {
    i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or(0)
}
