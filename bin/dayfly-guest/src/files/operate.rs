//! Operations on one path that are done with their answer.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use dayfly_guest_proto::{GuestError, GuestErrorCode, Response};
use dayfly_types::file::{FileMode, FileStat};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat, statat};

use super::{guest_error, invalid, names};

pub(super) fn stat(path: &Path) -> Result<Response, GuestError> {
    let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map_err(failed(path))?;
    let name = path.file_name().unwrap_or(path.as_os_str());
    let entry = entry(
        names::text(name.as_bytes()).into_owned(),
        names::path_text(path),
        &stat,
    );
    Ok(Response::Entry(entry))
}

/// Describes a file as `lstat` found it.
pub(super) fn entry(name: String, path: String, stat: &Stat) -> FileStat {
    let kind = FileType::from_raw_mode(stat.st_mode);
    FileStat {
        name,
        path,
        is_dir: kind == FileType::Directory,
        is_symlink: kind == FileType::Symlink,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mode: FileMode::of(stat.st_mode),
        mtime: stat.st_mtime,
        uid: stat.st_uid,
        gid: stat.st_gid,
    }
}

pub(super) fn make_directory(
    path: &Path,
    mode: Option<u32>,
    make_parents: bool,
) -> Result<Response, GuestError> {
    let mode = mode.unwrap_or(0o755) & 0o7777;
    let mut builder = fs::DirBuilder::new();
    builder.recursive(make_parents).mode(mode);
    let made = builder.create(path).and_then(|()| {
        // The mask of this process must not change what the caller asked for.
        if make_parents {
            Ok(())
        } else {
            fs::set_permissions(path, Permissions::from_mode(mode))
        }
    });
    made.map(|()| Response::Done)
        .map_err(|error| guest_error(&names::path_text(path), &error))
}

pub(super) fn remove(path: &Path, recursive: bool) -> Result<Response, GuestError> {
    let failed = |error: io::Error| guest_error(&names::path_text(path), &error);
    let metadata = fs::symlink_metadata(path).map_err(failed)?;
    let removed = match (metadata.is_dir(), recursive) {
        (false, _) => fs::remove_file(path),
        (true, false) => fs::remove_dir(path),
        (true, true) => fs::remove_dir_all(path),
    };
    removed.map(|()| Response::Done).map_err(failed)
}

pub(super) fn move_entry(from: &Path, to: &Path, replace: bool) -> Result<Response, GuestError> {
    let flags = if replace {
        RenameFlags::empty()
    } else {
        RenameFlags::NOREPLACE
    };
    rustix::fs::renameat_with(CWD, from, CWD, to, flags).map_err(failed(from))?;
    Ok(Response::Done)
}

/// Changes permissions, never those of what a link leads to.
pub(super) fn change_mode(path: &Path, mode: u32) -> Result<Response, GuestError> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(failed(path))?;
    let stat = rustix::fs::fstat(&file).map_err(failed(path))?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        let path = names::path_text(path);
        return Err(invalid(format!("{path}: a link has no permissions")));
    }
    // This names the very file that was looked at, whatever is at the path by now.
    let opened = format!("/proc/self/fd/{}", file.as_raw_fd());
    fs::set_permissions(opened, Permissions::from_mode(mode & 0o7777))
        .map_err(|error| guest_error(&names::path_text(path), &error))?;
    Ok(Response::Done)
}

/// Refuses anything but a regular file, which could block or have effects when opened or read.
pub(super) fn check_regular(path: &Path, metadata: &Metadata) -> Result<(), GuestError> {
    let path = names::path_text(path);
    if metadata.is_dir() {
        Err(GuestError::new(
            GuestErrorCode::IsDirectory,
            format!("{path}: is a directory"),
        ))
    } else if metadata.is_file() {
        Ok(())
    } else {
        Err(invalid(format!("{path}: not a regular file")))
    }
}

/// Names the path in an error.
pub(super) fn failed(path: &Path) -> impl Fn(rustix::io::Errno) -> GuestError {
    move |error| guest_error(&names::path_text(path), &error.into())
}
