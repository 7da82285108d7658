//! What is there while one RUN runs, and not in the files of its stage.
//!
//! A cache that outlives the build is allowed to be empty at any time, and here it always begins
//! empty: the cache of the step itself is its snapshot.

use dayfly_dockerfile::{MountFrom, RunMount, Step};

use crate::builder::Builder;
use crate::copy::{self, CopySource};
use crate::error::BuildError;
use crate::owner;
use crate::place::{Place, split};
use crate::run::{make_directory, place_file};

/// Where the contents of mounts lie.
const DIRECTORY: &str = "/tmp/.dayfly-mounts";

/// What is mounted for one RUN.
#[derive(Debug, Default)]
pub(crate) struct Placed {
    /// Targets of mounts, first mounted first.
    targets: Vec<String>,
    /// What was not there and is only mounted on, highest first.
    made: Vec<String>,
    /// Of what was taken from the build context.
    pub(crate) digests: Vec<String>,
}

/// Puts mounts into place. They have to be removed whatever becomes of the RUN.
pub(crate) async fn place(
    builder: &Builder<'_>,
    step: &Step,
    mounts: &[RunMount],
    sources: &[Option<CopySource<'_>>],
) -> Result<Placed, BuildError> {
    let mut placed = Placed::default();
    for (index, mount) in mounts.iter().enumerate() {
        let inside = format!("{DIRECTORY}/{index}");
        let (target, line) = (target_of(mount), step.line);
        let mut missing = owner::missing(builder, target).await?;
        missing.reverse();
        placed.made.extend(missing);
        match mount {
            RunMount::Temporary { size_bytes, .. } => {
                make_directory(builder, line, target, None).await?;
                let size = size_bytes.map(|bytes| format!("size={bytes}"));
                let options = size.as_deref().unwrap_or("rw");
                let words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", target];
                builder.must(line, &words).await?;
            }
            RunMount::Cache {
                mode,
                uid,
                gid,
                read_only,
                ..
            } => {
                make_directory(builder, line, target, None).await?;
                make_directory(builder, line, &inside, None).await?;
                let mode = format!("{mode:o}");
                builder.must(line, &["chmod", &mode, &inside]).await?;
                let owner = format!("{uid}:{gid}");
                builder.must(line, &["chown", &owner, &inside]).await?;
                bind(builder, line, &inside, target, *read_only).await?;
            }
            RunMount::Bind {
                source, writable, ..
            } => {
                make_directory(builder, line, &inside, None).await?;
                let mut from = inside;
                if let Some(Some(source_of)) = sources.get(index) {
                    let taken = copy::all_of(builder, step, source_of, source, &from).await?;
                    placed.digests.extend(taken.digest);
                    // One file is mounted on a file.
                    if let Some(name) = taken.only {
                        from = format!("{from}/{name}");
                    }
                }
                mount_point(builder, line, &from, target).await?;
                bind(builder, line, &from, target, !writable).await?;
            }
        }
        placed.targets.push(target.to_owned());
    }
    Ok(placed)
}

/// Makes what is mounted on, of the kind of what is mounted.
async fn mount_point(
    builder: &Builder<'_>,
    line: usize,
    from: &str,
    target: &str,
) -> Result<(), BuildError> {
    let is_directory = builder.place(from).await? == Place::Directory;
    match (builder.place(target).await?, is_directory) {
        (Place::Directory, true) | (Place::File, false) => Ok(()),
        (Place::Nothing, true) => make_directory(builder, line, target, None).await,
        (Place::Nothing, false) => {
            let (above, name) = split(target);
            place_file(builder, &above, &name, 0o644, "").await
        }
        (Place::Directory, false) | (Place::File, true) | (Place::Link, _) => {
            let kind = if is_directory {
                "a directory"
            } else {
                "a file"
            };
            let what = format!("{kind} is to be mounted on {target}, which is something else");
            Err(BuildError::Unsupported { line, what })
        }
    }
}

async fn bind(
    builder: &Builder<'_>,
    line: usize,
    from: &str,
    target: &str,
    is_read_only: bool,
) -> Result<(), BuildError> {
    builder
        .must(line, &["mount", "--bind", from, target])
        .await?;
    if is_read_only {
        let words = ["mount", "-o", "remount,bind,ro", target];
        builder.must(line, &words).await?;
    }
    Ok(())
}

/// Takes mounts away again, last first, with what was in them, and what was made for them.
pub(crate) async fn remove(
    builder: &Builder<'_>,
    step: &Step,
    placed: &Placed,
) -> Result<(), BuildError> {
    if placed.targets.is_empty() {
        return Ok(());
    }
    for target in placed.targets.iter().rev() {
        builder.must(step.line, &["umount", target]).await?;
    }
    for made in placed.made.iter().rev() {
        builder.remove_unused(made).await?;
    }
    builder.must(step.line, &["rm", "-rf", DIRECTORY]).await
}

fn target_of(mount: &RunMount) -> &str {
    match mount {
        RunMount::Cache { target, .. }
        | RunMount::Temporary { target, .. }
        | RunMount::Bind { target, .. } => target,
    }
}

/// Where the files of a mount come from, if it has any.
pub(crate) const fn origin_of(mount: &RunMount) -> Option<&MountFrom> {
    match mount {
        RunMount::Bind { from, .. } => Some(from),
        RunMount::Cache { .. } | RunMount::Temporary { .. } => None,
    }
}
