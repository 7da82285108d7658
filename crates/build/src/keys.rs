//! What names the cache of each step.

use std::collections::BTreeMap;

use dayfly_dockerfile::{
    CopyFrom, MountFrom, RunMount, SelectedEntry, Step, StepKey, StepWork, select,
};

use crate::base::Base;
use crate::context::BuildContext;
use crate::error::BuildError;

/// What the name of a step's snapshot begins with.
const PREFIX: &str = "step-";
/// Of the key in that name, which has room for 50 characters.
const KEY_CHARACTERS: usize = 40;

/// The name of the snapshot with this key.
pub(crate) fn snapshot_name(key: &StepKey) -> String {
    let hex = key.as_str();
    format!("{PREFIX}{}", hex.get(..KEY_CHARACTERS).unwrap_or(hex))
}

/// What steps copy from, as far as it decides what comes of them.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    pub(crate) context: &'a BuildContext,
    /// The last key of each stage that was planned.
    pub(crate) stages: BTreeMap<usize, String>,
    /// By the names that the Dockerfile has for them.
    pub(crate) images: BTreeMap<String, Base>,
}

/// Whether a step changes files; others only change how later ones are run.
pub(crate) const fn changes_files(work: &StepWork) -> bool {
    !matches!(work, StepWork::Nothing)
}

/// The key behind a step.
pub(crate) fn after(
    key: &StepKey,
    step: &Step,
    sources: &Sources<'_>,
) -> Result<StepKey, BuildError> {
    let content = match &step.work {
        StepWork::Copy { from, .. } => content_of(step, from, sources)?,
        StepWork::Run { mounts, .. } => mounted(step, mounts, sources)?,
        StepWork::MakeDirectory { .. } | StepWork::Nothing => None,
    };
    Ok(key.then(&step.work, content.as_deref()))
}

/// What a COPY takes of the context, and where it goes.
pub(crate) fn taken(
    context: &BuildContext,
    step: &Step,
    sources: &[String],
    is_directory: bool,
) -> Result<Vec<SelectedEntry>, BuildError> {
    let selected = select(context.entries(), sources, is_directory);
    selected.map_err(|error| BuildError::Unsupported {
        line: step.line,
        what: error.to_string(),
    })
}

fn content_of(
    step: &Step,
    from: &CopyFrom,
    all: &Sources<'_>,
) -> Result<Option<String>, BuildError> {
    let StepWork::Copy {
        sources,
        destination_is_directory,
        ..
    } = &step.work
    else {
        return Ok(None);
    };
    match from {
        CopyFrom::Context => {
            let is_directory = *destination_is_directory;
            let taken = taken(all.context, step, sources, is_directory)?;
            let digest = all.context.digest(&taken).map_err(BuildError::Context)?;
            Ok(Some(digest))
        }
        CopyFrom::Stage(stage) => Ok(all.stages.get(stage).cloned()),
        CopyFrom::Image(name) => Ok(all.images.get(name).map(|base| base.identity.clone())),
        // They are in the step itself.
        CopyFrom::Inline(_) => Ok(None),
    }
}

fn mounted(
    step: &Step,
    mounts: &[RunMount],
    all: &Sources<'_>,
) -> Result<Option<String>, BuildError> {
    let mut content = String::new();
    for mount in mounts {
        let RunMount::Bind { from, source, .. } = mount else {
            continue;
        };
        match from {
            MountFrom::Context => {
                let taken = taken(all.context, step, std::slice::from_ref(source), true)?;
                let digest = all.context.digest(&taken).map_err(BuildError::Context)?;
                content.push_str(&digest);
            }
            MountFrom::Stage(stage) => {
                content.extend(all.stages.get(stage).map(String::as_str));
            }
            MountFrom::Image(name) => {
                content.extend(all.images.get(name).map(|base| base.identity.as_str()));
            }
        }
    }
    Ok((!content.is_empty()).then_some(content))
}
