//! What is there while one RUN runs, and not in the files of its stage.
//!
//! A cache that outlives the build is allowed to be empty at any time, and here it always begins
//! empty: the cache of the step itself is its snapshot.

use dayfly_dockerfile::{MountFrom, RunMount, Step};

use crate::builder::Builder;
use crate::copy::{self, CopySource};
use crate::error::BuildError;
use crate::run::make_directory;

/// Where the contents of mounts lie.
const DIRECTORY: &str = "/tmp/.dayfly-mounts";

/// Puts mounts into place. They have to be removed whatever becomes of the RUN.
pub(crate) async fn place(
    builder: &Builder<'_>,
    step: &Step,
    mounts: &[RunMount],
    sources: &[Option<CopySource<'_>>],
) -> Result<(), BuildError> {
    for (index, mount) in mounts.iter().enumerate() {
        let inside = format!("{DIRECTORY}/{index}");
        let target = target_of(mount);
        make_directory(builder, target).await?;
        match mount {
            RunMount::Temporary { size_bytes, .. } => {
                let size = size_bytes.map(|bytes| format!("size={bytes}"));
                let options = size.as_deref().unwrap_or("rw");
                let words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", target];
                builder.must(step.line, &words).await?;
            }
            RunMount::Cache { mode, uid, gid, .. } => {
                make_directory(builder, &inside).await?;
                let mode = format!("{mode:o}");
                builder.must(step.line, &["chmod", &mode, &inside]).await?;
                let owner = format!("{uid}:{gid}");
                builder.must(step.line, &["chown", &owner, &inside]).await?;
                builder
                    .must(step.line, &["mount", "--bind", &inside, target])
                    .await?;
            }
            RunMount::Bind { source, .. } => {
                make_directory(builder, &inside).await?;
                if let Some(Some(from)) = sources.get(index) {
                    copy::all_of(builder, step, from, source, &inside).await?;
                }
                builder
                    .must(step.line, &["mount", "--bind", &inside, target])
                    .await?;
            }
        }
    }
    Ok(())
}

/// Takes mounts away again, last first, with what was in them.
pub(crate) async fn remove(
    builder: &Builder<'_>,
    step: &Step,
    mounts: &[RunMount],
) -> Result<(), BuildError> {
    if mounts.is_empty() {
        return Ok(());
    }
    for mount in mounts.iter().rev() {
        builder
            .must(step.line, &["umount", target_of(mount)])
            .await?;
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
