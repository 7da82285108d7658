//! COPY and ADD.

use dayfly_client::{ClientError, FileBody};
use dayfly_dockerfile::{InlineFile, SelectedEntry, Step, StepWork};
use tokio::io::AsyncWriteExt as _;

use crate::builder::{Builder, ROOT};
use crate::context::BuildContext;
use crate::error::BuildError;
use crate::keys;
use crate::run::make_directory;

/// Endings of archives that ADD unpacks.
const ARCHIVES: [&str; 7] = [
    ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst", ".txz",
];
/// Paths that one command is given at most.
const PATHS_AT_ONCE: usize = 500;
const PIPE_BYTES: usize = 256 << 10;
const INLINE_MODE: u32 = 0o644;

/// What files are copied from.
#[derive(Debug)]
pub(crate) enum CopySource<'a> {
    Context(&'a BuildContext),
    /// A sandbox with the files of a stage or an image.
    Sandbox(&'a str),
    Inline(&'a [InlineFile]),
}

/// What a COPY says, apart from where it takes its files from.
struct Copy<'a> {
    sources: &'a [String],
    destination: &'a str,
    is_directory: bool,
    owner: Option<&'a str>,
    mode: Option<u32>,
    unpacks: bool,
}

fn copy_of(work: &StepWork) -> Option<Copy<'_>> {
    let StepWork::Copy {
        sources,
        destination,
        destination_is_directory,
        owner,
        mode,
        unpacks,
        ..
    } = work
    else {
        return None;
    };
    Some(Copy {
        sources,
        destination,
        is_directory: *destination_is_directory,
        owner: owner.as_deref(),
        mode: *mode,
        unpacks: *unpacks,
    })
}

/// Does what a COPY says.
pub(crate) async fn copy(
    builder: &Builder<'_>,
    step: &Step,
    from: &CopySource<'_>,
) -> Result<(), BuildError> {
    let Some(copy) = copy_of(&step.work) else {
        return Ok(());
    };
    let made = match from {
        CopySource::Context(context) => from_context(builder, step, context, &copy).await?,
        CopySource::Sandbox(sandbox) => from_sandbox(builder, step, sandbox, &copy).await?,
        CopySource::Inline(files) => inline(builder, files, &copy).await?,
    };
    let Some(owner) = copy.owner else {
        return Ok(());
    };
    for some in made.chunks(PATHS_AT_ONCE) {
        let mut words = vec!["chown", "-R", "-h", owner, "--"];
        words.extend(some.iter().map(String::as_str));
        builder.must(step.line, &words).await?;
    }
    Ok(())
}

/// Copies a tree whole, for a mount.
pub(crate) async fn all_of(
    builder: &Builder<'_>,
    step: &Step,
    from: &CopySource<'_>,
    source: &str,
    destination: &str,
) -> Result<(), BuildError> {
    let sources = [source.to_owned()];
    let copy = Copy {
        sources: &sources,
        destination,
        is_directory: true,
        owner: None,
        mode: None,
        unpacks: false,
    };
    match from {
        CopySource::Context(context) => from_context(builder, step, context, &copy).await?,
        CopySource::Sandbox(sandbox) => from_sandbox(builder, step, sandbox, &copy).await?,
        CopySource::Inline(files) => inline(builder, files, &copy).await?,
    };
    Ok(())
}

async fn from_context(
    builder: &Builder<'_>,
    step: &Step,
    context: &BuildContext,
    copy: &Copy<'_>,
) -> Result<Vec<String>, BuildError> {
    if copy.unpacks && copy.sources.iter().any(|source| is_archive(source)) {
        let what = "ADD of an archive is not unpacked here; COPY it and unpack it with RUN tar";
        return Err(BuildError::Unsupported {
            line: step.line,
            what: what.to_owned(),
        });
    }
    let taken = keys::taken(context, step, copy.sources, copy.is_directory)?;
    let (directory, taken) = aim(builder, copy, taken).await?;
    let made = tops(&directory, taken.iter().map(|entry| entry.below.as_str()));
    let archive = context
        .pack(taken, copy.mode)
        .map_err(BuildError::Context)?;
    builder.unpack(&directory, archive).await?;
    Ok(made)
}

/// The directory that an archive is unpacked below. A single file that is copied to a path which is no
/// directory yet has the last part of that path for its name.
async fn aim(
    builder: &Builder<'_>,
    copy: &Copy<'_>,
    mut taken: Vec<SelectedEntry>,
) -> Result<(String, Vec<SelectedEntry>), BuildError> {
    let renamed = match taken.as_mut_slice() {
        [only] if only.below.is_empty() && !only.is_directory => only,
        _ => return Ok((copy.destination.to_owned(), taken)),
    };
    if builder.is_directory(copy.destination).await? == Some(true) {
        renamed.below = split(&renamed.source).1;
        return Ok((copy.destination.to_owned(), taken));
    }
    let (above, name) = split(copy.destination);
    renamed.below = name;
    Ok((above, taken))
}

/// A path as the directory that it is in, and its name there.
fn split(path: &str) -> (String, String) {
    match path.rsplit_once('/') {
        Some(("", name)) => ("/".to_owned(), name.to_owned()),
        Some((above, name)) => (above.to_owned(), name.to_owned()),
        None => ("/".to_owned(), path.to_owned()),
    }
}

/// The highest of the paths that are made, so that each is named once.
fn tops<'a>(directory: &str, paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut tops: Vec<String> = Vec::new();
    for path in paths.filter(|path| !path.is_empty()) {
        let top = path.split('/').next().unwrap_or(path);
        let whole = format!("{}/{top}", directory.trim_end_matches('/'));
        if !tops.contains(&whole) {
            tops.push(whole);
        }
    }
    tops
}

fn is_archive(name: &str) -> bool {
    ARCHIVES.iter().any(|ending| name.ends_with(ending))
}

async fn from_sandbox(
    builder: &Builder<'_>,
    step: &Step,
    sandbox: &str,
    copy: &Copy<'_>,
) -> Result<Vec<String>, BuildError> {
    let mut made = Vec::new();
    for source in copy.sources {
        let path = format!("/{source}");
        if source.contains(['*', '?', '[']) {
            let what = "wildcards are not matched in another stage or image; name the directory";
            return Err(BuildError::Unsupported {
                line: step.line,
                what: what.to_owned(),
            });
        }
        let client = builder.client();
        let found = client.stat_as(sandbox, &path, Some(ROOT)).await;
        let found = found.map_err(|source| missing(step, &path, source))?;
        let is_into = found.is_dir
            || copy.is_directory
            || builder.is_directory(copy.destination).await? == Some(true);
        if !is_into {
            made.push(rename(builder, step, sandbox, &path, copy.destination).await?);
            continue;
        }
        let directory = copy.destination.to_owned();
        let archive = client.download_tree(sandbox, &path, Some(ROOT)).await;
        let archive = archive.map_err(|source| missing(step, &path, source))?;
        send_on(builder, archive, &directory).await?;
        made.push(if found.is_dir {
            directory
        } else {
            format!("{}/{}", directory.trim_end_matches('/'), split(&path).1)
        });
    }
    Ok(made)
}

fn missing(step: &Step, path: &str, source: ClientError) -> BuildError {
    if source.api_code() == Some(dayfly_types::ErrorCode::NotFound) {
        return BuildError::NoSource {
            line: step.line,
            path: path.to_owned(),
            place: "the stage or image that is copied from".to_owned(),
        };
    }
    BuildError::Call {
        what: "read files of another stage",
        source,
    }
}

/// Copies one file to a path whose last part is its new name.
async fn rename(
    builder: &Builder<'_>,
    step: &Step,
    sandbox: &str,
    from: &str,
    to: &str,
) -> Result<String, BuildError> {
    let (above, name) = split(to);
    make_directory(builder, &above).await?;
    let client = builder.client();
    let archive = client.download_tree(sandbox, from, Some(ROOT)).await;
    let archive = archive.map_err(|source| missing(step, from, source))?;
    send_on(builder, archive, &above).await?;
    let old = split(from).1;
    if old != name {
        let above = above.trim_end_matches('/');
        let (old, new) = (format!("{above}/{old}"), format!("{above}/{name}"));
        builder
            .must(step.line, &["mv", "-f", "--", &old, &new])
            .await?;
    }
    Ok(to.to_owned())
}

/// Passes an archive of one sandbox on to another.
async fn send_on(
    builder: &Builder<'_>,
    mut archive: dayfly_client::FileContent,
    directory: &str,
) -> Result<(), BuildError> {
    let (mut writer, reader) = tokio::io::duplex(PIPE_BYTES);
    let what = "copy files from another stage";
    let reading = async move {
        while let Some(bytes) = archive.next().await.map_err(BuildError::call(what))? {
            // The other end says why it went.
            if writer.write_all(&bytes).await.is_err() {
                break;
            }
        }
        let _ = writer.shutdown().await;
        Ok::<(), BuildError>(())
    };
    let writing = builder.unpack(directory, FileBody::from_reader(reader, None));
    let (read, written) = tokio::join!(reading, writing);
    read.and(written)
}

async fn inline(
    builder: &Builder<'_>,
    files: &[InlineFile],
    copy: &Copy<'_>,
) -> Result<Vec<String>, BuildError> {
    let is_directory =
        copy.is_directory || builder.is_directory(copy.destination).await? == Some(true);
    let (directory, renamed) = if is_directory {
        (copy.destination.to_owned(), None)
    } else {
        let (above, name) = split(copy.destination);
        (above, Some(name))
    };
    let mut archive = tar::Builder::new(Vec::new());
    let mut made = Vec::new();
    for file in files {
        let name = renamed.as_ref().unwrap_or(&file.name);
        let mut header = tar::Header::new_gnu();
        header.set_mode(copy.mode.unwrap_or(INLINE_MODE));
        header.set_size(file.content.len() as u64);
        let added = archive.append_data(&mut header, name, file.content.as_bytes());
        added.map_err(unpackable)?;
        made.push(format!("{}/{name}", directory.trim_end_matches('/')));
    }
    let bytes = archive.into_inner().map_err(unpackable)?;
    builder
        .unpack(&directory, FileBody::from_bytes(bytes))
        .await?;
    Ok(made)
}

fn unpackable(error: std::io::Error) -> BuildError {
    BuildError::Template {
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_and_named_once() {
        assert_eq!(split("/a"), ("/".to_owned(), "a".to_owned()));
        assert_eq!(split("/a/b"), ("/a".to_owned(), "b".to_owned()));
        let made = tops("/srv/", ["a", "a/b", "c/d"].into_iter());
        assert_eq!(made, ["/srv/a", "/srv/c"]);
    }

    #[test]
    fn archives_are_known_by_their_names() {
        assert!(is_archive("a.tar.gz") && is_archive("b.tgz"));
        assert!(!is_archive("a.gz") && !is_archive("tar"));
    }
}
