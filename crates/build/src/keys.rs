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

/// The key behind a step, and the digests of what it takes from the build context: what is sent later
/// has to be the same.
pub(crate) fn after(
    key: &StepKey,
    step: &Step,
    sources: &Sources<'_>,
) -> Result<(StepKey, Vec<String>), BuildError> {
    let mut digests = Vec::new();
    let content = match &step.work {
        StepWork::Copy { from, .. } => content_of(step, from, sources, &mut digests)?,
        StepWork::Run { mounts, .. } => mounted(step, mounts, sources, &mut digests)?,
        StepWork::MakeDirectory { .. } | StepWork::Nothing => None,
    };
    Ok((key.then(&step.work, content.as_deref()), digests))
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

/// Refuses what other builds would not copy as it is: links that are named, and archives for ADD.
fn check_named(
    context: &BuildContext,
    step: &Step,
    sources: &[String],
    unpacks: bool,
) -> Result<(), BuildError> {
    for source in sources {
        let depth = |path: &str| path.split('/').filter(|part| !part.is_empty()).count();
        // One that matches nothing may stand beside others.
        let Ok(found) = taken(context, step, std::slice::from_ref(source), true) else {
            continue;
        };
        // A wildcard matches nothing across a slash, so the others are below a directory.
        let is_named = |entry: &&SelectedEntry| depth(&entry.source) == depth(source);
        for entry in found.iter().filter(is_named) {
            check_one(context, step.line, entry, unpacks)?;
        }
    }
    Ok(())
}

fn check_one(
    context: &BuildContext,
    line: usize,
    entry: &SelectedEntry,
    unpacks: bool,
) -> Result<(), BuildError> {
    if entry.is_directory {
        return Ok(());
    }
    let source = &entry.source;
    let what = match context.begins(source).map_err(BuildError::Context)? {
        None => format!("{source} is a link; name the file or directory that it leads to"),
        Some(bytes) if unpacks && is_archive(&bytes) => format!(
            "{source} is an archive or compressed, and ADD does not unpack it here; COPY it and \
             unpack it with RUN tar"
        ),
        Some(_) => return Ok(()),
    };
    Err(BuildError::Unsupported { line, what })
}

/// Whether a file begins as what ADD would unpack: a tar archive, or one that is compressed.
fn is_archive(bytes: &[u8]) -> bool {
    const COMPRESSED: [&[u8]; 4] = [
        &[0x1f, 0x8b],
        b"BZh",
        &[0xfd, b'7', b'z', b'X', b'Z', 0],
        &[0x28, 0xb5, 0x2f, 0xfd],
    ];
    if COMPRESSED.iter().any(|magic| bytes.starts_with(magic)) {
        return true;
    }
    let Some(block) = bytes.get(..512) else {
        return false;
    };
    let mut header = tar::Header::new_old();
    header.as_mut_bytes().copy_from_slice(block);
    let Ok(said) = header.cksum() else {
        return false;
    };
    header.set_cksum();
    block.iter().any(|byte| *byte != 0) && header.cksum().is_ok_and(|sum| sum == said)
}

fn content_of(
    step: &Step,
    from: &CopyFrom,
    all: &Sources<'_>,
    digests: &mut Vec<String>,
) -> Result<Option<String>, BuildError> {
    let StepWork::Copy {
        sources,
        destination_is_directory,
        unpacks,
        ..
    } = &step.work
    else {
        return Ok(None);
    };
    match from {
        CopyFrom::Context => {
            let is_directory = *destination_is_directory;
            let taken = taken(all.context, step, sources, is_directory)?;
            check_named(all.context, step, sources, *unpacks)?;
            let digest = all.context.digest(&taken).map_err(BuildError::Context)?;
            digests.push(digest.clone());
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
    digests: &mut Vec<String>,
) -> Result<Option<String>, BuildError> {
    let mut content = String::new();
    for mount in mounts {
        let RunMount::Bind { from, source, .. } = mount else {
            continue;
        };
        match from {
            MountFrom::Context => {
                let source = std::slice::from_ref(source);
                let taken = taken(all.context, step, source, true)?;
                check_named(all.context, step, source, false)?;
                let digest = all.context.digest(&taken).map_err(BuildError::Context)?;
                content.push_str(&digest);
                digests.push(digest);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_known_by_how_they_begin() {
        let mut archive = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_old();
        header.set_size(1);
        header.set_mode(0o644);
        archive
            .append_data(&mut header, "a", [b'a'].as_slice())
            .unwrap();
        assert!(is_archive(&archive.into_inner().unwrap()));
        assert!(is_archive(&[0x1f, 0x8b, 8]));
        assert!(is_archive(b"BZh91AY"));
        for plain in [&b"text"[..], &[0; 512], &[b'x'; 600], b""] {
            assert!(!is_archive(plain));
        }
    }

    fn refusal(sources: &[&str], unpacks: bool) -> Option<String> {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        std::fs::create_dir(root.join("dist")).unwrap();
        std::fs::write(root.join("dist/a.tbz2"), "BZh9").unwrap();
        std::fs::write(root.join("dist/plain.tar"), "not an archive").unwrap();
        std::os::unix::fs::symlink("dist", root.join("current")).unwrap();
        std::os::unix::fs::symlink("plain.tar", root.join("dist/link")).unwrap();
        let context = BuildContext::open(root.to_owned()).unwrap();
        let step = Step {
            line: 4,
            text: String::new(),
            work: StepWork::Nothing,
        };
        let sources: Vec<String> = sources.iter().map(|one| (*one).to_owned()).collect();
        let checked = check_named(&context, &step, &sources, unpacks);
        checked.err().map(|error| error.to_string())
    }

    #[test]
    fn add_refuses_archives_that_a_wildcard_selects_and_takes_those_in_a_directory_as_they_are() {
        let refused = refusal(&["dist/*.t*"], true).unwrap();
        assert!(
            refused.starts_with("line 4: dist/a.tbz2 is an"),
            "{refused}"
        );
        assert_eq!(refusal(&["dist"], true), None);
        assert_eq!(refusal(&["dist/plain.tar"], true), None);
        assert_eq!(refusal(&["dist/a.tbz2"], false), None);
    }

    #[test]
    fn a_link_that_is_named_is_refused_and_one_in_a_directory_is_copied() {
        let refused = refusal(&["current"], false).unwrap();
        assert!(
            refused.starts_with("line 4: current is a link"),
            "{refused}"
        );
        assert!(refusal(&["dist/l*"], false).is_some());
        assert_eq!(refusal(&["dist", ""], false), None);
    }
}
